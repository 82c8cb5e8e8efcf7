"""What a linear model knows of its data: the rows of a matrix, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.arrays import Array, Namespace, is_sparse
from ode2opt.base.errors import InputError
from ode2opt.kernels.classes import can_run_classes, classes_in_one_pass
from ode2opt.kernels.row_loss import Loss, RowLoss
from ode2opt.kernels.rows import can_run, is_worth_it, one_pass
from ode2opt.problems.curvature import gram_eigenvalue
from ode2opt.problems.gram import Extent, extent, weighted_gram, weighted_sum

if TYPE_CHECKING:
    from ode2opt.problems.linear_model import LinearModel


@dataclass(frozen=True)
class UnevenRows:
    """When a sparse matrix is copied by columns.

    Rows of few entries, and never as many as in the row before, are loops whose end no processor
    can foresee: it loses some 4 ns a row. Columns are long loops. Measured on made matrices of
    5,000 to 200,000 rows with 4 to 40 entries each (AMD EPYC): products take 0.3 to 0.75 of the
    time up to 16 entries a row, and the copy is paid for after one to four evaluations.

    Attributes:
        most_a_row: entries of a row, in the mean; positive.
        least_a_column: entries of a column, in the mean; positive.
        fewest_entries: of a smaller matrix the copy takes as long as it saves.
        varying: share of the rows with another number of entries than the one before, up to 1.
    """

    most_a_row: int = 16
    least_a_column: int = 64
    fewest_entries: int = 100_000
    varying: float = 0.5

    def by_columns(self, A: Array) -> Array | None:
        """Return a CSR matrix by columns (CSC) where that multiplies quicker; else None."""
        (N, n), entries = A.shape, A.nnz
        if not max(self.fewest_entries, self.least_a_column * n) <= entries <= self.most_a_row * N:
            return None
        counts = np.diff(A.indptr)
        varying = np.count_nonzero(counts[1:] != counts[:-1]) > self.varying * N
        return A.tocsc() if varying else None


UNEVEN = UnevenRows()


class Rows:
    """A matrix A, with a column of ones that is not stored where there is an intercept.

    Where a row has several scores, points and gradients have as many numbers for each column.

    Attributes:
        A: the matrix.
        ones: whether there is the column of ones.
        width: how many scores a row has.
        looked_at: entries, zeros counted, from which on a look at a vector costs nothing beside A.
        sum_of_squares: that of the entries, where it is known.
    """

    looked_at = 100_000

    def __init__(self, A: Array, ones: bool, xp: Namespace, width: int = 1) -> None:
        self.A, self.ones, self.xp, self.width = A, ones, xp, width
        self.N, self.columns = A.shape
        self.sparse = is_sparse(A)
        self.sum_of_squares: float | None = None
        self.multiplied, self._transposed = A, None
        if self.sparse:
            by_columns = UNEVEN.by_columns(A) if width == 1 else None
            self.multiplied = A if by_columns is None else by_columns
            self._transposed = self.multiplied.T

    @property
    def transposed(self) -> Array:
        """A^T: a view of a dense matrix, made once for a sparse one."""
        return self.A.T if self._transposed is None else self._transposed

    def dot(self, v: Array) -> Array:
        """Return the scores at v. Most solves start at 0, whose image is known."""
        A, v = self.multiplied, v if self.width == 1 else self.xp.reshape(v, (-1, self.width))
        size = self.N * (self.columns + self.ones)
        if size >= self.looked_at and isinstance(v, np.ndarray) and not v.any():
            return np.zeros((self.N, *v.shape[1:]), dtype=np.result_type(A.dtype, v.dtype))
        return A @ v[:-1] + v[-1] if self.ones else A @ v

    def tdot(self, r: Array) -> Array:
        """Return A^T r as numbers for each column."""
        g = self.transposed @ r
        return self._flat(self._with_last(g, self._sum(r)) if self.ones else g)

    def _flat(self, g: Array) -> Array:
        return g if self.width == 1 else self.xp.reshape(g, (-1,))

    def _sum(self, r: Array) -> Array:
        """Return the sum over rows; a product is several times quicker than sums of few columns."""
        return self.xp.sum(r) if r.ndim == 1 else self.xp.ones(self.N, dtype=r.dtype) @ r

    def _with_last(self, values: Array, last: Array) -> Array:
        return self.xp.concat([values, self.xp.reshape(last, (1, *values.shape[1:]))])

    def gram(self, weights: Array) -> Array:
        """Return A^T diag(weights) A; rows without a weight are left out where these are many."""
        H = weighted_gram(self.A, weights)
        if not self.ones:
            return H
        border = self._with_last(weighted_sum(self.A, weights), self.xp.sum(weights))
        columns = self.xp.concat([H, border[None, :-1]])
        return self.xp.concat([columns, border[:, None]], axis=1)

    def squares(self) -> Array:
        """Return A with its entries squared; a sparse one shares its structure."""
        A = self.A
        if not self.sparse:
            return A * A
        return type(A)((A.data * A.data, A.indices, A.indptr), shape=A.shape, copy=False)

    def gram_diagonal(self, weights: Array) -> Array:
        """Return the diagonal of A^T diag(weights) A, for the weights of each score."""
        diagonal = self.squares().T @ weights
        if self.ones:
            diagonal = self._with_last(diagonal, self.xp.sum(weights, axis=0))
        return self._flat(diagonal)

    def largest_squares(self) -> np.ndarray:
        """Return the square of each column's largest entry, then 1 for an intercept."""
        if self.sparse:
            size = np.zeros(self.columns, dtype=self.A.dtype)
            np.maximum.at(size, self.A.indices, np.abs(self.A.data))  # no copy by columns
        else:  # without a copy of A
            highest, lowest = self.xp.max(self.A, axis=0), self.xp.min(self.A, axis=0)
            size = np.asarray(self.xp.maximum(highest, -lowest))
        return np.append(size, [1.0] * self.ones).astype(np.float64) ** 2

    def take_columns(self, index: np.ndarray) -> Array:
        """Return the matrix of some of the columns."""
        return self.A[:, index] if self.sparse else self.xp.take(self.A, index, axis=1)

    def entries(self) -> int:
        """Return how many entries are kept."""
        return int(self.A.nnz) if self.sparse else self.N * self.columns

    def extent(self) -> Extent:
        """Return what the price of A^T W A depends on."""
        return extent(self.A)

    def gram_eigenvalue(self) -> tuple[float, int]:
        """Return the largest eigenvalue of A^T A / N without ones, and its price in gradients."""
        return gram_eigenvalue(self.A)

    def in_one_pass(
        self, kernel: Loss | RowLoss, v: Array, b: Array, **given: Any
    ) -> tuple[Any, np.ndarray] | None:
        """Return the sum of losses at A v, and its gradient; None where no kernel is worth it."""
        if self.width > 1 or not is_worth_it(self.A) or not can_run(kernel, self.A):
            return None
        return one_pass(kernel, self.A, v, b, intercept=self.ones, **given)


TRIED = np.array([-2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0])  # scores
AGREED = {8: 1e-8, 4: 1e-3}  # relative, by the bytes of a number
_checked: set[type] = set()


def kernel_of(problem: LinearModel) -> Loss | RowLoss | None:
    """Return what the class itself says of its loss, where a kernel can evaluate it."""
    if not is_worth_it(problem.A):
        return None
    own = vars(type(problem))
    kernel = own.get("kernel", own.get("row_loss"))
    if kernel is None or (isinstance(kernel, Loss) and kernel.compiled is None):
        return None
    if problem.width > 1:
        return kernel if can_run_classes(problem.A, problem.width) else None
    return kernel if can_run(kernel, problem.A) else None


def evaluated(problem: LinearModel, x: Array) -> tuple[Any, np.ndarray] | None:
    """Return the sum of losses and the gradient of their mean; None where there is no kernel."""
    kernel = kernel_of(problem)
    if kernel is None:
        return None
    if isinstance(kernel, RowLoss) and type(problem) not in _checked:
        _check(problem, kernel)
        _checked.add(type(problem))
    A, b = problem.A, problem.b
    rows: dict[str, Any] = {"weights": problem.weights, "intercept": problem.intercept}
    if problem.width > 1:
        done = classes_in_one_pass(A, x, b, problem.width, **rows)
    else:
        parameter = _parameter(problem, kernel)
        done = one_pass(kernel, A, x, b, parameter=parameter, offset=problem.offset, **rows)
    return None if done is None else (done[0], done[1] / problem.N)


def _parameter(problem: LinearModel, kernel: Loss | RowLoss) -> float:
    return float(getattr(problem, kernel.parameter)) if kernel.parameter else 0.0


def _check(problem: LinearModel, kernel: RowLoss) -> None:
    """Compare loss and slope of some rows with what the methods of the class return."""
    count, dtype = min(len(TRIED), problem.N), problem.b.dtype
    scores = np.resize(TRIED, problem.N).astype(dtype)
    tried, b, parameter = scores[:count], problem.b[:count], _parameter(problem, kernel)
    done = one_pass(kernel, np.eye(count, dtype=dtype), tried, b, parameter=parameter)
    assert done is not None
    with np.errstate(all="ignore"):
        losses, slopes = problem.loss_and_slope(scores)
    near = AGREED[dtype.itemsize]
    for what, found, expected in (
        ("loss", done[0], np.sum(losses[:count])),
        ("slope", done[1], slopes[:count]),
    ):
        if not np.allclose(found, expected, rtol=near, atol=near, equal_nan=True):
            raise InputError(
                f"The kernel of {type(problem).__name__} has another {what} than its methods: "
                f"{found} in place of {expected} at the scores {tried}."
            )
