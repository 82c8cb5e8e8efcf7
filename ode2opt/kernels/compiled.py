"""The compiled loop over rows. numba is imported here and nowhere else.

A block of rows is read from memory once: its scores, then its losses and slopes, then its part of
the gradient while it is in the cache. Everything that is compiled stands in this file, as numba
compiles anew what it kept on disk when the file of the outermost function has changed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numba import njit, types

LOGISTIC, POWER, POISSON, HUBER, SQUARED_HINGE, PRODUCT = range(6)

# Losses may not be re-ordered: log(1 + e^z) would lose its digits. Sums of products may, so that
# they are done several at a time. Neither supposes that numbers are finite.
EXACT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
SUMS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}

ROUND = 6755399441055744.0  # 1.5 * 2^52: a sum with it ends in the nearest whole number
ROUND_BITS = 4843621399236968448
LARGEST_EXPONENT = 750.0  # beyond, e^x is infinite and e^-x is 0
HALF_LOG = 0.41421356237309515  # sqrt(2) - 1
PART_ROWS = 1024  # so many are added in the matrix's own precision, then in float64


@njit(forceinline=True, **EXACT)
def _exp(x):  # type: ignore[no-untyped-def]
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


@njit(**EXACT)
def _logistic(m, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        e = _exp(-abs(z[k]))
        q = e / (1.0 + e)
        share = 1.0 - b[k] if z[k] > 0 else -b[k]
        line = share * z[k] if share != 0 else 0.0  # no 0 times infinity
        loss[k] = line + _log1p(e)
        slope[k] = share + (-q if z[k] > 0 else q)


@njit(**EXACT)
def _power(m, p, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        z[k] -= b[k]
        slope[k] = z[k]
    for _ in range(int(p) - 2):
        for k in range(m):
            slope[k] *= z[k]
    for k in range(m):
        loss[k] = slope[k] * z[k] / p


@njit(**EXACT)
def _poisson(m, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        e = _exp(z[k])
        loss[k] = e - b[k] * z[k]
        slope[k] = e - b[k]


@njit(**EXACT)
def _huber(m, delta, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        r = z[k] - b[k]
        near = delta if r > delta else r
        near = -delta if near < -delta else near
        loss[k] = near * (r - 0.5 * near)
        slope[k] = near


@njit(**EXACT)
def _squared_hinge(m, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        s = 2.0 * b[k] - 1.0
        gap = 1.0 - s * z[k]
        gap = gap * (1.0 if gap > 0 else 0.0)
        loss[k] = gap * gap
        slope[k] = -2.0 * s * gap


@njit(**EXACT)
def _product(m, z, b, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        loss[k] = 0.0
        slope[k] = b[k] * z[k]


@njit(**EXACT)
def _losses(kind, parameter, m, z, b, loss, slope):  # type: ignore[no-untyped-def]
    """Write loss and slope of m rows; may overwrite the scores."""
    if kind == LOGISTIC:
        _logistic(m, z, b, loss, slope)
    elif kind == POWER:
        _power(m, parameter, z, b, loss, slope)
    elif kind == POISSON:
        _poisson(m, z, b, loss, slope)
    elif kind == HUBER:
        _huber(m, parameter, z, b, loss, slope)
    elif kind == SQUARED_HINGE:
        _squared_hinge(m, z, b, loss, slope)
    else:
        _product(m, z, b, loss, slope)


@njit(**EXACT)
def _weigh(m, weights, i, loss, slope):  # type: ignore[no-untyped-def]
    for k in range(m):
        loss[k] *= weights[i + k]
        slope[k] *= weights[i + k]


@njit(**SUMS)
def _block_scores(A, x, i, m, z):  # type: ignore[no-untyped-def]
    """Write the products of rows i to i + m with x, of eight rows at a time."""
    n = A.shape[1]
    k = 0
    while k + 8 <= m:
        a0, a1, a2, a3 = A[i + k], A[i + k + 1], A[i + k + 2], A[i + k + 3]
        a4, a5, a6, a7 = A[i + k + 4], A[i + k + 5], A[i + k + 6], A[i + k + 7]
        d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = A.dtype.type(0)
        for j in range(n):
            d0 += a0[j] * x[j]
            d1 += a1[j] * x[j]
            d2 += a2[j] * x[j]
            d3 += a3[j] * x[j]
            d4 += a4[j] * x[j]
            d5 += a5[j] * x[j]
            d6 += a6[j] * x[j]
            d7 += a7[j] * x[j]
        z[k], z[k + 1], z[k + 2], z[k + 3] = d0, d1, d2, d3
        z[k + 4], z[k + 5], z[k + 6], z[k + 7] = d4, d5, d6, d7
        k += 8
    while k < m:
        a0 = A[i + k]
        d0 = A.dtype.type(0)
        for j in range(n):
            d0 += a0[j] * x[j]
        z[k] = d0
        k += 1


@njit(**SUMS)
def _block_gradient(A, i, m, s, g):  # type: ignore[no-untyped-def]
    """Add the rows i to i + m times s to g, eight rows at a time."""
    n = A.shape[1]
    k = 0
    while k + 8 <= m:
        a0, a1, a2, a3 = A[i + k], A[i + k + 1], A[i + k + 2], A[i + k + 3]
        a4, a5, a6, a7 = A[i + k + 4], A[i + k + 5], A[i + k + 6], A[i + k + 7]
        s0, s1, s2, s3 = s[k], s[k + 1], s[k + 2], s[k + 3]
        s4, s5, s6, s7 = s[k + 4], s[k + 5], s[k + 6], s[k + 7]
        for j in range(n):
            low = (a0[j] * s0 + a1[j] * s1) + (a2[j] * s2 + a3[j] * s3)
            g[j] += low + ((a4[j] * s4 + a5[j] * s5) + (a6[j] * s6 + a7[j] * s7))
        k += 8
    while k < m:
        a0, s0 = A[i + k], s[k]
        for j in range(n):
            g[j] += a0[j] * s0
        k += 1


def _pass_over_rows(  # type: ignore[no-untyped-def]
    A, x, shift, b, weights, offset, kind, parameter, block, chunk, first, last, sums
):
    """Write the sums of the chunks first to last, in one pass over their rows.

    Args:
        A: the matrix, by rows.
        x: the point, a number for each column.
        shift: what is added to every score.
        b: the targets.
        weights: of the rows, or nothing.
        offset: what is added to each row's score, or nothing.
        kind: which loss.
        parameter: of the loss.
        block: how many rows are worked on together.
        chunk: how many rows have a sum of their own.
        first: the first chunk.
        last: the chunk after the last.
        sums: a row for each chunk: the gradient, the sum of slopes, the sum of losses.
    """
    N, n = A.shape
    z, target = np.empty(block), np.empty(block)
    loss, slope = np.empty(block), np.empty(block)
    narrow, part = np.empty(block, A.dtype), np.empty(n, A.dtype)
    for c in range(first, last):
        g = sums[c]
        g[:] = 0.0
        part[:] = 0
        end = min(N, (c + 1) * chunk)
        waiting = 0
        for i in range(c * chunk, end, block):
            m = min(block, end - i)
            _block_scores(A, x, i, m, z)
            for k in range(m):
                target[k] = b[i + k]
                z[k] += shift
                z[k] += offset[i + k] if len(offset) else 0.0
            _losses(kind, parameter, m, z, target, loss, slope)
            if len(weights):
                _weigh(m, weights, i, loss, slope)
            for k in range(m):
                g[n] += slope[k]
                g[n + 1] += loss[k]
                narrow[k] = slope[k]
            _block_gradient(A, i, m, narrow, part)
            waiting += m
            if waiting >= PART_ROWS or i + m == end:
                for j in range(n):
                    g[j] += part[j]
                part[:] = 0
                waiting = 0


def compiled(dtype: np.dtype[Any]) -> Any:
    """Return the pass over rows for matrices of float64 or float32, compiled or read from disk.

    Args:
        dtype: of the matrix, targets, weights and offset.
    """
    number = types.float64 if dtype == np.float64 else types.float32
    matrix = types.Array(number, 2, "C", readonly=True)
    vector = types.Array(number, 1, "C", readonly=True)
    whole, real = types.int64, types.float64
    signature = types.void(
        matrix, vector, real, vector, vector, vector,
        whole, real, whole, whole, whole, whole, types.Array(real, 2, "C"),
    )  # fmt: skip
    try:
        return njit(signature, cache=True, nogil=True, **SUMS)(_pass_over_rows)
    except (RuntimeError, OSError) as error:  # no folder to write to
        warnings.warn(
            f"Kernels are compiled in every process, as they cannot be kept ({error}): set "
            "NUMBA_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )
        return njit(signature, nogil=True, **SUMS)(_pass_over_rows)
