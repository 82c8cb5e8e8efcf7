"""FISTA with backtracking and adaptive restart (docs/mathematics.md, section 18).

It is Nesterov's method with a prox after each gradient step: x+ = prox(y - g(y)/L, 1/L), accepted
when <g(x+) - g(y), x+ - y> <= L/2 |x+ - y|^2. L may fall as well as rise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import epsilon, norm, usable
from ode2opt.base.ended import Ended
from ode2opt.solvers.composite.faces import descended, has_faces
from ode2opt.solvers.concavity import concave_between
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Stop, Watch
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.line_search import Standstill
from ode2opt.solvers.stages.nesterov import BACKTRACKING, next_t
from ode2opt.solvers.stages.stage import Stage

FIRST_FACE = 30  # iterations before a Newton step on a face; twice as many where it did not help


class ProxStep(NamedTuple):
    """An accepted step from y to ``new``.

    Attributes:
        y: where the gradient step began.
        new: where the prox led.
        L: the curvature that was accepted.
        t: Nesterov's t after it.
    """

    y: np.ndarray
    new: Evaluated
    L: float
    t: float


def for_ever(oracle: Oracle) -> Outcome | None:
    """Let a stage go on: the watch of the one that always converges."""
    return None


class Fista(Stage):
    """FISTA; it converges for every convex f and every penalty with a prox."""

    name = "fista"

    def __init__(
        self, watch: Watch | None = None, L: float | None = None, faces: bool = False
    ) -> None:
        super().__init__(watch)
        self.L, self.faces = L, faces

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point; each gradient at an accepted point is an iteration."""
        steps = self.faces and has_faces(oracle)
        between = "Newton steps on faces" if steps else "backtracking and restart"
        oracle.log(f"FISTA with {between}")
        L, standstill = self.L or _first_curvature(oracle, point), Standstill()
        wait = FIRST_FACE if steps else math.inf
        while True:
            before, last = oracle.k, oracle.k + wait
            point, L, outcome = _until_restart(oracle, point, L, last)
            due = oracle.k >= last if outcome is None else outcome.exhausted
            if steps and due:
                reached = descended(oracle, point)
                better = reached.norm < 0.5 * point.norm
                wait = FIRST_FACE if better else 2 * wait
                point, outcome = reached, None if better else outcome
            if outcome is not None:
                return outcome
            if oracle.k == before or standstill(point.value, point.norm):
                return Outcome(Ended.STALLED, point)


def _until_restart(
    oracle: Oracle, x: Evaluated, L: float, last: float
) -> tuple[Evaluated, float, Outcome | None]:
    """Go on until the momentum points uphill, or the iteration ``last``.

    Returns the lowest point, L, and an outcome.
    """
    previous, t, lowest, least = x, 0.0, x, x.value
    while True:
        step = _step(oracle, x, previous, t, L)
        if step is None:
            return lowest, L, Outcome(Ended.STALLED, lowest)
        uphill = t > 1 and float((step.y - step.new.x) @ (step.new.x - x.x)) > 0
        previous, x, L, t = x, step.new, step.L, step.t
        if x.value <= least + oracle.rounding * abs(least):
            lowest, least = x, min(x.value, least)
        if (outcome := oracle.judge(lowest)) is not None or uphill or oracle.k >= last:
            return lowest, L, outcome


def _step(oracle: Oracle, x: Evaluated, previous: Evaluated, t: float, L: float) -> ProxStep | None:
    """Make one accepted step; None where rounding allows none."""
    trial, unit = BACKTRACKING.relax * L, epsilon(oracle.problem.xp, oracle.problem.dtype)
    for _ in range(BACKTRACKING.trials):
        t_new = next_t(t, trial / L)
        momentum = (t - 1) / t_new
        y, value, g = x.x, x.value, x.g
        if momentum > 0:
            y = x.x + momentum * (x.x - previous.x)
            _, value, g = oracle.smooth_part(y)
            if not (math.isfinite(value) and np.isfinite(g).all()):
                trial *= BACKTRACKING.most_growth
                continue
        at = oracle.objective.prox(y - g / trial, 1 / trial)
        moved = at - y
        if np.all(np.abs(moved) <= unit * np.abs(y)):  # y is a minimiser, as far as can be told
            return None if y is x.x else ProxStep(y, oracle.evaluate(at), trial, t_new)
        new = oracle.evaluate(at)
        length = norm(moved)
        needed = float((new.g - g) @ (moved / length)) / length
        if needed < 0:
            _stop_if_concave(oracle, Evaluated(y, value, g, norm(g)), new)
        if math.isfinite(new.value) and 2 * needed <= trial:
            return ProxStep(y, new, trial, t_new)
        most = BACKTRACKING.most_growth * trial
        good = math.isfinite(needed) and math.isfinite(new.value)
        trial = min(max(BACKTRACKING.grow * trial, 2 * needed), most) if good else most
    return None


def _stop_if_concave(oracle: Oracle, y: Evaluated, new: Evaluated) -> None:
    """Stop where f is not convex between two points, by more than rounding."""
    found = concave_between(oracle, y, new._replace(norm=norm(new.g)))
    if found is not None:
        oracle.concave = found
        raise Stop(Ended.NON_CONVEX)


def _first_curvature(oracle: Oracle, here: Evaluated) -> float:
    """Return the curvature along the gradient, from one more gradient close by.

    How close is measured in lengths of x, or of value over slope: f(c x) and c f fare alike.
    """
    slope = norm(here.g)
    if slope == 0:
        return 1.0
    length = BACKTRACKING.probe * (norm(here.x) or abs(here.value) / slope or 1.0)
    near = oracle.smooth_part(here.x - (length / slope) * here.g)
    return usable(norm(near.g - here.g) / length)
