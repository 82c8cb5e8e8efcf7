"""Paths: one linear model for many penalties, on several sets of rows that overlap (folds).

The sets share preconditioners, never points: the path that comes first forms a preconditioner for
each penalty, and the others use it. Every solve starts at the solution of its own rows for the
penalty before, so that no rows of another set reach a solution (docs/mathematics.md, section 14).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.plan import plan, subsample_sizes
from ode2opt.solvers.result import Result
from ode2opt.solvers.solve import minimised
from ode2opt.solvers.stages.blocks import ClassPreconditioner
from ode2opt.solvers.stages.lbfgs import PreconditionedLbfgs, Product
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper
from ode2opt.solvers.stages.subsample import Subsamples
from ode2opt.solvers.supervisor import supervise

FEW_NUMBERS = 1 << 22  # that preconditioners may be kept of, or as many as the matrix has


class SharedPreconditioners:
    """Preconditioners by the number of the penalty, for several paths.

    Examples:
        >>> shared = SharedPreconditioners(len(problems))
        >>> for problem in problems:
        ...     x = None
        ...     for k, l2 in enumerate([1.0, 0.1, 0.01]):
        ...         x = shared.solve(problem.penalised(l2), k, x, tol=1e-6, max_iter=1000).x
    """

    def __init__(self, paths: int) -> None:
        self.paths = paths
        self.found: list[Product | None] = []
        self._kept = 0

    def __getstate__(self) -> dict[str, Any]:
        """Go to another process without the preconditioners, which may be large."""
        return vars(self) | {"found": [None] * len(self.found)}

    def solve(
        self, problem: LinearModel, k: int, x0: Array | None, *, tol: float, max_iter: int
    ) -> Result:
        """Solve for the k-th penalty; the first solve of that number forms the preconditioner."""
        oracle = Oracle(Objective(problem), tol=tol, max_iter=max_iter)
        first = k == len(self.found)
        strategy = _Preconditioned(
            oracle, self.paths if first else 0, None if first else self.found[k]
        )
        result = minimised(oracle, x0, strategy.minimise)
        if first:
            self._keep(problem, strategy.preconditioner)
        return result

    def _keep(self, problem: LinearModel, found: Product | None) -> None:
        """Keep a preconditioner where there is room for it, else the one before."""
        kept = self.found[-1] if self.found else None
        size = problem.n**2 // (problem.width if isinstance(found, ClassPreconditioner) else 1)
        if found is not None and self._kept + size <= max(FEW_NUMBERS, problem.entries()):
            self._kept, kept = self._kept + size, found
        self.found.append(kept)


class _Preconditioned:
    """One solve: with a given preconditioner, or with one that it forms for ``solves`` of them."""

    def __init__(self, oracle: Oracle, solves: int, preconditioner: Product | None) -> None:
        self.oracle, self.solves, self.preconditioner = oracle, solves, preconditioner
        self.costs = Costs(oracle.problem)

    def minimise(self, x: Array, given: bool) -> None:
        """Minimise; leaves by Stop."""
        start = self.oracle.begin(np.asarray(x).astype(np.float64))
        if self.solves:
            self.preconditioner = self._formed(start)
        supervise(self.oracle, start, self._stages())

    def _stages(self) -> list[Stage]:
        stages = plan(self.oracle.objective, self.costs, skip_subsample=True)
        if self.preconditioner is None:
            return stages
        watch = SwitchIfCheaper.than(self.costs.hessian())
        shared = PreconditionedLbfgs("L-BFGS in the metric of its path", self.preconditioner, watch)
        return [shared, *stages]

    def _formed(self, start: Evaluated) -> Product | None:
        """Return a preconditioner that is worth its price to all solves that share it."""
        oracle, problem = self.oracle, self.oracle.problem
        if problem.columns >= LARGEST_DENSE_HESSIAN:
            return None
        if problem.width > 1:
            return ClassPreconditioner(oracle, start.x, self.costs, self.solves)
        if problem.N <= problem.n:
            return None
        affordable = self.costs.hessian() <= oracle.options.affordable_hessian * self.solves
        rows = problem.N if affordable else [*subsample_sizes(problem, self.costs), problem.N][0]
        return Subsamples(oracle, problem).hessian(rows, start.x)
