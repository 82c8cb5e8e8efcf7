"""Where a method's solves start, and what to tell a user whose start has no value or gradient."""

from __future__ import annotations

import math

import numpy as np

from ode2opt.base.arrays import Array, as_vector, copy, norm
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.problems.base import Problem

PAPER = "paper"
RULES = ("zero", PAPER, "learned")
POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # of ten that a start is divided by, in search of one


def check_start(start: np.ndarray | str | None, n: int | None) -> None:
    """Refuse what is no start of a method."""
    if start is None or isinstance(start, str):
        if start not in (None, PAPER):
            raise unknown_name("start", str(start), (PAPER,))
    elif start.ndim != 1 or start.dtype != np.float64 or not np.all(np.isfinite(start)):
        raise InputError("its start is no vector of finite float64 numbers.")
    elif n is not None and len(start) != n:
        raise InputError(f"its start has {len(start)} variables, its metric {n}.")


def rule_of(start: np.ndarray | str | None) -> str:
    """Return the rule's word: "zero", "paper" or "learned"."""
    return "zero" if start is None else start if isinstance(start, str) else "learned"


def first_point(start: np.ndarray | str | None, problem: Problem) -> Array:
    """Return where a solve starts that is given no point, on the problem's kind of arrays."""
    if start is None:
        return problem.xp.zeros(problem.n, dtype=problem.dtype)
    if isinstance(start, str):
        return copy(problem.start().x0)
    like = problem.xp.empty(0, dtype=problem.dtype)
    return as_vector(start, like, "the learned start", problem.n)


def read_start(
    word: str | None, point: np.ndarray | None, trained: bool
) -> np.ndarray | str | None:
    """Return the start that a method's file describes."""
    if word is None:
        return PAPER if trained and point is None else point
    if word not in RULES:
        raise unknown_name("start", word, RULES)
    if (word == "learned") != (point is not None):
        has = "no" if point is None else "an"
        raise InputError(f"its start is {word}, and there is {has} array start.")
    return PAPER if word == PAPER else point


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
