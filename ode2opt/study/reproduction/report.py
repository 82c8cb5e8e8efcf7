"""What the study comes to: report.html, to read, and results.json, with every number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.machine import described
from ode2opt.solvers import Relay
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.reproduction.figures import add_figures
from ode2opt.study.reproduction.findings import QUANTITIES, Comparison, Findings
from ode2opt.study.reproduction.plan import (
    CLASSICS,
    ITERATIONS,
    LEARNED,
    PROBLEMS,
    ROWS,
    SEED,
    TOL,
    TRAININGS,
    Item,
    Row,
    printed_cell,
)
from ode2opt.study.reproduction.tables import PaperTable

SAME = ("gd", "nag", "eigac-c1")
KEYS = (LEARNED.key, *(row.key for row in ROWS if row != LEARNED))
NAMES = {**{row.key: row.name for row in ROWS}, LEARNED.key: "EIGAC, learned"}
TOLD_OF_TRAINING = ("horizon", "certificate", "statistics", "options", "broken_off")

ABOUT = """\
Learned and classical methods on random problems from the paper's datasets, after "ODE-based \
Learning to Optimize". A learned EIGAC is trained for each problem and dataset by minimising the \
flow's stopping time, with the package's default options; all methods then run on fresh test \
problems. The paper's numbers stand next to ours.
"""

DIFFERENCES = f"""\
Learned EIGAC. The paper learns two networks by SGD; ours learns splines that meet the stability \
condition by construction, by Adam, and keeps the best point by validation. So this row tells how \
well the idea works, not whether the same numbers come out. Figures 3 and 4 show the paper's \
protocol next to ours.

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


LEARNED_WORDS = """\
beta and gamma against time, and the three numbers a, c and d of each iteration, all for curvature \
1 and up to the method's horizon. A certificate says what is promised; it was made along held-out \
training problems.
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
            table.sheet.add_to(page)
    add_figures(page, findings)
    _learned(page, findings)
    page.add_heading("Where this differs from the paper")
    page.add_text(_agreement(findings) + DIFFERENCES)
    _made_with(page, findings)
    return page


def _learned(page: Page, findings: Findings) -> None:
    """Add the learned coefficients and certificates, as far as there are any."""
    cells = {
        f"{problem} {dataset}": found
        for problem, dataset in product(PROBLEMS, findings.datasets)
        if (found := findings.get("training", problem, dataset))
    }
    if cells:
        page.add_heading("What was learned")
        page.add_text(LEARNED_WORDS)
    for name, found in cells.items():
        curves, verdict = found["curves"], found["certificate"]["verdict"]
        beta_gamma = [Curve(n, curves["t"], curves[n]) for n in ("beta", "gamma")]
        page.plot(
            f"{name}: coefficients", beta_gamma, "t", "beta, gamma", log_x=True, log_y=True,
            caption=" ".join(verdict[:3]),
        )  # fmt: skip
        page.plot(
            f"{name}: schedule", [Curve(n, curves["k"], curves[n]) for n in "acd"], "iteration k",
            "a, c, d", log_y=True, caption=f"Horizon {found['horizon']} iterations.",
        )  # fmt: skip


def _agreement(findings: Findings, close: float = 0.07) -> str:
    """Say how many means are within ``close`` of the print, and where each row is furthest."""
    rows = {row: found for row in CLASSICS if (found := _differences(findings, row))}
    same = [one for row, found in rows.items() if row.key in SAME for one in found.values()]
    if not same:
        return ""
    near = sum(difference <= close for difference in same)
    furthest = "; ".join(_furthest(row, found) for row, found in rows.items())
    return (
        f"Of {len(same)} means of GD, NAG and EIGAC(default) with C = 1 in Tables 2 and 3, "
        f"{near} are within {close} of the print. The largest difference of each row: "
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
    page.add_facts(facts | {name: str(value) for name, value in described().items()})
    trained = (findings.get("training", p, d) for p in PROBLEMS for d in findings.datasets)
    if options := next((found["options"] for found in trained if found), None):
        page.add_text("All options of the trainings:")
        page.add_facts({name: str(value) for name, value in options.items()})


# The first sentence and the bars -----------------------------------------------------------------


def _whole_cells(findings: Findings) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the statistics of the cells in which all methods were measured."""
    cells = {cell: findings.statistics(*cell) for cell in product(PROBLEMS, findings.datasets)}
    return {cell: found for cell, found in cells.items() if set(KEYS) <= set(found)}


def headline(findings: Findings) -> str:
    """Say how often the learned method comes first, and in how many cells L-BFGS is quicker."""
    cells = _whole_cells(findings)
    if not cells:
        return findings.effort.mark or "the whole study"
    wins = [findings.win_rate(*cell, "complexity") or 0.0 for cell in cells]
    means = [
        [found[key]["complexity_mean"] for key in ("lbfgs", LEARNED.key)]
        for found in cells.values()
    ]
    return findings.effort.marked(
        "The learned EIGAC meets the tolerance before GD, NAG, IGAHD and EIGAC(default) with "
        f"C = 1 on {np.mean(wins):.0%} of the test problems. L-BFGS, which is not in the paper, is "
        f"quicker on average in {sum(lbfgs < ours for lbfgs, ours in means)} of {len(cells)} cells."
    )


def add_bars(page: Page, findings: Findings) -> None:
    """Add, for each problem, the iterations of each method: means over the datasets."""
    for problem in PROBLEMS:
        cells = [found for (one, _), found in _whole_cells(findings).items() if one == problem]
        if not cells:
            continue
        means, shown = {}, {}
        for key in KEYS:
            mean = float(np.mean([found[key]["complexity_mean"] for found in cells]))
            missed = any(found[key]["reached"] < findings.effort.instances for found in cells)
            means[NAMES[key]], shown[NAMES[key]] = mean, ">" * missed + f"{mean:.0f}"
        page.add_bars(
            f"{problem}: iterations to the gradient norm {TOL:g}", means, shown,
            "Means over the datasets; > where some problems did not get there.",
        )  # fmt: skip


# results.json -------------------------------------------------------------------------------------


def results(
    findings: Findings,
    tables: dict[str, PaperTable],
    files: Iterable[Path],
    missing: Sequence[dict[str, str]],
) -> dict[str, Any]:
    """Return the document of results.json."""
    return {
        "quick": bool(findings.effort.mark),
        "outputs": list(findings.outputs),
        "missing": list(missing),
        "made_with": findings.store.identity
        | {"tol": TOL, "max_iter": ITERATIONS, "seed": SEED, "split": "paper"},
        "machine": described(),
        "datasets": {
            dataset: made["facts"]
            for dataset in findings.datasets
            if (made := findings.get("data", "logistic", dataset))
        },
        "cells": {
            f"{problem} {dataset}": cell
            for problem in PROBLEMS
            for dataset in findings.datasets
            if (cell := _cell(findings, problem, dataset))
        },
        "tables": {
            name: {"caption": table.caption, "columns": table.columns, "rows": table.rows}
            for name, table in tables.items()
        },
        "files": sorted(map(str, files)),
    }


def _cell(findings: Findings, problem: str, dataset: str) -> dict[str, Any]:
    """Return all numbers of a cell, and those of the paper; empty if there are none."""
    cell: dict[str, Any] = {}
    if methods := findings.statistics(problem, dataset):
        cell["methods"] = methods
        cell["win_rate"] = {q: findings.win_rate(problem, dataset, q) for q in QUANTITIES}
        cell["paper"] = _paper(problem, dataset)
    for kind in TRAININGS:
        if (made := findings.get(kind, problem, dataset)) is not None:
            run = findings.store.run(Item(kind, problem, dataset))
            cell[kind] = {name: made[name] for name in TOLD_OF_TRAINING if name in made}
            cell[kind]["steps"] = len(made["steps"]["step"])
            cell[kind]["seconds"] = made["steps"]["seconds"][-1]
            cell[kind]["method"] = str(Path(run.parent.name) / run.name / "method.safetensors")
    if (made := findings.get("contraction", problem, dataset)) is not None:
        cell["contraction"] = {
            protocol: {name: line["extremes"] for name, line in lines.items()}
            for protocol, lines in made["protocols"].items()
        }
    return cell


def _paper(problem: str, dataset: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in ROWS:
        for quantity in QUANTITIES:
            if printed := printed_cell(quantity, problem, row, dataset):
                one = found.setdefault(row.key, {})
                one[f"{quantity}_mean"], one[f"{quantity}_std"] = printed
    return found
