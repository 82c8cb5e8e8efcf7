"""A solve of f + h: what is small at a solution is the residual x - prox(x - g(x))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, epsilon, norm
from ode2opt.base.errors import InputError
from ode2opt.penalties import Penalty
from ode2opt.penalties.base import real_number
from ode2opt.problems.base import Problem
from ode2opt.solvers.oracle import Oracle

NEAR = 16  # units in the last place by which rounding may lead out of the domain of h


class CompositeOracle(Oracle):
    """The state of a solve with a penalty; norms are residuals, values those of f + h."""

    def __init__(self, problem: Problem, penalty: Penalty, **limits: Any) -> None:
        super().__init__(problem, **limits)
        self.penalty = penalty

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Return the penalty's prox, checked, on NumPy arrays."""
        found = self.penalty.prox(x, step)
        return self._checked(found, x, "prox", step)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return a point near x where h is finite, on NumPy arrays."""
        return self._checked(self.penalty.project(x), x, "projection")

    def first_point(self, x: Array) -> np.ndarray:
        """Return a point near a start where h is finite; what the penalty answers is checked."""
        start = np.asarray(x).astype(np.float64)
        real_number(self.penalty.value(start), self.penalty, "value")
        inside = self.project(start)
        self.prox(inside, 1.0)
        value = real_number(self.penalty.value(inside), self.penalty, "value")
        if not math.isfinite(value):
            name = type(self.penalty).__name__
            raise InputError(f"The value of {name} is {value} where its projection leads.")
        return inside

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

    def smooth(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f and its gradient at a point that need not be in the domain of h; counted."""
        value, g = super().value_and_gradient(self.to_problem(x))
        return value, self.to_numpy(g)

    def next_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient at the next iterate, which is observed; its value is not asked
        for.
        """
        point = self.to_problem(x)
        g = self.gradient(point)
        self.observe(point, g)
        return self.to_numpy(g)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        value, g = super().value_and_gradient(point)
        return value + self.penalty_at(self.to_numpy(point)), g

    def value(self, x: Array) -> float:
        return super().value(x) + self.penalty_at(self.to_numpy(x))

    def penalty_at(self, x: np.ndarray) -> float:
        """Return h at a point; outside of its domain by rounding only, h at the nearest inside."""
        found = real_number(self.penalty.value(x), self.penalty, "value")
        if math.isfinite(found) or not np.isfinite(x).all():
            return found
        inside = self.project(x)
        reach = NEAR * epsilon(self.problem.xp, self.problem.dtype)
        near = float(np.max(np.abs(x - inside))) <= reach * float(np.max(np.abs(x)))
        return float(self.penalty.value(inside)) if near else found

    def undefined(self, value: float | None) -> bool:
        return value is not None and not math.isfinite(value) and self.best_x is not None

    def size(self, x: Array, g: Array) -> float:
        at, slope = self.to_numpy(x), self.to_numpy(g)
        if not np.isfinite(at - slope).all():
            return math.inf
        return norm(self._checked(self.penalty.residual(at, slope), at, "prox"))
