"""Losses of linear models, f(x) = mean_i loss(a_i . x, b_i) + l2/2 |x|^2, written once.

The same class runs on NumPy arrays, SciPy CSR matrices, JAX arrays and torch tensors. A new loss
is a subclass with three elementwise functions.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import (
    Array,
    as_matrix,
    as_number,
    as_ridge,
    as_vector,
    is_sparse,
    namespace,
)
from ode2opt.problems.base import SEGMENT_NODES, Point, Problem
from ode2opt.problems.curvature import gram_eigenvalue
from ode2opt.problems.gram import SPARSE_SLOWER, gram_flops, weighted_gram

LOSS_FLOPS = 20  # of one row's slope, about


class LinearModel(Problem):
    """Mean loss of a linear model on the rows of ``A`` with targets ``b``.

    Args:
        A: N x n matrix, dense or sparse. A sparse matrix stays sparse.
        b: N targets.
        l2: weight of l2/2 |x|^2.
    """

    arrays = ("A", "b")
    cheap_diagonal = True
    quadratic = False
    """Whether the loss is a square, so that one Newton step is all."""
    _sparse_transposed: Array = None
    _last_bend: tuple[np.ndarray, np.ndarray] | None = None
    slope_bound: float | None = None
    """The largest second derivative of the loss, where it has one."""

    def __init__(self, A: Array, b: Array, *, l2: float = 0.0) -> None:
        A = as_matrix(A)
        self._set(A, as_vector(b, A, "b", A.shape[0]), as_ridge(l2))

    def _set(self, A: Array, b: Array, l2: float) -> None:
        self.A, self.b, self.l2 = A, b, l2
        self.N, self.n = A.shape
        self.rows = self.N
        self.dtype, self.xp = b.dtype, namespace(b)
        if is_sparse(A):
            self._sparse_transposed = A.T

    @property
    def _transposed(self) -> Array:
        """A^T: a view of a dense matrix, made once for a sparse one."""
        return self.A.T if self._sparse_transposed is None else self._sparse_transposed

    @abstractmethod
    def loss(self, z: Array) -> Array:
        """Return the loss of each row at the scores ``z`` = A x."""

    @abstractmethod
    def slope(self, z: Array) -> Array:
        """Return the derivative of the loss by the score, row by row, as a new array."""

    @abstractmethod
    def bend(self, z: Array) -> Array:
        """Return the second derivative of the loss by the score, row by row."""

    def value(self, x: Array) -> Array:
        return self._value(x, self.A @ x)

    def value_at_zero(self) -> float:
        """Return f(0), for which the rows are not needed."""
        return float(self.xp.sum(self.loss(0 * self.b))) / self.N

    def gradient(self, x: Array) -> Array:
        return self._gradient(x, self.A @ x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        loss, slope = self.loss_and_slope(self.A @ x)
        return self._mean(x, loss), self._pulled(x, slope)

    def loss_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return loss and slope of each row; where they share work, in one go."""
        return self.loss(z), self.slope(z)

    def _value(self, x: Array, z: Array) -> Array:
        return self._mean(x, self.loss(z))

    def _mean(self, x: Array, loss: Array) -> Array:
        mean = self.xp.sum(loss) / self.N
        return mean + 0.5 * self.l2 * (x @ x) if self.l2 else mean

    def _gradient(self, x: Array, z: Array) -> Array:
        return self._pulled(x, self.slope(z))

    def _pulled(self, x: Array, r: Array) -> Array:
        r /= self.N
        g = self._transposed @ r
        if self.l2:
            g += self.l2 * x
        return g

    def hvp(self, x: Array, v: Array) -> Array:
        return self._transposed @ (self._bent(x) * (self.A @ v)) + self.l2 * v

    def _bent(self, x: Array) -> Array:
        """Return bend / N at x; the last answer is kept, since products come in rows."""
        if not (isinstance(x, np.ndarray) and isinstance(self.b, np.ndarray)):
            return self.bend(self.A @ x) / self.N
        known = self._last_bend
        if known is None or not np.array_equal(known[0], x):
            known = self._last_bend = (x.copy(), self.bend(self.A @ x) / self.N)
        return known[1]

    def at(self, x: Array) -> Point:
        return Point(x, self.A @ x)

    def gradient_at(self, point: Point) -> Array:
        return self._gradient(*point)

    def mean_hvp(self, here: Point, there: Point, v: Array) -> Array:
        scores = [(1 - tau) * here.scores + tau * there.scores for tau in SEGMENT_NODES]
        bend = 0.5 * (self.bend(scores[0]) + self.bend(scores[1]))
        return self._transposed @ (bend * (self.A @ v) / self.N) + self.l2 * v

    def hessian(self, x: Array) -> Array:
        self._check_hessian_size()
        H = weighted_gram(self.A, self._bent(x))
        if isinstance(H, np.ndarray):
            H[np.diag_indices(self.n)] += self.l2
            return H
        return H + self.l2 * self.xp.eye(self.n, dtype=self.dtype)

    def hessian_flops(self) -> int:
        return gram_flops(self.A)

    def gradient_error(self, x: Array) -> float:
        """Return the sampling error of the gradient: the rows taken as drawn at random."""
        slope = self.slope(self.A @ x)
        return float(self.xp.sqrt(self.xp.sum(self._squares().T @ (slope * slope)))) / self.N

    def unseen_curvature(self, x: Array) -> np.ndarray:
        """Return for each column the curvature that one more row could add: what N rows leave open.

        Columns of zeros are given what the others have in the mean.
        """
        if is_sparse(self.A):
            size = np.zeros(self.n, dtype=self.dtype)
            np.maximum.at(size, self.A.indices, np.abs(self.A.data))  # no copy by columns
        else:  # without a copy of A
            highest, lowest = self.xp.max(self.A, axis=0), self.xp.min(self.A, axis=0)
            size = np.asarray(self.xp.maximum(highest, -lowest))
        squares = size.astype(np.float64) ** 2
        seen = squares > 0
        squares[~seen] = squares[seen].mean() if seen.any() else 1.0
        return float(self.xp.max(self._bent(x))) * squares

    def subset(self, index: np.ndarray) -> LinearModel:
        """Return the problem of some of the rows, on NumPy arrays (or a SciPy matrix)."""
        chosen = copy.copy(self)
        chosen._last_bend = None
        for name in self.arrays:
            values = getattr(self, name)
            if values.shape[:1] == (self.N,):
                values = values[index]
                setattr(chosen, name, values if is_sparse(values) else np.asarray(values))
        chosen._set(chosen.A, chosen.b, self.l2)
        return chosen

    def hessian_diagonal(self, x: Array) -> Array:
        return self._squares().T @ self._bent(x) + self.l2

    def _squares(self) -> Array:
        """Return A with its entries squared; a sparse one shares its structure."""
        if not is_sparse(self.A):
            return self.A * self.A
        A = self.A
        return type(A)((A.data * A.data, A.indices, A.indptr), shape=A.shape, copy=False)

    def gradient_flops(self) -> int:
        entries = SPARSE_SLOWER * self.A.nnz if is_sparse(self.A) else self.N * self.n
        return 4 * int(entries) + LOSS_FLOPS * self.N

    def curvature_operator(self, x: Array) -> tuple[Callable[[Array], Array], int]:
        """Work on the rows' side where rows are fewer than columns: same eigenvalue, less memory.

        With W = diag(bend)/N, A^T W A and W^1/2 A A^T W^1/2 share their non-zero eigenvalues.
        """
        if self.n <= self.N:
            return super().curvature_operator(x)
        root = self.xp.sqrt(self.bend(self.A @ x) / self.N)
        return lambda v: root * (self.A @ (self._transposed @ (root * v))) + self.l2 * v, self.N

    def curvature_bound(self) -> float | None:
        """Return slope_bound times the largest eigenvalue of A^T A / N, plus l2."""
        if self.slope_bound is None:
            return None
        return self.slope_bound * gram_eigenvalue(self.A)[0] + self.l2

    def _paper_bound(self) -> tuple[float, int]:
        """The paper takes |A^T A|/N whatever the loss: 4 times loose for the logistic one."""
        top, calls = gram_eigenvalue(self.A)
        return top + self.l2, calls


class Logistic(LinearModel):
    """Logistic regression: loss = log(1 + exp(z)) - b z with b in {0, 1}.

    See docs/mathematics.md, section 9.

    A label between 0 and 1 is taken as a probability.

    Example:
        >>> problem = Logistic(A, b, l2=1e-3)
        >>> g = problem.gradient(x)
    """

    slope_bound = 0.25

    def __init__(self, A: Array, b: Array, *, l2: float = 0.0) -> None:
        super().__init__(A, b, l2=l2)
        if bool(self.xp.any((self.b < 0) | (self.b > 1))):
            low, high = float(self.xp.min(self.b)), float(self.xp.max(self.b))
            raise InputError(
                f"Logistic labels must be 0 or 1 (or between), but range from {low:g} to {high:g}: "
                f"map them first, e.g. b = (b == {high:g})."
            )

    def loss(self, z: Array) -> Array:
        return self._loss(z, *self._tails(z))

    def slope(self, z: Array) -> Array:
        return self._slope(*self._tails(z))

    def loss_and_slope(self, z: Array) -> tuple[Array, Array]:
        tails = self._tails(z)
        return self._loss(z, *tails), self._slope(*tails)

    def _tails(self, z: Array) -> tuple[Array, Array]:
        """Return exp(-|z|), and whether z > 0 as a number."""
        return self.xp.exp(-self.xp.abs(z)), self.xp.astype(z > 0, z.dtype)

    def _loss(self, z: Array, e: Array, above: Array) -> Array:
        loss = above * z
        loss -= self.b * z
        loss += self.xp.log1p(e)
        return loss

    def _slope(self, e: Array, above: Array) -> Array:
        """Return sigmoid(z) - b from sigmoid(-|z|), without cancellation in either tail.

        In place and without a choice by rows, which would take half as long again.
        """
        slope = above - self.b
        above *= -2
        above += 1
        e /= 1 + e
        above *= e
        slope += above
        return slope

    def bend(self, z: Array) -> Array:
        e = self.xp.exp(-self.xp.abs(z))
        return e / (1 + e) ** 2


class Lpp(LinearModel):
    """l_p^p regression: loss = (z - b)^p / p for an even p >= 2."""

    def __init__(self, A: Array, b: Array, *, p: int = 4, l2: float = 0.0) -> None:
        power = as_number(p, "p")
        if not power.is_integer() or power < 2 or power % 2:
            raise InputError(f"p is {p}: the l_p^p loss needs an even p of at least 2.")
        self.p = int(power)
        self.quadratic = self.p == 2
        self.slope_bound = 1.0 if self.quadratic else None
        super().__init__(A, b, l2=l2)

    def loss(self, z: Array) -> Array:
        return integer_power(z - self.b, self.p) / self.p

    def slope(self, z: Array) -> Array:
        return integer_power(z - self.b, self.p - 1)

    def bend(self, z: Array) -> Array:
        if self.p == 2:
            return self.xp.ones_like(z)
        return (self.p - 1) * integer_power(z - self.b, self.p - 2)


class LeastSquares(Lpp):
    """Least squares: loss = (z - b)^2 / 2."""

    def __init__(self, A: Array, b: Array, *, l2: float = 0.0) -> None:
        super().__init__(A, b, p=2, l2=l2)


def integer_power(r: Array, k: int) -> Array:
    """Return r^k for k >= 1 by repeated multiplication, many times quicker than a general power."""
    result: Any = None
    while True:
        if k % 2:
            result = r if result is None else result * r
        k //= 2
        if not k:
            return result
        r = r * r
