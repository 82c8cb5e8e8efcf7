"""Exact worst cases over all L-smooth convex functions, by semidefinite programming (PEPit)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from ode2opt.dynamics.inertial import eigac_step
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError, Ode2OptError, needing
from ode2opt.problems._arrays import as_count, as_positive

LONGEST = 30


@dataclass(frozen=True)
class ExactWorstCase:
    """The worst that a schedule's first ``N`` iterations can do (the first is idle and counts).

    Attributes:
        value: the largest (f(x_N) - f*) / (L |x0 - x*|^2).
        grad_norm_squared: the largest |g_N|^2 / (L |x0 - x*|)^2.
        error: the gap between the two sides of the semidefinite programs, the larger of both.
    """

    N: int
    value: float
    grad_norm_squared: float
    error: float


def worst_case(schedule: Schedule, L: float, N: int) -> ExactWorstCase:
    """Return the exact worst case of ``N`` iterations over all L-smooth convex functions.

    This is a theorem about these N iterations, up to the stated numerical error; both numbers are
    the dual ones, which bound the worst case from above. Needs the extra ``proofs``.

    Args:
        schedule: the three numbers for curvature ``L``; at least ``N`` rows of it.
        L: the smoothness constant.
        N: iterations, 1 to 30.
    """
    N = check_worst_case(N, len(schedule))
    L = as_positive(L, "L")
    # With y = x sqrt(L) the function is 1-smooth and the schedule that of curvature 1.
    unit = schedule.scaled(1 / L)
    value, value_gap = _solve(unit, N, gradient=False)
    square, square_gap = _solve(unit, N, gradient=True)
    return ExactWorstCase(N, value, square, max(value_gap, square_gap))


def check_worst_case(N: int, K: int) -> int:
    """Refuse, before any work, what ``K`` iterations or the installation cannot do."""
    N = as_count(N, "N")
    if N > LONGEST:
        raise InputError(f"N is {N}: the worst case is computed for 1 to {LONGEST} iterations.")
    if N > K:
        raise InputError(f"The schedule has {K} iterations, fewer than N = {N}.")
    with needing("proofs"):
        import clarabel  # noqa: F401
        import PEPit  # noqa: F401
    return N


def _solve(schedule: Schedule, N: int, gradient: bool) -> tuple[float, float]:
    """Return the dual optimum for L = 1 and its gap to the primal one."""
    from PEPit import PEP
    from PEPit.functions import SmoothConvexFunction

    problem = PEP()
    f = problem.declare_function(SmoothConvexFunction, L=1.0)
    minimiser = f.stationary_point()
    start = problem.set_initial_point()
    problem.set_initial_condition((start - minimiser) ** 2 <= 1)
    x, g = _iterate(schedule, N, f, start)
    problem.set_performance_metric(g**2 if gradient else f(x) - f(minimiser))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            dual = problem.solve(verbose=0, wrapper="cvxpy", solver="CLARABEL")
            primal = problem.objective.eval()
        except Exception as error:
            raise Ode2OptError(
                f"The semidefinite program for N = {N} could not be solved ({error}): "
                f"a worst case that grows by orders of magnitude is beyond the solver's precision."
            ) from error
    return float(dual), abs(float(dual) - float(primal))


def _iterate(schedule: Schedule, N: int, f: Any, x: Any) -> tuple[Any, Any]:
    """Run EIGAC symbolically; returns x_N and its gradient."""
    rows = schedule.rows()
    a, c, _ = next(rows)
    g = f.gradient(x)
    u = (a - c) * g  # the first iteration does not move
    for _, (a, c, d) in zip(range(N - 1), rows, strict=False):
        e, u = eigac_step(u, g, a, c, d)
        x = x + e
        g = f.gradient(x)
    return x, g
