"""L-BFGS for several classes, in the metric of their own scores (docs/mathematics.md, section 14).

The Hessian of a softmax has a block for each pair of classes. The diagonal ones are of the columns'
size: they know how columns go together, which is what slows L-BFGS down, and cost (K + 1) / 2 times
less than the whole Hessian of K classes. Where that is dear, one matrix does for all: their mean.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.watches import Stage
from ode2opt.solvers.whitening import slower_than

EACH = 12.0  # evaluations that the metrics of all classes may cost; else they share one


class ClassMetric:
    """g -> M g, M the inverse of the classes' own blocks of the Hessian, or of their mean.

    ``solves`` is for how many it is made. At zero all blocks are alike.
    """

    def __init__(self, run: Run, x: np.ndarray, costs: Costs, solves: int = 1) -> None:
        problem = run.problem
        assert isinstance(problem, RowModel)
        self.classes = problem.width
        price = self.classes * problem.extent().seconds() / costs.evaluation()
        each = price <= EACH * solves and bool(np.any(x))
        self.words = "the metrics of its classes" if each else "the metric that the classes share"
        count = self.classes if each else 1
        run.charge(1 + count * problem.extent().flops() / problem.gradient_flops())
        there = problem.xp.asarray(x, dtype=problem.dtype)
        blocks = np.asarray(problem.class_hessians(there, each), dtype=np.float64)
        self.inverses = np.stack([Factor(block).inverse() for block in blocks])

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """Return M g."""
        by_class = g.reshape(-1, self.classes).T[:, :, None]
        return (self.inverses @ by_class)[:, :, 0].T.ravel()


def by_class(costs: Costs, run: Run, here: Here) -> None:
    """Minimise from an evaluated point; leaves by Stop or HandOver."""
    metric = ClassMetric(run, here.x, costs)
    run.tell(f"L-BFGS in {metric.words}")
    lbfgs(run, here, metric)


def by_classes(costs: Costs) -> Stage:
    """Return the stage: given up where what is left is dearer than the whole Hessian."""
    return Stage("metric-lbfgs", partial(by_class, costs), slower_than(costs.price()))
