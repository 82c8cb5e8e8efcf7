"""Huber's regression whose scale is found with the coefficients."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_number, epsilon
from ode2opt.base.errors import InputError
from ode2opt.problems.linear_model import LinearModel


class ScaledHuber(LinearModel):
    """Huber's regression with its scale: mean of s + s h(r/s), r = z - b, minimised over s > 0.

    h(u) is u^2 up to ``delta`` and 2 delta |u| - delta^2 beyond. The function of coefficients and
    scale is jointly convex (Huber 1981), so that what is left after the best scale is put in is a
    convex function of the coefficients; its gradient is that at the best scale, and its Hessian the
    one for a fixed scale less a matrix of rank one.

    Where rows can be fitted exactly the best scale is 0 and the function has a kink there. So the
    scale is at least ``least_scale``: eps^(2/3) times the largest target, far above the rounding
    of residuals and far below what matters of them.
    """

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        delta: float = 1.35,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
    ) -> None:
        self.delta = as_number(delta, "delta")
        if not 1 <= self.delta < math.inf:
            raise InputError(f"delta is {delta}: it must be 1 or more.")
        super().__init__(A, b, l2=l2, weights=weights, intercept=intercept, offset=offset)

    @classmethod
    def agreed(cls, options: dict[str, Any], top: float) -> dict[str, Any]:
        raise InputError(
            "ScaledHuber is no sum over parts, because its scale is found from all residuals: "
            "use Huber."
        )

    def _set(self, A: Array, b: Array) -> None:
        super()._set(A, b)
        self._last_curved: tuple[Any, ...] | None = None
        target = self.b if self.offset is None else self.b - self.offset
        largest = float(self.xp.max(self.xp.abs(target))) if self.N else 0.0
        self.least_scale = epsilon(self.xp, self.dtype) ** (2 / 3) * (largest or 1.0)

    def with_least_scale(self, scale: float) -> ScaledHuber:
        """Return the problem with another lower bound of the scale; the arrays are shared."""
        other = copy.copy(self)
        other.least_scale, other._last_bend, other._last_curved = scale, None, None
        return other

    def best_scale(self, r: Array) -> float:
        """Return the scale s for which the mean of min(r^2/s^2, delta^2) is one.

        As a function of 1/s^2 that mean is concave and made of lines: Newton's method goes up to
        the root in finitely many steps.
        """
        squares, xp, smallest = r * r, self.xp, self.least_scale
        mean = float(xp.sum(self._weighted(squares))) / self.N
        inverse, most = 1 / max(mean, smallest**2), smallest**-2
        if not math.isfinite(mean):
            return math.nan
        while inverse < most:
            inside = xp.astype(squares * inverse <= self.delta**2, squares.dtype)
            slope = float(xp.sum(self._weighted(inside * squares))) / self.N
            outside = float(xp.sum(self._weighted(1 - inside))) / self.N
            left = 1 - self.delta**2 * outside
            if slope <= 0 or left <= 0:
                return smallest
            higher = left / slope
            if higher <= inverse * (1 + 4 * epsilon(xp, self.dtype)):
                break
            inverse = higher
        return max(smallest, 1 / math.sqrt(inverse))

    def _scaled(self, z: Array) -> tuple[Array, Array, float]:
        """Return the residuals divided by the scale, the same cut at delta, and the scale."""
        r = z - self.b
        scale = self.best_scale(r)
        u = r / scale
        return u, self.xp.clip(u, -self.delta, self.delta), scale

    def loss(self, z: Array) -> Array:
        u, cut, scale = self._scaled(z)
        return scale * (1 + cut * (2 * u - cut))

    def slope(self, z: Array) -> Array:
        return 2 * self._scaled(z)[1]

    def loss_and_slope(self, z: Array) -> tuple[Array, Array]:
        u, cut, scale = self._scaled(z)
        return scale * (1 + cut * (2 * u - cut)), 2 * cut

    def curvature(self, z: Array) -> Array:
        """Return the second derivative of the loss by the score for a fixed scale."""
        u, _, scale = self._scaled(z)
        return 2 / scale * self._inside(u)

    def _paper_bound(self) -> tuple[float, int]:
        return math.inf, 0  # the smaller the scale, the larger the curvature

    def _inside(self, u: Array) -> Array:
        return self.xp.astype(self.xp.abs(u) <= self.delta, u.dtype)

    def _rank_one(self, x: Array) -> Array:
        """Return q of the Hessian's term - q qᵀ: the best scale changes with the coefficients."""
        known = self._last_curved
        if known is not None and isinstance(x, np.ndarray) and np.array_equal(known[0], x):
            return known[1]
        u, _, scale = self._scaled(self.scores(x))
        bent = self._bend_shares(x) * u
        total = float(self.xp.sum(bent * u))
        follows = total > 0 and scale > self.least_scale
        q = self.data.tdot(bent) / math.sqrt(total) if follows else 0 * x
        self._last_curved = (self.xp.asarray(x, copy=True), q)
        return q

    def hvp(self, x: Array, v: Array) -> Array:
        q = self._rank_one(x)
        return super().hvp(x, v) - q * (q @ v)

    def hessian(self, x: Array) -> Array:
        q = self._rank_one(x)
        return super().hessian(x) - q[:, None] * q[None, :]

    def hessian_diagonal(self, x: Array) -> Array:
        q = self._rank_one(x)
        return super().hessian_diagonal(x) - q * q
