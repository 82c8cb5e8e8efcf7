"""The points of EIGAC inside JAX, for jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ode2opt.dynamics.inertial import eigac_step
from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem

ScheduleArrays = tuple[Array, Array, Array]
"""The tables a, c and d of a schedule, or one row of them."""


def iterates(numbers: ScheduleArrays, problem: Problem, x0: Array) -> Array:
    """Return the points of EIGAC.

    Args:
        numbers: the tables (a, c, d), K numbers each, already divided by the curvature scale.
        problem: a problem on JAX arrays (:func:`ode2opt.dynamics.to_jax`).
        x0: the start, n numbers.

    Returns:
        x_0..x_K, an array of (K + 1) x n.
    """

    def step(state: tuple[Array, Array], row: ScheduleArrays) -> tuple[tuple[Array, Array], Array]:
        x, u = state
        a, c, d = row
        g = problem.gradient(x)
        e, u = eigac_step(u, g, a, c, d)
        return (x + e, u), x + e

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    return jnp.concatenate([x0[None], later])
