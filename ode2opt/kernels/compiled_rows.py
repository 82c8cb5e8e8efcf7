"""The compiled pass over dense rows.

A block of rows is read from memory once: its scores, then its losses and slopes, then its part of
the gradient while it is in the cache. Everything that is compiled stands in this file, as numba
compiles anew what it kept on disk when the file of the outermost function has changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ode2opt.kernels.rows import kept_on_disk

# Sums of products may be re-ordered, so that they are done several at a time. Nothing supposes that
# numbers are finite.
SUMS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
CACHE_LINE = 64  # bytes
PART_ROWS = 1024  # so many are added in the matrix's own precision, then in float64


@intrinsic
def _call(typing_context, address, m, parameter, numbers):  # type: ignore[no-untyped-def]
    """Call the loss at an address: rows, parameter, and where the block's numbers are."""
    signature = types.void(types.intp, types.intp, types.float64, types.uintp)

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        word, real = ir.IntType(types.intp.bitwidth), ir.DoubleType()
        pointer = real.as_pointer()
        function = ir.FunctionType(ir.VoidType(), [word, real, pointer])
        called = builder.inttoptr(given[0], function.as_pointer())
        builder.call(called, [given[1], given[2], builder.inttoptr(given[3], pointer)])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _fetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at an address, which may be none of ours, and do not wait for it."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        reading, nearest, data = number(0), number(3), number(1)
        builder.call(function, [builder.inttoptr(given[0], pointer), reading, nearest, data])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@njit(**SUMS)
def row_scores(A, x, i, m, z):  # type: ignore[no-untyped-def]
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
def row_gradient(A, i, m, s, g, fetch):  # type: ignore[no-untyped-def]
    """Add the rows i to i + m times s to g, eight rows at a time.

    The next rows can be fetched meanwhile, as memory has nothing to do while a block is in the
    cache.
    """
    n = A.shape[1]
    k, size = 0, 8 * n * A.itemsize
    after = A.ctypes.data + (i + m) * n * A.itemsize
    while k + 8 <= m:
        a0, a1, a2, a3 = A[i + k], A[i + k + 1], A[i + k + 2], A[i + k + 3]
        a4, a5, a6, a7 = A[i + k + 4], A[i + k + 5], A[i + k + 6], A[i + k + 7]
        s0, s1, s2, s3 = s[k], s[k + 1], s[k + 2], s[k + 3]
        s4, s5, s6, s7 = s[k + 4], s[k + 5], s[k + 6], s[k + 7]
        if fetch:
            for line in range(0, size, CACHE_LINE):
                _fetch(np.uintp(after + line))
            after += size
        for j in range(n):
            low = (a0[j] * s0 + a1[j] * s1) + (a2[j] * s2 + a3[j] * s3)
            g[j] += low + ((a4[j] * s4 + a5[j] * s5) + (a6[j] * s6 + a7[j] * s7))
        k += 8
    while k < m:
        a0, s0 = A[i + k], s[k]
        for j in range(n):
            g[j] += a0[j] * s0
        k += 1


@njit(**SUMS)
def _column_scores(T, x, i, m, z):  # type: ignore[no-untyped-def]
    """Write the products of rows i to i + m with x, of eight columns at a time."""
    n = T.shape[0]
    z[:m] = 0
    j = 0
    while j + 8 <= n:
        a0, a1, a2, a3 = T[j, i:], T[j + 1, i:], T[j + 2, i:], T[j + 3, i:]
        a4, a5, a6, a7 = T[j + 4, i:], T[j + 5, i:], T[j + 6, i:], T[j + 7, i:]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        x4, x5, x6, x7 = x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        for k in range(m):
            low = (a0[k] * x0 + a1[k] * x1) + (a2[k] * x2 + a3[k] * x3)
            z[k] += low + ((a4[k] * x4 + a5[k] * x5) + (a6[k] * x6 + a7[k] * x7))
        j += 8
    while j < n:
        a0, x0 = T[j, i:], x[j]
        for k in range(m):
            z[k] += a0[k] * x0
        j += 1


@njit(**SUMS)
def _column_gradient(T, i, m, s, g):  # type: ignore[no-untyped-def]
    """Add the rows i to i + m times s to g, eight columns at a time."""
    n = T.shape[0]
    j = 0
    while j + 8 <= n:
        a0, a1, a2, a3 = T[j, i:], T[j + 1, i:], T[j + 2, i:], T[j + 3, i:]
        a4, a5, a6, a7 = T[j + 4, i:], T[j + 5, i:], T[j + 6, i:], T[j + 7, i:]
        d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = T.dtype.type(0)
        for k in range(m):
            d0 += a0[k] * s[k]
            d1 += a1[k] * s[k]
            d2 += a2[k] * s[k]
            d3 += a3[k] * s[k]
            d4 += a4[k] * s[k]
            d5 += a5[k] * s[k]
            d6 += a6[k] * s[k]
            d7 += a7[k] * s[k]
        g[j] += d0
        g[j + 1] += d1
        g[j + 2] += d2
        g[j + 3] += d3
        g[j + 4] += d4
        g[j + 5] += d5
        g[j + 6] += d6
        g[j + 7] += d7
        j += 8
    while j < n:
        a0 = T[j, i:]
        d0 = T.dtype.type(0)
        for k in range(m):
            d0 += a0[k] * s[k]
        g[j] += d0
        j += 1


@njit(**SUMS)
def _gather(b, offset, shift, i, m, narrow, numbers):  # type: ignore[no-untyped-def]
    """Write scores and targets of a block in float64."""
    z, target = numbers[0], numbers[1]
    for k in range(m):
        z[k] = narrow[k] + shift
        target[k] = b[i + k]
    if len(offset):
        for k in range(m):
            z[k] += offset[i + k]


@njit(**SUMS)
def _weigh(weights, i, m, numbers, narrow):  # type: ignore[no-untyped-def]
    """Weigh losses and slopes; return their sums, and the slopes in the matrix's precision."""
    loss, slope = numbers[2], numbers[3]
    if len(weights):
        for k in range(m):
            loss[k] *= weights[i + k]
            slope[k] *= weights[i + k]
    losses = slopes = 0.0
    for k in range(m):
        losses += loss[k]
        slopes += slope[k]
        narrow[k] = slope[k]
    return losses, slopes


def _pass(  # type: ignore[no-untyped-def]
    M, by_columns, x, shift, b, weights, offset, address, parameter, block, chunk, first, last, sums
):
    """Write the sums of the chunks first to last, in one pass over their rows."""
    N, n = len(b), len(x)
    space = np.empty(4 * block)
    narrow, part = np.empty(block, M.dtype), np.empty(n, M.dtype)
    for c in range(first, last):
        g = sums[c]
        g[:] = 0.0
        part[:] = 0
        end = min(N, (c + 1) * chunk)
        waiting = 0
        for i in range(c * chunk, end, block):
            m = min(block, end - i)
            numbers = space[: 4 * m].reshape(4, m)
            if by_columns:
                _column_scores(M, x, i, m, narrow)
            else:
                row_scores(M, x, i, m, narrow)
            _gather(b, offset, shift, i, m, narrow, numbers)
            _call(address, m, parameter, space.ctypes.data)
            losses, slopes = _weigh(weights, i, m, numbers, narrow)
            g[n] += slopes
            g[n + 1] += losses
            if by_columns:
                _column_gradient(M, i, m, narrow, part)
            else:
                row_gradient(M, i, m, narrow, part, True)
            waiting += m
            if waiting >= PART_ROWS or i + m == end:
                for j in range(n):
                    g[j] += part[j]
                part[:] = 0
                waiting = 0


def compiled(dtype: np.dtype[Any]) -> Any:
    """Return the pass over rows for matrices of float64 or float32, compiled or read from disk."""
    number = types.float64 if dtype == np.float64 else types.float32
    matrix = types.Array(number, 2, "C", readonly=True)
    vector = types.Array(number, 1, "C", readonly=True)
    whole, real = types.int64, types.float64
    signature = types.void(
        matrix, types.boolean, vector, real, vector, vector, vector,
        whole, real, whole, whole, whole, whole, types.Array(real, 2, "C"),
    )  # fmt: skip
    return kept_on_disk(njit, signature, nogil=True, **SUMS)(_pass)
