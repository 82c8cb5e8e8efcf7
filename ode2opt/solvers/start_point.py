"""What to tell a user whose start point has no value or gradient: where there is one."""

from __future__ import annotations

import math

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.base.numbers import norm
from ode2opt.problems.base import Problem

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # of ten that a start is divided by, in search of one


def unfit_start(problem: Problem, x: Array, what: str, value: object) -> InputError:
    """Return the error for a start point at which ``what`` is ``value``, with the way out.

    A start is never moved without being asked: it may have been chosen for a reason. A nearer one
    is looked for and named.
    """
    return InputError(f"The {what} is {value} at the start point: {_way_out(problem, x)}.")


def _way_out(problem: Problem, x: Array) -> str:
    if _is_fit(problem, 0 * x):
        for power in POWERS:
            if _is_fit(problem, x * 10.0**-power):
                return f"start nearer to zero, where there are numbers (x0 / 1e{power} will do)"
    if "float32" in str(problem.dtype):
        return "use double precision, start elsewhere, or scale the problem"
    return "start elsewhere, or scale the problem"


def _is_fit(problem: Problem, x: Array) -> bool:
    """Whether value and gradient are numbers at a point."""
    with np.errstate(all="ignore"):
        value, g = problem.value_and_gradient(problem.xp.asarray(x, dtype=problem.dtype))
        return math.isfinite(float(value)) and math.isfinite(norm(g))
