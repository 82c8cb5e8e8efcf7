"""Coordinate descent on a quadratic with a separable penalty, compiled where it is worth it.

It minimises 1/2 x.Hx - c.x + sum_j (l1_j |x_j| + l2_j/2 x_j^2) between limits, one variable after
the other, each exactly; g = H x - c is kept up to date (docs/mathematics.md, section 20).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ode2opt.kernels.rows import available, compiled

FEWEST_VARIABLES = 16  # below, NumPy is quick enough: numba takes 0.3 s to import
WITHIN = 10  # sweeps over sparse columns that move, between those over all
TINY = 1e-14  # of the largest curvature: what a variable without one is given


def is_compiled(n: int) -> bool:
    """Return whether descent on a matrix of n variables is compiled."""
    return n >= FEWEST_VARIABLES and available() and compiled("descent", "on_matrix") is not None


def descend(
    H: np.ndarray,
    x: np.ndarray,
    g: np.ndarray,
    steps: np.ndarray,
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    sweeps: int,
    tol: float,
) -> tuple[float, int]:
    """Go through all variables a few times, or until the residual is small; x and g change."""
    found = compiled("descent", "on_matrix") if is_compiled(len(x)) else _plain
    size, moves = found(H, x, g, steps, *weights, sweeps, tol)
    return float(size), int(moves)


class SparseColumns(NamedTuple):
    """A sparse matrix by columns.

    Attributes:
        data: the entries, column after column.
        rows: the row of each entry.
        starts: where each column begins, and the end of the last one.
    """

    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


def descend_columns(
    A: SparseColumns,
    shares: np.ndarray,
    among: np.ndarray,
    x: np.ndarray,
    g: np.ndarray,
    ridge: np.ndarray,
    weights: tuple[np.ndarray, ...],
    sweeps: int,
    tol: float,
) -> tuple[np.ndarray, float]:
    """Minimise g.d + 1/2 d.(A^T D A + R)d + h(x + d) over some of the d, from d = 0."""
    kernel = compiled("descent", "on_columns")
    assert kernel is not None, "has_columns() says whether there is one"
    z = x.copy()
    size = kernel(*A, shares, among.astype(np.int64), z, g, ridge, *weights, sweeps, WITHIN, tol)
    return z, float(size)


def _plain(
    H: np.ndarray,
    x: np.ndarray,
    g: np.ndarray,
    steps: np.ndarray,
    l1: np.ndarray,
    l2: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    sweeps: int,
    tol: float,
) -> tuple[float, int]:
    """The same with NumPy: only variables that would move when a sweep begins are looked at."""
    whole = steps + l2
    numbers = [one.tolist() for one in (steps, whole, l1, lower, upper)]
    moves = 0
    for _ in range(sweeps):
        if (size := _residual_norm(x, g, l1, l2, lower, upper)) <= tol:
            return size, moves
        at = steps * x - g
        goals = np.clip((at - np.clip(at, -l1, l1)) / whole, lower, upper)
        for j in np.flatnonzero(goals != x).tolist():
            step, both, weight, low, high = (one[j] for one in numbers)
            before = x.item(j)
            u = step * before - g.item(j)
            new = (u - min(max(u, -weight), weight)) / both
            new = min(max(new, low), high)
            if new != before:
                x[j] = new
                moves += 1
                g += (new - before) * H[j]
    return _residual_norm(x, g, l1, l2, lower, upper), moves


def _residual_norm(x: np.ndarray, g: np.ndarray, *weights: np.ndarray) -> float:
    """Return the norm of x - prox(x - g)."""
    l1, l2, lower, upper = weights
    found = (l2 * x + g + np.clip(x - g, -l1, l1)) / (1 + l2)
    found = np.clip(found, x - upper, x - lower)
    return math.sqrt(found @ found)


def has_columns() -> bool:
    """Return whether there is a descent on sparse columns: it is compiled or not at all."""
    return available() and compiled("descent", "on_columns") is not None
