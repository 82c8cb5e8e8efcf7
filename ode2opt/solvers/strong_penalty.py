"""Models whose l2 is far above the curvature of their loss, with an intercept that it leaves alone.

The Hessian is then nearly diagonal, but its entries differ by as much as l2 and the intercept's
curvature do. L-BFGS in the metric of that diagonal sees neither: each variable is measured by its
own curvature (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.watches import Pace, Stage

STRONG = 1e3  # l2 by the curvature of the loss: below this the other plans do well
MOST_CALLS, SOONEST = 60, 5  # the pace to keep, and after how many steps it is judged


def is_strong(problem: RowModel) -> bool:
    """Whether l2 dwarfs the curvature of an intercept that it leaves alone."""
    curvature = (problem.slope_bound or 1.0) + problem.intercept_l2
    return problem.intercept and problem.l2 > STRONG * curvature


def by_diagonal() -> Stage:
    """Return L-BFGS in the metric of the Hessian's diagonal as a stage that must keep pace."""
    return Stage("metric-lbfgs", _go, Pace(MOST_CALLS, SOONEST))


def _go(run: Run, here: Here) -> None:
    run.tell("L-BFGS in the metric of the Hessian's diagonal")
    diagonal = run.hessian_diagonal(here.x)
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    lbfgs(run, here, lambda g: g / diagonal)
