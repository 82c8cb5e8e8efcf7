"""A problem in other coordinates: y -> f(S y)."""

from __future__ import annotations

import numpy as np

from ode2opt.base.arrays import Array, detached
from ode2opt.base.errors import InputError
from ode2opt.problems.base import Problem


class Transformed(Problem):
    """f(S y) for a square matrix S; all that holds for f holds for it in S's metric."""

    arrays = ("inner", "S")

    def __init__(self, inner: Problem, S: Array) -> None:
        if tuple(S.shape) != (inner.n, inner.n):
            raise InputError(
                f"S is of shape {tuple(S.shape)}; the problem has {inner.n} variables."
            )
        self.inner, self.S = inner, inner.xp.asarray(S, dtype=inner.dtype)
        self.n, self.dtype, self.xp = inner.n, inner.dtype, inner.xp
        self.has_hvp = inner.has_hvp

    def _about(self) -> list[tuple[str, str]]:
        return [*super()._about(), ("of", repr(self.inner))]

    @property
    def provides(self) -> frozenset[str]:
        return self.inner.provides & {"hvp", "quadratic", "smoothness"}

    def value(self, x: Array) -> Array:
        return self.inner.value(self.S @ x)

    def gradient(self, x: Array) -> Array:
        return self.S.T @ self.inner.gradient(self.S @ x)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.S.T @ self.inner.hvp(self.S @ x, self.S @ v)

    def hessian_bound(self) -> Array:
        return self.S.T @ self.inner.hessian_bound() @ self.S

    def absolute_product(self, v: np.ndarray) -> np.ndarray:
        S = np.abs(np.asarray(detached(self.S)))
        return S.T @ self.inner.absolute_product(S @ v)
