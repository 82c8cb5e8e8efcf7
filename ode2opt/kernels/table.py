"""A table with a prox on a dense quadratic with a separable penalty, all iterations in one call.

The loop of ``ode2opt.solvers.penalised_table`` and its guard, compiled (extra ``fast``): an
iteration of 100 variables takes microseconds, and variables that are 0 take nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.kernels.coordinate import FEWEST_VARIABLES
from ode2opt.kernels.rows import available, compiled


class TableLimits(NamedTuple):
    """When the loop ends.

    Attributes:
        tol: the residual to reach.
        first: the residual at the start.
        highest: the value that no iterate may be above.
        fall: the factor by which a residual must have fallen to count as progress.
        blowup: times the first residual.
        envelope: times the first residual, for each iteration.
        every: iterations between two looks at the value.
        patience: iterations without progress.
    """

    tol: float
    first: float
    highest: float
    fall: float
    blowup: float
    envelope: tuple[float, ...]
    every: int
    patience: int


class TableEnd(NamedTuple):
    """Where a loop ended.

    Attributes:
        iterations: how many were made.
        ended: why.
        x: the last point where that is the solution, else the one with the least residual.
    """

    iterations: int
    ended: Ended
    x: np.ndarray


def table_kernel(n: int) -> Any:
    """Return the compiled loop for so many variables; None where there is none or NumPy will do."""
    if n < FEWEST_VARIABLES or not available():
        return None
    return compiled("table")


def follow_table(
    kernel: Any,
    quadratic: tuple[np.ndarray, np.ndarray, float],
    start: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    weights: tuple[np.ndarray, ...],
    limits: TableLimits,
) -> TableEnd:
    """Follow a table."""
    (Q, b, ridge), x, g = quadratic, start[0].copy(), start[1].copy()
    best = x.copy()
    numbers = np.array([*limits[:4], limits.blowup])
    made, code = kernel(
        Q, b, ridge, x, g, rows, *weights, np.asarray(limits.envelope, dtype=np.float64), numbers,
        limits.every, limits.patience, best,
    )  # fmt: skip
    ended = list(Ended)[code]
    return TableEnd(int(made), ended, x if ended is Ended.CONVERGED else best)
