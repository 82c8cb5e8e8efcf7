"""Coordinate descent on a quadratic with a separable penalty, compiled where it is worth it.

It minimises 1/2 x.Hx - c.x + sum_j (l1_j |x_j| + l2_j/2 x_j^2) between limits, one variable after
the other, each exactly; g = H x - c is kept up to date (docs/mathematics.md, section 20).
"""

from __future__ import annotations

import math
import threading
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ode2opt.kernels.rows import available

FEWEST_VARIABLES = 16  # below, NumPy is quick enough: numba takes 0.3 s to import
SWEEPS, WITHIN = 200, 10  # over sparse columns: at most, and of moving ones between full ones
TINY = 1e-14  # of the largest curvature: what a variable without one is given

_compiling = threading.Lock()


def is_compiled(n: int) -> bool:
    """Return whether descent on a matrix of n variables is compiled.

    Args:
        n: the number of variables.
    """
    return n >= FEWEST_VARIABLES and available() and _kernel("on_matrix") is not None


def descend(
    H: np.ndarray,
    x: np.ndarray,
    g: np.ndarray,
    steps: np.ndarray,
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    sweeps: int,
    tol: float,
) -> float:
    """Go through all variables a few times, or until the residual is small; x and g change.

    Args:
        H: a symmetric matrix, by rows.
        x: the point, within the limits.
        g: the gradient of the quadratic there.
        steps: the diagonal of H, none of it 0.
        weights: l1, l2, lower and upper limits, n numbers each.
        sweeps: how often to go through all variables at most.
        tol: the norm of x - prox(x - g) that is small enough.

    Returns:
        That norm at the point reached.
    """
    found = _kernel("on_matrix") if is_compiled(len(x)) else _plain
    return float(found(H, x, g, steps, *weights, sweeps, tol))


class SparseColumns(NamedTuple):
    """A sparse matrix by columns.

    Attributes:
        data: the entries, column after column.
        rows: the row of each entry.
        starts: where each column begins, and the end of the last one.
        height: the number of rows.
    """

    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    height: int

    def weighted(self, roots: np.ndarray) -> SparseColumns:
        """Return the matrix with its rows times numbers.

        Args:
            roots: one number a row.
        """
        return self._replace(data=self.data * roots[self.rows])


def descend_columns(
    B: SparseColumns,
    x: np.ndarray,
    g: np.ndarray,
    ridge: np.ndarray,
    weights: tuple[np.ndarray, ...],
    tol: float,
) -> np.ndarray:
    """Minimise g.(z - x) + 1/2 |B (z - x)|^2 + ridge/2 |z - x|^2 + h(z) over z, from z = x.

    Args:
        B: the matrix.
        x: a point within the limits.
        g: the gradient there.
        ridge: one number a variable, none negative.
        weights: l1, l2, lower and upper limits of h, n numbers each.
        tol: the residual that is small enough, as seen on the way.

    Returns:
        The minimiser, or the point reached after many sweeps.
    """
    kernel = _kernel("on_columns")
    assert kernel is not None, "has_columns() says whether there is one"
    squares = np.add.reduceat(np.append(B.data * B.data, 0.0), B.starts[:-1])
    squares[B.starts[1:] == B.starts[:-1]] = 0.0
    steps = squares + ridge
    steps = np.maximum(steps, TINY * (float(steps.max(initial=0.0)) or 1.0))
    z, v = x.copy(), np.zeros(B.height)
    kernel(B.data, B.rows, B.starts, z, g, v, steps, ridge, *weights, SWEEPS, WITHIN, tol)
    return z


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
) -> float:
    """The same with NumPy: only variables that would move when a sweep begins are looked at."""
    whole = steps + l2
    for _ in range(sweeps):
        inner = np.clip(x - g, -l1, l1)
        residual = np.clip((l2 * x + g + inner) / (1 + l2), x - upper, x - lower)
        size = math.sqrt(residual @ residual)
        if size <= tol:
            return size
        at = steps * x - g
        goals = np.clip((at - np.clip(at, -l1, l1)) / whole, lower, upper)
        for j in np.flatnonzero(goals != x):
            before, weight = float(x[j]), float(l1[j])
            u = float(steps[j]) * before - float(g[j])
            new = (u - min(max(u, -weight), weight)) / float(whole[j])
            new = min(max(new, float(lower[j])), float(upper[j]))
            if new != before:
                x[j] = new
                g += (new - before) * H[j]
    residual = np.clip((l2 * x + g + np.clip(x - g, -l1, l1)) / (1 + l2), x - upper, x - lower)
    return math.sqrt(residual @ residual)


def has_columns() -> bool:
    """Return whether there is a descent on sparse columns: it is compiled or not at all."""
    return available() and _kernel("on_columns") is not None


def _kernel(name: str) -> Any:
    """Return a compiled descent; None where numba does not work."""
    with _compiling:
        return _compiled(name)


@cache
def _compiled(name: str) -> Any:
    try:
        from ode2opt.kernels.compiled_descent import compiled

        return compiled(name)
    except Exception as error:  # numba fails in many ways, with NumPy's version for one
        warnings.warn(
            f"numba does not work ({type(error).__name__}: {error}): NumPy descends instead.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
