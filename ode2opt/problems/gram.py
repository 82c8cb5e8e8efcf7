"""The Hessian of a linear model, A^T W A, by the quickest way for its matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, is_sparse
from ode2opt.base.lapack import syrk
from ode2opt.base.machine import measured_times


@dataclass(frozen=True)
class GramRoutes:
    """Which way A^T W A is formed. All are positive, measured on an AMD EPYC.

    Attributes:
        sparse_slower: about so many times as long takes an operation on a sparse entry.
        sparse_time: a sparse product may take so many times as long: it has fewer operations.
        most_active: share of rows with a weight up to which the others are left out; at most 1.
        block: entries of a block of rows, which stays in the cache.
        sparse_block: the same for sparse rows.
        few_columns: up to which B^T B is quicker by NumPy than added in place by SciPy's BLAS.
        side: rows and columns of the squares that are copied at once.
    """

    sparse_slower: int = 4
    sparse_time: float = 2.0
    most_active: float = 0.8
    block: int = 1 << 18
    sparse_block: int = 1 << 18
    few_columns: int = 128
    side: int = 128


ROUTES = GramRoutes()


def weighted_gram(A: Array, weights: Array) -> Array:
    """Return the dense matrix A^T diag(weights) A.

    Beside it, memory for one block of rows is enough. Rows without a weight are left out where
    these are many.
    """
    if not (is_sparse(A) or isinstance(A, np.ndarray)):
        return A.T @ (weights[:, None] * A)
    active = _active(weights)
    chosen = weights if active is None else weights[active]
    even = _common(chosen)
    if is_sparse(A) and extent(A).stays_sparse():
        rows = A if active is None else A[active]
        return _sparse_gram(rows, chosen) if even is None else even * _sparse_gram(rows, None)
    if even is None:
        return _by_blocks(A, active, chosen)
    H = _by_blocks(A, active, None) if is_sparse(A) or active is not None else A.T @ A
    H *= even
    return H


def weighted_sum(A: Array, weights: Array) -> Array:
    """Return A^T weights; rows without a weight are left out where these are many."""
    active = _active(weights) if isinstance(weights, np.ndarray) else None
    return A.T @ weights if active is None else A[active].T @ weights[active]


class Extent(NamedTuple):
    """What the price of A^T W A depends on: the shape of A, and its rows' non-zeros.

    Attributes:
        rows: the number of rows that have a weight.
        columns: the number of columns.
        pairs: the sum of squares of the rows' non-zeros; None for a dense matrix.
    """

    rows: int
    columns: int
    pairs: float | None
    """The sum of squares of the rows' non-zeros; None for a dense matrix."""

    def stays_sparse(self) -> bool:
        """Whether A^T W A is made of products between sparse entries, not between dense columns."""
        return self.pairs is not None and self._sparse() < ROUTES.sparse_time * self._dense()

    def flops(self) -> int:
        """Return about how many operations it takes; one between sparse entries counts four."""
        if self.pairs is not None and self.stays_sparse():
            return int(2 * ROUTES.sparse_slower * self.pairs)
        return int(self.rows * self.columns * (self.columns + 1))

    def seconds(self) -> float:
        """Return about how long it takes on one core."""
        if self.pairs is not None and self.stays_sparse():
            return 1e-9 * self._sparse()
        return 1e-9 * self._dense()

    def _sparse(self) -> float:
        """Return the nanoseconds of the products between sparse entries."""
        assert self.pairs is not None
        return measured_times("gram")["sparse_product"] * self.pairs

    def _dense(self) -> float:
        """Return the nanoseconds of making dense, weighted entries, and of their products."""
        times = measured_times("gram")
        product, entry = times["dense_product"], times["dense_entry"]
        return self.rows * self.columns * (product * self.columns + entry)


def extent(A: Array, weights: Array = None) -> Extent:
    """Return what the price of A^T W A depends on."""
    N, n = A.shape
    rows = N if weights is None else int(np.count_nonzero(weights))
    if not is_sparse(A):
        return Extent(rows, n, None)
    counts = np.diff(A.indptr).astype(np.float64)
    if weights is not None:
        counts = counts[weights != 0]
    return Extent(rows, n, float(counts @ counts))


def _active(weights: np.ndarray) -> np.ndarray | None:
    """Return the rows that have a weight, where these are at most 80% of all; None is all rows.

    A squared hinge gives no weight to rows beyond the margin.
    """
    if np.count_nonzero(weights) > ROUTES.most_active * len(weights):
        return None
    return np.flatnonzero(weights)


def _common(weights: np.ndarray) -> float | None:
    """Return the weight that all rows have, as in least squares; None where they differ."""
    if not len(weights):
        return 0.0
    first = weights[0]
    return float(first) if first == weights[-1] and np.all(weights == first) else None


def _sparse_gram(A: Array, weights: np.ndarray | None) -> np.ndarray:
    """Return A^T W A of a sparse matrix, by products between its entries.

    Blocks of rows stay in the cache while their columns are gone through.
    """
    data = A.data if weights is None else A.data * np.repeat(weights, np.diff(A.indptr))
    B = type(A)((data, A.indices, A.indptr), shape=A.shape, copy=False)
    room = max(ROUTES.sparse_block, A.shape[1] ** 2 // 8)  # adding up takes time, too
    if A.nnz <= room:
        return _sparse_product(A, B)
    total = np.zeros((A.shape[1], A.shape[1]), dtype=data.dtype)
    ends = np.searchsorted(A.indptr, np.arange(room, A.nnz, room))
    for first, last in pairwise([0, *ends, A.shape[0]]):
        total += _sparse_product(A[first:last], B[first:last])
    return total


def _sparse_product(A: Array, B: Array) -> np.ndarray:
    """Return A^T B as a dense matrix.

    SciPy's product counts the entries of the result first, which takes as long again. Here there is
    room for all of them.
    """
    if (multiply := _row_products()) is None:
        return (A.T @ B).toarray()
    n, left, index = A.shape[1], A.T.tocsr(), A.indices.dtype
    begins, columns = np.empty(n + 1, dtype=index), np.empty(n * n, dtype=index)
    values = np.empty(n * n, dtype=B.dtype)
    left_parts = (left.indptr, left.indices, left.data)
    multiply(n, n, *left_parts, B.indptr, B.indices, B.data, begins, columns, values)
    last = begins[-1]
    return type(A)((values[:last], columns[:last], begins), shape=(n, n), copy=False).toarray()


@cache
def _row_products() -> Callable[..., None] | None:
    """Return SciPy's product of CSR matrices, without counting; None where a version has none."""
    try:
        from scipy.sparse._sparsetools import csr_matmat
    except ImportError:
        return None
    return csr_matmat


def _by_blocks(A: Array, active: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray:
    """Return A^T W A as a sum over blocks of rows."""
    if weights is None or weights.min(initial=0.0) >= 0:
        factor = None if weights is None else np.sqrt(weights)[:, None]
        return _sum_of_squares(A, active, factor)
    total = np.zeros((A.shape[1], A.shape[1]), dtype=A.dtype)
    for here, block in _blocks(A, active):
        total += block.T @ (block * weights[here, None])
    return total


def _sum_of_squares(A: Array, active: np.ndarray | None, factor: np.ndarray | None) -> np.ndarray:
    """Return B^T B as a sum over blocks of rows of B, which are A's times factors.

    NumPy's product is symmetric, so that BLAS computes one half. For many columns a routine that
    adds in place saves another matrix.
    """
    n = A.shape[1]
    total = np.zeros((n, n), dtype=A.dtype, order="F")
    add, room = syrk(A.dtype), np.empty((0, n), dtype=A.dtype)
    for here, block in _blocks(A, active):
        if factor is not None:
            room = room if len(room) >= len(block) else np.empty_like(block, order="C")
            block = np.multiply(block, factor[here], out=room[: len(block)])
        if n <= ROUTES.few_columns:
            total += block.T @ block
        else:
            total = add(1.0, block.T, beta=1.0, c=total, lower=1, overwrite_c=True)
    if n > ROUTES.few_columns:
        _mirror(total)
    return total


def _blocks(A: Array, active: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield which of the active rows are in a block, and these rows as a dense array."""
    count = A.shape[0] if active is None else len(active)
    rows = max(64, ROUTES.block // A.shape[1])
    for first in range(0, count, rows):
        here = slice(first, first + rows)
        block = A[here if active is None else active[here]]
        yield here, block.toarray() if is_sparse(block) else block


def _mirror(H: np.ndarray) -> None:
    """Copy the lower half of a matrix to the upper one."""
    for first in range(0, len(H), ROUTES.side):
        here, rest = slice(first, first + ROUTES.side), slice(first + ROUTES.side, None)
        H[here, rest] = H[rest, here].T
        square = H[here, here]
        np.copyto(square, square.T, where=_above(len(square)))


@cache
def _above(side: int) -> np.ndarray:
    """Return which entries of a square are above its diagonal; there are few squares."""
    return ~np.tri(side, dtype=bool)
