"""The three numbers of each iteration as a low-dimensional spline, feasible by construction."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

Array = Any
FIRST_STEP = 0.7  # times the inverse curvature along the first gradient
FIRST_RATIO = 1.0
FIRST_ALPHA, FIRST_AGE = 6.0, 10.0


class SplineTable(eqx.Module):
    """(a_k, c_k, d_k) with log a and c/a linear in log k between knots, d_k = alpha/(k + age).

    c/a lies in (d, 1) and d in (0, 1), so the order d a <= c <= a (docs/mathematics.md, section
    4) holds whatever is learned; d is that of the inertial system with t0 = age h.
    """

    log_a: Array
    ratio: Array
    log_alpha: Array
    log_age: Array
    K: int = eqx.field(static=True)

    def __init__(self, knots: int, K: int) -> None:
        self.log_a = jnp.full(knots, float(np.log(FIRST_STEP)))
        self.ratio = jnp.full(knots, FIRST_RATIO)
        self.log_alpha = jnp.log(jnp.asarray(FIRST_ALPHA))
        self.log_age = jnp.log(jnp.asarray(FIRST_AGE))
        self.K = K

    def __call__(self) -> tuple[Array, Array, Array]:
        """Return the rows a, c, d for curvature 1."""
        k = jnp.arange(self.K)
        knots = np.linspace(0.0, np.log(self.K), len(self.log_a))
        at = jnp.log1p(k)
        alpha = jnp.exp(self.log_alpha)
        d = alpha / (k + alpha + jnp.exp(self.log_age))
        a = jnp.exp(jnp.interp(at, knots, self.log_a))
        share = jax.nn.sigmoid(jnp.interp(at, knots, self.ratio))
        return a, a * (d + (1 - d) * share), d
