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

from ode2opt.problems._arrays import epsilon
from ode2opt.problems._numbers import norm, usable
from ode2opt.solvers.concavity import concave_between
from ode2opt.solvers.line_search import Standstill
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Exhausted, Here, Run, Stop

RELAX = 0.95  # how much L is lowered before each step
GROW, MOST_GROWTH = 2.0, 100.0
MAX_TRIALS = 100
ROUNDED = "no further progress is possible at this precision"
PROBE = 1e-3  # in lengths of x: where the first L is found


class Step(NamedTuple):
    """An accepted step from y to ``new``, and the L and t that it was made with."""

    y: Here
    new: Here
    L: float
    t: float


def nesterov_backtracking(run: Run, here: Here) -> None:
    """Minimise from ``here``; each gradient is an iteration of the run.

    Leaves by Stop, or by Exhausted where rounding allows no further step.
    """
    L, standstill = _probe(run, here), Standstill()
    while True:
        here, L = _until_restart(run, here, L)
        if standstill(here.value, here.norm):
            raise Exhausted(ROUNDED, here)


def _until_restart(run: Run, x: Here, L: float) -> tuple[Here, float]:
    """Go on from ``x`` until the momentum points uphill; return the lowest point and L.

    Where values differ by rounding only, the later point is the lower one.
    """
    previous, t = x, 0.0  # so that the first t is 1, and the first step one of gradient descent
    lowest, least = x, x.value
    while True:
        step = _step(run, x, previous, t, L)
        uphill = t > 1 and float(step.y.g @ (step.new.x - x.x)) > 0
        previous, x, L, t = x, step.new, step.L, step.t
        if x.value <= least + run.rounding * abs(least):
            lowest, least = x, min(x.value, least)
        run.judge(lowest)
        if uphill:
            return lowest, L


def _step(run: Run, x: Here, previous: Here, t: float, L: float) -> Step:
    """Make one accepted step; the momentum is that of the L which is accepted."""
    trial, rounding = RELAX * L, epsilon(run.problem.xp, run.problem.dtype)
    for _ in range(MAX_TRIALS):
        t_new = next_t(t, trial / L)
        momentum = (t - 1) / t_new
        y = run.evaluate(x.x + momentum * (x.x - previous.x)) if momentum > 0 else x
        if run.undefined(y.value):  # beyond a wall: less momentum
            trial *= MOST_GROWTH
            continue
        moved = -y.g / trial
        if np.all(np.abs(moved) <= rounding * np.abs(y.x)):
            raise Exhausted(ROUNDED, x)
        new = run.evaluate(y.x + moved)
        needed = math.nan if run.undefined(new.value) else _curvature(y, new)
        if needed < 0 and (found := concave_between(run, y, new)) is not None:
            run.concave = found
            raise Stop(Status.NON_CONVEX)
        if 2 * needed <= trial:
            return Step(y, new, trial, t_new)
        most = MOST_GROWTH * trial
        trial = min(max(GROW * trial, 2 * needed), most) if math.isfinite(needed) else most
    raise Exhausted(ROUNDED, x)


def _curvature(y: Here, new: Here) -> float:
    """Return <g(x+) - g(y), x+ - y> / |x+ - y|^2; NaN where one of these is no number."""
    moved = new.x - y.x
    length = norm(moved)
    if not 0 < length < math.inf:
        return math.nan
    return float((new.g - y.g) @ (moved / length)) / length


def next_t(t: float, ratio: float) -> float:
    """Return the t' with t'^2 - t' = ratio t^2, where ratio = L'/L."""
    return (1 + math.sqrt(1 + 4 * ratio * t * t)) / 2


def _probe(run: Run, here: Here) -> float:
    """Return the curvature along the gradient, from one more gradient close by.

    How close is measured in lengths of x, or of value over slope: f(c x) and c f fare alike.
    """
    if here.norm == 0:
        raise Exhausted(ROUNDED, here)
    length = PROBE * (norm(here.x) or abs(here.value) / here.norm or 1.0)
    there = run.look(run.there(here.x - (length / here.norm) * here.g))
    return usable(norm(there.g - here.g) / length)
