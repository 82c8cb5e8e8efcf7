"""Columns that are likely to be 0 at the next weight of a path, left out and checked afterwards.

The strong rule (Tibshirani and others, 2012): a variable stays 0 at the weight c if its gradient at
the solution for the weight c' > c is inside of what (2c - c') h allows. It may be wrong, so that
the residual of the full problem decides (docs/mathematics.md, section 18).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ode2opt.base.arrays import is_sparse
from ode2opt.penalties import Penalty
from ode2opt.problems.linear_model import LinearModel


class Screen:
    """Cuts a linear model to some of its columns.

    Tuned on Gaussian and random sparse matrices, 100 weights, tol 1e-6: CPU seconds with by without
    were 0.8 to 1.2 for 250 columns, 0.8 to 1.1 for 1,000 to 3,000, 0.6 to 0.9 for 20,000 (sparse,
    30 weights).
    """

    fewest: ClassVar[int] = 1_000
    """Columns of a matrix that is worth to be cut."""
    most: ClassVar[float] = 0.5
    """Share of the columns that may be left for it."""

    def __init__(self, problem: LinearModel) -> None:
        self.problem = problem

    @classmethod
    def of(cls, problem: Any) -> Screen | None:
        """Return a screen where the problem is wide enough to be worth one."""
        if "matrix" not in problem.provides or problem.columns < cls.fewest:
            return None
        return cls(problem) if isinstance(problem.A, np.ndarray) or is_sparse(problem.A) else None

    def strong(self, penalty: Penalty, x: np.ndarray, g: np.ndarray) -> np.ndarray | None:
        """Return the columns that may move; None where these are too many."""
        size = np.abs(g)
        size = size + 1e-12 * float(np.max(size, initial=0.0))
        moved = (penalty.prox(size, 1.0) != 0) | (penalty.prox(-size, 1.0) != 0) | (x != 0)
        return self._columns(moved)

    def with_more(self, columns: np.ndarray, moved: np.ndarray) -> np.ndarray | None:
        """Return columns and those of more variables; None where these are too many."""
        more = self._columns(moved)
        if more is None:
            return None
        both = more | columns
        return None if both.mean() > self.most else both

    def _columns(self, moved: np.ndarray) -> np.ndarray | None:
        problem = self.problem
        own = moved[: problem.columns * problem.width].reshape(-1, problem.width)
        found: np.ndarray = np.any(own, axis=1)
        return found if found.any() and found.mean() <= self.most else None

    def variables(self, columns: np.ndarray) -> np.ndarray:
        """Return which variables belong to columns; intercepts do."""
        problem = self.problem
        free = np.ones(problem.n - problem.columns * problem.width, dtype=bool)
        return np.append(np.repeat(columns, problem.width), free)

    def cut(self, columns: np.ndarray) -> LinearModel:
        """Return the problem with these columns alone."""
        return self.problem.with_columns(np.flatnonzero(columns))
