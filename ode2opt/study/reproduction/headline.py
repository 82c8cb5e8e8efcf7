"""What the study comes to: the first sentence of its page, and the bars below it."""

from __future__ import annotations

from itertools import product

import numpy as np

from ode2opt.study.page import Page
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import PROBLEMS, TOL
from ode2opt.study.reproduction.rows import LEARNED, ROWS

LBFGS = "lbfgs"
KEYS = (LEARNED.key, *(row.key for row in ROWS if row != LEARNED))
NAMES = {row.key: row.name for row in ROWS} | {LEARNED.key: "EIGAC, learned"}


def headline(findings: Findings) -> str:
    """Say how often the learned method comes first, and in how many cells L-BFGS is quicker."""
    cells = [cell for cell in product(PROBLEMS, findings.datasets) if _whole(findings, *cell)]
    if not cells:
        return findings.effort.mark or "the whole study"
    wins = [findings.win_rate(problem, dataset, "complexity") for problem, dataset in cells]
    quicker = sum(_mean(findings, LBFGS, *c) < _mean(findings, LEARNED.key, *c) for c in cells)
    return findings.effort.marked(
        "The learned EIGAC meets the tolerance before GD, NAG, IGAHD and EIGAC(default) with "
        f"C = 1 on {np.mean([rate or 0.0 for rate in wins]):.0%} of the test problems. L-BFGS, "
        f"which is not in the paper, is quicker on average in {quicker} of {len(cells)} cells."
    )


def add_bars(page: Page, findings: Findings) -> None:
    """Add, for each problem, the iterations of each method: means over the datasets."""
    for problem in PROBLEMS:
        datasets = [name for name in findings.datasets if _whole(findings, problem, name)]
        if not datasets:
            continue
        means, shown = {}, {}
        for key in KEYS:
            mean = np.mean([_mean(findings, key, problem, dataset) for dataset in datasets])
            missed = any(_missed(findings, key, problem, dataset) for dataset in datasets)
            means[NAMES[key]] = float(mean)
            shown[NAMES[key]] = ">" * missed + f"{mean:.0f}"
        page.add_bars(
            f"{problem}: iterations to the gradient norm {TOL:g}",
            means,
            shown,
            "Means over the datasets; > where some problems did not get there.",
        )


def _whole(findings: Findings, problem: str, dataset: str) -> bool:
    """Whether all methods were measured in a cell."""
    return set(KEYS) <= set(findings.statistics(problem, dataset))


def _mean(findings: Findings, key: str, problem: str, dataset: str) -> float:
    return float(findings.statistics(problem, dataset)[key]["complexity_mean"])


def _missed(findings: Findings, key: str, problem: str, dataset: str) -> bool:
    reached = findings.statistics(problem, dataset)[key]["reached"]
    return bool(reached < findings.effort.instances)
