"""The rows that are learned: what they start from, how parameters move them, what follows them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ode2opt.base.schedule import Schedule
from ode2opt.proofs.table import schedule_of
from ode2opt.proofs.theorem import classical_rows, tail_rows

STARS = {"nag": "convex", "ogm": "smooth"}
"""By which inequalities at the minimiser a table with each tail is proved; a run can check those
of a table by plain convexity."""


@dataclass(frozen=True)
class LearnedRows:
    """K rows (m, p, q) that are learned, followed by those of Nesterov's method or OGM.

    Attributes:
        tail: "nag" or "ogm": what the rows start from, and what follows them.
        count: how many rows are learned, K; at least 2.
    """

    tail: str
    count: int

    @property
    def star(self) -> str:
        """Which inequalities the proof takes at the minimiser: "convex" or "smooth"."""
        return STARS[self.tail]

    @property
    def theta(self) -> Fraction:
        """Where the tail stands at the last learned point."""
        return Fraction(self.count + 1, 2)

    def first(self) -> np.ndarray:
        """Return the rows of the tail's own method, where learning starts; shape (K, 3)."""
        return np.array(classical_rows(self.tail, self.count), dtype=np.float64)

    def after(self, count: int) -> np.ndarray:
        """Return the rows that follow the learned ones."""
        if not count:
            return np.zeros((0, 3))
        return np.array(tail_rows(self.tail, self.theta, count), dtype=np.float64)

    def schedule(self, rows: np.ndarray, horizon: int) -> Schedule:
        """Return the table of a method: the learned rows, then the tail's up to the horizon."""
        return schedule_of(np.concatenate([rows, self.after(horizon - 1 - self.count)]))

    def by_knots(self, knots: int) -> np.ndarray:
        """Return the matrix from parameters to moves of the rows, linear in log k between knots."""
        at = np.log1p(np.arange(self.count))
        places = np.linspace(0.0, at[-1], knots)
        hats = np.column_stack([np.interp(at, places, unit) for unit in np.eye(knots)])
        return np.kron(hats, np.eye(3)) * self._movable()[:, None]

    def each_alone(self) -> np.ndarray:
        """Return the matrix that moves each number of the rows by a parameter of its own."""
        return np.diag(self._movable())[:, self._movable() > 0]

    def _movable(self) -> np.ndarray:
        """1 for each number of the rows that may be learned, 0 for the first m and q."""
        may = np.ones((self.count, 3))
        may[0, [0, 2]] = 0.0
        return may.ravel()
