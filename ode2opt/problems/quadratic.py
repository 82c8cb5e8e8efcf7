"""The quadratic f(x) = 1/2 x.Qx - b.x + l2/2 |x|^2."""

import numpy as np

from ode2opt.base.arrays import (
    Array,
    as_matrix,
    as_ridge,
    as_vector,
    detached,
    epsilon,
    is_sparse,
    namespace,
)
from ode2opt.base.errors import InputError
from ode2opt.problems import rounding
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import largest_curvature


class Quadratic(Problem):
    """A convex quadratic f(x) = 1/2 x.Qx - b.x + l2/2 |x|^2.

    Args:
        Q: symmetric positive semidefinite n x n matrix, dense or sparse.
        b: n numbers.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.

    Raises:
        InputError: Q is not square or not symmetric, or shapes do not fit.

    Examples:
        >>> from ode2opt import Quadratic
        >>> solve(Quadratic(np.diag([1.0, 2.0]), np.array([1.0, 4.0]))).x.round(4)
        array([1., 2.])
    """

    arrays = ("Q", "b")

    def __init__(self, Q: Array, b: Array, *, l2: float = 0.0) -> None:
        Q = as_matrix(Q, "Q")
        if Q.shape[0] != Q.shape[1]:
            raise InputError(f"Q must be square, not {Q.shape[0]} x {Q.shape[1]}.")
        self.Q, self.l2, self.n = Q, as_ridge(l2), Q.shape[0]
        self.b = as_vector(b, Q, "b", self.n)
        self.dtype, self.xp = self.b.dtype, namespace(self.b)
        asymmetry, size = abs(Q - Q.T).max(), abs(Q).max()
        self.asymmetry, self.largest_entry = float(asymmetry), float(size)
        if float(asymmetry) > 1e-5 * float(size):
            raise InputError(f"Q is not symmetric: Q - Q^T has an entry of {float(asymmetry):.3g}.")

    def _about(self) -> list[tuple[str, str]]:
        rows = [("matrix", "sparse")] if is_sparse(self.Q) else []
        return [*super()._about(), *rows, *([("l2", f"{self.l2:g}")] if self.l2 else [])]

    @property
    def provides(self) -> frozenset[str]:
        return super().provides | {"hessian", "quadratic", "smoothness", "Q"}

    def value(self, x: Array) -> Array:
        return 0.5 * (x @ (self.Q @ x)) - self.b @ x + 0.5 * self.l2 * (x @ x)

    def gradient(self, x: Array) -> Array:
        g = self.Q @ x
        g -= self.b
        if self.l2:
            g += self.l2 * x
        return g

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        g = self.gradient(x)
        return 0.5 * (x @ (g - self.b)), g

    def hvp(self, x: Array, v: Array) -> Array:
        return self.Q @ v + self.l2 * v

    def hessian(self, x: Array) -> Array:
        self._check_hessian_size()
        Q = self.Q.toarray() if is_sparse(self.Q) else self.Q
        return Q + self.l2 * self.xp.eye(self.n, dtype=self.dtype)

    def hessian_flops(self) -> int:
        return self.n**2

    def strong_convexity(self) -> float:
        """Return l2, less what rounding may have taken from the smallest eigenvalue of Q."""
        lost = self.n**2 * epsilon(self.xp, self.dtype) * self.largest_entry
        return max(self.l2 - lost - self.n * self.asymmetry, 0.0)

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        return rounding.of_quadratic(self, x)

    def hessian_bound(self) -> Array:
        return self.hessian(self.b)

    def absolute_product(self, v: np.ndarray) -> np.ndarray:
        Q = abs(self.Q)
        return (Q if is_sparse(Q) else np.asarray(detached(Q))) @ v + self.l2 * v

    def _paper_bound(self) -> tuple[float, int]:
        return largest_curvature(self, self.b)
