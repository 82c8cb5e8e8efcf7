"""The paper's figures 2 to 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ode2opt.learning.flow.smoothness import SCATTER_METHODS as SCATTERED
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import (
    FOLLOWED,
    ITERATIONS,
    PROBLEMS,
    TOL,
    covtype_of,
)
from ode2opt.study.reproduction.protocol_figures import draw_contraction, draw_training
from ode2opt.study.reproduction.rows import DRAWN
from ode2opt.study.style import (
    add_legend,
    add_threshold,
    line_style,
    marker_style,
    name_panel,
    new_figure,
    say_in_panel,
    window_of,
)

PLACES = {row.key: place for place, row in enumerate(DRAWN)}
LABELS = {row.key: row.name for row in DRAWN}
LEAST = 1e-14  # of a difference of function values
ROOM = 0.02  # and how far below the others L-BFGS is followed


def make_figures(findings: Findings) -> dict[str, Any]:
    """Return the figures that are asked for, by the names of their files."""
    return {
        file: draw(findings)
        for output, (file, draw) in FIGURES.items()
        if output in findings.outputs
    }


def smoothness_cells() -> list[tuple[str, str]]:
    """Return the four problems of figure 2."""
    return [(problem, data) for problem in PROBLEMS for data in ("separable", "mushrooms")]


def _smoothness(findings: Findings) -> Any:
    title = "Figure 2. (L0, L1)-smoothness: curvature against gradient norm along four methods"
    figure, panels = new_figure(title, findings.effort.mark, 2, 2)
    for axes, cell in zip(panels, smoothness_cells(), strict=True):
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
    """Return the heights to show; L-BFGS, which may go to 1e-150, leaves the panel at the
    bottom.
    """
    low, high = window_of([values for key, values in lines.items() if key != "lbfgs"])
    least, _ = window_of(list(lines.values()))
    return max(ROOM * low, least), high


def excess_values(found: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return f(x_k) minus the least value known, by method."""
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
    "fig3": ("fig3_training", draw_training),
    "fig4": ("fig4_contraction", draw_contraction),
    "fig5": ("fig5_logistic", _examples(5, "logistic")),
    "fig6": ("fig6_lpp", _examples(6, "lpp")),
    "fig7": ("fig7_values", _values),
}
"""The figures by output: the name of their files, and what draws them."""
