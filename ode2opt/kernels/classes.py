"""Sums over dense rows with a score for each class in one pass (multinomial logistic loss)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ode2opt.base.threads import shared, thread_count
from ode2opt.kernels.rows import LEAST_ROWS, MOST_CHUNKS, goes_with, is_worth_it, kernel_for

# NumPy's products with a matrix of few columns take more than two readings each. Measured by
# `python benchmarks/kernels.py` on an AMD EPYC (Zen 5).
MOST_CLASSES = 30
MOST_COEFFICIENTS = 20_000
# Rows that are worked on together: in the first cache, as each class reads them again.
FEWEST_TOGETHER, MOST_TOGETHER, BLOCK_BYTES = 16, 64, 25_600


def can_run_classes(A: Any, classes: int) -> bool:
    """Whether a kernel takes the matrix with so many classes; it is compiled now, if not yet."""
    return (
        is_worth_it(A)
        and A.flags.c_contiguous
        and classes <= MOST_CLASSES
        and classes * A.shape[1] <= MOST_COEFFICIENTS
        and kernel_for(A.dtype, "softmax") is not None
    )


def classes_in_one_pass(
    A: np.ndarray,
    x: np.ndarray,
    b: np.ndarray,
    classes: int,
    *,
    weights: np.ndarray | None = None,
    intercept: bool = False,
) -> tuple[Any, np.ndarray] | None:
    """Return sum_i w_i (log sum_k exp(z_ik) - z_ib) and its gradient, with one pass over A.

    Losses are computed in float64, products and the sums of a few rows in the matrix's precision.
    """
    (N, n), K = A.shape, classes
    fitting = goes_with(x, A, K * (n + intercept)) and goes_with(b, A, N)
    if not fitting or not (weights is None or goes_with(weights, A, N)):
        return None
    if (kernel := kernel_for(A.dtype, "softmax")) is None:
        return None
    X = np.ascontiguousarray(x.reshape(-1, K).T)
    shifts = np.ascontiguousarray(X[:, n]) if intercept else np.zeros(K, A.dtype)
    together = BLOCK_BYTES // (max(n, 1) * A.itemsize) // 8 * 8
    block = max(FEWEST_TOGETHER, min(MOST_TOGETHER, together))
    chunk = max(LEAST_ROWS, -(-N // MOST_CHUNKS))
    sums = np.empty((-(-N // chunk), K * n + K + 1))
    nothing = np.empty(0, A.dtype)
    given = (
        np.asarray(A), np.ascontiguousarray(X[:, :n]), shifts, np.ascontiguousarray(b),
        nothing if weights is None else np.ascontiguousarray(weights),
    )  # fmt: skip

    def work(first: int, last: int) -> None:
        kernel(*given, block, chunk, first, last, sums)

    shared(work, len(sums), thread_count(A.nbytes))
    total = sums.sum(axis=0)  # row after row
    g = total[: K * n].reshape(K, n).T.ravel()
    if intercept:
        g = np.concatenate([g, total[K * n : -1]])
    return A.dtype.type(total[-1]), g.astype(A.dtype)
