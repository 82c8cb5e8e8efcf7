"""The EIGAC sequence inside JAX: the same iteration as the solver's, for jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem

Numbers = tuple[Array, Array, Array]


def sequence(numbers: Numbers, problem: Problem, x0: Array) -> Array:
    """Return x_0..x_K for tables (a, c, d) of length K, already divided by the scale."""

    def step(state: tuple[Array, Array], row: Numbers) -> tuple[tuple[Array, Array], Array]:
        x, u = state
        a, c, d = row
        g = problem.gradient(x)
        e = u - a * g
        new = x + e
        return (new, u - d * e - c * g), new

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    return jnp.concatenate([x0[None], later])
