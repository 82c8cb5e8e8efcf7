"""How far a point of f + h is from the least value, by convexity (docs/mathematics.md, section 18).

For every z, f(z) >= f(x) + <g, z - x>, so that F(x) - F(z) is at most h(x) + <g, x> plus the
largest -<g, z> - h(z), which is h*(-g). Where h* is infinite there, as for |z|_1 whose weight the
gradient exceeds by a rounding, a scaled gradient is taken and h(z) bounded by F(x) - inf f.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ode2opt.base.arrays import norm
from ode2opt.base.errors import WorkersLostError
from ode2opt.penalties import Penalty
from ode2opt.penalties.base import real_number
from ode2opt.problems.base import Problem
from ode2opt.problems.logistic import Logistic
from ode2opt.problems.losses import Huber, LeastSquares, Lpp, SquaredHinge
from ode2opt.problems.softmax import Softmax
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.result import Result

NOT_NEGATIVE = (LeastSquares, Lpp, Logistic, Huber, SquaredHinge, Softmax)
INSIDE = 1 - 1e-12  # of the largest scale at which h* is finite


def duality_gap(
    problem: Problem, penalty: Penalty, x: np.ndarray, g: np.ndarray, value: float
) -> float | None:
    """Return a bound of F(x) - min F, up to rounding; None where none is known."""
    at_x = float(penalty.value(x)) + float(g @ x)
    largest = real_number(penalty.conjugate(-g), penalty, "conjugate")
    if not math.isfinite(largest):
        if type(problem) not in NOT_NEGATIVE:
            return None
        scale = INSIDE * penalty.dual_scale(-g)
        if scale <= 0:
            return None
        largest = (float(penalty.conjugate(-scale * g)) + value * (1 - scale)) / scale
    gap = at_x + largest
    return max(gap, 0.0) if math.isfinite(gap) else None


def with_residual(oracle: Oracle, result: Result) -> Result:
    """Return a result with what a penalty adds: residual, support, gap and f's own gradient
    norm.
    """
    x = oracle.to_numpy(oracle.best_x)
    support = oracle.penalty.support(x)
    try:
        g = oracle.best().g
    except WorkersLostError:
        return replace(result, grad_norm=math.nan, residual=result.grad_norm, support=support)
    gap = None
    if result.concave is None:
        gap = duality_gap(oracle.problem, oracle.penalty, x, g, result.fun)
    return replace(
        result,
        grad_norm=norm(g),
        residual=result.grad_norm,
        support=support,
        gap=gap,
        oracle_calls=oracle.calls,
    )
