"""How much training a sequence needs by default: settings side by side, on training rows alone.

python benchmarks/training_defaults.py [--record] [PROBLEM DATASET]...

Each dataset's training rows (shuffled split) are split once more: 60% to learn from, 40% to judge
on. The dataset's own test rows are not looked at. --record keeps the table of
docs/measurements/learned.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from recording import RECORD, Table, record

from ode2opt import Family, Method, learn
from ode2opt.learning.sequence import restarts
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.solved_beforehand import PROBLEMS_PER_FOLD, SolvedBeforehand
from ode2opt.learning.validation import solve_one
from ode2opt.problems import load_dataset

SPLIT, INSTANCES, SEED, TOL = "shuffled", 60, 0, 3e-4
TIMES = 5  # all is solved, the fastest counts
CELLS = (("logistic", "a5a"), ("logistic", "phishing"), ("lpp", "covtype20k"), ("lpp", "w3a"))


@dataclass(frozen=True)
class Setting:
    """Options of ``learn``, and the two numbers beside them that a user does not choose."""

    options: dict[str, Any] = field(default_factory=dict)
    problems: int = PROBLEMS_PER_FOLD
    warm_up: float = restarts.WARM_UP

    def learned(self, family: Family) -> Method:
        """Learn with it."""
        solved = partial(SolvedBeforehand, problems=self.problems)
        with (
            patch.object(restarts, "SolvedBeforehand", solved),
            patch.object(restarts, "WARM_UP", self.warm_up),
        ):
            return learn(family, target="sequence", tol=TOL, **self.options)


INSTANT = "instant"
SETTINGS: dict[str, Setting] = {
    INSTANT: Setting({"steps": 0}),
    "100 steps of 8": Setting({"steps": 100, "batch": 8}),
    "150 of 8": Setting({"steps": 150, "batch": 8}),
    "300 of 16": Setting({"steps": 300, "batch": 16}),
}


def inner(problem: str, dataset: str) -> Family:
    """Return a family whose training and test rows are both training rows of the dataset."""
    data = load_dataset(dataset, split=SPLIT, binary=problem == "logistic")
    return Family.from_arrays(problem, data.train.A, data.train.b, size=data.size)


def main(cells: Sequence[tuple[str, str]] = CELLS) -> None:
    """Learn with each setting in each cell, and print a row for it."""
    columns = (
        "problem",
        "setting",
        "what was kept",
        "calls",
        "of instant's",
        "time",
        "made in (CPU)",
    )
    table, shown = Table(*columns), Table("problem", *SETTINGS, quiet=True)
    for problem, dataset in cells:
        family = inner(problem, dataset)
        base: dict[str, float] = {}
        cells = []
        for name, setting in SETTINGS.items():
            began = time.process_time()
            method = setting.learned(family)
            spent = time.process_time() - began
            found = measured(family, method)
            base = base or found
            share = {key: found[key] / base[key] for key in found}
            calls, ratio = f"{found['calls']:.1f}", f"{share['calls']:.2f}"
            made = f"{spent:.0f} s"
            time_of = f"{share['seconds']:.2f}"
            table.add(f"{problem} {dataset}", name, method.words, calls, ratio, time_of, made)
            kept = ", instant kept" * method.instant
            cells.append(calls if name == INSTANT else f"{calls} ({ratio}{kept}), {made}")
        shown.add(f"{problem} {dataset}", *cells)
    if RECORD in sys.argv:
        record("training_defaults", {"now": shown})


def measured(family: Family, method: Method) -> dict[str, float]:
    """Return the mean calls, and the CPU seconds of all solves together, the best of a few."""
    problems = [family.sample([SEED, i], part="test") for i in range(INSTANCES)]
    starts = [one.start().x0 if method.start is None else method.start for one in problems]
    seconds = []
    for _ in range(TIMES):
        began = time.process_time()
        results = [solve_one(method, *pair, TOL) for pair in zip(problems, starts, strict=True)]
        seconds.append(time.process_time() - began)
    return {"calls": mean_calls(results), "seconds": min(seconds)}


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != RECORD]
    main(list(zip(given[::2], given[1::2], strict=True)) or CELLS)
