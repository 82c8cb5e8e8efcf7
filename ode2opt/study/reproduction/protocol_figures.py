"""Figures 3 and 4: the paper's protocol on the left, ours on the right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ode2opt.learning.flow.paper import STABLE_C
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import (
    EARLY,
    FOLLOWED_CELL,
    ITERATIONS,
    LATE,
    PROBLEMS,
    TOL,
)
from ode2opt.study.reproduction.rows import DRAWN, LEARNED
from ode2opt.study.style import (
    add_legend,
    add_threshold,
    line_style,
    name_panel,
    new_figure,
    say_in_panel,
    window_of,
)

TRAININGS = {"protocol": "the paper's protocol", "training": "ours"}
"""What figure 3 shows side by side: kinds of work, and what they are called."""
COLUMNS = {"paper": "the paper's protocol", "ours": "ours"}
"""What figure 4 shows side by side."""
QUANTITIES = (
    ("grad_norm", "gradient norm", TOL),
    ("rho", "contraction factor, top mode", 1.0),
    ("C", "C", 0.0),
    ("B", "|1 - B|", 1.0),
)
"""The rows of figure 4: name, label, and the height that matters."""
NAMES = {
    "default": f"default, C = {STABLE_C:g}",
    "early": f"learned, early ({EARLY} epochs; ours: {EARLY} steps)",
    "last": f"learned, last ({LATE} epochs; ours: all steps)",
    "relay": "last, with relay",
}
"""The lines of figure 4."""
_PLACES = {row.key: place for place, row in enumerate(DRAWN)}
LOOKS: dict[str, dict[str, Any]] = {
    "default": line_style(_PLACES["eigac-c4"]),
    "early": line_style(_PLACES["gd"]),
    "last": line_style(_PLACES["nag"]),
    "relay": line_style(_PLACES[LEARNED.key]),
}
LARGEST = 2.5  # of contraction factor, C and |1 - B|
MOST = 1e4  # of the penalty: what blows up leaves at the top
SMALL = 1e-4  # of the penalty: below, its axis is linear


def draw_training(findings: Findings) -> Any:
    """Draw figure 3: stopping time and penalty at every step of both trainings."""
    title = (
        "Figure 3. Training: stopping time of the flow and penalty, each step on fresh problems. "
        "A cross is a step whose flow did not get there, a filled one the end of a training"
    )
    figure, panels = new_figure(title, findings.effort.mark, 2 * len(PROBLEMS), 2)
    for i, (problem, (kind, words)) in enumerate(product(PROBLEMS, TRAININGS.items())):
        row, column = divmod(i, 2)
        above, below = panels[4 * row + column], panels[4 * row + column + 2]
        name_panel(above, f"{problem}, {words}", "step", "stopping time T - t0")
        name_panel(below, f"{problem}, {words}", "step", "penalty P + Q")
        for place, dataset in enumerate(findings.datasets):
            if found := findings.get(kind, problem, dataset):
                _draw_steps(above, below, found, line_style(place) | {"label": dataset})
        _finish_steps(above, below)
    for row in range(2 * len(PROBLEMS)):
        _same_heights(panels[2 * row : 2 * row + 2])
    add_legend(figure, panels, len(findings.datasets))
    return figure


def _draw_steps(above: Any, below: Any, found: dict[str, Any], style: dict[str, Any]) -> None:
    step, times, penalty = training_curves(found)
    style |= {"linewidth": 1.0}
    above.plot(step, times, **style)
    lost = step[np.array(found["steps"]["reached"]) == 0]
    if len(lost):
        across = above.get_xaxis_transform()
        above.plot(
            lost,
            np.full(len(lost), 0.98),
            "x",
            color=style["color"],
            markersize=3,
            transform=across,
        )
    if np.nanmax(penalty, initial=0.0) > 0:
        below.plot(step, penalty, **style)
    if "broken_off" in found:
        mark = {"color": style["color"], "marker": "X", "markersize": 7}
        below.plot(step[-1:], np.minimum(penalty[-1:], MOST), **mark)


def _finish_steps(above: Any, below: Any) -> None:
    above.set_yscale("log")
    if above.lines and not below.lines:
        say_in_panel(below, "0 throughout")
    elif below.lines:
        below.set_yscale("symlog", linthresh=SMALL)
    else:
        say_in_panel(above)
        say_in_panel(below)


def _same_heights(pair: Sequence[Any]) -> None:
    """Give both panels of a row the same heights, where both have lines."""
    if not all(axes.lines for axes in pair):
        return
    limits = [axes.get_ylim() for axes in pair]
    low = max(min(low for low, _ in limits), -SMALL / 4)  # neither quantity is negative
    high = min(max(high for _, high in limits), 2 * MOST)
    for axes in pair:
        axes.set_ylim(low, high)


def training_curves(found: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return step, stopping time beyond t0, and P + Q of a training; NaN where none was seen."""
    columns = (
        np.array(found["steps"][name], float) for name in ("step", "stopping_time", "P", "Q")
    )
    step, times, P, Q = columns
    return step + 1, times - found["options"]["t0"], P + Q


def draw_contraction(findings: Findings) -> Any:
    """Draw figure 4: what both protocols' coefficients do, and what the contraction factor says."""
    cell = " ".join(FOLLOWED_CELL)
    title = f"Figure 4. {cell}, one test problem, unwatched: default, learned and relayed"
    figure, panels = new_figure(title, findings.effort.mark, len(QUANTITIES), 2)
    found = findings.get("contraction", *FOLLOWED_CELL)
    for i, ((name, label, edge), protocol) in enumerate(product(QUANTITIES, COLUMNS)):
        axes = panels[i]
        if found is None:
            name_panel(axes, COLUMNS[protocol], "iteration k", label)
            say_in_panel(axes)
            continue
        lines = found["protocols"][protocol]
        name_panel(axes, _panel_title(name, protocol, lines), "iteration k", label)
        add_threshold(axes, edge)
        for key, words in NAMES.items():
            axes.plot(*line_of(lines[key], name), label=words, **LOOKS[key])
        axes.set_xlim(0, ITERATIONS)
        axes.set_yscale("log" if name == "grad_norm" else "linear")
        axes.set_ylim(*heights_of(name, found))
    add_legend(figure, panels, 2)
    return figure


def line_of(line: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Return the iterations and the values of one quantity of a line of figure 4."""
    k = np.arange(len(line["grad_norm"])) if name == "grad_norm" else np.array(line["k"])
    return k, np.array(line[name], float)


def _panel_title(name: str, protocol: str, lines: dict[str, Any]) -> str:
    if name not in ("rho", "C"):
        return COLUMNS[protocol] if name == "grad_norm" else ""
    extremes = {key: lines[key]["extremes"][name] for key in NAMES}
    worst = max(extremes, key=lambda key: extremes[key]["largest"])
    top = extremes[worst]
    return f"largest: {top['largest']:.3g} ({worst}, k = {top['at']})"


def heights_of(name: str, found: dict[str, Any]) -> tuple[float, float]:
    """Return heights that show what matters of a quantity, alike for both protocols.

    A line that leaves for infinity is cut off.
    """
    lines = [line for lines in found["protocols"].values() for line in lines.values()]
    every = [line_of(line, name)[1] for line in lines]
    if name == "grad_norm":
        return window_of(every)
    values = np.concatenate(every)
    values = values[np.isfinite(values) & (np.abs(values) <= LARGEST)]
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low)
    return low - room, high + room
