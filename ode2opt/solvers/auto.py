"""``auto``, the default: it looks at the problem and plans (docs/mathematics.md, section 14).

A linear model with a penalty far above its curvature is solved in the metric of its Hessian's
diagonal. Else one whose Hessian can be formed whitens itself, after a trial in the metric that
classes share where there are several; a wider one is solved by Newton's method with conjugate
gradients; a quadratic by Newton's method; any other function by L-BFGS. Whatever comes first,
L-BFGS and then a method with a proof go on where it gives up.
"""

from __future__ import annotations

from collections.abc import Iterator

from ode2opt.problems.base import LARGEST_DENSE_HESSIAN
from ode2opt.problems.quadratic import Quadratic
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.active import by_active_rows, by_products, forms, suits
from ode2opt.solvers.by_class import by_classes
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.newton import paced_newton
from ode2opt.solvers.run import Run
from ode2opt.solvers.strong_penalty import by_diagonal, is_strong
from ode2opt.solvers.supervisor import PLAIN
from ode2opt.solvers.watches import Stage
from ode2opt.solvers.whitening import whitening


def planned(run: Run, warm: bool = False, frugal: bool = False) -> Iterator[Stage]:
    """Yield the stages of a solve.

    A warm one has come too near for solutions on some rows to help; a frugal one saves oracle
    calls as well as seconds.
    """
    problem, costs = run.problem, Costs(run.problem, frugal)
    if isinstance(problem, RowModel):
        if is_strong(problem):
            yield by_diagonal()
        if problem.width > 1 and problem.columns < LARGEST_DENSE_HESSIAN:
            yield by_classes(costs)
            warm = True
        elif suits(problem):
            yield by_active_rows(costs, warm) if forms(problem, costs) else by_products()
            warm = True
        dense = problem.n <= LARGEST_DENSE_HESSIAN and problem.N > problem.n
        yield from whitening(run, costs, warm) if dense else [paced_newton(problem)]
    elif isinstance(problem, Quadratic) and costs.newton_by_cholesky():
        yield paced_newton(problem)
    yield PLAIN
