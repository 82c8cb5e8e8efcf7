"""The points of EIGAC inside JAX, for jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ode2opt.base.arrays import Array
from ode2opt.paper.ishd import eigac_step
from ode2opt.problems.base import Problem

ScheduleArrays = tuple[Array, Array, Array]
"""The tables a, c and d of a schedule, or one row of them."""


def iterates(numbers: ScheduleArrays, problem: Problem, x0: Array) -> Array:
    """Return the points of EIGAC."""

    def step(state: tuple[Array, Array], row: ScheduleArrays) -> tuple[tuple[Array, Array], Array]:
        x, u = state
        a, c, d = row
        g = problem.gradient(x)
        e, u = eigac_step(u, g, a, c, d)
        return (x + e, u), x + e

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    return jnp.concatenate([x0[None], later])
