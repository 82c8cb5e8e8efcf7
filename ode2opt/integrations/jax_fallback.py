"""The fallback of a compiled solve: Nesterov's method with backtracking and restart.

It makes the steps of ``ode2opt.solvers.stages.nesterov``, the method with the proof
(docs/mathematics.md, section 11). It does not search for negative curvature, so that a function
that is not convex goes unnoticed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ode2opt.base.arrays import Array
from ode2opt.integrations.jax_start import fit
from ode2opt.problems.base import Problem
from ode2opt.solvers.objective import ROUNDING, Evaluated
from ode2opt.solvers.oracle import PROGRESS
from ode2opt.solvers.stages import line_search
from ode2opt.solvers.stages.nesterov import BACKTRACKING


class RestartProgress(NamedTuple):
    """Counts restarts without progress."""

    value: Array  # the least of all restarts
    norm: Array  # the least of all restarts
    restarts: Array  # how many in a row have lowered neither


class Descent(NamedTuple):
    """A descent under way."""

    k: Array  # trials made, of two gradients each
    x: Array  # where the next step begins
    previous: Array  # where the last step began
    t: Array  # the number that the momentum is made of
    L: Array  # the curvature of the last step
    trial: Array  # the curvature to try next
    trials: Array  # how many curvatures this step has tried
    lowest: Evaluated  # since the last restart
    least: Array  # the least value since then
    best: Evaluated  # the point with the smallest gradient norm
    still: RestartProgress
    stalled: Array  # whether no further progress is possible at this precision


def nesterov(problem: Problem, x: Array, tol: Array, most: Array) -> Descent:
    """Run Nesterov's method until a gradient norm is at most ``tol``."""
    here = _evaluated(problem, x)
    L, zero, infinity = _probe(problem, here), jnp.asarray(0), jnp.asarray(jnp.inf)
    first = Descent(
        zero, x, x, jnp.asarray(0.0), L, BACKTRACKING.relax * L, zero, here, here.value, here,
        RestartProgress(infinity, infinity, zero), jnp.asarray(False),
    )  # fmt: skip

    def goes_on(state: Descent) -> Array:
        return (state.best.norm > tol) & (state.k < most) & ~state.stalled

    return jax.lax.while_loop(goes_on, partial(_tried, problem, tol), first)


def lower(problem: Problem, best: Array, start: Array) -> Array:
    """Return the best point, or the start where its value is lower, as the guard does.

    Values are compared only where the gradient at the best point allows a lower start: a convex f
    has f(start) >= f(best) + <g(best), start - best>.
    """
    there = _evaluated(problem, best)
    known = there.g @ (start - best) >= 0
    return jnp.where(known | (there.value <= problem.value(start)), best, start)


def _tried(problem: Problem, tol: Array, state: Descent) -> Descent:
    """Make a step of length 1/L, or come back with a larger L."""
    L = state.trial
    t = (1 + jnp.sqrt(1 + 4 * (L / state.L) * state.t**2)) / 2
    momentum = jnp.maximum(state.t - 1, 0) / t
    y = _evaluated(problem, state.x + momentum * (state.x - state.previous))
    moved = -y.g / L
    new = _evaluated(problem, y.x + moved)
    needed = _curvature(y, new)
    known = jnp.clip(2 * needed, BACKTRACKING.grow * L, BACKTRACKING.most_growth * L)
    larger = jnp.where(jnp.isfinite(needed), known, BACKTRACKING.most_growth * L)
    trials = state.trials + 1
    back = state._replace(trial=larger, trials=trials, stalled=trials >= BACKTRACKING.trials)
    uphill = (state.t > 1) & (y.g @ (new.x - state.x) > 0)
    after = _chosen(2 * needed <= L, _moved(state, new, t, uphill), back)
    best = _better(y, state.best)
    best = _chosen(best.norm <= tol, best, _better(new, best))
    still = jnp.all(jnp.abs(moved) <= jnp.finfo(moved.dtype).eps * jnp.abs(y.x))
    return after._replace(k=state.k + 1, best=best, stalled=after.stalled | still)


def _moved(state: Descent, new: Evaluated, t: Array, uphill: Array) -> Descent:
    """Return the state after an accepted step; one uphill restarts at the lowest point.

    Where values differ by rounding only, the later point is the lower one.
    """
    rounding = ROUNDING * jnp.finfo(new.x.dtype).eps
    is_lowest = new.value <= state.least + rounding * jnp.abs(state.least)
    lowest = _chosen(is_lowest, new, state.lowest)
    least = jnp.where(is_lowest, jnp.minimum(new.value, state.least), state.least)
    made = state._replace(
        x=new.x, previous=state.x, t=t, L=state.trial, trial=BACKTRACKING.relax * state.trial,
        trials=jnp.zeros_like(state.trials), lowest=lowest, least=least,
    )  # fmt: skip
    still = _seen(state.still, lowest)
    again = made._replace(
        x=lowest.x, previous=lowest.x, t=jnp.zeros_like(t), least=lowest.value, still=still,
        stalled=still.restarts >= line_search.RULES.trials,
    )  # fmt: skip
    return _chosen(uphill, again, made)


def _seen(still: RestartProgress, here: Evaluated) -> RestartProgress:
    """Count a restart that has lowered neither the value nor, by a tenth, the gradient norm."""
    better = (here.value < still.value) | (here.norm < PROGRESS * still.norm)
    count = jnp.where(better, 0, still.restarts + 1)
    return RestartProgress(
        jnp.minimum(here.value, still.value), jnp.minimum(here.norm, still.norm), count
    )


def _evaluated(problem: Problem, x: Array) -> Evaluated:
    value, g = problem.value_and_gradient(x)
    return Evaluated(x, jnp.asarray(value), g, norm(g))


def _better(new: Evaluated, best: Evaluated) -> Evaluated:
    """Return the point with the smaller gradient norm; a gradient may be zero at infinity."""
    return _chosen((new.norm < best.norm) & jnp.all(jnp.isfinite(new.x)), new, best)


def _chosen(first: Array, one: Any, other: Any) -> Any:
    """Return the first of two trees where a condition holds, else the second."""
    return jax.tree.map(partial(jnp.where, first), one, other)


def _curvature(y: Evaluated, new: Evaluated) -> Array:
    """Return <g(x+) - g(y), x+ - y> / |x+ - y|^2; NaN where one of these is no number."""
    moved = new.x - y.x
    length = norm(moved)
    found = (new.g - y.g) @ (moved / length) / length
    return jnp.where((length > 0) & (length < jnp.inf), found, jnp.nan)


def _probe(problem: Problem, here: Evaluated) -> Array:
    """Return the curvature along the gradient, from one more gradient close by."""
    size, slope = norm(here.x), jnp.abs(here.value) / here.norm
    length = BACKTRACKING.probe * jnp.where(size > 0, size, jnp.where(slope > 0, slope, 1.0))
    there = problem.gradient(here.x - length / here.norm * here.g)
    found = norm(there - here.g) / length
    return fit(found)


def norm(g: Array) -> Array:
    """Return the Euclidean norm of a vector whose squares may overflow."""
    largest = jnp.max(jnp.abs(g))
    safe = jnp.where((largest > 0) & (largest < jnp.inf), largest, 1.0)
    return safe * jnp.linalg.norm(g / safe)
