"""Constraints that tie all variables together: the simplex and the ball of the 1-norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_positive, epsilon, namespace
from ode2opt.base.errors import InputError
from ode2opt.penalties.base import Face, Penalty

SLACK = 8  # units of rounding for each variable, by which a sum may be off


class Simplex(Penalty):
    """The constraint x_j >= 0 for all j and sum_j x_j = radius.

    Args:
        radius: positive; 1 by default.

    Raises:
        InputError: the radius is not positive.

    Examples:
        >>> from ode2opt.penalties import *
        >>> Simplex().prox(np.array([0.5, 1.5, -3.0]), 1.0)
        array([0., 1., 0.])
    """

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = as_positive(radius, "radius")

    def value(self, x: Array) -> Array:
        xp = namespace(x)
        off = xp.abs(xp.sum(x) - self.radius)
        inside = (xp.min(x) >= 0) & (off <= _slack(x) * self.radius)
        return _zero_or_infinity(x, inside)

    def prox(self, x: Array, step: Any) -> Array:
        xp = namespace(x)
        x = x - xp.max(x)  # exact for the entries that matter
        return xp.clip(x - _threshold(x, self.radius), min=0.0)

    def curvature_set(self, x: np.ndarray) -> Face:
        free = x > 0
        nothing = np.zeros(len(x))
        return Face(free, nothing, nothing, normal=free.astype(np.float64))

    def conjugate(self, v: np.ndarray) -> float:
        return self.radius * float(np.max(v))

    def dual_scale(self, v: np.ndarray) -> float:
        return 1.0

    def check_width(self, n: int) -> None:
        if n < 2:
            raise InputError(
                f"A simplex of one variable is one point, {self.radius:g}: leave that column out."
            )

    def _about(self) -> list[tuple[str, str]]:
        return [("radius", f"radius = {self.radius:g}")]


class L1Ball(Penalty):
    """The constraint |x|_1 <= radius.

    Args:
        radius: positive.

    Raises:
        InputError: the radius is not positive.

    Examples:
        >>> from ode2opt.penalties import *
        >>> L1Ball(1.0).prox(np.array([0.5, -1.5]), 1.0)
        array([ 0., -1.])
    """

    def __init__(self, radius: float) -> None:
        self.radius = as_positive(radius, "radius")

    def value(self, x: Array) -> Array:
        xp = namespace(x)
        inside = xp.sum(xp.abs(x)) <= (1 + _slack(x)) * self.radius
        return _zero_or_infinity(x, inside)

    def prox(self, x: Array, step: Any) -> Array:
        xp = namespace(x)
        size = xp.abs(x)
        below = size - xp.max(size)
        inside = xp.sum(size) <= self.radius
        return xp.where(
            inside, x, xp.sign(x) * xp.clip(below - _threshold(below, self.radius), min=0.0)
        )

    def curvature_set(self, x: np.ndarray) -> Face:
        """On the boundary the variables that are not 0 move along it; inside, all do."""
        nothing = np.zeros(len(x))
        if float(np.sum(np.abs(x))) < (1 - _slack(x)) * self.radius:
            return Face(np.ones(len(x), dtype=bool), nothing, nothing)
        return Face(x != 0, nothing, nothing, normal=np.sign(x))

    def conjugate(self, v: np.ndarray) -> float:
        return self.radius * float(np.max(np.abs(v)))

    def dual_scale(self, v: np.ndarray) -> float:
        return 1.0

    def _about(self) -> list[tuple[str, str]]:
        return [("radius", f"radius = {self.radius:g}")]


def _threshold(x: Array, radius: float) -> Array:
    """Return the t for which the sum of max(x - t, 0) is the radius.

    It is the largest of (x_1 + ... + x_k - radius) / k, the x in falling order: no branch is
    needed (Held, Wolfe and Crowder, 1974).
    """
    xp = namespace(x)
    falling = -xp.sort(-x)  # NumPy itself has no "descending"
    counts = xp.arange(1, x.shape[0] + 1, dtype=x.dtype)
    return xp.max((xp.cumulative_sum(falling) - radius) / counts)


def _slack(x: Array) -> float:
    return SLACK * int(x.shape[0]) * epsilon(namespace(x), x.dtype)


def _zero_or_infinity(x: Array, inside: Array) -> Array:
    xp = namespace(x)
    zero, infinity = (xp.asarray(one, dtype=x.dtype) for one in (0.0, xp.inf))
    return xp.where(inside, zero, infinity)
