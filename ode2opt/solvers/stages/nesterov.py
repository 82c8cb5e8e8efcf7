"""Nesterov's method with backtracking and adaptive restart: needs no constant, always converges.

With a prox after each gradient step, x+ = prox(y - g(y)/L, 1/L), it is FISTA
(docs/mathematics.md, section 18).

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

from ode2opt.base.arrays import norm, usable
from ode2opt.base.ended import Ended
from ode2opt.solvers.concavity import concave_between
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome, Stop, Watch
from ode2opt.solvers.stages.faces import descended, has_faces
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
        first_face: iterations before a Newton step on a face; twice as many where it did not help.
    """

    relax: float = 0.95
    grow: float = 2.0
    most_growth: float = 100.0
    trials: int = 100
    probe: float = 1e-3
    first_face: int = 30


BACKTRACKING = BacktrackingRules()


class MomentumStep(NamedTuple):
    """An accepted step from y to ``new``, and the L and t that it was made with.

    Attributes:
        moved: from y to ``new``: -1/L times the gradient, or what the prox made of that.
        new: where it led.
        L: the curvature that was accepted.
        t: Nesterov's t after it.
    """

    moved: np.ndarray
    new: Evaluated
    L: float
    t: float


class Nesterov(Stage):
    """Nesterov's method with backtracking; it converges for every convex function."""

    name = "nesterov"

    def __init__(
        self, watch: Watch | None = None, L: float | None = None, faces: bool = False
    ) -> None:
        super().__init__(watch)
        self.L, self.faces = L, faces

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point; each gradient that is observed is an iteration."""
        faces = self.faces and has_faces(oracle)
        oracle.log(self._words(faces))
        if point.norm == 0:
            return Outcome(Ended.STALLED, point)
        L, standstill = self.L or first_curvature(oracle, point), Standstill()
        wait = BACKTRACKING.first_face if faces else math.inf
        while True:
            before, last = oracle.k, oracle.k + wait
            point, L, outcome = until_restart(oracle, point, L, last)
            due = oracle.k >= last if outcome is None else outcome.exhausted
            if faces and due:
                reached = descended(oracle, point)
                better = reached.norm < 0.5 * point.norm
                wait = BACKTRACKING.first_face if better else 2 * wait
                point, outcome = reached, None if better else outcome
            if outcome is not None:
                return outcome
            if oracle.k == before or standstill(point.value, point.norm):
                return Outcome(Ended.STALLED, point)

    def _words(self, faces: bool) -> str:
        return "Nesterov's method with backtracking"


class Fista(Nesterov):
    """FISTA, Nesterov's method with a prox; it converges for every convex f and penalty."""

    name = "fista"

    def _words(self, faces: bool) -> str:
        return f"FISTA with {'Newton steps on faces' if faces else 'backtracking and restart'}"


def until_restart(
    oracle: Oracle, x: Evaluated, L: float, last: float = math.inf
) -> tuple[Evaluated, float, Outcome | None]:
    """Go on until the momentum points uphill, or to iteration ``last``.

    Returns the lowest point, L, and an outcome.
    """
    previous, t = x, 0.0  # so that the first t is 1, and the first step one of gradient descent
    lowest, least = x, x.value
    while True:
        step = _step(oracle, x, previous, t, L)
        if step is None:
            return lowest, L, Outcome(Ended.STALLED, lowest)
        uphill = t > 1 and float(step.moved @ (step.new.x - x.x)) < 0
        previous, x, L, t = x, step.new, step.L, step.t
        if x.value <= least + oracle.rounding * abs(least):
            lowest, least = x, min(x.value, least)
        if (outcome := oracle.judge(lowest)) is not None or uphill or oracle.k >= last:
            return lowest, L, outcome


def _step(
    oracle: Oracle, x: Evaluated, previous: Evaluated, t: float, L: float
) -> MomentumStep | None:
    """Make one accepted step, with the momentum of the L that is accepted; None by rounding."""
    objective, trial = oracle.objective, BACKTRACKING.relax * L
    for _ in range(BACKTRACKING.trials):
        t_new = next_t(t, trial / L)
        momentum = (t - 1) / t_new
        y = _at(oracle, x.x + momentum * (x.x - previous.x)) if momentum > 0 else x
        if oracle.undefined(y.value) or not np.isfinite(y.g).all():  # beyond a wall: less momentum
            trial *= BACKTRACKING.most_growth
            continue
        moved = -y.g / trial
        goal = y.x + moved
        if not objective.smooth:
            goal = objective.prox(goal, 1 / trial)
            moved = goal - y.x
        if np.all(np.abs(moved) <= objective.unit * np.abs(y.x)):  # y is a minimiser, about
            if objective.smooth or y is x:
                return None
            return MomentumStep(moved, oracle.evaluate(goal), trial, t_new)
        new = oracle.evaluate(goal)
        needed = math.nan if oracle.undefined(new.value) else _curvature(y, new)
        if needed < 0 and (found := concave_between(oracle, y, new)) is not None:
            oracle.concave = found
            raise Stop(Ended.NON_CONVEX)
        if 2 * needed <= trial:
            return MomentumStep(moved, new, trial, t_new)
        most = BACKTRACKING.most_growth * trial
        trial = (
            min(max(BACKTRACKING.grow * trial, 2 * needed), most) if math.isfinite(needed) else most
        )
    return None


def _at(oracle: Oracle, y: np.ndarray, iterate: bool = True) -> Evaluated:
    """Return f with its gradient; where no penalty has a domain that y may leave, y is observed."""
    if oracle.objective.smooth:
        return oracle.evaluate(y, iterate)
    found = oracle.smooth_part(y)
    return Evaluated(*found, norm(found.g))


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


def first_curvature(oracle: Oracle, here: Evaluated) -> float:
    """Return the curvature along the gradient, from one more gradient close by.

    How close is measured in lengths of x, or of value over slope: f(c x) and c f fare alike.
    """
    slope = norm(here.g)
    if slope == 0:
        return 1.0
    length = BACKTRACKING.probe * (norm(here.x) or abs(here.value) / slope or 1.0)
    near = _at(oracle, here.x - (length / slope) * here.g, iterate=False)
    return usable(norm(near.g - here.g) / length)
