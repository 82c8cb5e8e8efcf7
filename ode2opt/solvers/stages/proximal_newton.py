"""Proximal Newton: f replaced by a quadratic model, again and again (docs/mathematics.md, 20).

On rows it takes some of the rows first, and the columns that matter.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.penalties import Penalty, Separable, SeparableTerms
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.oracle import Oracle, Outcome, Stop
from ode2opt.solvers.stages.quadratic_models import (
    MODELS,
    is_by_columns,
    model_of,
    sampled_rows,
    working_set,
)
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.stages.subsample import Subsamples


class ProximalNewtonRules(NamedTuple):
    """How far proximal Newton goes, with samples of rows and working sets of columns.

    Tuned on a5a, phishing, covtype20k and made data (docs/measurements/penalties.md).

    Attributes:
        armijo: share of the decrease that the slope promises.
        halvings: of a step.
        steps: then another method goes on.
        inside: share of the tolerance that a model is not solved further than.
        refined: the factor by which another step on a quadratic must lower the residual.
        rows_per_column: of the samples that are solved first.
        noise: share of the sampling error of a sample's gradient: more exact is wasted.
        part: share of all variables: a larger working set is all of them.
        solved: share of the residual that a working set is not solved further than.
        inside_set: the same of the tolerance.
        rounds: of working sets.
    """

    armijo: float = 1e-4
    halvings: int = 12
    steps: int = 100
    inside: float = 0.3
    refined: float = 0.5
    rows_per_column: tuple[int, ...] = (4, 16)
    noise: float = 0.3
    part: float = 0.5
    solved: float = 0.1
    inside_set: float = 0.5
    rounds: int = 40


RULES = ProximalNewtonRules()


class ProximalNewton(Stage):
    """Proximal Newton; for a separable penalty on samples of rows and working sets of columns."""

    name = "proximal-newton"
    needs = frozenset({"hessian"})

    def __init__(self, skip_subsample: bool = False, hessian: np.ndarray | None = None) -> None:
        super().__init__()
        self.skip_subsample, self.hessian = skip_subsample, hessian

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log("proximal Newton")
        problem = oracle.problem
        if "host" not in oracle.objective.provides or oracle.penalty.pieces() is None:
            return newton(oracle, point, hessian=self.hessian)
        by_columns = is_by_columns(oracle)
        if by_columns:
            outcome = newton(oracle, point, "hasty")
            if outcome.ended is not Ended.CHEAPER or outcome.point is None:
                return outcome
            point = outcome.point
        elif self.hessian is not None:
            return newton(oracle, point, hessian=self.hessian)
        elif not (problem.quadratic or self.skip_subsample):
            point = _after_samples(oracle, problem, point)
        outcome = _by_working_sets(oracle, problem, point)
        if not by_columns or outcome.ended is not Ended.MANY_VARIABLES or outcome.point is None:
            return outcome
        return newton(oracle, outcome.point, "patient")


def _after_samples(oracle: Oracle, problem: Any, point: Evaluated) -> Evaluated:
    """Return the point that samples of rows lead to; the given one where that is no lower."""
    sizes = [count * problem.n for count in RULES.rows_per_column]
    sizes = [size for size in sizes if size <= problem.largest_sample()]
    if not sizes:
        return point
    x = point.x
    for part in Subsamples(oracle, problem).of(sizes):
        error = RULES.noise * part.gradient_error(part.xp.asarray(x, dtype=part.dtype))
        share = part.N / problem.N
        x = _solved(oracle, part, oracle.penalty, x, max(error, oracle.tol), share)
    found = oracle.evaluate(x)
    return found if found.value <= point.value else point


def _by_working_sets(oracle: Oracle, problem: Any, here: Evaluated) -> Outcome:
    """Solve for the variables that move or should, then look at all of them again."""
    pieces = oracle.penalty.pieces()
    assert pieces is not None
    pieces = pieces.each(problem.n)
    whole = (problem.sparse and problem.n <= MODELS.narrow) or sampled_rows(oracle)
    for _ in range(0 if whole else RULES.rounds):
        chosen = working_set(oracle.penalty, pieces, here)
        if len(chosen) >= RULES.part * problem.n:
            break
        part = problem.with_columns(chosen[chosen < problem.columns])
        penalty = Separable(SeparableTerms(*(one[chosen] for one in pieces)))
        x, tol = here.x.copy(), max(RULES.inside_set * oracle.tol, RULES.solved * here.norm)
        share = part.entries() / max(1, problem.entries())
        x[chosen] = _solved(oracle, part, penalty, here.x[chosen], tol, share)
        new = oracle.evaluate(x)
        if not (new.value < here.value or new.norm < here.norm):
            return Outcome(Ended.LINE_SEARCH, here)
        here = new
        if (outcome := oracle.judge(here)) is not None:
            return outcome
    return newton(oracle, here)


def _solved(
    oracle: Oracle,
    part: Any,
    penalty: Penalty,
    x: np.ndarray,
    tol: float,
    share: float,
) -> np.ndarray:
    """Return the solution on some rows or columns, or the nearest that proximal Newton comes."""
    left = oracle.max_seconds - oracle.seconds
    inner = Oracle(Objective(part, penalty), tol=tol, max_iter=RULES.steps, max_seconds=left)
    with suppress(Stop):
        start = inner.begin_if_finite(x)
        if start is None:  # what fits fewer rows may overflow on these
            return x
        if part.n == oracle.problem.n:
            _by_working_sets(inner, part, start)
        else:
            newton(inner, start)
    oracle.charge(inner.calls * share)
    oracle.check_time()
    return x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)


def newton(
    oracle: Oracle,
    here: Evaluated,
    columns: str | None = None,
    hessian: np.ndarray | None = None,
) -> Outcome:
    """Go on from a point until the solve is over or no step helps."""
    terms, n = oracle.penalty.pieces(), oracle.problem.n
    model = model_of(oracle, None if terms is None else terms.each(n), columns, hessian)
    if model is None:
        return Outcome(Ended.MANY_VARIABLES, here)
    for _ in range(RULES.steps):
        tol = max(RULES.inside * oracle.tol, 0.0 if model.exact else model.inexact * here.norm)
        goal = model.goal(here, tol)
        if terms is None:  # else a model's minimiser is within the limits
            goal = oracle.objective.project(goal)
        new = _towards(oracle, here, goal)
        if new is None:
            if model.gave_up:
                return Outcome(Ended.LONG_MODELS, here)
            if model.fresh:
                return Outcome(Ended.LINE_SEARCH, here)
            model.renew()
            continue
        if model.exact and new.norm > RULES.refined * here.norm and _is_flat(oracle, here, new):
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
    objective, share, promised = oracle.objective, 1.0, math.nan
    for _ in range(RULES.halvings):
        x = goal if share == 1 else objective.project(here.x + share * d)
        new = oracle.evaluate(x)
        if share == 1:
            promised = min(float(here.g @ d) + new.h - here.h, 0.0)
        least = here.value + RULES.armijo * share * promised
        if new.value < least or (new.norm < here.norm and _is_flat(oracle, here, new)):
            return new
        share *= 0.5 if math.isfinite(new.value) else 0.1
    return None
