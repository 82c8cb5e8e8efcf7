"""Losses of linear models, f(x) = mean_i loss(a_i . x, b_i) + l2/2 |x|^2, written once.

The same class runs on NumPy arrays, SciPy CSR matrices, JAX arrays and torch tensors. A new loss
is a subclass with three elementwise functions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

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

LOSS_FLOPS = 20  # of one row's slope, about
SPARSE_SLOWER = 4  # an entry of a sparse matrix than one of a dense one, about


class LinearModel(Problem):
    """Mean loss of a linear model on the rows of ``A`` with targets ``b``.

    Args:
        A: N x n matrix, dense or sparse. A sparse matrix stays sparse.
        b: N targets.
        l2: weight of l2/2 |x|^2.
    """

    arrays = ("A", "b")
    _sparse_transposed: Array = None
    slope_bound: float | None = None
    """The largest second derivative of the loss, where it has one."""

    def __init__(self, A: Array, b: Array, *, l2: float = 0.0) -> None:
        A = as_matrix(A)
        self._set(A, as_vector(b, A, "b", A.shape[0]), as_ridge(l2))

    def _set(self, A: Array, b: Array, l2: float) -> None:
        self.A, self.b, self.l2 = A, b, l2
        self.N, self.n = A.shape
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

    def gradient(self, x: Array) -> Array:
        return self._gradient(x, self.A @ x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        z = self.A @ x
        return self._value(x, z), self._gradient(x, z)

    def _value(self, x: Array, z: Array) -> Array:
        mean = self.xp.mean(self.loss(z))
        return mean + 0.5 * self.l2 * (x @ x) if self.l2 else mean

    def _gradient(self, x: Array, z: Array) -> Array:
        r = self.slope(z)
        r /= self.N
        g = self._transposed @ r
        if self.l2:
            g += self.l2 * x
        return g

    def hvp(self, x: Array, v: Array) -> Array:
        product = self._transposed @ (self.bend(self.A @ x) * (self.A @ v) / self.N)
        return product + self.l2 * v

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
        weights = self.bend(self.A @ x) / self.N
        if is_sparse(self.A):
            H = (self._transposed @ self.A.multiply(weights[:, None])).toarray()
        else:
            H = self._transposed @ (weights[:, None] * self.A)
        return H + self.l2 * self.xp.eye(self.n, dtype=self.dtype)

    def hessian_diagonal(self, x: Array) -> Array:
        weights = self.bend(self.A @ x) / self.N
        squares = self.A.multiply(self.A) if is_sparse(self.A) else self.A * self.A
        return squares.T @ weights + self.l2

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
    """Logistic regression: loss = log(1 + exp(z)) - b z with b in {0, 1} (SPEC.md section 9).

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
        size = self.xp.abs(z)
        return (z + size) / 2 - self.b * z + self.xp.log1p(self.xp.exp(-size))

    def slope(self, z: Array) -> Array:
        e = self.xp.exp(-self.xp.abs(z))
        e /= 1 + e  # sigmoid(-|z|), without cancellation in either tail
        return self.xp.where(z > 0, (1 - self.b) - e, e - self.b)

    def bend(self, z: Array) -> Array:
        e = self.xp.exp(-self.xp.abs(z))
        return e / (1 + e) ** 2


class Lpp(LinearModel):
    """l_p^p regression: loss = (z - b)^p / p for an even p >= 2 (SPEC.md section 9)."""

    def __init__(self, A: Array, b: Array, *, p: int = 4, l2: float = 0.0) -> None:
        power = as_number(p, "p")
        if not power.is_integer() or power < 2 or power % 2:
            raise InputError(f"p is {p}: the l_p^p loss needs an even p of at least 2.")
        self.p = int(power)
        self.slope_bound = 1.0 if self.p == 2 else None
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
