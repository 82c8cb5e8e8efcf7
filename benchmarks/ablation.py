"""What each part of a learned sequence is worth; printed as tables.

python benchmarks/ablation.py [PROBLEM DATASET]...
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ode2opt import Family, Method, learn
from ode2opt.learning import SequenceOptions
from ode2opt.learning.sequence.instant import plain_instant
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.study.benchmark import Settings, run_benchmark

SPLIT, INSTANCES = "shuffled", 50
CELLS = (("logistic", "a5a"), ("lpp", "phishing"))


def instant_of_one(family: Family) -> Method:
    """Return the instant method of a single solved problem."""
    known = SolvedBeforehand(family, SequenceOptions(steps=0), problems=1)
    return plain_instant(known)[-1]


def sequence(family: Family, **options: Any) -> Method:
    """Return a learned sequence; without steps it is the instant method."""
    return learn(family, target="sequence", **options)


TRAINED = "trained"
VARIANTS: dict[str, Callable[[Family], Method]] = {
    "instant, one solved problem": instant_of_one,
    "instant, six": partial(sequence, steps=0),
    "instant, six, learned start": partial(sequence, steps=0, start="learned"),
    TRAINED: sequence,
    "trained, learned start": partial(sequence, start="learned"),
    "trained, no metric": partial(sequence, metric="none"),
    "trained, diagonal": partial(sequence, metric="diagonal"),
    "trained, low rank": partial(sequence, metric="lowrank"),
    "trained, curvature at the start only": partial(sequence, reference="start"),
    "trained, no problems of folds": partial(sequence, blocks=False),
}


def main(cells: tuple[tuple[str, str], ...] = CELLS) -> None:
    """Make each variant for each cell, and print a row for it."""
    print("| problem | variant | what was kept | calls | worst | ms | handed over | made in |")
    print("|---|---|---|---|---|---|---|---|")
    for problem, dataset in cells:
        family = Family.from_dataset(problem, dataset, split=SPLIT)
        cell = f"{problem} {dataset}"
        for name in ("lbfgs", "auto"):
            _row(cell, name, "", _measured(family, Settings((name,), {}, INSTANCES, jobs=1)))
        for name, make in VARIANTS.items():
            began = time.perf_counter()
            method = make(family)
            spent = f"{time.perf_counter() - began:.0f} s"
            _row(cell, name, method.words, _by(family, method), spent)
            if name == TRAINED and method.schedule is not None:
                alone = method.replace(schedule=None)
                _row(cell, "... its metric alone", alone.words, _by(family, alone))


def _by(family: Family, method: Method) -> dict[str, Any]:
    return _measured(family, Settings((), {"method": method}, INSTANCES, jobs=1))


def _measured(family: Family, settings: Settings) -> dict[str, Any]:
    (found,) = run_benchmark(family, settings).statistics().values()
    return found


def _row(cell: str, name: str, kept: str, found: dict[str, Any], spent: str = "-") -> None:
    cells = [
        cell, name, kept, f"{found['oracle_calls_mean']:.1f}", found["complexity_max"],
        f"{1e3 * found['seconds_mean']:.2f}", found["handovers"], spent,
    ]  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(tuple(zip(given[::2], given[1::2], strict=True)) or CELLS)
