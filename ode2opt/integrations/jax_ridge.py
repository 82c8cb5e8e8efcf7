"""A problem whose penalty l2 is an array of its own, so that JAX can differentiate by it."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp

from ode2opt.base.arrays import Array, as_ridge
from ode2opt.base.errors import InputError
from ode2opt.problems.base import Problem


class Ridged(Problem):
    """f(x) + l2/2 |x|^2, where ``inner`` is f without its own penalty."""

    arrays = ("inner", "l2")

    def __init__(self, inner: Problem, l2: Array) -> None:
        if not hasattr(inner, "l2"):
            raise InputError(f"{inner.kind} has no l2 to replace: write the penalty into it.")
        self.inner = copy.copy(inner)
        self.inner.l2 = 0.0
        self.l2 = jnp.asarray(l2 if isinstance(l2, jax.core.Tracer) else as_ridge(l2))
        if self.l2.ndim:
            raise InputError(f"l2 has shape {self.l2.shape}: it must be one number.")
        self.penalised = getattr(inner, "_penalised", inner.n)
        self.n, self.dtype, self.xp = inner.n, inner.dtype, inner.xp

    def value(self, x: Array) -> Array:
        """Return f(x) + l2/2 |x|^2."""
        own = x[: self.penalised]
        return self.inner.value(x) + 0.5 * self.l2 * (own @ own)

    def gradient(self, x: Array) -> Array:
        """Return the gradient at a point."""
        return self.inner.gradient(x) + self._penalty(x)

    def hvp(self, x: Array, v: Array) -> Array:
        """Return the Hessian at a point times a vector."""
        return self.inner.hvp(x, v) + self._penalty(v)

    def _penalty(self, v: Array) -> Array:
        return self.l2 * jnp.where(jnp.arange(self.n) < self.penalised, v, 0.0)
