"""The paper's figures 2 to 7: what each shows, told once and drawn in files and on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ode2opt.learning.flow.paper import STABLE_C
from ode2opt.learning.flow.smoothness import SCATTER_METHODS
from ode2opt.study.curves import Curve, Plot
from ode2opt.study.page import Page
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import (
    DRAWN,
    EARLY,
    FOLLOWED,
    FOLLOWED_CELL,
    ITERATIONS,
    LATE,
    LEARNED,
    PROBLEMS,
    TOL,
    covtype_of,
)
from ode2opt.study.style import draw_figure

LABELS = {row.key: row.name for row in DRAWN}
LOOKS = {row.name: place for place, row in enumerate(DRAWN)}
"""The place of each method among colours and dashes, the same in all figures."""
TRAININGS = {"protocol": "the paper's protocol", "training": "ours"}
"""What figure 3 shows side by side: kinds of work, and what they are called."""
COLUMNS = {"paper": TRAININGS["protocol"], "ours": TRAININGS["training"]}
"""What figure 4 shows side by side."""
ALONG = (
    ("grad_norm", "gradient norm", TOL),
    ("rho", "contraction factor, top mode", 1.0),
    ("C", "C", 0.0),
    ("B", "|1 - B|", 1.0),
)
"""The rows of figure 4: name, label, and the height that matters."""
LINES = {
    "default": (f"default, C = {STABLE_C:g}", "eigac-c4"),
    "early": (f"learned, early ({EARLY} epochs; ours: {EARLY} steps)", "gd"),
    "last": (f"learned, last ({LATE} epochs; ours: all steps)", "nag"),
    "relay": ("last, with relay", LEARNED.key),
}
"""The lines of figure 4: what each is called, and the method whose colour and dash it has."""

SMOOTHNESS_WORDS = """\
The paper's figure shows points along one line whatever the method is: curvature falls with the \
gradient norm, (L0, L1)-smoothness. Points of a method are joined in their order.
"""

TRAINING_WORDS = """\
The paper's figure shows stopping time and penalty falling in all its trainings. Here both \
protocols are drawn: the paper's, with its networks, SGD, rho = 0.1 and no clipping, and ours. The \
paper does not say how many problems an epoch has, nor how its networks are initialised.
"""

CONTRACTION_WORDS = f"""\
The paper's figure shows four lines on lpp a5a. The default coefficients do not diverge; their \
contraction factor stays below 1. After 10 epochs the method is faster, but leaves slowly and with \
oscillations once its gradient norm is 3e-5, because the contraction factor rises above 1 after \
330 iterations. After 80 epochs it is faster still and leaves at once, because C becomes positive. \
The relay brings the factor back below 1.

The default here has C = {STABLE_C:g}, the largest that meets the paper's stability condition. The \
printed C = 4 violates it at the first iteration. Curvature is that of the Hessian averaged over \
the segment from the flow to the iterate; for the relay, which follows no flow, of the Hessian at \
the iterate. Numbers of a run end where its gradient norm is five times the first one.
"""


class Figure(NamedTuple):
    """A figure: its file and title, its heading and words on the page, and its plots.

    ``looks`` has the place of each curve's name among colours and dashes.
    """

    file: str
    title: str
    heading: str
    plots: list[Plot]
    looks: Mapping[str, int] = LOOKS
    columns: int = 2
    words: str = ""


def figures_of(findings: Findings) -> list[Figure]:
    """Return the figures that are asked for, in the order of the page."""
    return [make(findings) for name, make in FIGURES.items() if name in findings.outputs]


def make_figures(findings: Findings) -> dict[str, Any]:
    """Return the figures that are asked for as those of matplotlib, by the names of their files."""
    return {
        one.file: draw_figure(one.title, findings.effort.mark, one.plots, one.looks, one.columns)
        for one in figures_of(findings)
    }


def add_figures(page: Page, findings: Findings) -> None:
    """Add the figures that are asked for, as far as there is something to draw."""
    for figure in figures_of(findings):
        plots = [plot for plot in figure.plots if plot.curves]
        if plots:
            page.add_heading(findings.effort.marked(figure.heading))
            page.add_text(figure.words)
        for plot in plots:
            page.add_plot(plot)


# Figures 2, 5, 6 and 7: single test problems -----------------------------------------------------


def _smoothness(findings: Findings) -> Figure:
    def points(found: dict[str, Any] | None) -> list[Curve]:
        keys = () if found is None else SCATTER_METHODS
        return [Curve(LABELS[key], *np.array(found["points"][key]).T) for key in keys]  # type: ignore[index]

    plots = [
        Plot(
            " ".join(cell), points(findings.get("smoothness", *cell)), "gradient norm",
            "largest curvature", log_x=True, log_y=True, scattered=True,
            caption="One test problem.",
        )
        for cell in product(PROBLEMS, ("separable", "mushrooms"))
    ]  # fmt: skip
    title = "Figure 2. (L0, L1)-smoothness: curvature against gradient norm along four methods"
    heading = "Figure 2: curvature against gradient norm"
    return Figure("fig2_smoothness", title, heading, plots, words=SMOOTHNESS_WORDS)


def _examples(number: int, problem: str, findings: Findings) -> Figure:
    plots = []
    for dataset in findings.datasets:
        found = findings.get("example", problem, dataset)
        lines = {k: line["grad_norm"][: ITERATIONS + 1] for k, line in _drawn(found).items()}
        plot = _methods(f"{problem} {dataset}", lines, "gradient norm", found)
        plots.append(plot._replace(threshold=TOL))
    title = f"Figure {number}. {problem}: gradient norm on one test problem of each dataset"
    heading = f"Figure {number}: gradient norm, {problem}"
    return Figure(f"fig{number}_{problem}", title, heading, plots, columns=3)


def _values(findings: Findings) -> Figure:
    plots = []
    for cell in product(PROBLEMS, ("phishing", covtype_of(findings.datasets))):
        found = findings.get("example", *cell)
        plots.append(_methods(" ".join(cell), excess_values(found), "f(x) - f*", found))
    title = (
        f"Figure 7. Function value above the least known, to iteration {FOLLOWED} (EIGAC: relay)"
    )
    return Figure("fig7_values", title, "Figure 7: function value above the least known", plots)


def _methods(title: str, lines: dict[str, Any], y: str, found: dict[str, Any] | None) -> Plot:
    """Return a plot of every method on one test problem; without curves where it is missing."""
    curves = [Curve(LABELS[key], np.arange(len(line)), line) for key, line in lines.items()]
    if found is None:
        return Plot(title, [], "iteration", y)
    events = found["lines"][LEARNED.key]["handovers"]
    handed = f" The relay took over from EIGAC at iteration {events[0]}." if events else ""
    return Plot(
        title, curves, "iteration", y, log_y=True, heights=view_of(lines),
        caption=f"One test problem.{handed}",
    )  # fmt: skip


def _drawn(found: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    return {} if found is None else {row.key: found["lines"][row.key] for row in DRAWN}


def view_of(lines: dict[str, Any], room: float = 0.02) -> tuple[float, float]:
    """Return the heights to show; L-BFGS, which may go to 1e-150, leaves at the bottom.

    It is followed to ``room`` times the least height of the others.
    """
    low, high = _window([values for key, values in lines.items() if key != "lbfgs"])
    least, _ = _window(list(lines.values()))
    return max(room * low, least), high


def _window(lines: Sequence[Any]) -> tuple[float, float]:
    """Return heights that hold all lines, but not what a diverging one climbs to."""
    finite = [np.asarray(line, float)[np.isfinite(line)] for line in lines]
    low = min(line[line > 0].min() for line in finite if np.any(line > 0))
    return 0.4 * low, 4.0 * max(line[0] for line in finite)


def excess_values(found: dict[str, Any] | None, floor: float = 1e-14) -> dict[str, np.ndarray]:
    """Return f(x_k) minus the least value known, by method, at least ``floor``: its rounding."""
    values = {key: np.array(line["value"], float) for key, line in _drawn(found).items()}
    if found is None:
        return values
    least = min(found["least_value"], *(np.nanmin(line) for line in values.values()))
    return {key: np.maximum(line - least, floor) for key, line in values.items()}


# Figure 3: both trainings ------------------------------------------------------------------------


def _training(findings: Findings, small: float = 1e-4, most: float = 1e4) -> Figure:
    """Show stopping time and penalty of both trainings, alike in height.

    Penalties below ``small`` stand on a linear axis; those above ``most`` leave at the top.
    """
    plots = []
    for problem in PROBLEMS:
        times, penalties = zip(
            *(
                _steps(findings, kind, f"{problem}, {words}", most)
                for kind, words in TRAININGS.items()
            ),
            strict=True,
        )
        plots += _alike(times, lambda low, high: (low / 1.1, 1.1 * high))
        plots += [
            plot._replace(symlog=small)
            for plot in _alike(
                penalties, lambda _, high: (-small / 4, min(1.05 * high + small, 2 * most))
            )
        ]
    title = (
        "Figure 3. Training: stopping time of the flow and penalty, each step on fresh problems. "
        "A cross is a step whose flow did not get there, a filled one the end of a training"
    )
    looks = {dataset: place for place, dataset in enumerate(findings.datasets)}
    heading = "Figure 3: training"
    return Figure("fig3_training", title, heading, plots, looks, words=TRAINING_WORDS)


def _steps(findings: Findings, kind: str, title: str, most: float) -> tuple[Plot, Plot]:
    """Return plots of stopping time and penalty over the steps of a problem's trainings."""
    problem = title.partition(",")[0]
    found = {d: one for d in findings.datasets if (one := findings.get(kind, problem, d))}
    times, penalties, lost, ended = [], [], [], []
    for dataset, one in found.items():
        step, T, penalty = training_curves(one)
        times.append(Curve(dataset, step, T))
        penalties.append(Curve(dataset, step, penalty))
        missed = step[np.array(one["steps"]["reached"]) == 0]
        lost += [(Curve(dataset, missed, ()), "x")] * bool(len(missed))
        ended += [(Curve(dataset, step[-1:], np.minimum(penalty[-1:], most)), "X")] * (
            "broken_off" in one
        )
    caption = f"Means over the fresh problems of each step. {lost_words(found)}"
    return (
        Plot(f"{title}: stopping time", times, "step", "T - t0", log_y=True, caption=caption,
             marks=lost),
        Plot(f"{title}: penalty", penalties, "step", "P + Q", marks=ended,
             caption="Free of units, for both protocols."),
    )  # fmt: skip


def _alike(
    plots: Sequence[Plot], view: Callable[[float, float], tuple[float, float]]
) -> list[Plot]:
    """Return plots of a row with the same heights."""
    values = [np.asarray(curve.y, float) for plot in plots for curve in plot.curves]
    seen = np.concatenate([np.empty(0), *(value[np.isfinite(value)] for value in values)])
    heights = view(float(seen.min()), float(seen.max())) if len(seen) else None
    return [plot._replace(heights=heights) for plot in plots]


def training_curves(found: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return step, stopping time beyond t0, and P + Q of a training; NaN where none was seen."""
    columns = (
        np.array(found["steps"][name], float) for name in ("step", "stopping_time", "P", "Q")
    )
    step, times, P, Q = columns
    return step + 1, times - found["options"]["t0"], P + Q


def lost_words(found: dict[str, Any]) -> str:
    """Say on how many steps no flow got there, and which trainings had to end, by dataset."""
    lost = {name: one["steps"]["reached"].count(0) for name, one in found.items()}
    listed = ", ".join(f"{count} of {name}" for name, count in lost.items() if count)
    said = f"Steps whose flow did not reach the tolerance: {listed}." if listed else ""
    broken = {name: one for name, one in found.items() if "broken_off" in one}
    ends = (
        f" {name} ended after {len(one['steps']['step'])} steps: {one['broken_off']}"
        for name, one in broken.items()
    )
    return (said + "".join(ends)).strip()


# Figure 4: what the contraction factor says ------------------------------------------------------


def _contraction(findings: Findings) -> Figure:
    cell = " ".join(FOLLOWED_CELL)
    found = findings.get("contraction", *FOLLOWED_CELL)
    plots = [
        _followed(name, label, edge, protocol, found)
        for (name, label, edge), protocol in product(ALONG, COLUMNS)
    ]
    seen = [
        f"Seen here with {words}. "
        + " ".join(_seen(key, found["protocols"][protocol][key]) for key in LINES)
        for protocol, words in COLUMNS.items()
        if found is not None
    ]
    title = f"Figure 4. {cell}, one test problem, unwatched: default, learned and relayed"
    looks = {words: LOOKS[LABELS[method]] for words, method in LINES.values()}
    text = "\n\n".join([CONTRACTION_WORDS, *seen])
    return Figure(
        "fig4_contraction", title, f"Figure 4: {cell}, followed", plots, looks, words=text
    )


def _followed(
    name: str, label: str, edge: float, protocol: str, found: dict[str, Any] | None
) -> Plot:
    """Return a plot of one quantity along the lines of a protocol."""
    title = f"{COLUMNS[protocol]}: {label}"
    if found is None:
        return Plot(title, [], "iteration k", label)
    lines, note = found["protocols"][protocol], ""
    if name in ("rho", "C"):
        extremes = {key: lines[key]["extremes"][name] for key in LINES}
        worst = max(extremes, key=lambda key: extremes[key]["largest"])
        top = extremes[worst]
        note = f"largest: {top['largest']:.3g} ({worst}, k = {top['at']})"
    return Plot(
        title, [Curve(words, *_along(lines[key], name)) for key, (words, _) in LINES.items()],
        "iteration k", label, log_y=name == "grad_norm", threshold=edge, note=note,
        heights=_heights(name, found),
    )  # fmt: skip


def _along(line: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Return the iterations and the values of one quantity of a line of figure 4."""
    k = np.arange(len(line["grad_norm"])) if name == "grad_norm" else np.array(line["k"])
    return k, np.array(line[name], float)


def _heights(name: str, found: dict[str, Any], largest: float = 2.5) -> tuple[float, float]:
    """Return heights that show what matters of a quantity, alike for both protocols.

    A line that leaves for infinity is cut off: rho, C and |1 - B| at ``largest``.
    """
    lines = [line for lines in found["protocols"].values() for line in lines.values()]
    every = [_along(line, name)[1] for line in lines]
    if name == "grad_norm":
        return _window(every)
    values = np.concatenate(every)
    values = values[np.isfinite(values) & (np.abs(values) <= largest)]
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low)
    return low - room, high + room


def _seen(key: str, line: dict[str, Any]) -> str:
    """Say what a line does: the largest rho and C, where, and whether it left."""
    extremes = line["extremes"]
    parts = []
    for name, edge in (("rho", 1), ("C", 0)):
        one = extremes[name]
        part = f"{name} is at most {one['largest']:.3g}, at iteration {one['at']}"
        if one["first"] is not None:
            part += f" (above {edge} first at {one['first']})"
        parts.append(part)
    left = extremes["left"]
    end = "it does not leave" if left is None else f"it leaves at iteration {left}"
    least = f"after a least gradient norm of {extremes['least_norm']:.2g}"
    return f"{LINES[key][0].capitalize()}: {', '.join(parts)}; {end}, {least}."


FIGURES: dict[str, Callable[[Findings], Figure]] = {
    "fig5": partial(_examples, 5, "logistic"),
    "fig6": partial(_examples, 6, "lpp"),
    "fig2": _smoothness,
    "fig7": _values,
    "fig3": _training,
    "fig4": _contraction,
}
"""The figures by output, in the order of the page: so methods look there as in the files."""
