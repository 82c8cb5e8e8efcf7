"""Nesterov's method with backtracking and adaptive restart: needs no constant, always converges.

A step of 1/L from y to x+ is accepted when <g(x+) - g(y), x+ - y> <= L/2 |x+ - y|^2. For a convex
f this implies f(x+) <= f(y) + <g(y), x+ - y> + L/2 |x+ - y|^2, the descent inequality of the
O(1/k^2) proof. It holds as soon as L is twice the local Lipschitz constant; unlike a comparison of
function values it stays meaningful down to the rounding of the gradient. L may fall as well as
rise: the momentum then follows t' = (1 + sqrt(1 + 4 (L'/L) t^2))/2. A restart goes to the lowest
point since the last one (docs/mathematics.md, section 11, has the theorem and its proof).

Nothing here depends on units: f(c x) and c f give the same run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import epsilon, norm, usable
from ode2opt.base.ended import Ended
from ode2opt.solvers.concavity import concave_between
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.line_search import Standstill
from ode2opt.solvers.stages.stage import Stage


class BacktrackingRules(NamedTuple):
    """How the curvature L is searched for.

    Attributes:
        relax: how much L is lowered before each step.
        grow: by how much L grows at least after a step that fails.
        most_growth: by how much it grows at most.
        trials: of one step.
        probe: where the first L is found, in lengths of x.
    """

    relax: float = 0.95
    grow: float = 2.0
    most_growth: float = 100.0
    trials: int = 100
    probe: float = 1e-3


BACKTRACKING = BacktrackingRules()


class MomentumStep(NamedTuple):
    """An accepted step from y to ``new``, and the L and t that it was made with.

    Attributes:
        y: where the gradient step began.
        new: where it led.
        L: the curvature that was accepted.
        t: Nesterov's t after it.
    """

    y: Evaluated
    new: Evaluated
    L: float
    t: float


class Nesterov(Stage):
    """Nesterov's method with backtracking; it converges for every convex function."""

    name = "nesterov"

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point; each gradient is an iteration of the solve."""
        oracle.log("Nesterov's method with backtracking")
        if point.norm == 0:
            return Outcome(Ended.STALLED, point)
        L, standstill = _probe(oracle, point), Standstill()
        while True:
            point, L, outcome = until_restart(oracle, point, L)
            if outcome is not None:
                return outcome
            if standstill(point.value, point.norm):
                return Outcome(Ended.STALLED, point)


def until_restart(
    oracle: Oracle, x: Evaluated, L: float
) -> tuple[Evaluated, float, Outcome | None]:
    """Go on from ``x`` until the momentum points uphill."""
    previous, t = x, 0.0  # so that the first t is 1, and the first step one of gradient descent
    lowest, least = x, x.value
    while True:
        step = _step(oracle, x, previous, t, L)
        if step is None:
            return lowest, L, Outcome(Ended.STALLED, lowest)
        uphill = t > 1 and float(step.y.g @ (step.new.x - x.x)) > 0
        previous, x, L, t = x, step.new, step.L, step.t
        if x.value <= least + oracle.rounding * abs(least):
            lowest, least = x, min(x.value, least)
        if (outcome := oracle.judge(lowest)) is not None or uphill:
            return lowest, L, outcome


def _step(
    oracle: Oracle, x: Evaluated, previous: Evaluated, t: float, L: float
) -> MomentumStep | None:
    """Make one accepted step, with the momentum of the L that is accepted; None by rounding."""
    problem = oracle.problem
    trial, rounding = BACKTRACKING.relax * L, epsilon(problem.xp, problem.dtype)
    for _ in range(BACKTRACKING.trials):
        t_new = next_t(t, trial / L)
        momentum = (t - 1) / t_new
        y = oracle.evaluate(x.x + momentum * (x.x - previous.x)) if momentum > 0 else x
        if oracle.undefined(y.value):  # beyond a wall: less momentum
            trial *= BACKTRACKING.most_growth
            continue
        moved = -y.g / trial
        if np.all(np.abs(moved) <= rounding * np.abs(y.x)):
            return None
        new = oracle.evaluate(y.x + moved)
        needed = math.nan if oracle.undefined(new.value) else _curvature(y, new)
        if needed < 0 and (found := concave_between(oracle, y, new)) is not None:
            oracle.concave = found
            raise Stop(Ended.NON_CONVEX)
        if 2 * needed <= trial:
            return MomentumStep(y, new, trial, t_new)
        most = BACKTRACKING.most_growth * trial
        trial = (
            min(max(BACKTRACKING.grow * trial, 2 * needed), most) if math.isfinite(needed) else most
        )
    return None


def _curvature(y: Evaluated, new: Evaluated) -> float:
    """Return <g(x+) - g(y), x+ - y> / |x+ - y|^2; NaN where one of these is no number."""
    moved = new.x - y.x
    length = norm(moved)
    if not 0 < length < math.inf:
        return math.nan
    return float((new.g - y.g) @ (moved / length)) / length


def next_t(t: float, ratio: float) -> float:
    """Return the t' with t'^2 - t' = ratio t^2, where ratio = L'/L."""
    return (1 + math.sqrt(1 + 4 * ratio * t * t)) / 2


def _probe(oracle: Oracle, here: Evaluated) -> float:
    """Return the curvature along the gradient, from one more gradient close by.

    How close is measured in lengths of x, or of value over slope: f(c x) and c f fare alike.
    """
    length = BACKTRACKING.probe * (norm(here.x) or abs(here.value) / here.norm or 1.0)
    near = oracle.evaluate(here.x - (length / here.norm) * here.g, iterate=False)
    return usable(norm(near.g - here.g) / length)
