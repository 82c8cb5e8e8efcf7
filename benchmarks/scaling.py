"""Time to the tolerance against L-BFGS as problems grow: rows, columns, dense and sparse.

    python benchmarks/scaling.py [MOST_ROWS] [--record]

For each kind of data and number of columns one method is learned on small problems (the sequence's
target, default options but for what large columns need); it then solves problems of many more rows
of the same kind. Ratios are taken problem by problem in one process on one thread. --record keeps
the table of docs/measurements/learned.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import data
import numpy as np
from recording import RECORD, Table, record
from threadpoolctl import threadpool_limits

from ode2opt import Family, Logistic, Method, Problem, learn, solve

TOL = 3e-4
ROWS = (1_000, 10_000, 100_000, 1_000_000)
LARGEST = 100_000_000  # entries of a dense matrix
PROBLEMS = 3
COLUMNS = ("data", "columns", "metric", "learned in", *(f"{rows:,} rows" for rows in ROWS))
Make = Callable[[np.random.Generator, int, int], Problem]


def separable(rng: np.random.Generator, rows: int, n: int) -> Problem:
    """Gaussian rows with an intercept, labelled by a fixed hyperplane."""
    A = rng.standard_normal((rows, n)) / np.sqrt(n)
    A[:, 0] = 1.0
    plane = np.random.default_rng(n).standard_normal(n)
    return Logistic(A, (A @ plane > 0).astype(float))


def one_hot(rng: np.random.Generator, rows: int, n: int) -> Problem:
    """Fourteen categorical columns with skewed frequencies, as in a5a; sparse."""
    return Logistic(*data.one_hot(rng, rows, n))


def one_hot_dense(rng: np.random.Generator, rows: int, n: int) -> Problem:
    """The same as a dense matrix."""
    problem: Any = one_hot(rng, rows, n)
    return Logistic(problem.A.toarray(), problem.b)


@dataclass(frozen=True)
class Case:
    """A kind of data with n columns, the rows to learn from, and options that differ."""

    name: str
    make: Make
    n: int
    rows: int
    options: dict[str, Any]


LARGE = {"steps": 40, "batch": 2, "validation": 3, "horizon": 80, "reference": "start"}
CASES = (
    Case("separable, dense", separable, 100, 1_024, {}),
    Case("separable, dense", separable, 1_000, 2_048, LARGE),
    Case("one-hot, dense", one_hot_dense, 100, 1_024, {}),
    Case("one-hot, sparse", one_hot, 100, 1_024, {}),
    Case("one-hot, sparse", one_hot, 1_000, 2_048, LARGE),
    Case("one-hot, sparse", one_hot, 10_000, 1_024, LARGE | {"metric": "lowrank"}),
)


def learned(case: Case) -> Method:
    """Learn on small problems of a case."""
    family = Family.from_sampler(lambda rng: case.make(rng, case.rows, case.n))
    return learn(family, target="sequence", tol=TOL, **case.options)


def measured(case: Case, method: Method, rows: int) -> tuple[float, float, float, float]:
    """Return the median seconds of both methods and their oracle calls."""
    seen: dict[str, list[Any]] = {"ours": [], "lbfgs": []}
    for i in range(PROBLEMS):
        problem = case.make(np.random.default_rng([7, i, rows]), rows, case.n)
        start = problem.start()
        for name, chosen in (("ours", method), ("lbfgs", "lbfgs")):
            seen[name].append(solve(problem, start, method=chosen, tol=TOL, max_iter=5_000))
    times = [median(r.seconds for r in seen[name]) for name in seen]
    calls = [float(np.mean([r.oracle_calls for r in seen[name]])) for name in seen]
    return times[0], times[1], calls[0], calls[1]


def main(most: int = ROWS[-1]) -> dict[str, float]:
    """Print the table; return the worst ratio of seconds at the most rows."""
    print("| data | columns | rows | metric | ours ms | L-BFGS ms | ratio | calls | L-BFGS calls |")
    print("|---|---|---|---|---|---|---|---|---|")
    last: dict[str, float] = {}
    table = Table(*COLUMNS, quiet=True)
    for case in CASES:
        began = time.perf_counter()
        method = learned(case)
        spent = time.perf_counter() - began
        kind = "none" if method.metric is None else method.metric.kind
        cells: dict[int, str] = {}
        for rows in ROWS:
            if rows > most or (case.make is not one_hot and rows * case.n > LARGEST):
                continue
            with threadpool_limits(1):
                ours, theirs, calls, their_calls = measured(case, method, rows)
            print(f"| {case.name} | {case.n:,} | {rows:,} | {kind} | {1e3 * ours:.1f} | "
                  f"{1e3 * theirs:.1f} | {ours / theirs:.2f} | {calls:.1f} | "
                  f"{their_calls:.1f} |", flush=True)  # fmt: skip
            last[f"{case.name} {case.n}"] = ours / theirs
            cells[rows] = f"{ours / theirs:.2f} ({calls:.1f} / {their_calls:.1f})"
        print(f"| {case.name} | {case.n:,} | learned in {spent:.0f} s | | | | | | |", flush=True)
        table.add(case.name, f"{case.n:,}", kind, f"{spent:.0f} s", *map(cells.get, ROWS))
    if RECORD in sys.argv:
        record("scaling", {"seconds": table})
    return {"scaling_worst_ratio": round(max(last.values()), 3)}


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:] if argument != RECORD))
