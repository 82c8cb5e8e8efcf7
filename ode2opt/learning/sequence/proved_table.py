"""A table of the corrected Theorem 2 as it is learned (docs/mathematics.md, section 15)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array

FIRST_LEVEL, FIRST_SHARE = 0.0, 4.0  # eta = 1, and 98% of the way to the longest t


class ProvedTable(eqx.Module):
    """A table (a_k, c_k, d_k) inside the theorem's inequalities, whatever is learned.

    eta_k = 2 sigmoid(level) and t_{k+1} = 1 + sigmoid(share) (largest - 1), where largest is the
    root of eta_{k+1} (t^2 - t) = eta_k t_k^2; level and share are linear in log k between knots.
    Then f(y_k - g_k/L) - f* <= L R^2 / (2 eta_k t_k^2) for every L-smooth convex function, where
    the table is divided by L or more.
    """

    level: Array
    share: Array
    K: int = eqx.field(static=True)

    def __init__(self, knots: int, K: int) -> None:
        self.level = jnp.full(knots, FIRST_LEVEL)
        self.share = jnp.full(knots, FIRST_SHARE)
        self.K = K

    def eta_and_t(self) -> tuple[Array, Array]:
        """Return eta_0..eta_K and t_0..t_K."""
        knots = np.linspace(0.0, np.log(self.K), len(self.level))
        at = jnp.log1p(jnp.arange(self.K + 1))
        eta = 2 * jax.nn.sigmoid(jnp.interp(at, knots, self.level))
        share = jax.nn.sigmoid(jnp.interp(at, knots, self.share))

        def after(t: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
            growth, part = here
            new = 1 + part * (jnp.sqrt(1 + 4 * growth * t**2) - 1) / 2
            return new, new

        one = jnp.ones_like(eta[0])
        t = jax.lax.scan(after, one, (eta[:-1] / eta[1:], share[1:]))[1]
        return eta, jnp.concatenate([one[None], t])

    def __call__(self) -> tuple[Array, Array, Array]:
        """Return the columns a, c and d for curvature 1; the first iteration is idle."""
        eta, t = self.eta_and_t()
        momentum = (t[:-1] - 1) / t[1:]
        p = 1 + (eta[:-1] * t[:-1] - 1) / t[1:]
        a = jnp.concatenate([p[:1], p[:-1]])
        return a, a - momentum, 1 - momentum
