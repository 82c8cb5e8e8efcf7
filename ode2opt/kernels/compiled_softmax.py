"""The compiled pass over dense rows that have a score for each class.

What it calls of ``compiled_rows`` and ``compiled_losses`` is compiled into it: numba does not see
that those files have changed, only that this one has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from ode2opt.kernels.compiled_losses import EXACT, exp
from ode2opt.kernels.compiled_rows import SUMS, row_gradient, row_scores
from ode2opt.kernels.rows import kept_on_disk


@njit(**EXACT)
def _softmax(m, z, b, slope, top, total):  # type: ignore[no-untyped-def]
    """Write probabilities less 1 for a row's class to slope, losses to top; all have m rows."""
    top[:m] = z[0, :m]
    for k in range(1, len(z)):
        for r in range(m):
            top[r] = z[k, r] if not z[k, r] <= top[r] else top[r]  # keeps what is not a number
    total[:m] = 0.0
    for k in range(len(z)):
        for r in range(m):
            slope[k, r] = exp(z[k, r] - top[r])
            total[r] += slope[k, r]
    for r in range(m):
        top[r] += math.log(total[r]) - z[int(b[r]), r]
        total[r] = 1.0 / total[r]
    for k in range(len(z)):
        for r in range(m):
            slope[k, r] *= total[r]
    for r in range(m):
        slope[int(b[r]), r] -= 1.0


def _softmax_pass(  # type: ignore[no-untyped-def]
    A, X, shifts, b, weights, block, chunk, first, last, sums
):
    """Write the sums of the chunks first to last, in one pass over their rows."""
    (N, n), K = A.shape, len(X)
    z, slope = np.empty((K, block)), np.empty((K, block))
    loss, total = np.empty(block), np.empty(block)
    narrow, part = np.empty((K, block), A.dtype), np.empty((K, n), A.dtype)
    for c in range(first, last):
        sums[c] = 0.0
        G, slopes = sums[c, : K * n].reshape(K, n), sums[c, K * n :]
        end = min(N, (c + 1) * chunk)
        for i in range(c * chunk, end, block):
            m = min(block, end - i)
            for k in range(K):
                row_scores(A, X[k], i, m, narrow[k])
                for r in range(m):
                    z[k, r] = narrow[k, r] + shifts[k]
            _softmax(m, z, b[i : i + m], slope, loss, total)
            if len(weights):
                for r in range(m):
                    loss[r] *= weights[i + r]
                    slope[:, r] *= weights[i + r]
            slopes[K] += loss[:m].sum()
            part[:] = 0
            for k in range(K):
                slopes[k] += slope[k, :m].sum()
                for r in range(m):
                    narrow[k, r] = slope[k, r]
                row_gradient(A, i, m, narrow[k], part[k], k == K - 1)
                for j in range(n):
                    G[k, j] += part[k, j]


def compiled(dtype: np.dtype[Any]) -> Any:
    """Return the pass over rows for matrices of float64 or float32, compiled or read from disk."""
    number = types.float64 if dtype == np.float64 else types.float32
    matrix = types.Array(number, 2, "C", readonly=True)
    vector = types.Array(number, 1, "C", readonly=True)
    whole = types.int64
    signature = types.void(
        matrix, matrix, vector, vector, vector, whole, whole, whole, whole,
        types.Array(types.float64, 2, "C"),
    )  # fmt: skip
    return kept_on_disk(njit, signature, nogil=True, **SUMS)(_softmax_pass)
