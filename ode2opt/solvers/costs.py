"""What work on a problem costs, in seconds on one core: what ``auto`` plans with.

The constants were measured (benchmarks/costs.py measures them anew); nothing is timed in a solve,
so that the same problem is always solved in the same way.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

from ode2opt.problems.base import LARGEST_DENSE_HESSIAN, Problem
from ode2opt.problems.gram import Extent
from ode2opt.problems.row_model import RowModel

NANO = 1e-9
CACHED = 1 << 19  # entries of a matrix that stays in the cache
# Nanoseconds of value and gradient together.
ENTRY, CACHED_ENTRY, SPARSE_ENTRY, ROW = 1.4, 0.6, 2.3, 25.0
FURTHER = 0.2  # of an entry's time: one more score of a row
# Nanoseconds of a factorisation by n^3 and n^2, and of a solve by n^2.
CUBE, SQUARE, SOLVE = 0.015, 6.0, 0.7
EVALUATION, FORMING = 60e-6, 100e-6  # seconds that do not depend on size
FEWEST = 4  # rows of the first level, in columns
GROWTH = 4  # of the rows, from level to level
NEWTON_STEPS = 7  # on all rows, about
FIRST_STEPS, LEVEL_STEPS = 30, 4  # of L-BFGS on the first level, and on each of the next, about
PRODUCTS = 60  # Hessian products that a Newton step by conjugate gradients takes, about


class Costs:
    """Seconds of the parts of a solve, on ``m`` of the problem's rows (all by default).

    A ``frugal`` plan saves oracle calls as well as seconds.
    """

    def __init__(self, problem: Problem, frugal: bool = False) -> None:
        self.frugal = frugal
        self.problem, self.n, self.rows = problem, problem.n, problem.rows or 1
        self.model = problem if isinstance(problem, RowModel) else None

    def _share(self, m: int | None) -> float:
        return 1.0 if m is None else m / self.rows

    def evaluation(self, m: int | None = None) -> float:
        """Value and gradient, with what a step of L-BFGS costs beside them."""
        share, model = self._share(m), self.model
        own = 40 * self.n  # two products with the corrections
        if model is None:
            return EVALUATION + NANO * (own + 0.5 * self.problem.gradient_flops())
        entries = share * (model.entries() if model.sparse else self.rows * self.n / model.width)
        each = CACHED_ENTRY if entries < CACHED else ENTRY
        if model.sparse:
            each = SPARSE_ENTRY
        each *= 1 + FURTHER * (model.width - 1)
        return EVALUATION + NANO * (own + each * entries + ROW * share * self.rows * model.width)

    @cached_property
    def _gram_seconds(self) -> float:
        """All products A^T W A of a Hessian; a plan asks for each of its levels."""
        assert self.model is not None
        return self.model.grams() * self.model.extent().seconds()

    def metric(self, m: int | None = None) -> float:
        """A Hessian, formed and factorised."""
        forming = NANO * SQUARE * self.n**2
        if self.model is not None:
            forming = self._share(m) * self._gram_seconds
        elif self.problem.hessian_flops() >= self.n * self.problem.gradient_flops():
            forming = self.n * self.evaluation()
        return self._formed(forming)

    def _formed(self, forming: float) -> float:
        return FORMING + forming + NANO * (CUBE * self.n**3 + SQUARE * self.n**2)

    def price(self, m: int | None = None) -> float:
        """A metric, in evaluations; where calls are to be saved too, at least its calls."""
        seconds = self.metric(m) / self.in_metric()
        if not self.frugal:
            return seconds
        calls = self.problem.hessian_flops() / self.problem.gradient_flops()
        return max(seconds, self._share(m) * calls)

    def price_of(self, rows: Extent) -> float:
        """A metric of given rows, in evaluations."""
        return self._formed(rows.seconds()) / self.in_metric()

    def in_metric(self) -> float:
        """One evaluation in a dense metric."""
        return self.evaluation() + NANO * SOLVE * self.n**2

    def newton_by_cholesky(self) -> bool:
        """Whether a Newton step is cheaper with the whole Hessian than by products."""
        return self.n <= LARGEST_DENSE_HESSIAN and self.metric() < PRODUCTS * self.evaluation()


class Plan(NamedTuple):
    """How many rows to whiten with; what that costs, in evaluations, and how many follow."""

    rows: int
    price: float
    steps: float

    @property
    def total(self) -> float:
        """The whole cost, in evaluations."""
        return self.price + self.steps


def plans(
    costs: Costs, model: RowModel, norm: float, tol: float, solves: int = 1
) -> tuple[Plan, Plan]:
    """Return the cheapest plans: with solutions on some rows before, and of a single metric.

    A single metric may serve several solves, which share its price.
    In the metric of k n rows the spectrum is about that of Marchenko and Pastur, so that the error
    falls by the root of k a step; a solution on m rows leaves a gradient that falls with its root.
    """
    levels: list[Plan] = []
    single: list[Plan] = []
    spent = 0.0
    for m in sizes(model):
        steps = LEVEL_STEPS if levels else FIRST_STEPS
        spent += steps * costs.evaluation(m) / costs.in_metric() + costs.price(m)
        left = math.log(max(10.0, norm / tol * math.sqrt(model.n / m)))
        least = 10.0 if m == model.N else 1.5
        after = 1 + left / math.log(max(least, 0.8 * math.sqrt(m / model.n)))
        levels.append(Plan(m, spent, after))
        single.append(Plan(m, costs.price(m) / solves, after))
    return min(levels, key=lambda plan: plan.total), min(single, key=lambda plan: plan.total)


def sizes(model: RowModel, most: float = math.inf) -> list[int]:
    """Return the rows of the levels up to ``most``, the last of all having every row."""
    found = [more(0, model)]
    while found[-1] < model.N:
        found.append(more(found[-1], model))
    return [size for size in found if size <= most]


def more(m: int, model: RowModel) -> int:
    """Return the rows of the level after ``m``: as many as may be copied, or all."""
    larger = GROWTH * m or FEWEST * model.n
    return larger if larger <= model.largest_sample() else model.N
