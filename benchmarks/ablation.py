"""What each part of a learned sequence is worth; printed as tables.

python benchmarks/ablation.py [--record] [PROBLEM DATASET]...

--record keeps the table of docs/measurements/learned.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from recording import RECORD, Table, record

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


COLUMNS = ("problem", "variant", "what was kept", "calls", "worst", "ms", "handed over", "made in")
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
    table = Table(*COLUMNS)
    for problem, dataset in cells:
        family = Family.from_dataset(problem, dataset, split=SPLIT)
        cell = f"{problem} {dataset}"
        for name in ("lbfgs", "auto"):
            found = _measured(family, Settings((name,), {}, INSTANCES, jobs=1))
            table.add(*_row(cell, name, "", found))
        for name, make in VARIANTS.items():
            began = time.perf_counter()
            method = make(family)
            spent = f"{time.perf_counter() - began:.0f} s"
            table.add(*_row(cell, name, method.words, _by(family, method), spent))
            if name == TRAINED and method.schedule is not None:
                alone = method.replace(schedule=None)
                words = "... its metric alone, L-BFGS in it"
                table.add(*_row(cell, words, alone.words, _by(family, alone)))
    if RECORD in sys.argv:
        record("ablation", {"parts": side_by_side(table)})


def side_by_side(table: Table) -> Table:
    """Return the page's table: a row for each variant, three columns for each problem."""
    problems = list(dict.fromkeys(row[0] for row in table.rows))
    found = {(row[0], row[1]): [row[3], row[4], row[2]] for row in table.rows}
    names = [problem.split()[-1] for problem in problems]
    heads = ("calls", "worst", "what was kept")
    wide = Table("variant", *(f"{name}: {head}" for name in names for head in heads), quiet=True)
    for variant in dict.fromkeys(row[1] for row in table.rows):
        cells = [found.get((problem, variant), [None] * 3) for problem in problems]
        wide.add(variant, *(cell for three in cells for cell in three))
    return wide


def _by(family: Family, method: Method) -> dict[str, Any]:
    return _measured(family, Settings((), {"method": method}, INSTANCES, jobs=1))


def _measured(family: Family, settings: Settings) -> dict[str, Any]:
    (found,) = run_benchmark(family, settings).statistics().values()
    return found


def _row(
    cell: str, name: str, kept: str, found: dict[str, Any], spent: str | None = None
) -> list[Any]:
    return [
        cell, name, kept, f"{found['oracle_calls_mean']:.1f}", found["complexity_max"],
        f"{1e3 * found['seconds_mean']:.2f}", found["handovers"], spent,
    ]  # fmt: skip


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != RECORD]
    main(tuple(zip(given[::2], given[1::2], strict=True)) or CELLS)
