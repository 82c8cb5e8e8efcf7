"""Models whose l2 is far above the curvature of their loss, with an intercept that it leaves alone.

The Hessian is then nearly diagonal, but its entries differ by as much as l2 and the intercept's
curvature do. Preconditioned by that diagonal, L-BFGS sees neither: each variable is measured by its
own curvature (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.lbfgs import lbfgs
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.watches import within

STRONG = 1e3  # l2 by the curvature of the loss: below this the other plans do well


def is_strongly_penalised(problem: RowModel) -> bool:
    """Whether l2 dwarfs the curvature of an intercept that it leaves alone."""
    curvature = (problem.slope_bound or 1.0) + problem.intercept_l2
    return problem.intercept and problem.l2 > STRONG * curvature


class DiagonalLbfgs(Stage):
    """L-BFGS with the Hessian's diagonal as preconditioner.

    It has a budget of calls.
    """

    name = "metric-lbfgs"
    needs = frozenset({"rows", "diagonal"})

    def __init__(self) -> None:
        super().__init__(within(calls=60, steps=6))

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log("L-BFGS in the metric of the Hessian's diagonal")
        diagonal = oracle.hessian_diagonal(point.x)
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
        return lbfgs(oracle, point, lambda g: g / diagonal)
