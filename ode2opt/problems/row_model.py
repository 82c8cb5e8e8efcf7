"""A linear model on rows, wherever these are: what solvers ask of it beside derivatives."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import many
from ode2opt.data.encoding import TableEncoding
from ode2opt.problems.base import Point, Problem
from ode2opt.problems.gram import ROUTES, Extent
from ode2opt.problems.smoothness import no_bound

if TYPE_CHECKING:
    from ode2opt.problems.linear_model import LinearModel
    from ode2opt.problems.parts.problem import HeldRows
    from ode2opt.problems.rows import Rows

LOSS_FLOPS = 20  # of one row's slope, about
ROWS_PER_SAMPLED = 4  # a sample has at most one row in this many: it is copied


class RowModel(Problem):
    """The weighted mean of loss(a_i . x, b_i) over N rows, plus l2/2 |x|^2."""

    data: Rows | HeldRows
    N: int
    l2: float
    intercept: bool
    intercept_l2: float = 0.0
    """Weight of a penalty on the intercept, which l2 leaves alone."""
    cheap_diagonal = True
    width = 1
    """How many scores a row has; where there are several, ``class_hessians`` are asked for."""
    quadratic = False
    """Whether the loss is a square, so that one Newton step is all."""
    kinked = False
    """Whether rows may have no curvature at all, so that few of them make up a Hessian."""
    slope_bound: float | None = None
    """The largest second derivative of the loss, where it has one."""
    label_values: tuple[Any, ...] = ()
    """Labels in the order of the numbers that they have become, where they were others."""
    encoding: TableEncoding | None = None
    """How named columns became those of the matrix; None where they have no names."""

    def _about(self) -> list[tuple[str, str]]:
        columns = self.n // self.width - self.intercept
        rows = [("size", f"{many(self.N, 'row')} x {many(columns, 'column')}")]
        if self.sparse:
            rows.append(("matrix", "sparse"))
        if self.l2:
            rows.append(("l2", f"{self.l2:g}"))
        if self.intercept:
            rows.append(("intercept", "yes"))
        return rows

    @property
    def provides(self) -> frozenset[str]:
        known = {
            "classes": self.width > 1,
            "kinked": self.kinked,
            "quadratic": self.quadratic,
            "smoothness": self.slope_bound is not None,
        }
        return super().provides | {"rows", "hessian"} | {k for k, v in known.items() if v}

    @property
    def columns(self) -> int:
        """Those of the matrix; the intercept has none."""
        return self.data.columns

    @property
    def sparse(self) -> bool:
        """Whether only the entries of the matrix that are not zero are kept."""
        return self.data.sparse

    def entries(self) -> int:
        """Return how many entries of the matrix are kept."""
        return self.data.entries()

    def extent(self) -> Extent:
        """Return what the price of A^T W A depends on."""
        return self.data.extent()

    def largest_squares(self) -> np.ndarray:
        """Return the square of each column's largest entry, then 1 for an intercept."""
        return self.data.largest_squares()

    @abstractmethod
    def subset(self, index: np.ndarray) -> LinearModel:
        """Return the problem of some of the rows, on NumPy arrays (or a SciPy matrix).

        Args:
            index: the rows, by number from 0.
        """

    @abstractmethod
    def value_at_zero(self) -> float:
        """Return f(0), for which the matrix is not needed."""

    @abstractmethod
    def gradient_error(self, x: Array) -> float:
        """Return the standard error of the gradient, were the rows drawn at random.

        It is sqrt(sum_i |w_i slope_i a_i|^2) / N.

        Args:
            x: the point, n numbers.
        """

    @abstractmethod
    def largest_bend(self, x: Array) -> float:
        """Return the largest share that a row has in the mean of second derivatives.

        Args:
            x: the point, n numbers.
        """

    @abstractmethod
    def _gram_eigenvalue(self) -> tuple[float, int]:
        """Return the largest eigenvalue of A^T diag(weights) A / N, and its price in gradients.

        The intercept counts as a column of ones.
        """

    def class_hessians(self, x: Array, each: bool = True) -> Array:
        """Return the diagonal blocks of the Hessian, one for each score of a row, or their mean.

        Args:
            x: the point, n numbers.
            each: True (the default) for all blocks, False for their mean, as one block.

        Returns:
            An array of blocks x columns x columns.
        """
        raise NotImplementedError(f"{type(self).__name__} has {self.width} scores a row")

    def largest_sample(self) -> int:
        """Return how many rows may be copied."""
        return self.N // ROWS_PER_SAMPLED

    def grams(self) -> int:
        """Return how many matrices A^T W A the Hessian is made of."""
        return self.width * (self.width + 1) // 2

    def hessian_flops(self) -> int:
        return self.grams() * self.data.extent().flops()

    def gradient_flops(self) -> int:
        entries = self.data.entries()
        entries = (
            ROUTES.sparse_slower * entries if self.sparse else entries + self.intercept * self.N
        )
        return self.width * (4 * entries + LOSS_FLOPS * self.N)

    def unseen_curvature(self, x: Array) -> np.ndarray:
        """Return for each variable the largest curvature that one more row could add.

        It is the largest bend of a row times the square of the column's largest entry. Columns of
        zeros are given the mean of the others.

        Args:
            x: the point, n numbers.
        """
        squares = self.data.largest_squares()
        seen = squares > 0
        squares[~seen] = squares[seen].mean() if seen.any() else 1.0
        return self.largest_bend(x) * np.repeat(squares, self.width)

    def penalties(self) -> np.ndarray:
        """Return the weight of the penalty on each variable: l2, and the intercepts' own."""
        weights = np.full(self.n, self.l2)
        if self.intercept:
            weights[-self.width :] = self.intercept_l2
        return weights

    def strong_convexity(self) -> float:
        """Return l2, or an intercept's own penalty where that is less: 0 where it has none."""
        return float(self.penalties().min())

    def _check_slope_bound(self) -> float:
        """Return the largest second derivative of the loss; refuse a loss that has none."""
        if self.slope_bound is None:
            raise no_bound(self)
        return self.slope_bound

    def _paper_bound(self) -> tuple[float, int]:
        """Return the paper's |A^T A|/N, whatever the loss: 4 times loose for the logistic one."""
        top, calls = self._gram_eigenvalue()
        return top + max(self.l2, self.intercept_l2), calls


class Line:
    """The function t -> f(x + t d) of a linear model, by its scores.

    It takes one product with the matrix; then each trial costs a pass over the rows.

    Attributes:
        operations: about how many a trial takes, a row: score, slope, bend and the sums of these.
    """

    operations = 10

    def __init__(self, model: LinearModel, point: Point, d: Array) -> None:
        self.model, self.point, self.d = model, point, d
        self.change, self.trials = model.data.dot(d), 0
        along = model._penalty(d)
        self._first, self._bend = float(along @ point.x), float(along @ d)

    def at(self, t: float) -> Point:
        """Return the point x + t d with its scores, and count a trial."""
        self.trials += 1
        return Point(self.point.x + t * self.d, self.point.scores + t * self.change)

    def flops(self) -> int:
        """Return about how many operations all trials have taken."""
        return self.operations * self.trials * self.model.N

    def slope(self, t: float, there: Point) -> float:
        """Return the derivative by t."""
        rows = self.model._as_shares(self.model.slope(there.scores))
        return float(rows @ self.change) + self._first + t * self._bend

    def bend(self, there: Point) -> float:
        """Return the second derivative by t."""
        rows = self.model._as_shares(self.model.curvature(there.scores))
        return float((rows * self.change) @ self.change) + self._bend
