"""Nesterov's method that checks its own proof while it runs, with steps longer than 1/L.

See docs/mathematics.md, section 15.
"""

from __future__ import annotations

import math
from itertools import count

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.solvers.bound import LowerBound
from ode2opt.solvers.outcome import Evaluated
from ode2opt.solvers.session import Session

RHO = 1 / 16
"""The run begins with L' = RHO L. Powers of 2 up to 1 differ by one restart each; not tuned."""
FREE_MOVES = 2
"""So many moves may miss the inequality: the first ones go along the steepest directions."""


def nag_monitored(session: Session, x: Array, L: float) -> None:
    """Nesterov's method at L' = rho L, which starts anew with 2 L' where its proof does not hold.

    With w_k = (k + 2)/2, n_k = k (k + 3)/4 and t_k = 1 + n_k/w_k, from z = y_0:

        z <- z - w_k g_k/L',   y+ = y_k - g_k/L',   y_{k+1} = y+ + (z - y+)/t_{k+1}.

    The proof uses convexity and, between neighbours, f_{k-1} >= f_k + <g_k, y_{k-1} - y_k> +
    |g_k - g_{k-1}|^2/(2L') only; the latter has computed numbers in it and is checked. Violations
    e_k >= 0 are part of the bound, which holds for every point z:

        f(y_k) - |g_k|^2/(2L') <= f(z) + (L' |y_0 - z|^2/2 + sum_j n_j e_j) / n_{k+1}.

    After the second move a violation ends the run; the next one starts at the point with the least
    value and 2 L'.

    Args:
        session: the solve, which ends it by raising ``Stop``.
        x: the start point.
        L: an estimate of the smoothness constant; it need not be one.
    """
    best = first = session.begin(np.asarray(x).astype(np.float64))
    L *= RHO
    while True:
        best = _until_violated(session, best, L, first.x)
        L *= 2
        session.log(f"restarted with steps of 1/{L:.3g}")


def _until_violated(session: Session, here: Evaluated, L: float, start: np.ndarray) -> Evaluated:
    """Run from a point until the inequality is violated; returns the point with the least value.

    What is proved on the way is told to the session, the last statement of each run.
    """
    best, z, first, paid = here, here.x, here, 0.0
    earlier = list(session.lower_bounds)
    for k in count():
        weight = (k + 1) * (k + 4) / 4  # n_{k+1}
        level = here.value - float(here.g @ here.g) / (2 * L) - paid / weight
        told = LowerBound(level, L / (2 * weight), first.x, start)
        session.lower_bounds = [*earlier, told]
        step = here.g / L
        z = z - (k + 2) / 2 * step
        short = here.x - step
        t = 1 + (k + 1) * (k + 4) / (2 * (k + 3))
        new = session.evaluate(short + (z - short) / t)
        if new.value < best.value:
            best = new
        rounding = session.rounding * max(abs(here.value), abs(new.value))
        missed = violation(here, new, L)
        if k >= FREE_MOVES and not missed <= rounding:
            return best
        paid += weight * (max(missed, 0.0) + rounding)
        if not math.isfinite(new.value + new.norm):
            return best
        here = new
    raise AssertionError("a count has no end")


def violation(here: Evaluated, new: Evaluated, L: float) -> float:
    """Return f_k + <g_k, y_{k-1} - y_k> + |g_k - g_{k-1}|^2/(2L) - f_{k-1}, which should be <= 0.

    Args:
        here: point k - 1 with its value and gradient.
        new: point k.
        L: the smoothness constant that is supposed.

    Returns:
        e_k; at most 0, up to rounding, where f is L-smooth and convex.
    """
    change = new.g - here.g
    return float(new.value - here.value + new.g @ (here.x - new.x) + change @ change / (2 * L))
