"""The compiled loops of coordinate descent; numba is imported here and in ``compiled``.

All that is compiled for it stands in this file, as numba compiles anew what it kept on disk when
the file of the outermost function has changed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from ode2opt.kernels.rows import kept_on_disk

TINY = 1e-14  # of the largest curvature: what a variable without one is given
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
    """Descend in place, g being the gradient; returns the residual and how many moves were made."""
    n, moves = len(x), 0
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
                moves += 1
                for i in range(n):
                    g[i] += change * row[i]
    return math.sqrt(total), moves


def _on_columns(  # type: ignore[no-untyped-def]
    data, rows, starts, shares, among, x, g, ridge, l1, l2, lower, upper, sweeps, within, tol
):
    """Descend in place on some variables; returns the residual as seen on the way.

    The gradient of variable j is g_j + a_j.u + ridge_j (x_j - start_j), u = D A (x - start). After
    all variables come those that moved or are not 0, a few times.
    """
    start, u, steps = x.copy(), np.zeros(len(shares)), np.zeros(len(x))
    top = 0.0
    for j in among:
        for p in range(starts[j], starts[j + 1]):
            steps[j] += data[p] * data[p] * shares[rows[p]]
        steps[j] += ridge[j]
        top = max(top, steps[j])
    least = TINY * top if top > 0.0 else 1.0
    chosen, count, part, size = among.copy(), len(among), 0, 0.0
    for _ in range(sweeps):
        everything = count == len(among)
        kept, total = 0, 0.0
        for k in range(count):
            j = chosen[k]
            slope = g[j] + ridge[j] * (x[j] - start[j])
            for p in range(starts[j], starts[j + 1]):
                slope += data[p] * u[rows[p]]
            total += _residual(x[j], slope, l1[j], l2[j], lower[j], upper[j]) ** 2
            step = max(steps[j], least)
            new = _least(x[j], slope, step, l1[j], l2[j], lower[j], upper[j])
            change = new - x[j]
            x[j] = new
            for p in range(starts[j], starts[j + 1] if change != 0.0 else starts[j]):
                u[rows[p]] += change * data[p] * shares[rows[p]]
            chosen[kept] = j
            kept += 1 if not everything or change != 0.0 or new != 0.0 else 0
        size, part = math.sqrt(total), 0 if everything else part + 1
        if everything and size <= tol:
            break
        count = kept
        if part >= within or (part > 0 and size <= 0.3 * tol):
            chosen, count = among.copy(), len(among)
    return size


def compiled(name: str) -> Any:
    """Return a function of this file, compiled or read from disk."""
    real, whole = types.float64, types.int64
    vector, places = types.Array(real, 1, "C"), types.Array(whole, 1, "C")
    loops: Any
    answer: Any = real
    if name == "on_matrix":
        loops, given = _on_matrix, (types.Array(real, 2, "C"), *[vector] * 7, whole, real)
        answer = types.Tuple((real, whole))
    else:
        short = types.Array(types.int32, 1, "C")
        given = (vector, short, places, vector, places, *[vector] * 7, whole, whole, real)
        loops = _on_columns
    return kept_on_disk(njit, answer(*given), **OPTIONS)(loops)
