"""Figures 3 and 4 on the page: both protocols, with what the paper shows and what is seen here."""

from __future__ import annotations

from typing import Any

from ode2opt.learning.flow.paper import STABLE_C
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import FOLLOWED_CELL, PROBLEMS
from ode2opt.study.reproduction.protocol_figures import (
    COLUMNS,
    NAMES,
    QUANTITIES,
    TRAININGS,
    heights_of,
    line_of,
    training_curves,
)

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


def add_training(page: Page, findings: Findings) -> None:
    """Add figure 3: stopping time and penalty of both trainings."""
    page.add_heading(findings.effort.marked("Figure 3: training"))
    page.add_text(TRAINING_WORDS)
    for problem in PROBLEMS:
        for kind, words in TRAININGS.items():
            _add_steps(page, findings, problem, kind, words)


def _add_steps(page: Page, findings: Findings, problem: str, kind: str, words: str) -> None:
    made = {dataset: findings.get(kind, problem, dataset) for dataset in findings.datasets}
    found = {dataset: one for dataset, one in made.items() if one}
    if not found:
        return
    curves = {dataset: training_curves(one) for dataset, one in found.items()}
    times = [Curve(dataset, step, T) for dataset, (step, T, _) in curves.items()]
    penalties = [Curve(dataset, step, penalty) for dataset, (step, _, penalty) in curves.items()]
    page.add_plot(
        f"{problem}, {words}: stopping time", times, x="step", y="T - t0", log_y=True,
        caption=f"Means over the fresh problems of each step. {lost_words(found)}",
    )  # fmt: skip
    page.add_plot(
        f"{problem}, {words}: penalty", penalties, x="step", y="P + Q",
        caption="Free of units, for both protocols.",
    )  # fmt: skip


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


def add_contraction(page: Page, findings: Findings) -> None:
    """Add figure 4, with what the paper's shows and what is seen here."""
    found = findings.get("contraction", *FOLLOWED_CELL)
    if found is None:
        return
    page.add_heading(findings.effort.marked(f"Figure 4: {' '.join(FOLLOWED_CELL)}, followed"))
    page.add_text(CONTRACTION_WORDS)
    for protocol, words in COLUMNS.items():
        lines = found["protocols"][protocol]
        page.add_text(
            f"Seen here with {words}. " + " ".join(_seen(key, lines[key]) for key in NAMES)
        )
        for name, label, edge in QUANTITIES:
            curves = [Curve(NAMES[key], *line_of(lines[key], name)) for key in NAMES]
            page.add_plot(
                f"{words}: {label}", curves, x="iteration k", y=label, log_y=name == "grad_norm",
                threshold=edge, heights=heights_of(name, found),
            )  # fmt: skip


def _seen(key: str, line: dict[str, Any]) -> str:
    """Say what a line does: the largest rho and C, where, and whether it left."""
    extremes = line["extremes"]
    parts = []
    for name, sign in (("rho", "rho"), ("C", "C")):
        one, edge = extremes[name], {"rho": 1, "C": 0}[name]
        part = f"{sign} is at most {one['largest']:.3g}, at iteration {one['at']}"
        if one["first"] is not None:
            part += f" (above {edge} first at {one['first']})"
        parts.append(part)
    left = extremes["left"]
    end = "it does not leave" if left is None else f"it leaves at iteration {left}"
    least = f"after a least gradient norm of {extremes['least_norm']:.2g}"
    return f"{NAMES[key].capitalize()}: {', '.join(parts)}; {end}, {least}."
