"""Newton's method for a loss with kinks: rows beyond the margin have no curvature and cost nothing.

A squared hinge is a quadratic wherever no row crosses its margin, so that few steps are enough. A
step takes the Hessian of the rows that have curvature; how far to go is found on the scores,
without the matrix. At 0 all rows have curvature: solutions on some rows come first
(docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, norm
from ode2opt.base.ended import Ended
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN, Point
from ode2opt.problems.gram import extent
from ode2opt.problems.row_model import Line
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.options import AutoOptions
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.active_products import ACTIVE_ROWS, ConjugateSteps
from ode2opt.solvers.stages.cholesky import CholeskyFactor
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.stages.subsample import Subsamples

Direction = Callable[[Point, Array], "Array | Ended"]
"""The step d at a point with its gradient, or why there is none."""


class ActiveRowsNewton(Stage):
    """Newton's method with the Hessian of the rows that have curvature."""

    name = "newton"
    needs = frozenset({"matrix", "host", "kinked"})

    def __init__(self, costs: Costs, skip_subsample: bool = False) -> None:
        super().__init__()
        self.costs, self.skip_subsample = costs, skip_subsample

    @staticmethod
    def affordable(problem: Any, costs: Costs, options: AutoOptions) -> bool:
        """Whether the first Hessian is cheap enough to be formed."""
        if problem.n > LARGEST_DENSE_HESSIAN:
            return False
        return bool(_sizes(problem)) or costs.hessian() <= options.affordable_hessian

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point, after solutions on some rows."""
        problem = oracle.problem
        sizes = [] if self.skip_subsample else _sizes(problem)
        oracle.log("Newton's method by the rows with curvature")
        first = 0 if sizes else 1  # a Hessian of all rows, where these are few
        return _newton(oracle, _solved(oracle, problem, point, sizes), self.costs, first)


class ActiveProductsNewton(Stage):
    """Newton's method by products with the rows that have curvature.

    For a Hessian that is too dear to be formed.
    """

    name = "newton"
    needs = ActiveRowsNewton.needs

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        problem = oracle.problem
        oracle.log("Newton's method by products with the rows with curvature")
        direction = ConjugateSteps(oracle, problem)
        return _steps(oracle, problem, point, direction, ACTIVE_ROWS.conjugate_steps)


def _sizes(problem: Any) -> list[int]:
    """Return the rows of the levels, from few to what may be copied."""
    sizes, m = [], ACTIVE_ROWS.rows_per_column * problem.n
    while m <= problem.largest_sample():
        sizes.append(m)
        m *= ACTIVE_ROWS.rows_per_column
    return sizes


def _solved(oracle: Oracle, problem: Any, here: Evaluated, sizes: list[int]) -> Evaluated:
    """Return the solution on some rows, or where it began if that is lower."""
    if not sizes:
        return here
    x = here.x
    for part in Subsamples(oracle, problem).of(sizes):
        left = oracle.max_seconds - oracle.seconds
        most = ACTIVE_ROWS.steps
        inner = Oracle(Objective(part), tol=oracle.tol, max_iter=most, max_seconds=left)
        with suppress(Stop):
            _newton(inner, inner.begin(x), Costs(part), most)
        oracle.charge(inner.calls * part.N / problem.N)
        oracle.check_time()
        x = x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)
    found = oracle.evaluate(x)
    return found if found.value <= here.value else here


def _newton(oracle: Oracle, here: Evaluated, costs: Costs, at_any_price: int) -> Outcome:
    """Minimise by Hessians of the active rows.

    Hessians are asked what they cost only after the first few, ``at_any_price``.
    """
    problem, formed = oracle.problem, count()

    def direction(point: Point, g: Array) -> Array | Ended:
        bends = problem.bends_at(point)
        rows = extent(problem.A, bends)
        if next(formed) >= at_any_price and costs.hessian_of(rows) > ACTIVE_ROWS.dear:
            return Ended.TOO_DEAR
        oracle.charge(rows.flops() / problem.gradient_flops())
        factor = CholeskyFactor(np.asarray(problem.hessian_of(bends), dtype=np.float64))
        return oracle.to_problem(-factor(np.asarray(g, dtype=np.float64)))

    return _steps(oracle, problem, here, direction, ACTIVE_ROWS.steps)


def _steps(
    oracle: Oracle, problem: Any, here: Evaluated, direction: Direction, most: int
) -> Outcome:
    """Take Newton steps from an evaluated point."""
    point, g = problem.at(oracle.to_problem(here.x)), oracle.to_problem(here.g)
    reason = Ended.MANY_STEPS
    for _ in range(most):
        oracle.check_time()
        d = direction(point, g)
        if isinstance(d, Ended):
            reason = d
            break
        line = Line(problem, point, d)
        found = _along(line, float(g @ d))
        oracle.charge(line.flops() / problem.gradient_flops())
        if found is None:
            reason = Ended.LINE_SEARCH
            break
        point, g = found, _gradient(oracle, problem, found)
    return Outcome(reason, oracle.evaluate(point.x, iterate=False))


def _gradient(oracle: Oracle, problem: Any, point: Point) -> np.ndarray:
    """Return the gradient at the next iterate; one that is small enough is taken anew from x."""
    g = problem.gradient_at(point)
    if norm(g) <= oracle.tol:
        found = oracle.evaluate(np.asarray(point.x, dtype=np.float64))
        return oracle.to_problem(found.g)
    oracle.charge(1)
    oracle.observe(point.x, g)
    return g


def _along(line: Line, slope: float) -> Point | None:
    """Return the minimum along a line, about, by Newton's method on its slope; None if nowhere."""
    low, high, t = 0.0, math.inf, 1.0
    if not -math.inf < slope < 0:
        return None
    for _ in range(ACTIVE_ROWS.line_trials):
        found = line.at(t)
        now = line.slope(t, found)
        if abs(now) <= -ACTIVE_ROWS.flat * slope:
            return found
        low, high = (low, t) if not now < 0 else (t, high)
        bend = line.bend(found)
        aim = t - now / bend if bend > 0 else math.inf
        if not low < aim < high:
            aim = 0.5 * (low + high) if high < math.inf else ACTIVE_ROWS.further * t
        t = aim
    return line.at(low) if low > 0 else None
