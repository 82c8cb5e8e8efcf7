"""Newton's method with a line search: by Cholesky where the Hessian is formed, else by CG.

Where the Hessian is singular it is damped, and where the infimum is not attained (separable data
without l2) the gradient still goes to zero along finite points (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems.base import Problem
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.lbfgs import NO_DECREASE, step
from ode2opt.solvers.line_search import Standstill
from ode2opt.solvers.run import Exhausted, Here, Run
from ode2opt.solvers.watches import Pace, Stage

CG_STEPS = 200
MOST_CALLS, FEWEST_STEPS = 900, 3  # the pace to keep, and after how many steps it is judged
MOST_HESSIANS = 12
CG_TOLERANCE = 0.5  # of the residual, in the root of how far the gradient has come


def newton(run: Run, here: Here) -> None:
    """Minimise from an evaluated point; leaves by Stop, or by Exhausted where no step helps."""
    problem = run.problem
    if not problem.has_hvp:
        raise InputError("newton needs second derivatives: give the function's hvp, or use lbfgs.")
    if Costs(problem).newton_by_cholesky():
        run.tell("Newton's method by Cholesky")
        _go(run, here, partial(_by_cholesky, run))
    run.tell("Newton's method by conjugate gradients")
    NewtonCG(run).go(here)


def paced_newton(problem: Problem) -> Stage:
    """Return Newton's method as a stage that must keep pace: a step may cost many calls."""
    pace = Pace(MOST_CALLS, FEWEST_STEPS)
    if Costs(problem).newton_by_cholesky():
        price = problem.hessian_flops() / problem.gradient_flops()
        pace = Pace(max(MOST_CALLS, MOST_HESSIANS * price), MOST_HESSIANS)
    return Stage("newton", newton, pace)


def _by_cholesky(run: Run, here: Here) -> np.ndarray:
    """Return the step with the whole Hessian, of which no second copy is kept."""
    return -Factor(run.hessian(here.x))(here.g)


def _go(run: Run, here: Here, direction: Callable[[Here], np.ndarray]) -> None:
    standstill = Standstill()
    while True:
        run.check_time()
        found = step(run, here, direction(here), 1.0)
        if found is None or standstill(found.value, found.norm):
            raise Exhausted(NO_DECREASE, here)
        here = found
        run.judge(here)


class NewtonCG:
    """Newton steps by conjugate gradients: each product with the Hessian counts one.

    From the second step on, where the Hessian's diagonal is cheap, its root scales the variables:
    half-way to Jacobi's scaling, which does too much for columns that are rarely seen.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.weights: np.ndarray | float | None = None

    def go(self, here: Here) -> None:
        """Minimise; leaves by Stop or HandOver."""
        _go(self.run, here, self._direction)

    def _weights(self, here: Here) -> np.ndarray | float:
        """Return the scaling of a step: none for the first, which may be all, then one for all."""
        if self.weights is None:
            self.weights = 1.0
        elif self.run.problem.cheap_diagonal and isinstance(self.weights, float):
            diagonal = np.sqrt(self.run.hessian_diagonal(here.x))
            self.weights = 1 / np.where(diagonal > 0, diagonal, diagonal.max(initial=0.0) or 1.0)
        return self.weights

    def _direction(self, here: Here) -> np.ndarray:
        """Return about -H^-1 g, the more exact the smaller the gradient is.

        Where no curvature is met, the direction so far is taken.
        """
        first = max(self.run.first_norm, here.norm)
        goal = here.norm * min(CG_TOLERANCE, math.sqrt(here.norm / first))
        product, weights = self.run.products(here.x), self._weights(here)
        d, r = np.zeros_like(here.x), -here.g
        p = weights * r
        square = float(r @ p)
        for _ in range(min(CG_STEPS, 2 * len(d))):
            Hp = product(p)
            bend = float(p @ Hp)
            if not bend > 0:
                return d if np.any(d) else p
            length = square / bend
            d += length * p
            r -= length * Hp
            if not math.sqrt(float(r @ r)) > goal:
                break
            z = weights * r
            square, old = float(r @ z), square
            p = z + (square / old) * p
        return d
