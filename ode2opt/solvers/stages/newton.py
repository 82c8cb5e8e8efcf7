"""Newton's method with a line search: by Cholesky where the Hessian is formed, else by CG.

Where the Hessian is singular it is damped, and where the infimum is not attained (separable data
without l2) the gradient still goes to zero along finite points (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome, Watch
from ode2opt.solvers.stages.lbfgs import step
from ode2opt.solvers.stages.line_search import Standstill
from ode2opt.solvers.stages.linear_systems import CholeskyFactor, solve_by_cg
from ode2opt.solvers.stages.stage import Stage, within


class NewtonRules(NamedTuple):
    """Budgets of Newton's method.

    Attributes:
        calls: within how many it must promise to arrive.
        steps: after how many this is judged.
        hessians: the same by Cholesky, in Hessians.
        products: of one step by conjugate gradients.
        residual: of the gradient at most, in the root of how far the gradient has come.
        last: share of the tolerance below which no residual is asked for.
        at_once: the share that is asked for of a quadratic, whose first step may be all.

    The last two, and scaling from the first step on, were chosen on made-up data: texts of 6,000 x
    15,000 and 60,000 x 30,000, hashed categories of 30,000 x 20,000 and 20,000 x 60,000.
    """

    calls: float = 900
    steps: int = 3
    hessians: int = 12
    products: int = 200
    residual: float = 0.5
    last: float = 0.6
    at_once: float = 0.9


NEWTON = NewtonRules()


class Newton(Stage):
    """Newton's method.

    It takes the whole Hessian and Cholesky where that is cheaper than products, else conjugate
    gradients.
    """

    name = "newton"
    needs = frozenset({"hvp"})

    def __init__(self, costs: Costs, watch: Watch | None = None) -> None:
        super().__init__(watch)
        self.costs = costs

    @classmethod
    def within_budget(cls, costs: Costs) -> Newton:
        """Return the stage with a budget: a step may cost many calls."""
        if not costs.newton_by_cholesky():
            return cls(costs, within(NEWTON.calls, NEWTON.steps + 1))
        hessians = NEWTON.hessians * costs.hessian_calls
        return cls(costs, within(max(NEWTON.calls, hessians), NEWTON.hessians + 1))

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point; a problem without second derivatives is refused."""
        if not self.needs <= oracle.objective.provides:
            raise InputError(
                "newton needs second derivatives: give the function's hvp, or use lbfgs."
            )
        if self.costs.newton_by_cholesky():
            oracle.log("Newton's method by Cholesky")
            return newton_steps(oracle, point, partial(_by_cholesky, oracle))
        oracle.log("Newton's method by conjugate gradients")
        return newton_steps(oracle, point, ConjugateDirections(oracle))


def _by_cholesky(oracle: Oracle, here: Evaluated) -> np.ndarray:
    """Return the step with the whole Hessian, of which no second copy is kept."""
    return -CholeskyFactor(oracle.hessian(here.x))(here.g)


def newton_steps(
    oracle: Oracle, here: Evaluated, direction: Callable[[Evaluated], np.ndarray]
) -> Outcome:
    """Take steps with a line search along directions until no step helps."""
    standstill = Standstill()
    while True:
        oracle.check_time()
        found = step(oracle, here, direction(here), 1.0)
        if found is None or standstill(found.value, found.norm):
            return Outcome(Ended.LINE_SEARCH, here)
        here = found
        if (outcome := oracle.judge(here)) is not None:
            return outcome


class ConjugateDirections:
    """Newton directions by conjugate gradients: each product with the Hessian counts one.

    Where the Hessian's diagonal is cheap, its root at the first point scales the variables:
    half-way to Jacobi's scaling, which does too much for columns that are rarely seen.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.quadratic = {"rows", "quadratic"} <= oracle.objective.provides
        self.weights: np.ndarray | float | None = None

    def __call__(self, here: Evaluated) -> np.ndarray:
        """Return about -H^-1 g, the more exact the smaller the gradient is."""
        most = min(NEWTON.products, 2 * len(here.x))
        product, weights = self.oracle.products(here.x), self._weights(here)
        return solve_by_cg(product, weights, -here.g, self._goal(here), most)[0]

    def _goal(self, here: Evaluated) -> float:
        """Return the residual to reach: no smaller than the tolerance needs."""
        tol = self.oracle.tol if self.oracle.stop_at_tol else 0.0
        if self.quadratic and tol:
            return NEWTON.at_once * tol
        first = max(self.oracle.first_norm, here.norm)
        goal = here.norm * min(NEWTON.residual, math.sqrt(here.norm / first))
        return max(goal, NEWTON.last * tol)

    def _weights(self, here: Evaluated) -> np.ndarray | float:
        """Return the scaling of all steps."""
        if self.weights is None and self.oracle.problem.cheap_diagonal:
            diagonal = np.sqrt(self.oracle.hessian_diagonal(here.x))
            self.weights = 1 / np.where(diagonal > 0, diagonal, diagonal.max(initial=0.0) or 1.0)
        return 1.0 if self.weights is None else self.weights
