"""L-BFGS preconditioned by parts of the Hessian: its diagonal, or the blocks of classes.

An l2 far above the curvature of the loss, with an intercept that it leaves alone, makes the Hessian
nearly diagonal, but its entries differ by as much as l2 and the intercept's curvature do. In the
metric of that diagonal each variable is measured by its own curvature.

The Hessian of a softmax has a block for each pair of classes. The diagonal ones are of the columns'
size: they know how columns go together, which is what slows L-BFGS down, and cost (K + 1) / 2 times
less than the whole Hessian of K classes. Where that is dear, one matrix does for all: their mean
(docs/mathematics.md, section 14).
"""

from __future__ import annotations

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome
from ode2opt.solvers.stages.lbfgs import lbfgs
from ode2opt.solvers.stages.linear_systems import CholeskyFactor
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper, within

STRONG = 1e3  # l2 by the curvature of the loss: below this the other plans do well
EACH = 12.0  # evaluations that the Hessian blocks of all classes may cost; else they share one


class ClassPreconditioner:
    """g -> M g, M the inverse of the classes' own blocks of the Hessian, or of their mean.

    At zero all blocks are alike.
    """

    def __init__(self, oracle: Oracle, x: np.ndarray, costs: Costs, solves: int = 1) -> None:
        problem = oracle.problem
        self.classes = problem.width
        price = self.classes * problem.extent().seconds() / costs.evaluation_seconds()
        each = price <= EACH * solves and bool(np.any(x))
        self.description = (
            "the metrics of its classes" if each else "the metric that the classes share"
        )
        count = self.classes if each else 1
        oracle.charge(1 + count * problem.extent().flops() / problem.gradient_flops())
        blocks = problem.class_hessians(oracle.to_problem(x), each)
        blocks = np.asarray(blocks, dtype=np.float64)
        self.inverses = np.stack([CholeskyFactor(block).inverse() for block in blocks])

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """Return M g."""
        by_class = g.reshape(-1, self.classes).T[:, :, None]
        return (self.inverses @ by_class)[:, :, 0].T.ravel()


class ClasswiseLbfgs(Stage):
    """L-BFGS with a preconditioner of the columns' size for the classes.

    It ends where what is left costs more than the whole Hessian.
    """

    name = "metric-lbfgs"
    needs = frozenset({"rows", "classes"})

    def __init__(self, costs: Costs) -> None:
        super().__init__(SwitchIfCheaper.than(costs.hessian(), after=0.0))
        self.costs = costs

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        preconditioner = ClassPreconditioner(oracle, point.x, self.costs)
        oracle.log(f"L-BFGS in {preconditioner.description}")
        return lbfgs(oracle, point, preconditioner)


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
