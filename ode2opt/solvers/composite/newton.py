"""Proximal Newton: f replaced by a quadratic model, again and again (docs/mathematics.md, 20)."""

from __future__ import annotations

import math

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.solvers.composite.quadratic_models import model_of
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.outcome import Outcome

ARMIJO = 1e-4  # of the decrease that the slope promises
HALVINGS = 12
STEPS = 100  # then another method goes on
INSIDE = 0.3  # of the tolerance: nor further than this
REFINED = 0.5  # the factor by which another step on a quadratic must lower the residual


def newton(oracle: Oracle, here: Evaluated, columns: str | None = None) -> Outcome:
    """Go on from a point until the solve is over or no step helps."""
    pieces = oracle.penalty.pieces()
    model = model_of(oracle, None if pieces is None else pieces.each(oracle.problem.n), columns)
    if model is None:
        return Outcome(Ended.MANY_VARIABLES, here)
    for _ in range(STEPS):
        tol = max(INSIDE * oracle.tol, 0.0 if model.exact else model.inexact * here.norm)
        goal = oracle.objective.project(model.goal(here, tol))
        new = _towards(oracle, here, goal)
        if new is None:
            if model.gave_up:
                return Outcome(Ended.LONG_MODELS, here)
            if model.fresh:
                return Outcome(Ended.LINE_SEARCH, here)
            model.renew()
            continue
        if model.exact and new.norm > REFINED * here.norm and _is_flat(oracle, here, new):
            return Outcome(Ended.STALLED, new)
        model.learn(here, new)
        here = new
        if model.gave_up:
            return Outcome(Ended.CHEAPER, here)
        if (outcome := oracle.judge(here)) is not None:
            return outcome
    return Outcome(Ended.MANY_STEPS, here)


def _is_flat(oracle: Oracle, here: Evaluated, new: Evaluated) -> bool:
    """Whether two values may be equal but for rounding."""
    return abs(new.value - here.value) <= oracle.rounding * abs(here.value)


def _towards(oracle: Oracle, here: Evaluated, goal: np.ndarray) -> Evaluated | None:
    """Return a point on the way to the goal with Armijo's decrease; None where there is none."""
    d = goal - here.x
    if not (d.any() and np.isfinite(d).all()):
        return None
    h = oracle.objective.penalty_at
    promised = float(here.g @ d) + h(goal) - h(here.x)
    share = 1.0
    for _ in range(HALVINGS):
        x = goal if share == 1 else oracle.objective.project(here.x + share * d)
        new = oracle.evaluate(x)
        least = here.value + ARMIJO * share * min(promised, 0.0)
        if new.value < least or (new.norm < here.norm and _is_flat(oracle, here, new)):
            return new
        share *= 0.5 if math.isfinite(new.value) else 0.1
    return None
