"""Compiled losses: loss and slope of a block of rows, called by their address.

A pass over rows knows a loss only by the address of its machine code, so that it is compiled once
for all of them, those of users included. numba compiles anew what it kept on disk when the file
of the outermost function has changed: what a loss calls stands in this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types

from ode2opt.kernels.row_loss import Loss, RowLoss
from ode2opt.kernels.rows import kept_on_disk

# Losses may not be re-ordered: log(1 + e^z) would lose its digits. Nothing supposes that numbers
# are finite.
EXACT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
ADDRESS = types.void(types.intp, types.float64, types.CPointer(types.float64))

ROUND = 6755399441055744.0  # 1.5 * 2^52: a sum with it ends in the nearest whole number
ROUND_BITS = 4843621399236968448
LARGEST_EXPONENT = 750.0  # beyond, e^x is infinite and e^-x is 0
HALF_LOG = 0.41421356237309515  # sqrt(2) - 1


@njit(forceinline=True, **EXACT)
def exp(x):  # type: ignore[no-untyped-def]
    """Return e^x to about one unit in the last place, by operations that run several at a time."""
    x = LARGEST_EXPONENT if x > LARGEST_EXPONENT else x
    x = -LARGEST_EXPONENT if x < -LARGEST_EXPONENT else x
    t = x * 1.4426950408889634 + ROUND
    k = np.float64(t).view(np.int64) - np.int64(ROUND_BITS)
    whole = t - ROUND
    r = x - whole * 6.93147180369123816490e-01
    r = r - whole * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    half = k >> 1  # in two steps, as 2^k may be beyond the range where p 2^k is not
    first = np.int64((half + 1023) << 52).view(np.float64)
    second = np.int64((k - half + 1023) << 52).view(np.float64)
    return p * first * second


@njit(forceinline=True, **EXACT)
def _log1p(e):  # type: ignore[no-untyped-def]
    """Return log(1 + e) for e in [0, 1]: 2 atanh(f / (2 + f)), after a step by log(2)."""
    beyond = e > HALF_LOG
    f = (e - 1.0) * 0.5 if beyond else e
    s = f / (2.0 + f)
    w = s * s
    p = 1.0 / 23.0
    p = p * w + 1.0 / 21.0
    p = p * w + 1.0 / 19.0
    p = p * w + 1.0 / 17.0
    p = p * w + 1.0 / 15.0
    p = p * w + 1.0 / 13.0
    p = p * w + 1.0 / 11.0
    p = p * w + 1.0 / 9.0
    p = p * w + 1.0 / 7.0
    p = p * w + 1.0 / 5.0
    p = p * w + 1.0 / 3.0
    return 2.0 * s + 2.0 * s * w * p + (0.6931471805599453 if beyond else 0.0)


@njit(forceinline=True, **EXACT)
def _views(m, numbers):  # type: ignore[no-untyped-def]
    """Return scores, targets, losses and slopes of m rows."""
    views = carray(numbers, (4, m))
    return views[0], views[1], views[2], views[3]


def _logistic(m, parameter, numbers):  # type: ignore[no-untyped-def]
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        e = exp(-abs(z[k]))
        q = e / (1.0 + e)
        share = 1.0 - b[k] if z[k] > 0 else -b[k]
        line = share * z[k] if share != 0 else 0.0  # no 0 times infinity
        loss[k] = line + _log1p(e)
        slope[k] = share + (-q if z[k] > 0 else q)


def _power(m, p, numbers):  # type: ignore[no-untyped-def]
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        z[k] -= b[k]
        slope[k] = z[k]
    for _ in range(int(p) - 2):
        for k in range(m):
            slope[k] *= z[k]
    for k in range(m):
        loss[k] = slope[k] * z[k] / p


def _poisson(m, parameter, numbers):  # type: ignore[no-untyped-def]
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        e = exp(z[k])
        loss[k] = e - b[k] * z[k]
        slope[k] = e - b[k]


def _huber(m, delta, numbers):  # type: ignore[no-untyped-def]
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        r = z[k] - b[k]
        near = delta if r > delta else r
        near = -delta if near < -delta else near
        loss[k] = near * (r - 0.5 * near)
        slope[k] = near


def _squared_hinge(m, parameter, numbers):  # type: ignore[no-untyped-def]
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        s = 2.0 * b[k] - 1.0
        gap = 1.0 - s * z[k]
        gap = gap * (1.0 if gap > 0 else 0.0)
        loss[k] = gap * gap
        slope[k] = -2.0 * s * gap


def _product(m, parameter, numbers):  # type: ignore[no-untyped-def]
    """Loss 0, slope b z: with b for the bends the pass gives a Hessian times x."""
    z, b, loss, slope = _views(m, numbers)
    for k in range(m):
        loss[k] = 0.0
        slope[k] = b[k] * z[k]


BUILT_IN = {
    "logistic": _logistic,
    "power": _power,
    "poisson": _poisson,
    "huber": _huber,
    "squared_hinge": _squared_hinge,
    "product": _product,
}


def compiled(kind: Loss | RowLoss) -> Any:
    """Return a compiled loss, whose attribute ``address`` a pass takes."""
    if isinstance(kind, Loss):
        return kept_on_disk(cfunc, ADDRESS, **EXACT)(BUILT_IN[str(kind.compiled)])
    return cfunc(ADDRESS, **EXACT)(_block_of(kind))


def _block_of(row: RowLoss) -> Any:
    """Return the loop over a block's rows for functions of one row."""
    loss_of, slope_of = njit(**EXACT)(row.loss), njit(**EXACT)(row.slope)
    if row.parameter is None:

        def block(m, parameter, numbers):  # type: ignore[no-untyped-def]
            z, b, loss, slope = _views(m, numbers)
            for k in range(m):
                loss[k] = loss_of(z[k], b[k])
                slope[k] = slope_of(z[k], b[k])

    else:

        def block(m, parameter, numbers):  # type: ignore[no-untyped-def]
            z, b, loss, slope = _views(m, numbers)
            for k in range(m):
                loss[k] = loss_of(z[k], b[k], parameter)
                slope[k] = slope_of(z[k], b[k], parameter)

    return block
