"""What each part of a learned sequence is worth; prints the table of docs/choosing.md.

python benchmarks/ablation.py [PROBLEM DATASET]...
"""

from __future__ import annotations

import sys
import time
from typing import Any

from ode2opt import Family, learn
from ode2opt.study.benchmark import Settings, run_benchmark

SPLIT, INSTANCES = "shuffled", 50
CELLS = (("logistic", "a5a"), ("lpp", "phishing"))
SPECTRAL = {"target": "sequence", "metric": "spectral", "reference": "path"}
VARIANTS: dict[str, dict[str, Any]] = {
    "flow (the paper's)": {"target": "flow"},
    "sequence, no metric": {"target": "sequence", "metric": "none"},
    "sequence, diagonal": {"target": "sequence", "metric": "diagonal", "reference": "path"},
    "sequence, low rank": {"target": "sequence", "metric": "lowrank", "reference": "path"},
    "sequence, spectral": SPECTRAL,
    "... curvature at the start only": SPECTRAL | {"reference": "start"},
    "... 5 knots": SPECTRAL | {"knots": 5},
    "... 17 knots": SPECTRAL | {"knots": 17},
    "... no problems of folds": SPECTRAL | {"blocks": False},
    "... no penalty": SPECTRAL | {"penalty": 0.0},
    "... learned start": SPECTRAL | {"start": "learned"},
}


def main(cells: tuple[tuple[str, str], ...] = CELLS) -> None:
    """Train each variant on each cell, and print a row for it."""
    print("| problem | variant | iterations | worst | calls | ms | handed over | trained in |")
    print("|---|---|---|---|---|---|---|---|")
    for problem, dataset in cells:
        family = Family.from_dataset(problem, dataset, split=SPLIT)
        settings = Settings(("lbfgs",), instances=INSTANCES, jobs=1)
        _row(problem, dataset, "L-BFGS", run_benchmark(family, settings).statistics()["lbfgs"])
        for name, options in VARIANTS.items():
            began = time.perf_counter()
            method = learn(family, **options)
            spent = time.perf_counter() - began
            settings = Settings((), {name: method}, INSTANCES, jobs=1)
            found = run_benchmark(family, settings).statistics()[name]
            _row(problem, dataset, name, found, f"{spent:.0f} s")


def _row(problem: str, dataset: str, name: str, found: dict[str, Any], spent: str = "-") -> None:
    cells = [
        f"{problem} {dataset}", name, f"{found['complexity_mean']:.1f}", found["complexity_max"],
        f"{found['oracle_calls_mean']:.1f}", f"{1e3 * found['seconds_mean']:.2f}",
        found["handovers"], spent,
    ]  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(tuple(zip(given[::2], given[1::2], strict=True)) or CELLS)
