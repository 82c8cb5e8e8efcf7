"""report.html: the study to read, with plots to look into."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ode2opt.learning.flow.smoothness import SCATTER_METHODS
from ode2opt.solvers import Relay
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.reproduction.comparison import Comparison
from ode2opt.study.reproduction.figures import (
    LABELS,
    excess_values,
    smoothness_cells,
    value_cells,
    view_of,
)
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.headline import add_bars, headline
from ode2opt.study.reproduction.paper_tables import PaperTable
from ode2opt.study.reproduction.plan import FOLLOWED, ITERATIONS, PROBLEMS, SEED, TOL
from ode2opt.study.reproduction.protocol_pages import add_contraction, add_training
from ode2opt.study.reproduction.results_file import machine
from ode2opt.study.reproduction.rows import CLASSICS, Row

CLOSE = 0.07  # how near a mean must come to the printed one to count as the same
SAME = ("gd", "nag", "eigac-c1")

ABOUT = """\
Learned and classical methods on random problems from the paper's datasets, after "ODE-based \
Learning to Optimize". A learned EIGAC is trained for each problem and dataset by minimising the \
flow's stopping time, with the package's default options; all methods then run on fresh test \
problems. The paper's numbers stand beside ours.
"""

DIFFERENCES = f"""\
Learned EIGAC. The paper learns two networks by SGD; ours learns splines that meet the stability \
condition by construction, by Adam, and keeps the best point by validation. So this row tells how \
well the idea works, not whether the same numbers come out. Figures 3 and 4 show the paper's \
protocol beside ours.

EIGAC(default). The paper's text prints C = 4, but its tables are those of C = 1. Both rows are \
here; only C = 1 is compared with the print.

IGAHD. The paper's row of this name repeats the mean of EIGAC(default) in 13 of its 24 printed \
means: in 8 of 12 measures, and in 5 of 12 complexities, where both are 500, the cap. Elsewhere it \
is within 0.06 in measure and within 8 iterations in complexity. Ours is the method of Attouch, \
Chbani, Fadili and Riahi, with two gradients an iteration: compare its calls, too.

NAG and GD. For logistic regression the paper's step constant is the largest eigenvalue of \
A^T A/N, four times the tight bound. Both methods are given steps four times shorter than they \
could be; we keep the paper's constant.

Relay. The rule as printed cannot fire: it asks for a gradient norm above five times the first \
one and below the tolerance at once. Ours latches at the first rise below the tolerance, or where \
the learned schedule ends, and goes on with default coefficients, C = \
{Relay().coefficients.C:g} and alpha = {Relay().coefficients.alpha:g}. Nothing keeps these from \
diverging on a function that is not quadratic; the row "EIGAC, guarded" shows the same method \
under the guard, which converges.

The theorem on the sequence. The printed O(1/k) rate is false: one quadratic meets all conditions, \
some with equality, and its iterates grow; another meets them with a margin, and its iterates stop \
short of the minimiser. A certificate says whether a sequence is \
proved by the corrected theorem or by matrix inequalities, and else only with what margin it was \
linearly stable along some problems.

Spreads. What the paper calls a standard error is a standard deviation; so are ours.

L-BFGS is not in the paper. It is what a user would run otherwise, so it is in every table.
"""


def write_report(
    findings: Findings, tables: dict[str, PaperTable], missing: list[dict[str, str]]
) -> Page:
    """Return the study's page."""
    page = Page("ODE-based learning to optimise: the study", headline(findings))
    add_bars(page, findings)
    page.add_text(ABOUT)
    for one in missing:
        page.add_text(f"Missing: {one['what']}. {one['why']}")
    if tables:
        page.add_heading("Tables")
        for table in tables.values():
            page.add_table(table.columns, table.rows, table.title)
    _runs(page, findings)
    _trainings(page, findings)
    page.add_heading("Where this differs from the paper")
    page.add_text(_agreement(findings) + DIFFERENCES)
    _made_with(page, findings)
    return page


def _runs(page: Page, findings: Findings) -> None:
    """Add figures 5 to 7 and 2; they come first, so that methods look as in the static figures."""
    for number, problem in ((5, "logistic"), (6, "lpp")):
        if f"fig{number}" in findings.outputs:
            page.add_heading(findings.effort.marked(f"Figure {number}: gradient norm, {problem}"))
            for dataset in findings.datasets:
                if found := findings.get("example", problem, dataset):
                    _gradient_norms(page, found, f"{problem} {dataset}")
    if "fig2" in findings.outputs:
        _smoothness(page, findings)
    if "fig7" in findings.outputs:
        page.add_heading(findings.effort.marked("Figure 7: function value above the least known"))
        for cell in value_cells(findings):
            if found := findings.get("example", *cell):
                lines = excess_values(found)
                page.add_plot(
                    " ".join(cell), _curves(lines), x="iteration", y="f(x) - f*", log_y=True,
                    heights=view_of(lines),
                    caption=f"One test problem, to iteration {FOLLOWED}. {_handed(found)}",
                )  # fmt: skip


def _smoothness(page: Page, findings: Findings) -> None:
    """Add figure 2: along each method the largest curvature against the gradient norm."""
    page.add_heading(findings.effort.marked("Figure 2: curvature against gradient norm"))
    page.add_text(
        "The paper's figure shows points along one line whatever the method is: curvature falls "
        "with the gradient norm, (L0, L1)-smoothness. Points of a method are joined in their order."
    )
    for cell in smoothness_cells():
        if found := findings.get("smoothness", *cell):
            curves = [
                Curve(LABELS[key], *np.array(found["points"][key]).T) for key in SCATTER_METHODS
            ]
            page.add_plot(
                " ".join(cell), curves, x="gradient norm", y="largest curvature", log_x=True,
                log_y=True, caption="One test problem.",
            )  # fmt: skip


def _gradient_norms(page: Page, found: dict[str, Any], title: str) -> None:
    lines = {key: found["lines"][key]["grad_norm"][: ITERATIONS + 1] for key in LABELS}
    page.add_plot(
        title, _curves(lines), x="iteration", y="gradient norm", log_y=True, threshold=TOL,
        heights=view_of(lines), caption=f"One test problem. {_handed(found)}",
    )  # fmt: skip


def _curves(lines: dict[str, Any]) -> list[Curve]:
    return [Curve(LABELS[key], np.arange(len(line)), line) for key, line in lines.items()]


def _handed(found: dict[str, Any]) -> str:
    events = found["lines"]["eigac-learned"]["handovers"]
    return f"The relay took over from EIGAC at iteration {events[0]}." if events else ""


def _trainings(page: Page, findings: Findings) -> None:
    """Add figures 3 and 4, learned coefficients and certificates, as far as there are any."""
    cells = {
        f"{problem} {dataset}": found
        for problem in PROBLEMS
        for dataset in findings.datasets
        if (found := findings.get("training", problem, dataset))
    }
    if "fig3" in findings.outputs:
        add_training(page, findings)
    if "fig4" in findings.outputs:
        add_contraction(page, findings)
    if not cells:
        return
    page.add_heading("What was learned")
    page.add_text(
        "beta and gamma against time, and the three numbers a, c and d of each iteration, all for "
        "curvature 1 and up to the method's horizon. A certificate says what is promised; it was "
        "made along held-out training problems."
    )
    for name, found in cells.items():
        _learned(page, name, found)


def _learned(page: Page, name: str, found: dict[str, Any]) -> None:
    curves = found["curves"]
    words = " ".join(found["certificate"]["verdict"][:3])
    page.add_plot(
        f"{name}: coefficients", [Curve(n, curves["t"], curves[n]) for n in ("beta", "gamma")],
        x="t", y="beta, gamma", log_x=True, log_y=True, caption=words,
    )  # fmt: skip
    page.add_plot(
        f"{name}: schedule", [Curve(n, curves["k"], curves[n]) for n in "acd"],
        x="iteration k", y="a, c, d", log_y=True,
        caption=f"Horizon {found['horizon']} iterations.",
    )  # fmt: skip


def _agreement(findings: Findings) -> str:
    """Say how many of the means that should be the same are, and where each row is furthest."""
    rows = {row: found for row in CLASSICS if (found := _differences(findings, row))}
    same = [one for row, found in rows.items() if row.key in SAME for one in found.values()]
    if not same:
        return ""
    near = sum(difference <= CLOSE for difference in same)
    furthest = "; ".join(_furthest(row, found) for row, found in rows.items())
    return (
        f"Of {len(same)} means of GD, NAG and EIGAC(default) with C = 1 in Tables 2 and 3, "
        f"{near} are within {CLOSE} of the print. The largest difference of each row: "
        f"{furthest}.\n\n"
    )


def _differences(findings: Findings, row: Row) -> dict[str, float]:
    """Return how far a row's measures are from the printed ones, by problem and dataset."""
    found = {}
    for problem, dataset in product(PROBLEMS, findings.datasets):
        cell = Comparison.of(findings, problem, "measure", row, dataset)
        if cell.mean is not None and cell.paper is not None:
            found[f"{problem} {dataset}"] = abs(cell.mean - cell.paper[0])
    return found


def _furthest(row: Row, differences: dict[str, float]) -> str:
    place = max(differences, key=differences.__getitem__)
    return f"{row.name}, {differences[place]:.3f} on {place}"


def _made_with(page: Page, findings: Findings) -> None:
    identity = findings.store.identity
    page.add_heading("How this was made")
    facts = {
        "study": findings.effort.mark or "full",
        "test problems a cell": str(findings.effort.instances),
        "tolerance, iterations, seed": f"{TOL:g}, {ITERATIONS}, {SEED}",
        "split": "the paper's: by file order, train and test scaled each by its own maxima",
        "ode2opt": f"{identity['ode2opt']}, code {identity['code'][:12]}",
    }
    facts |= {name: str(value) for name, value in identity["packages"].items()}
    page.add_facts(facts | {name: str(value) for name, value in machine().items()})
    trained = (findings.get("training", p, d) for p in PROBLEMS for d in findings.datasets)
    if options := next((found["options"] for found in trained if found), None):
        page.add_text("All options of the trainings:")
        page.add_facts({name: str(value) for name, value in options.items()})
