"""L-BFGS for several classes, preconditioned class by class (docs/mathematics.md, section 14).

The Hessian of a softmax has a block for each pair of classes. The diagonal ones are of the columns'
size: they know how columns go together, which is what slows L-BFGS down, and cost (K + 1) / 2 times
less than the whole Hessian of K classes. Where that is dear, one matrix does for all: their mean.
"""

from __future__ import annotations

import numpy as np

from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.cholesky import CholeskyFactor
from ode2opt.solvers.stages.lbfgs import lbfgs
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.watches import SwitchIfCheaper

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
