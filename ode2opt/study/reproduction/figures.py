"""The paper's figures 2 to 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ode2opt.learning.flow.smoothness import SCATTER_METHODS as SCATTERED
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import (
    EARLY,
    FOLLOWED,
    ITERATIONS,
    PROBLEMS,
    TOL,
    covtype_of,
)
from ode2opt.study.reproduction.rows import DRAWN, LEARNED
from ode2opt.study.style import (
    add_legend,
    add_threshold,
    line_style,
    marker_style,
    name_panel,
    new_figure,
    say_in_panel,
)

PLACES = {row.key: place for place, row in enumerate(DRAWN)}
LABELS = {row.key: row.name for row in DRAWN}
BEHIND = {"linewidth": 1.2, "zorder": 1.9}  # other lines have 2
EPOCHS: dict[str, tuple[str, dict[str, Any]]] = {  # figure 4: what is said of a line, its looks
    "default": ("default, C = 4", line_style(PLACES["eigac-c4"])),
    "relay": ("learned, with relay", line_style(PLACES[LEARNED.key])),
    "early": (f"learned, {EARLY} steps", BEHIND | {"color": "0.7", "linestyle": "-"}),
    "last": ("learned, all steps", BEHIND | {"color": "0.45", "linestyle": (0, (4, 2))}),
}
LEAST = 1e-14  # of a difference of function values
LARGEST = 2.5  # of contraction factor, C and |1 - B|
ABOVE, BELOW = 4.0, 0.4  # how far a panel goes beyond the first and the least height
ROOM = 0.02  # and how far below the others L-BFGS is followed


def make_figures(findings: Findings) -> dict[str, Any]:
    """Return the figures that are asked for, by the names of their files."""
    return {
        file: draw(findings)
        for output, (file, draw) in FIGURES.items()
        if output in findings.outputs
    }


def _smoothness(findings: Findings) -> Any:
    title = "Figure 2. (L0, L1)-smoothness: curvature against gradient norm along four methods"
    figure, panels = new_figure(title, findings.effort.mark, 2, 2)
    cells = [(problem, data) for problem in PROBLEMS for data in ("separable", "mushrooms")]
    for axes, cell in zip(panels, cells, strict=True):
        name_panel(axes, " ".join(cell), "gradient norm", "largest curvature")
        found = findings.get("smoothness", *cell)
        if found is None:
            say_in_panel(axes)
            continue
        for key in SCATTERED:
            x, y = np.array(found["points"][key]).T
            axes.scatter(x, y, label=LABELS[key], **marker_style(PLACES[key]))
        axes.set_xscale("log")
        axes.set_yscale("log")
    add_legend(figure, panels, len(SCATTERED))
    return figure


def _training(findings: Findings) -> Any:
    title = "Figure 3. Training: stopping time of the flow and penalty, each step on fresh problems"
    figure, panels = new_figure(title, findings.effort.mark, 2, 2)
    for i, problem in enumerate(PROBLEMS):
        left, right = panels[2 * i : 2 * i + 2]
        name_panel(left, problem, "step", "stopping time T - t0")
        name_panel(right, problem, "step", "penalty P + Q")
        for place, dataset in enumerate(findings.datasets):
            found = findings.get("training", problem, dataset)
            if found is None:
                continue
            step, times, penalty = training_curves(found)
            style = line_style(place) | {"linewidth": 1.0, "label": dataset}
            left.plot(step, times, **style)
            if np.nanmax(penalty, initial=0.0) > 0:
                right.plot(step, penalty, **style)
        left.set_yscale("log")
        if left.lines and not right.lines:
            say_in_panel(right, "0 throughout")
    add_legend(figure, panels, len(findings.datasets))
    return figure


def training_curves(found: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return step, stopping time beyond t0, and P + Q of a training; NaN where none was seen."""
    columns = (
        np.array(found["steps"][name], float) for name in ("step", "stopping_time", "P", "Q")
    )
    step, times, P, Q = columns
    return step + 1, times - found["options"]["t0"], P + Q


def _contraction(findings: Findings) -> Any:
    title = "Figure 4. lpp a5a, one test problem: default, learned and relayed coefficients"
    figure, panels = new_figure(title, findings.effort.mark, 2, 2)
    quantities = (
        ("grad_norm", "gradient norm", TOL),
        ("rho", "contraction factor of the top mode", 1.0),
        ("C", "C", 0.0),
        ("B", "|1 - B|", 1.0),
    )
    found = findings.get("contraction", "lpp", "a5a")
    for axes, (name, label, edge) in zip(panels, quantities, strict=True):
        name_panel(axes, "", "iteration k", label)
        if found is None:
            say_in_panel(axes)
            continue
        add_threshold(axes, edge)
        for key, (words, style) in EPOCHS.items():
            line = found["lines"][key]
            k = np.arange(len(line["grad_norm"])) if name == "grad_norm" else line["k"]
            axes.plot(k, line[name], label=words, **style)
        axes.set_xlim(0, ITERATIONS)
        _keep_in_view(axes, name, [line[name] for line in found["lines"].values()])
    add_legend(figure, panels, len(EPOCHS))
    return figure


def _keep_in_view(axes: Any, name: str, lines: list[Any]) -> None:
    """Choose heights that show what matters where a line leaves for infinity."""
    if name == "grad_norm":
        axes.set_yscale("log")
        axes.set_ylim(*_window(lines))
        return
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -LARGEST), min(high, LARGEST))


def _examples(number: int, problem: str) -> Callable[[Findings], Any]:
    def draw(findings: Findings) -> Any:
        title = f"Figure {number}. {problem}: gradient norm on one test problem of each dataset"
        columns = 3
        rows = -(-len(findings.datasets) // columns)
        figure, panels = new_figure(title, findings.effort.mark, rows, columns)
        for spare in panels[len(findings.datasets) :]:
            spare.set_visible(False)
        for axes, dataset in zip(panels, findings.datasets, strict=False):
            name_panel(axes, dataset, "iteration", "gradient norm")
            found = findings.get("example", problem, dataset)
            if found is None:
                say_in_panel(axes)
                continue
            add_threshold(axes, TOL)
            lines = {key: line["grad_norm"][: ITERATIONS + 1] for key, line in _drawn(found)}
            _draw_lines(axes, lines)
        add_legend(figure, panels, 4)
        return figure

    return draw


def _drawn(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(row.key, found["lines"][row.key]) for row in DRAWN]


def _draw_lines(axes: Any, lines: dict[str, Any]) -> None:
    for key, values in lines.items():
        axes.semilogy(values, label=LABELS[key], **line_style(PLACES[key]))
    axes.set_ylim(*view_of(lines))


def view_of(lines: dict[str, Any]) -> tuple[float, float]:
    """Return the heights to look at; L-BFGS, which may go to 1e-150, leaves at the bottom."""
    low, high = _window([values for key, values in lines.items() if key != "lbfgs"])
    least, _ = _window(list(lines.values()))
    return max(ROOM * low, least), high


def _window(lines: list[Any]) -> tuple[float, float]:
    """Return heights that hold all lines, but not what a diverging one climbs to."""
    finite = [np.asarray(line, float)[np.isfinite(line)] for line in lines]
    low = min(line[line > 0].min() for line in finite if np.any(line > 0))
    return BELOW * low, ABOVE * max(line[0] for line in finite)


def excess_values(found: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return f(x_k) minus the least value known, by method, for an example."""
    values = {key: np.array(line["value"], float) for key, line in _drawn(found)}
    least = min(found["least_value"], *(np.nanmin(line) for line in values.values()))
    return {key: np.maximum(line - least, LEAST) for key, line in values.items()}


def value_cells(findings: Findings) -> list[tuple[str, str]]:
    """Return the four problems of figure 7."""
    covtype = covtype_of(findings.datasets)
    return [(problem, data) for problem in PROBLEMS for data in ("phishing", covtype)]


def _values(findings: Findings) -> Any:
    title = (
        f"Figure 7. Function value above the least known, to iteration {FOLLOWED} (EIGAC: relay)"
    )
    figure, panels = new_figure(title, findings.effort.mark, 2, 2)
    for axes, cell in zip(panels, value_cells(findings), strict=True):
        name_panel(axes, " ".join(cell), "iteration", "f(x) - f*")
        found = findings.get("example", *cell)
        if found is None:
            say_in_panel(axes)
        else:
            _draw_lines(axes, excess_values(found))
    add_legend(figure, panels, 4)
    return figure


FIGURES: dict[str, tuple[str, Callable[[Findings], Any]]] = {
    "fig2": ("fig2_smoothness", _smoothness),
    "fig3": ("fig3_training", _training),
    "fig4": ("fig4_contraction", _contraction),
    "fig5": ("fig5_logistic", _examples(5, "logistic")),
    "fig6": ("fig6_lpp", _examples(6, "lpp")),
    "fig7": ("fig7_values", _values),
}
"""The figures by output: the name of their files, and what draws them."""
