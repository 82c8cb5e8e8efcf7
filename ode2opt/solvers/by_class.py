"""L-BFGS for several classes, in the metric that their scores share (docs/mathematics.md, 14).

The Hessian of a softmax has a block for each pair of classes. The mean of its diagonal blocks is
one matrix of the columns' size: it knows how columns go together, which is what slows L-BFGS down,
and costs K (K + 1) / 2 times less than the whole Hessian of K classes.
"""

from __future__ import annotations

import math

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.supervisor import Slow, Stage
from ode2opt.solvers.whitening import SOONEST


def by_class(run: Run, here: Here) -> None:
    """Minimise from an evaluated point; leaves by Stop or HandOver."""
    problem = run.problem
    assert isinstance(problem, RowModel)
    run.tell("L-BFGS in the metric that the classes share")
    run.charge(1 + problem.gram_flops() / problem.gradient_flops())
    x = problem.xp.asarray(here.x, dtype=problem.dtype)
    factor = Factor(np.asarray(problem.shared_hessian(x), dtype=np.float64))
    lbfgs(run, here, lambda g: factor(g.reshape(-1, problem.width)).ravel())


def by_classes(costs: Costs) -> Stage:
    """Return the stage: given up where what is left is dearer than the whole Hessian."""
    price = costs.price()
    return Stage("metric-lbfgs", by_class, Slow(price, max(SOONEST, math.ceil(price / 2))))
