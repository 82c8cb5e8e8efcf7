"""A memory on a stream of problems whose rows change population half-way.

    python benchmarks/drift.py [--problems 20]

Logistic problems of 1,024 rows, without l2, to a gradient norm of 3e-4. On mushrooms the first half
of the problems is drawn from the first half of the file, and the second from the second; on a5a the
columns of the second half are multiplied by 10. Then harsher changes, on five tables: every second
column times 10, columns in another order, all signs changed. One `Memory` sees the stream in order;
plain L-BFGS starts each problem at 0. A memory may cost 5 calls more than L-BFGS before it counts
as slower.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

import alone  # noqa: F401 - before numpy
import data
import numpy as np

import ode2opt
from ode2opt import Logistic

SIZE, TOL, ALLOWANCE = 1_024, 3e-4, 5
Stream = Callable[[int], Iterator[Logistic]]


def drawn(A: Any, b: np.ndarray, problems: int, seed: int) -> Iterator[Logistic]:
    """Yield problems on rows drawn without replacement."""
    rng = np.random.default_rng([6, seed])
    for _ in range(problems):
        rows = np.sort(rng.choice(len(b), SIZE, replace=False))
        yield Logistic(A[rows], b[rows])


def other_rows(problems: int) -> Iterator[Logistic]:
    """Mushrooms in the order of the file, which is far from random."""
    A, b = data.CELLS["mushrooms"]()
    half = len(b) // 2
    yield from drawn(A[:half], b[:half], problems, 0)
    yield from drawn(A[half:], b[half:], problems, 1)


def other_units(problems: int) -> Iterator[Logistic]:
    """a5a, then a5a with larger columns."""
    A, b = data.CELLS["a5a"]()
    yield from drawn(A, b, problems, 0)
    yield from drawn(10 * A, b, problems, 1)


def changed(name: str, change: Callable[[Any], Any], problems: int) -> Iterator[Logistic]:
    """Yield problems of a table, then of the table after a change."""
    A, b = data.CELLS[name]()
    A = A.toarray() if hasattr(A, "toarray") else A
    yield from drawn(A, b, problems, 0)
    yield from drawn(change(A), b, problems, 1)


def every_second_larger(A: np.ndarray) -> np.ndarray:
    """Multiply every second column by 10."""
    return A * np.where(np.arange(A.shape[1]) % 2, 1.0, 10.0)


def shuffled(A: np.ndarray) -> np.ndarray:
    """Give the columns another order."""
    return A[:, np.random.default_rng(7).permutation(A.shape[1])]


CHANGES = {"second x10": every_second_larger, "shuffled": shuffled, "negated": np.negative}
STREAMS: dict[str, Stream] = {"mushrooms": other_rows, "a5a": other_units} | {
    f"{name} {label}": partial(changed, name, change)
    for name in ("mushrooms", "a5a", "w3a.t", "phishing", "covtype20k")
    for label, change in CHANGES.items()
}


def calls(stream: Iterator[Logistic]) -> tuple[list[int], list[int]]:
    """Return the oracle calls of each solve, with a memory and by plain L-BFGS."""
    memory = ode2opt.Memory()
    ours, plain = [], []
    for problem in stream:
        result = ode2opt.solve(problem, method="auto", memory=memory, tol=TOL)
        other = ode2opt.solve(problem, np.zeros(problem.n), method="lbfgs", tol=TOL)
        if not (result.success and other.success):
            raise RuntimeError(f"no success: {result.message} (memory) {other.message} (lbfgs)")
        ours.append(result.oracle_calls)
        plain.append(other.oracle_calls)
    return ours, plain


def solves_until_back(before: Sequence[float], after: Sequence[float]) -> float:
    """Return how many solves after the change it takes to the median of those before it."""
    old = median(before)
    return next((i for i, value in enumerate(after) if value <= old), float("inf"))


def report(name: str, ours: list[int], plain: list[int]) -> float:
    """Print the calls of a stream and what follows from them; return the worst ratio."""
    half = len(ours) // 2
    shares = [mine / other for mine, other in zip(ours, plain, strict=True)]
    worst = max((m - ALLOWANCE) / p for m, p in zip(ours, plain, strict=True))
    print(f"\n{name}: the rows change after solve {half}.\n")
    print("| solve | memory calls | L-BFGS calls |\n|---|---|---|")
    for i, (mine, other) in enumerate(zip(ours, plain, strict=True), 1):
        print(f"| {i} | {mine:.1f} | {other:.0f} |")
    second = slice(half // 2, half)  # the memory has settled by then
    in_calls = solves_until_back(ours[second], ours[half:])
    in_shares = solves_until_back(shares[second], shares[half:])
    print(f"\nworst (memory - {ALLOWANCE}) / L-BFGS: {worst:.2f}")
    print(f"solves after the change before the calls are back at the old median: {in_calls}")
    print(f"the same for calls as a share of those of L-BFGS: {in_shares}", flush=True)
    return worst


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Print the tables; return the worst ratio of a single solve on each stream."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--problems", type=int, default=20, help="before and after the change")
    problems = parser.parse_args(arguments).problems
    found = {name: report(name, *calls(stream(problems))) for name, stream in STREAMS.items()}
    return {
        f"drift_worst_{name.replace(' ', '_')}": round(worst, 3) for name, worst in found.items()
    }


if __name__ == "__main__":
    main(sys.argv[1:])
