"""A linear model along a line, by its scores: a trial needs no product with the matrix."""

from __future__ import annotations

from ode2opt.base.arrays import Array
from ode2opt.problems.base import Point
from ode2opt.problems.linear_model import LinearModel

OPERATIONS = 10  # of a trial, a row: score, slope, bend and the sums of these


class Line:
    """The function t -> f(x + t d) of a linear model.

    It takes one product with the matrix; then each trial costs a pass over the rows.
    """

    def __init__(self, model: LinearModel, point: Point, d: Array) -> None:
        self.model, self.point, self.d = model, point, d
        self.change, self.trials = model._product(d), 0
        along = model._penalty(d)
        self._first, self._bend = float(along @ point.x), float(along @ d)

    def at(self, t: float) -> Point:
        """Return the point x + t d with its scores, and count a trial."""
        self.trials += 1
        return Point(self.point.x + t * self.d, self.point.scores + t * self.change)

    def flops(self) -> int:
        """Return about how many operations all trials have taken."""
        return OPERATIONS * self.trials * self.model.N

    def slope(self, t: float, there: Point) -> float:
        """Return the derivative by t."""
        rows = self.model._as_shares(self.model.slope(there.scores))
        return float(rows @ self.change) + self._first + t * self._bend

    def bend(self, there: Point) -> float:
        """Return the second derivative by t."""
        rows = self.model._as_shares(self.model.bend(there.scores))
        return float((rows * self.change) @ self.change) + self._bend
