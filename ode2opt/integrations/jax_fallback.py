"""Who goes on inside a compiled solve: Nesterov's method with backtracking and restart.

L, t and the test of a step are those of ``ode2opt.solvers.fallback`` (docs/mathematics.md, section
11). A restart goes on from the last point, not from the lowest: values are not asked for.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ode2opt.problems._arrays import Array
from ode2opt.problems._numbers import FLATTEST
from ode2opt.problems.base import Problem
from ode2opt.solvers.fallback import GROW, MOST_GROWTH, PROBE, RELAX


class Descent(NamedTuple):
    """After ``k`` trials: the point, its gradient norm, the point before, t and L of the last step,
    and the L to try next."""

    k: Array
    x: Array
    norm: Array
    previous: Array
    t: Array
    L: Array
    trial: Array


def nesterov(problem: Problem, x: Array, tol: Array, most: Array) -> Descent:
    """Go on from ``x`` until the gradient norm is at most ``tol``, or after ``most`` trials."""
    g = problem.gradient(x)
    L = _probe(problem, x, g)
    first = Descent(jnp.asarray(0), x, norm(g), x, jnp.asarray(0.0), L, L)

    def goes_on(state: Descent) -> Array:
        return (state.norm > tol) & (state.k < most)

    return jax.lax.while_loop(goes_on, partial(_tried, problem), first)


def _tried(problem: Problem, state: Descent) -> Descent:
    """Make a step of 1/L, or come back with a larger L."""
    k, L = state.k + 1, state.trial
    t = (1 + jnp.sqrt(1 + 4 * (L / state.L) * state.t**2)) / 2
    y = state.x + jnp.maximum(state.t - 1, 0) / t * (state.x - state.previous)
    g = problem.gradient(y)
    moved = -g / L
    new = y + moved
    g_new = problem.gradient(new)
    needed = (g_new - g) @ moved / (moved @ moved)
    uphill = (state.t > 1) & (g @ (new - state.x) > 0)
    made = Descent(k, new, norm(g_new), state.x, jnp.where(uphill, 0.0, t), L, RELAX * L)
    known = jnp.clip(2 * needed, GROW * L, MOST_GROWTH * L)
    larger = jnp.where(jnp.isfinite(needed), known, MOST_GROWTH * L)
    back = state._replace(k=k, trial=larger)
    return jax.tree.map(partial(jnp.where, 2 * needed <= L), made, back)


def _probe(problem: Problem, x: Array, g: Array) -> Array:
    """Return the curvature along the gradient, from one more gradient close by."""
    size = norm(x)
    length = PROBE * jnp.where(size > 0, size, 1.0)
    found = norm(problem.gradient(x - length / norm(g) * g) - g) / length
    return jnp.where((found > FLATTEST) & (found < jnp.inf), found, 1.0)


def norm(g: Array) -> Array:
    """Return the Euclidean norm in lengths of the largest number, as its squares may overflow."""
    largest = jnp.max(jnp.abs(g))
    safe = jnp.where((largest > 0) & (largest < jnp.inf), largest, 1.0)
    return safe * jnp.linalg.norm(g / safe)
