"""One solve of a path, which may know its start and tells what it knows of its end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.solvers.composite.oracle import CompositeOracle


class EvaluatedStart(NamedTuple):
    """A point whose value and gradient of f are known.

    Attributes:
        x: n numbers of NumPy's.
        value: f there.
        g: its gradient.
    """

    x: np.ndarray
    value: float
    g: np.ndarray


class PathOracle(CompositeOracle):
    """One solve of a path: it may know its start, and tells the gradient at its best point."""

    def __init__(
        self, problem: Problem, penalty: Penalty, known: EvaluatedStart | None = None, **limits: Any
    ) -> None:
        super().__init__(problem, penalty, **limits)
        self._known = known
        self._best_g: np.ndarray | None = None

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        known, x = self._known, self.to_numpy(point)
        if known is None or not np.array_equal(known.x, x):
            return super().value_and_gradient(point)
        return known.value + self.penalty_at(x), self.to_problem(known.g)

    def _keep_if_best(self, x: Array, found: float, value: float | None) -> float:
        before = self.best_norm
        size = super()._keep_if_best(x, found, value)
        if self.best_norm < before:
            self._best_g = None
        return size

    def observe(self, x: Array, g: Array, value: float | None = None) -> None:
        try:
            super().observe(x, g, value)
        finally:
            if self.best_x is x:
                self._best_g = self.to_numpy(g)

    def smooth(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f and its gradient; those at the best point are known."""
        g, value = self._best_g, self.best_value
        if g is None or value is None or not np.array_equal(self.to_numpy(self.best_x), x):
            return super().smooth(x)
        return value - self.penalty_at(x), g

    def best(self) -> EvaluatedStart:
        """Return the best point with f and its gradient."""
        x = self.to_numpy(self.best_x)
        return EvaluatedStart(x, *self.smooth(x))
