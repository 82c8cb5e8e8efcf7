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
from typing import NoReturn, TypeGuard

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.problems._numbers import norm
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN, Point, Problem
from ode2opt.problems.gram import extent
from ode2opt.problems.line import Line
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.active_products import ConjugateSteps
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.lbfgs import NO_DECREASE
from ode2opt.solvers.run import HandOver, Here, Run, Stop
from ode2opt.solvers.watches import Stage
from ode2opt.solvers.whitening import CHEAP, Whitening

FEWEST = 16  # rows of the first level, in columns
GROWTH = 16  # of the rows, from level to level
DEAR = 2.0  # evaluations: where a Hessian costs more, L-BFGS in the metric of some rows costs less
FLAT = 0.1  # of the slope where a line begins: then it has been followed far enough
FURTHER = 4.0  # times as far, where a line has no bend
MOST_TRIALS = 30
MOST_STEPS = 40
MOST_CONJUGATE_STEPS = 100
TOO_DEAR = "rows with curvature are too many for Newton's method"
TOO_SLOW = "Newton's method took too many steps"


Direction = Callable[[Point, Array], Array]
"""The step d at a point with its gradient."""


def suits(problem: Problem) -> TypeGuard[LinearModel]:
    """Whether the loss has kinks and its rows are here."""
    if not isinstance(problem, LinearModel):
        return False
    return problem.kinked and isinstance(problem.b, np.ndarray)


def forms(problem: LinearModel, costs: Costs) -> bool:
    """Whether the first Hessian is affordable."""
    if problem.n > LARGEST_DENSE_HESSIAN:
        return False
    return bool(_sizes(problem)) or costs.price() <= CHEAP


def by_active_rows(costs: Costs, warm: bool) -> Stage:
    """Return the stage; a warm one is near enough to begin with all rows."""

    def go(run: Run, here: Here) -> None:
        problem = run.problem
        assert isinstance(problem, LinearModel)
        sizes = [] if warm else _sizes(problem)
        run.tell("Newton's method by the rows with curvature")
        first = 0 if sizes else 1  # a Hessian of all rows, where these are few
        _newton(run, _solved(run, problem, here, sizes, costs), costs, first)

    return Stage("newton", go)


def by_products() -> Stage:
    """Return the stage by conjugate gradients, for a Hessian that is not to be formed."""

    def go(run: Run, here: Here) -> None:
        problem = run.problem
        assert isinstance(problem, LinearModel)
        run.tell("Newton's method by products with the rows with curvature")
        _steps(run, problem, here, ConjugateSteps(run, problem), MOST_CONJUGATE_STEPS)

    return Stage("newton", go)


def _sizes(problem: LinearModel) -> list[int]:
    """Return the rows of the levels, from few to what may be copied."""
    sizes, m = [], FEWEST * problem.n
    while m <= problem.largest_sample():
        sizes.append(m)
        m *= GROWTH
    return sizes


def _solved(run: Run, problem: LinearModel, here: Here, sizes: list[int], costs: Costs) -> Here:
    """Return the solution on some rows, or where it began if that is lower."""
    if not sizes:
        return here
    x = here.x
    for part in Whitening(run, problem, costs).levels(sizes):
        left = run.max_seconds - run.seconds
        inner = Run(part, tol=run.tol, max_iter=MOST_STEPS, max_seconds=left)
        with suppress(Stop, HandOver):
            _newton(inner, inner.begin(x), Costs(part), MOST_STEPS)
        run.charge(inner.calls * part.N / problem.N)
        run.check_time()
        x = x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)
    found = run.evaluate(x)
    return found if found.value <= here.value else here


def _newton(run: Run, here: Here, costs: Costs, at_any_price: int) -> None:
    """Minimise by Hessians of the active rows; leaves by Stop or HandOver.

    Hessians are asked what they cost only after the first few, ``at_any_price``.
    """
    problem, formed = run.problem, count()
    assert isinstance(problem, LinearModel)

    def direction(point: Point, g: Array) -> Array:
        bends = problem.bends_at(point)
        rows = extent(problem.A, bends)
        if next(formed) >= at_any_price and costs.price_of(rows) > DEAR:
            raise HandOver(TOO_DEAR, run.look(point.x))
        run.charge(rows.flops() / problem.gradient_flops())
        factor = Factor(np.asarray(problem.hessian_of(bends), dtype=np.float64))
        return run.there(-factor(np.asarray(g, dtype=np.float64)))

    _steps(run, problem, here, direction, MOST_STEPS)


def _steps(run: Run, problem: LinearModel, here: Here, direction: Direction, most: int) -> NoReturn:
    """Take Newton steps from an evaluated point; leaves by Stop or HandOver."""
    point, g = problem.at(run.there(here.x)), run.there(here.g)
    for _ in range(most):
        run.check_time()
        d = direction(point, g)
        line = Line(problem, point, d)
        found = _along(line, float(g @ d))
        run.charge(line.flops() / problem.gradient_flops())
        point = found or _no_further(run, point)
        g = _gradient(run, problem, point)
    raise HandOver(TOO_SLOW, run.look(point.x))


def _gradient(run: Run, problem: LinearModel, point: Point) -> np.ndarray:
    """Return the gradient at the next iterate; one that is small enough is taken anew from x."""
    g = problem.gradient_at(point)
    if norm(g) <= run.tol:
        return run.there(run.evaluate(np.asarray(point.x, dtype=np.float64)).g)
    run.charge(1)
    run.observe(point.x, g)
    return g


def _no_further(run: Run, point: Point) -> Point:
    raise HandOver(NO_DECREASE, run.look(point.x))


def _along(line: Line, slope: float) -> Point | None:
    """Return the minimum along a line, about, by Newton's method on its slope; None if nowhere."""
    low, high, t = 0.0, math.inf, 1.0
    if not -math.inf < slope < 0:
        return None
    for _ in range(MOST_TRIALS):
        there = line.at(t)
        now = line.slope(t, there)
        if abs(now) <= -FLAT * slope:
            return there
        low, high = (low, t) if not now < 0 else (t, high)
        bend = line.bend(there)
        aim = t - now / bend if bend > 0 else math.inf
        if not low < aim < high:
            aim = 0.5 * (low + high) if high < math.inf else FURTHER * t
        t = aim
    return line.at(low) if low > 0 else None
