"""A learned table with a prox, watched by the guard (docs/mathematics.md, sections 11 and 19)."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError
from ode2opt.kernels import table as ends
from ode2opt.kernels.table import TableLimits, follow_table, table_kernel
from ode2opt.problems.deconvolution import Deconvolution
from ode2opt.problems.quadratic import Quadratic
from ode2opt.proofs.table import Table
from ode2opt.solvers.composite.fista import Fista, for_ever
from ode2opt.solvers.composite.oracle import CompositeOracle
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.oracle import PROGRESS, Oracle, Stop
from ode2opt.solvers.outcome import Evaluated, Outcome
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.supervisor import Supervisor

INSIDE = 1 - 1e-9  # of the tolerance: sums in another order must not miss it
ENDS = {
    ends.HORIZON: Ended.HORIZON,
    ends.NON_FINITE: Ended.NON_FINITE,
    ends.BLOWUP: Ended.BLOWUP,
    ends.ENVELOPE: Ended.ENVELOPE,
    ends.PATIENCE: Ended.PATIENCE,
    ends.VALUE: Ended.VALUE,
}
VALUE_EVERY = 10  # iterations between two looks at the value, which come with the gradient


def follow_proximal(
    oracle: Oracle, x: Array, method: Method, policy: Guard | Relay | None
) -> NoReturn:
    """Run a learned table with a prox; FISTA goes on where the guard ends it. Leaves by Stop."""
    assert isinstance(oracle, CompositeOracle)
    assert method.proximal is not None
    if isinstance(policy, Relay) or (policy is not None and policy.fallback != Fista.name):
        raise InputError(
            f"This table has a prox, and only FISTA goes on after it: use handover='guard', 'none' "
            f"or Guard(fallback={Fista.name!r})."
        )
    oracle.log(method.words)
    start, scale = oracle.begin(oracle.first_point(x)), method.family_scale or 1.0
    oracle.watch = None if policy is None else policy.check
    scaled = method.proximal.scaled(scale)
    kernel = _kernel_for(oracle, policy)
    if kernel is None or policy is None:
        outcome = _followed(oracle, scaled, start)
    else:
        outcome = _followed_at_once(oracle, scaled, start, policy, kernel)
    if policy is None:
        raise Stop(Ended.HORIZON)
    oracle.hand_over(outcome, Fista.name)
    oracle.watch = None
    best = oracle.evaluate(oracle.best_x, iterate=False)
    Supervisor(oracle, best if best.value <= start.value else start).run(Fista(for_ever, scale))
    raise Stop(Ended.STALLED)


def _kernel_for(oracle: CompositeOracle, policy: Guard | None) -> Any:
    """Return the compiled loop where it does all that is asked for; None where NumPy has to."""
    problem, plain = oracle.problem, oracle.history is None and oracle.callback is None
    if not plain or policy is None or not oracle.stop_at_tol or oracle.max_seconds < math.inf:
        return None
    if not isinstance(problem, Quadratic) or not isinstance(problem.Q, np.ndarray):
        return None
    if problem.Q.dtype != np.float64 or not problem.Q.flags.c_contiguous:
        return None
    return None if oracle.penalty.pieces() is None else table_kernel(problem.n)


def _followed_at_once(
    oracle: CompositeOracle, table: Table, start: Evaluated, guard: Guard, kernel: Any
) -> Outcome:
    """Follow a table by the compiled loop; the oracle sees the last point alone."""
    problem, pieces = oracle.problem, oracle.penalty.pieces()
    assert isinstance(problem, Quadratic)
    assert pieces is not None
    if start.norm <= oracle.tol or oracle.max_iter <= oracle.k:
        return Outcome(Ended.HORIZON)
    highest = start.value + oracle.rounding * abs(start.value)
    end = follow_table(
        kernel,
        (problem.Q, problem.b, problem.l2),
        (start.x, start.g),
        np.column_stack(table.columns())[: oracle.max_iter - oracle.k],
        pieces.each(problem.n),
        TableLimits(
            INSIDE * oracle.tol, start.norm, highest, PROGRESS, guard.blowup, guard.envelope,
            VALUE_EVERY, guard.patience,
        ),
    )  # fmt: skip
    oracle.k += end.iterations - 1
    oracle.calls += end.iterations - 1
    oracle.next_gradient(end.x)
    number = {Ended.BLOWUP: guard.blowup, Ended.PATIENCE: guard.patience}
    reason = ENDS.get(end.code, Ended.STALLED)
    return Outcome(reason, number=number.get(reason, 0.0))


def _followed(oracle: CompositeOracle, table: Table, start: Evaluated) -> Outcome:
    """Follow a table until the watch ends it, its value is above the start's, or it is over.

    The residual is that of the iterate; where the gradient is taken elsewhere (w), that is one more
    call an iteration, or none for a quadratic, whose gradients add up.
    """
    x = before = start.x
    g = at_before = slope_before = start.g
    quadratic = isinstance(oracle.problem, Quadratic | Deconvolution)
    highest = start.value + oracle.rounding * abs(start.value)
    for k, row in enumerate(table.rows(), start=1):
        slope = g
        if row.w and x is not before:
            at = row.ahead(x, before)
            slope = row.ahead(g, at_before) if quadratic else oracle.smooth(at)[1]
        new = row.step(x, before, slope, slope_before, oracle.prox)
        x, before, at_before, slope_before = new, x, g, slope
        if k % VALUE_EVERY:
            g = oracle.next_gradient(x)
        else:
            found = oracle.evaluate(x)
            g = found.g
            if oracle.watch is not None and not found.value <= highest:
                return Outcome(Ended.VALUE)
        outcome = oracle.judge()
        if outcome is not None:
            return outcome
    return Outcome(Ended.HORIZON)
