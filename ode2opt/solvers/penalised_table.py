"""A learned table with a prox, watched by the guard (docs/mathematics.md, sections 11 and 19)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.ended import Ended
from ode2opt.kernels.table import TableLimits, follow_table, table_kernel
from ode2opt.proofs.table import Table
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import PROGRESS, Oracle, Outcome
from ode2opt.solvers.table import Check, TablePoint, follow


class ValueCheck(Check):
    """Ends a watched table at a value above the start's, looked at now and then."""

    def __init__(self, oracle: Oracle, start: Evaluated) -> None:
        self.oracle = oracle
        self.highest = start.value + oracle.rounding * abs(start.value)

    def wants_value(self, k: int) -> bool:
        return k % Guard.value_every == 0

    def __call__(self, k: int, here: TablePoint, new: TablePoint) -> Outcome | None:
        if self.oracle.watch is None or new.value is None or new.value <= self.highest:
            return None
        return Outcome(Ended.VALUE)


class PenalisedTable:
    """A table with a prox at work, as ``table.UnderWay``; its start is evaluated."""

    metric = None

    def __init__(
        self, oracle: Oracle, table: Table, scale: float, x: Array, guard: Guard | None
    ) -> None:
        self.oracle, self.scale, self.guard = oracle, scale, guard
        self.start = oracle.begin(oracle.objective.first_point(x))
        self.table = table.scaled(scale)

    def run(self) -> Outcome:
        """Follow the table, by the compiled loop where that does all that is asked for."""
        start, check = self.start, ValueCheck(self.oracle, self.start)
        kernel = self._kernel()
        if kernel is not None and self.guard is not None:
            return self._at_once(kernel, self.guard, check.highest)
        here = TablePoint(start.x, start.value, start.g, start.g)
        return follow(
            self.oracle, self.table.rows(), here, prox=self.oracle.objective.prox, check=check
        )

    def _kernel(self) -> Any:
        """Return the compiled loop; None where NumPy has to follow."""
        oracle, problem = self.oracle, self.oracle.problem
        plain = oracle.history is None and oracle.callback is None and oracle.stop_at_tol
        if not plain or self.guard is None or oracle.max_seconds < math.inf:
            return None
        Q = problem.Q if "Q" in problem.provides else None
        if not isinstance(Q, np.ndarray) or Q.dtype != np.float64 or not Q.flags.c_contiguous:
            return None
        return None if oracle.penalty.pieces() is None else table_kernel(problem.n)

    def _at_once(self, kernel: Any, guard: Guard, highest: float) -> Outcome:
        """Follow the table by the compiled loop; the oracle sees the last point alone."""
        oracle, problem, start = self.oracle, self.oracle.problem, self.start
        pieces: Any = oracle.penalty.pieces()
        if start.norm <= oracle.tol or oracle.max_iter <= oracle.k:
            return Outcome(Ended.HORIZON)
        end = follow_table(
            kernel,
            (problem.Q, problem.b, problem.l2),
            (start.x, start.g),
            np.column_stack(self.table.columns())[: oracle.max_iter - oracle.k],
            pieces.each(problem.n),
            TableLimits(
                (1 - 1e-9) * oracle.tol,  # sums in another order must not miss it
                start.norm, highest, PROGRESS, guard.blowup, guard.envelope, Guard.value_every,
                guard.patience,
            ),
        )  # fmt: skip
        oracle.k += end.iterations - 1
        oracle.calls += end.iterations - 1
        x = oracle.to_problem(end.x)
        oracle.observe(x, oracle.gradient(x))
        missed = end.ended is Ended.CONVERGED  # for the oracle it has not
        return guard.outcome(Ended.STALLED if missed else end.ended)
