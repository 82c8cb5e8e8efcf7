"""The compiled loop of a table with a prox on a dense quadratic; numba is imported here, too.

All that is compiled for it stands in this file, as numba compiles anew what it kept on disk when
the file of the outermost function has changed.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit, types

from ode2opt.base.ended import Ended
from ode2opt.kernels.rows import kept_on_disk

CONVERGED, HORIZON, NON_FINITE, BLOWUP, ENVELOPE, PATIENCE, VALUE = (
    list(Ended).index(one)
    for one in (
        Ended.CONVERGED, Ended.HORIZON, Ended.NON_FINITE, Ended.BLOWUP, Ended.ENVELOPE,
        Ended.PATIENCE, Ended.VALUE,
    )
)  # fmt: skip

EXACTLY: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}


@njit(**EXACTLY)
def _move(x, before, g, at_before, slope_before, row, weights):  # type: ignore[no-untyped-def]
    """Make one iteration; g stays that of the point before."""
    m, p, q, w = row[0], row[1], row[2], row[3]
    l1, l2, lower, upper = weights
    step = p - q
    for i in range(len(x)):
        slope = g[i] + w * (g[i] - at_before[i])
        v = x[i] + m * (x[i] - before[i]) - p * slope + q * slope_before[i]
        v = (v - min(max(v, -step * l1[i]), step * l1[i])) / (1.0 + step * l2[i])
        before[i], at_before[i], slope_before[i] = x[i], g[i], slope
        x[i] = min(max(v, lower[i]), upper[i])


@njit(**EXACTLY)
def _gradient(Q, b, ridge, x, g):  # type: ignore[no-untyped-def]
    """Put Q x - b + ridge x into g; variables that are 0 take nothing."""
    n = len(x)
    for i in range(n):
        g[i] = ridge * x[i] - b[i]
    for j in range(n):
        if x[j] != 0.0:
            weight, row = x[j], Q[j]
            for i in range(n):
                g[i] += weight * row[i]


@njit(**EXACTLY)
def _residual_norm(x, g, weights):  # type: ignore[no-untyped-def]
    """Return |x - prox(x - g)|."""
    l1, l2, lower, upper = weights
    total = 0.0
    for i in range(len(x)):
        r = (l2[i] * x[i] + g[i] + min(max(x[i] - g[i], -l1[i]), l1[i])) / (1.0 + l2[i])
        total += min(max(r, x[i] - upper[i]), x[i] - lower[i]) ** 2
    return math.sqrt(total)


@njit(**EXACTLY)
def _value(x, g, b, weights):  # type: ignore[no-untyped-def]
    """Return f + h at a point within the limits."""
    l1, l2, total = weights[0], weights[1], 0.0
    for i in range(len(x)):
        total += 0.5 * x[i] * (g[i] - b[i]) + l1[i] * abs(x[i]) + 0.5 * l2[i] * x[i] * x[i]
    return total


@njit(**EXACTLY)
def _end(k, size, idle, envelope, limits, patience):  # type: ignore[no-untyped-def]
    """Return why the loop ends after iteration k; HORIZON where it does not."""
    tol, first, blowup = limits[0], limits[1], limits[4]
    if not math.isfinite(size):
        return NON_FINITE
    if size <= tol:
        return CONVERGED
    if size > blowup * first:
        return BLOWUP
    if k < len(envelope) and size > envelope[k] * first:
        return ENVELOPE
    return PATIENCE if idle >= patience else HORIZON


def _follow(  # type: ignore[no-untyped-def]
    Q, b, ridge, x, g, rows, l1, l2, lower, upper, envelope, limits, every, patience, best
):
    """Follow rows in place; ``best`` becomes the point of the least residual. See ``table``."""
    weights = (l1, l2, lower, upper)
    first, highest, fall = limits[1], limits[2], limits[3]
    least, mark, marked = first, first, 0
    before, at_before, slope_before = x.copy(), g.copy(), g.copy()
    for k in range(1, len(rows) + 1):
        _move(x, before, g, at_before, slope_before, rows[k - 1], weights)
        _gradient(Q, b, ridge, x, g)
        size = _residual_norm(x, g, weights)
        if size < least:
            least = size
            best[:] = x
            if size < fall * mark:
                mark, marked = size, k
        end = _end(k, size, k - marked, envelope, limits, patience)
        if k % every == 0 and end == HORIZON and not _value(x, g, b, weights) <= highest:
            end = VALUE
        if end != HORIZON:
            return k, end
    return len(rows), HORIZON


def compiled() -> Any:
    """Return the loop, compiled or read from disk."""
    real, whole = types.float64, types.int64
    vector, matrix = types.Array(real, 1, "C"), types.Array(real, 2, "C")
    given = (
        matrix, vector, real, vector, vector, matrix, *[vector] * 6, whole, whole, vector,
    )  # fmt: skip
    signature = types.UniTuple(whole, 2)(*given)
    return kept_on_disk(njit, signature, **EXACTLY)(_follow)
