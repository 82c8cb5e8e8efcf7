"""Curvature estimators Lam(x), each differentiable in x (docs/mathematics.md, section 5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.problems.base import SEGMENT_NODES, Point, Problem


def as_double(value: Array) -> Array:
    """Return plain numbers as float64, for which JAX does not compile anew."""
    return np.float64(value) if isinstance(value, float | int) else value


class Estimate(NamedTuple):
    """Lam(x), and the vector that warm-starts the estimate at a point close by."""

    curvature: Array
    z: Array


class Estimator(eqx.Module):
    """Estimates Lam(x), the largest curvature at a point; differentiable in x."""

    def start(self, problem: Problem) -> Array:
        """Return the vector to begin with, always the same."""
        z = np.random.default_rng(0).standard_normal(problem.n)
        return jnp.asarray(z / np.linalg.norm(z))

    def cold(self, problem: Problem, x: Array, steps: int = 20) -> Array:
        """Return the vector for the first estimate, at ``x``."""
        return self.start(problem)

    @abstractmethod
    def __call__(self, problem: Problem, x: Array, z: Array) -> Estimate:
        """Return the estimate at ``x``, warm-started from ``z``."""

    def along(self, problem: Problem, here: Point, there: Point, z: Array) -> Estimate:
        """Return the estimate averaged over the segment between two points (two Gauss nodes)."""
        nodes = [(1 - tau) * here.x + tau * there.x for tau in SEGMENT_NODES]
        first, last = (self(problem, node, z) for node in nodes)
        return Estimate(0.5 * (first.curvature + last.curvature), last.z)

    @abstractmethod
    def stated_error(self) -> str:
        """Say in words how far off the estimate may be."""


class PowerIteration(Estimator):
    """Power iteration on the Hessian: z <- Hz/|Hz|, then Lam = z.Hz, times ``safety``.

    The last product makes the vector for the next point: with ``steps=0`` an estimate costs one
    product, good enough where points are close. z is held fixed in differentiation, so the
    derivative is D^3 f[z, z, .].
    """

    steps: int = eqx.field(default=10, static=True)
    tol: float = eqx.field(default=1e-6, static=True)
    safety: float = eqx.field(default=1.0, static=True)
    stir: float = eqx.field(default=0.3, static=True)  # of the fixed vector, added to each z

    def __check_init__(self) -> None:
        if self.steps < 0:
            raise InputError(f"steps is {self.steps}: it cannot be negative.")
        if not self.safety >= 1:
            raise InputError(f"safety is {self.safety:g}: a factor below 1 is no safety.")

    def cold(self, problem: Problem, x: Array, steps: int = 20) -> Array:
        return PowerIteration(steps, self.tol)(problem, x, self.start(problem)).z

    def __call__(self, problem: Problem, x: Array, z: Array) -> Estimate:
        return self._estimate(problem, problem.hvp, (x,), z)

    def along(self, problem: Problem, here: Point, there: Point, z: Array) -> Estimate:
        """Return the largest curvature of the Hessian averaged over the segment."""
        return self._estimate(problem, problem.mean_hvp, (here, there), z)

    def _estimate(
        self, problem: Problem, hvp: Callable[..., Array], points: tuple[Any, ...], z: Array
    ) -> Estimate:
        check_hvp(problem, "PowerIteration")
        z = z + self.stir * self.start(problem)
        fixed = jax.lax.stop_gradient(points)
        z = jax.lax.stop_gradient(self._direction(partial(hvp, *fixed), z / _norm(z)))
        product = hvp(*points, z)  # what is differentiated
        return Estimate(self.safety * (z @ product), _unit(jax.lax.stop_gradient(product), z))

    def _direction(self, hvp: Callable[[Array], Array], z: Array) -> Array:
        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            count, old, _ = state
            new = _unit(hvp(old), old)
            return count + 1, new, _norm(new - old)

        if not self.steps:
            return z
        unfinished = lambda state: (state[0] < self.steps) & (state[2] > self.tol)  # noqa: E731
        return jax.lax.while_loop(unfinished, step, (0, z, jnp.inf))[1]

    def stated_error(self) -> str:
        measured = "" if self.steps < 10 else "; under 1% on the problems of docs/curvature.md"
        return (
            f"power iteration, at most {self.steps} warm-started steps, an estimate from below"
            f"{measured}; times {self.safety:g}"
        )


def _norm(z: Array) -> Array:
    return jnp.sqrt(jnp.sum(z**2))


def _unit(product: Array, old: Array) -> Array:
    """Return the product at length 1, or the old vector where the product is zero."""
    norm = _norm(product)
    return jnp.where(norm > 0, product / jnp.where(norm > 0, norm, 1.0), old)


class Global(Estimator):
    """One constant for all points: a known bound, or the curvature at a reference point."""

    constant: Array = eqx.field(converter=as_double)

    def __call__(self, problem: Problem, x: Array, z: Array) -> Estimate:
        return Estimate(self.constant + 0.0 * jnp.sum(jax.lax.stop_gradient(x)), z)

    def stated_error(self) -> str:
        return f"the constant {float(self.constant):.4g}, as given"


class L0L1(Estimator):
    """Lam = L0 + L1 |g(x)|; its derivative is L1 H g/|g|."""

    L0: Array = eqx.field(converter=as_double)
    L1: Array = eqx.field(converter=as_double)

    def __call__(self, problem: Problem, x: Array, z: Array) -> Estimate:
        square = jnp.sum(problem.gradient(x) ** 2)
        zero = square == 0
        norm = jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, square)))
        return Estimate(self.L0 + self.L1 * norm, z)

    @classmethod
    def fit(cls, norms: Array, curvatures: Array) -> L0L1:
        """Return the line above all points (|g|, lambda_max) with the least total excess."""
        from scipy.optimize import linprog

        norms, curvatures = np.asarray(norms, dtype=float), np.asarray(curvatures, dtype=float)
        if norms.shape != curvatures.shape or norms.ndim != 1 or not len(norms):
            raise InputError("An (L0, L1) fit needs as many gradient norms as curvatures.")
        if not (np.all(np.isfinite(norms)) and np.all(np.isfinite(curvatures))):
            raise InputError("An (L0, L1) fit needs finite gradient norms and curvatures.")
        points = np.column_stack([np.ones_like(norms), norms])
        found = linprog([1.0, norms.mean()], A_ub=-points, b_ub=-curvatures, bounds=(0, None))
        if not found.success:
            raise InputError(f"The (L0, L1) fit failed: {found.message}")
        return cls(*(np.float64(value) for value in found.x))

    def stated_error(self) -> str:
        line = f"{float(self.L0):.4g} + {float(self.L1):.4g} |g|"
        return f"{line}, above every point it was fitted to"


def check_hvp(problem: Problem, who: str) -> None:
    """Refuse a problem without Hessian-vector products."""
    if not problem.has_hvp:
        raise InputError(
            f"{who} needs Hessian-vector products, which {type(problem).__name__} does not have: "
            f"write the function with jax.numpy and leave its gradient out."
        )
