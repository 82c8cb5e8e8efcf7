"""What is minimised: f + h. Without a penalty h is ZERO, and the residual is the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, epsilon, norm, numpy_namespace
from ode2opt.base.errors import InputError
from ode2opt.penalties import ZERO, Penalty
from ode2opt.penalties.base import real_number
from ode2opt.problems.base import Problem

ROUNDING = 1000  # units in the last place: values that differ by less may be equal
NEAR = 16  # units in the last place by which rounding may lead out of the domain of h


class Evaluated(NamedTuple):
    """A point with value and gradient, as NumPy arrays.

    ``norm`` is the gradient's; with a penalty it is the residual's, and ``value`` f + h, of which
    ``h`` is the penalty.
    """

    x: np.ndarray
    value: float
    g: np.ndarray
    norm: float
    h: float = 0.0


class SmoothPart(NamedTuple):
    """A point with f and its gradient there, without the penalty."""

    x: np.ndarray
    value: float
    g: np.ndarray


class Objective:
    """The sum of a smooth function and a penalty, for methods that compute with NumPy.

    Attributes:
        smooth: whether there is no penalty.
        provides: what the problem has beyond value and gradient.
        rounding: the relative difference below which values may be equal.
    """

    def __init__(self, problem: Problem, penalty: Penalty = ZERO) -> None:
        self.problem, self.penalty, self.smooth = problem, penalty, penalty.neutral
        self.provides = problem.provides
        unit = epsilon(problem.xp, problem.dtype)
        self.unit, self.rounding = unit, ROUNDING * unit
        self.host = problem.xp is numpy_namespace() and problem.dtype == np.float64
        # In single precision values overflow long before gradients do: there they do not tell.
        self.values_tell = not self.smooth or unit == np.finfo(np.float64).eps

    def to_problem(self, x: np.ndarray) -> Array:
        """Return a vector on the problem's kind of arrays."""
        return x if self.host else self.problem.xp.asarray(x, dtype=self.problem.dtype)

    def to_numpy(self, x: Array) -> np.ndarray:
        """Return a vector of the problem's as one of NumPy's, in double precision."""
        return x if self.host else np.asarray(x, dtype=np.float64)

    def on_numpy(self, product: Callable[[Array], Array]) -> Callable[[np.ndarray], np.ndarray]:
        """Return a product on the problem's kind of arrays as one on NumPy's."""
        if self.host:
            return product
        return lambda g: self.to_numpy(product(self.to_problem(g)))

    def value(self, x: Array) -> float:
        """Return f + h."""
        found = float(self.problem.value(x))
        return found if self.smooth else found + self.penalty_at(self.to_numpy(x))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return f + h, and the gradient of f."""
        value, g = self.problem.value_and_gradient(x)
        if self.smooth:
            return float(value), g
        return float(value) + self.penalty_at(self.to_numpy(x)), g

    def evaluate(self, x: np.ndarray) -> Evaluated:
        """Return a point with its value, its gradient and the norm of its residual."""
        point = x if self.host else self.to_problem(x)
        value, g = self.problem.value_and_gradient(point)
        if self.smooth and self.host:
            return Evaluated(x, float(value), g, norm(g))
        if self.smooth:
            return Evaluated(self.to_numpy(x), float(value), self.to_numpy(g), norm(g))
        h, g = self.penalty_at(self.to_numpy(point)), self.to_numpy(g)
        return Evaluated(self.to_numpy(x), float(value) + h, g, self.size(point, g), h)

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return x - prox(x - g), which is 0 at a minimiser."""
        return g if self.smooth else self._checked(self.penalty.residual(x, g), x, "prox")

    def size(self, x: Array, g: Array) -> float:
        """Return what is to become small: the norm of the residual."""
        if self.smooth:
            return norm(g)
        at, slope = self.to_numpy(x), self.to_numpy(g)
        return norm(self.residual(at, slope)) if np.isfinite(at - slope).all() else math.inf

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Return the penalty's prox, checked; without a penalty x itself."""
        return x if self.smooth else self._checked(self.penalty.prox(x, step), x, "prox", step)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return a point near x where h is finite."""
        return x if self.smooth else self._checked(self.penalty.project(x), x, "projection")

    def first_point(self, x: Array) -> np.ndarray:
        """Return a start, or a point near it where h is finite; the penalty's answers are checked.

        Raises:
            InputError: the penalty does not answer with finite numbers.
        """
        start = np.asarray(x).astype(np.float64)
        if self.smooth:
            return start
        real_number(self.penalty.value(start), self.penalty, "value")
        inside = self.project(start)
        self.prox(inside, 1.0)
        value = real_number(self.penalty.value(inside), self.penalty, "value")
        if not math.isfinite(value):
            name = type(self.penalty).__name__
            raise InputError(f"The value of {name} is {value} where its projection leads.")
        return inside

    def penalty_at(self, x: np.ndarray) -> float:
        """Return h at a point; outside of its domain by rounding only, h at the nearest inside."""
        if self.smooth:
            return 0.0
        found = self.penalty.value(x)
        if not isinstance(found, float):
            found = real_number(found, self.penalty, "value")
        if math.isfinite(found) or not np.isfinite(x).all():
            return found
        inside = self.project(x)
        near = float(np.max(np.abs(x - inside))) <= NEAR * self.unit * float(np.max(np.abs(x)))
        return float(self.penalty.value(inside)) if near else found

    def _checked(self, found: Any, x: np.ndarray, what: str, step: float = 1.0) -> np.ndarray:
        found, name = np.asarray(found), type(self.penalty).__name__
        if found.dtype.kind not in "fiub":
            raise InputError(f"The {what} of {name} is not made of real numbers.")
        found = found.astype(np.float64, copy=False)
        if found.shape != x.shape:
            raise InputError(f"The {what} of {name} has shape {found.shape}: must be {x.shape}.")
        if not np.isfinite(found).all() and np.isfinite(x).all() and math.isfinite(step):
            raise InputError(f"The {what} of {name} is not finite at a finite point.")
        return found
