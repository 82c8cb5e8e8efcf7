"""The compiled loops of coordinate descent; numba is imported here and in ``compiled``.

All that is compiled for it stands in this file, as numba compiles anew what it kept on disk when
the file of the outermost function has changed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}


@njit(forceinline=True, **OPTIONS)
def _residual(x, g, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """Return x - prox(x - g) of one variable."""
    r = (l2 * x + g + min(max(x - g, -l1), l1)) / (1.0 + l2)
    return min(max(r, x - upper), x - lower)


@njit(forceinline=True, **OPTIONS)
def _least(x, g, step, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """Return where one variable is best, the others being held."""
    u = step * x - g
    return min(max((u - min(max(u, -l1), l1)) / (step + l2), lower), upper)


def _on_matrix(H, x, g, steps, l1, l2, lower, upper, sweeps, tol):  # type: ignore[no-untyped-def]
    """Descend in place, g being the gradient; returns the residual."""
    n = len(x)
    for sweep in range(sweeps + 1):
        total = 0.0
        for j in range(n):
            total += _residual(x[j], g[j], l1[j], l2[j], lower[j], upper[j]) ** 2
        if sweep == sweeps or total <= tol * tol:
            break
        for j in range(n):
            new = _least(x[j], g[j], steps[j], l1[j], l2[j], lower[j], upper[j])
            change = new - x[j]
            if change != 0.0:
                x[j] = new
                row = H[j]
                for i in range(n):
                    g[i] += change * row[i]
    return math.sqrt(total)


def _on_columns(  # type: ignore[no-untyped-def]
    data, rows, starts, x, g, v, steps, ridge, l1, l2, lower, upper, sweeps, within, tol
):
    """Descend in place; returns the residual as seen on the way.

    The gradient of variable j is g_j + b_j.v + ridge_j (x_j - start_j), v = B (x - start). After
    all variables come those that moved or are not 0, a few times.
    """
    n = len(x)
    start, chosen = x.copy(), np.arange(n)
    count, part, size = n, 0, 0.0
    for _ in range(sweeps):
        everything = count == n
        kept, total = 0, 0.0
        for k in range(count):
            j = chosen[k]
            slope = g[j] + ridge[j] * (x[j] - start[j])
            for p in range(starts[j], starts[j + 1]):
                slope += data[p] * v[rows[p]]
            total += _residual(x[j], slope, l1[j], l2[j], lower[j], upper[j]) ** 2
            new = _least(x[j], slope, steps[j], l1[j], l2[j], lower[j], upper[j])
            change = new - x[j]
            x[j] = new
            for p in range(starts[j], starts[j + 1] if change != 0.0 else starts[j]):
                v[rows[p]] += change * data[p]
            chosen[kept] = j
            kept += 1 if not everything or change != 0.0 or new != 0.0 else 0
        size, part = math.sqrt(total), 0 if everything else part + 1
        if everything and size <= tol:
            break
        count = kept
        if part >= within or (part > 0 and size <= 0.3 * tol):
            chosen, count = np.arange(n), n
    return size


def compiled(name: str) -> Any:
    """Return a function of this file, compiled or read from disk.

    Args:
        name: "on_matrix" or "on_columns".
    """
    real, whole = types.float64, types.int64
    vector, places = types.Array(real, 1, "C"), types.Array(whole, 1, "C")
    loops: Any
    if name == "on_matrix":
        loops, given = _on_matrix, (types.Array(real, 2, "C"), *[vector] * 7, whole, real)
    else:
        short = types.Array(types.int32, 1, "C")
        loops, given = _on_columns, (vector, short, places, *[vector] * 9, whole, whole, real)
    try:
        return njit(real(*given), cache=True, **OPTIONS)(loops)
    except (RuntimeError, OSError):  # no folder to keep it in
        return njit(real(*given), **OPTIONS)(loops)
