"""Nesterov's method with backtracking and adaptive restart: needs no constant, always converges.

The step is accepted when <g(x+) - g(y), x+ - y> <= L/2 |x+ - y|^2. For a convex f this implies the
descent inequality f(x+) <= f(y) + <g(y), x+ - y> + L/2 |x+ - y|^2 that the O(1/k^2) proof uses, and
it holds as soon as L is twice the local Lipschitz constant; unlike a comparison of function values
it stays meaningful down to the rounding of the gradient. L may fall as well as rise: the momentum
then follows t' = (1 + sqrt(1 + 4 (L'/L) t^2))/2. A restart never accepts a higher function value
than the last restart had, so infinitely many restarts also drive the gradient to zero.
"""

from __future__ import annotations

import math

from ode2opt.problems._arrays import Array, epsilon
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Here, Run, Stop

RELAX = 0.95  # how much L is lowered before each step
GROW = 2.0
MAX_TRIALS = 100


def nesterov_backtracking(run: Run, here: Here) -> None:
    """Minimise from ``here``; leaves by Stop. Each gradient is an iteration of the run."""
    x, g = (run.problem.xp.asarray(v, dtype=run.problem.dtype) for v in (here.x, here.g))
    L = _probe(run, x, g, here.value)
    anchor, anchor_value = x, here.value
    previous, t = x, 1.0
    while True:
        y_g, new, new_g, new_L, t_new = _step(run, x, g, previous, t, L)
        if float(y_g @ (new - x)) > 0 and t > 1:  # the momentum points uphill: restart
            value = run.value(new)
            if not value <= anchor_value:
                new, value = anchor, anchor_value
                new_g = run.gradient(new)
            anchor, anchor_value = new, value
            previous, t_new = new, 1.0
        else:
            previous = x
        x, g, L, t = new, new_g, new_L, t_new


def _step(
    run: Run, x: Array, g: Array, previous: Array, t: float, L: float
) -> tuple[Array, Array, Array, float, float]:
    """One accepted step; returns g(y), the new point, its gradient, L and t."""
    trial, rounding = RELAX * L, epsilon(run.problem.xp, run.problem.dtype)
    for _ in range(MAX_TRIALS):
        t_new = next_t(t, trial / L)
        momentum = (t - 1) / t_new
        y = x + momentum * (x - previous) if momentum else x
        y_g = run.at(y) if momentum else g
        new = y - y_g / trial
        new_g = run.at(new)
        moved = new - y
        square = float(moved @ moved)
        bend = float((new_g - y_g) @ moved)
        if bend < 0 and _is_concave(run, y, y_g, moved, new_g - y_g):
            raise Stop(Status.NON_CONVEX)
        if bend <= trial / 2 * square and square > 0:
            return y_g, new, new_g, trial, t_new
        if square <= rounding**2 * float(x @ x):
            raise Stop(Status.STALLED)
        needed = 2 * bend / square if square > 0 else math.nan
        trial = min(max(GROW * trial, needed), 100 * trial) if math.isfinite(needed) else 10 * trial
    raise Stop(Status.STALLED)


def next_t(t: float, ratio: float) -> float:
    """Return the t' with t'^2 - t' = ratio t^2, where ratio = L'/L."""
    return (1 + math.sqrt(1 + 4 * ratio * t * t)) / 2


def _is_concave(run: Run, y: Array, y_g: Array, moved: Array, change: Array) -> bool:
    """Whether the gradient really turns against the step: rounding does not grow with the step."""
    far = 4 * moved
    far_change = run.gradient(y + far) - y_g
    size, far_size = (math.sqrt(float(c @ c)) for c in (change, far_change))
    against = float(far_change @ far) < -0.01 * far_size * math.sqrt(float(far @ far))
    return against and far_size > 2 * size


def _probe(run: Run, x: Array, g: Array, value: float) -> float:
    """Return the curvature along the gradient, from one more gradient close by.

    How close is measured in lengths of ``x``, or of value over slope: f(c x) and c f fare alike.
    """
    size = math.sqrt(float(g @ g))
    length = 1e-3 * (math.sqrt(float(x @ x)) or abs(value) / (size or 1.0) or 1.0)
    if size == 0:
        raise Stop(Status.STALLED)
    difference = run.gradient(x - (length / size) * g) - g
    L = math.sqrt(float(difference @ difference)) / length
    return L if math.isfinite(L) and L > 0 else 1.0
