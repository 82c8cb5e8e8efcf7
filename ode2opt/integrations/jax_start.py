"""Problems that may be traced: where a solve starts, as ``Method.start_of`` says, and their l2."""

from __future__ import annotations

import copy
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ode2opt.base.arrays import SMALLEST_CURVATURE, Array, as_ridge
from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.base.schedule import Schedule
from ode2opt.problems.base import Problem
from ode2opt.problems.deconvolution import Deconvolution
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.quadratic import Quadratic
from ode2opt.solvers.method_file import Method

LARGEST_HESSIAN = 512  # variables: up to here curvatures are found from dense matrices


class Ridged(Problem):
    """f(x) + l2/2 |x|^2 for an l2 that JAX can differentiate by; ``inner`` is f without its own."""

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


def starts(
    method: Method | Schedule,
    x0: Array,
    shape: tuple[int, ...],
    paper: Callable[[], Array],
) -> Array:
    """Return the start, or one for each problem of a batch."""
    if x0 is None:
        own = method.start if isinstance(method, Method) else None
        x0 = jnp.zeros(shape[-1]) if own is None else paper() if isinstance(own, str) else own
    x0 = jnp.asarray(x0, jnp.float64)
    if x0.shape not in (shape, shape[-1:]):
        raise InputError(f"x0 has shape {x0.shape}; {shape} is due.")
    return jnp.broadcast_to(x0, shape)


@double
def paper_start(problem: Problem) -> Array:
    """Return x0 = 1/n - g(1/n)/L (docs/mathematics.md, section 9), as ``Problem.start`` has it."""
    _check(problem.n)
    return _paper_start(problem)


@double
def paper_starts(batch: Problem) -> Array:
    """Return the paper's start of each problem of a batch."""
    _check(batch.n)
    return _paper_starts(batch)


@jax.jit
def _paper_start(problem: Problem) -> Array:
    uniform = jnp.full(problem.n, 1 / problem.n)
    seen = largest_curvature(problem, uniform)
    L = fit(jnp.minimum(_everywhere(problem), 4 * seen))
    return uniform - problem.gradient(uniform) / L


@jax.jit
def _paper_starts(batch: Problem) -> Array:
    return jax.lax.map(_paper_start, batch)


def largest_curvature(problem: Problem, x: Array) -> Array:
    """Return the largest eigenvalue of the Hessian."""
    return _top(lambda v: problem.hvp(x, v), problem.n)


def fit(curvature: Array) -> Array:
    """Return a curvature that steps can be divided by: 1 where it tells nothing."""
    return jnp.where((curvature > SMALLEST_CURVATURE) & (curvature < jnp.inf), curvature, 1.0)


def _top(product: Callable[[Array], Array], n: int) -> Array:
    matrix = jax.vmap(product)(jnp.eye(n))
    return jnp.linalg.eigvalsh(matrix)[-1]


def _everywhere(problem: Problem) -> Array | float:
    """Return the part of L that holds at every point, as ``Problem.scale`` knows it."""
    inner, l2 = problem, getattr(problem, "l2", 0.0)
    if isinstance(problem, Ridged):
        inner = problem.inner
    if isinstance(inner, Quadratic | Deconvolution):
        return largest_curvature(problem, jnp.zeros(problem.n))
    if isinstance(inner, LinearModel):
        return _top(inner.gram_product, inner.n) + jnp.maximum(l2, inner.intercept_l2)
    return jnp.inf


def _check(n: int) -> None:
    if n > LARGEST_HESSIAN:
        raise InputError(
            f"The method starts at the paper's start, which is found for up to {LARGEST_HESSIAN} "
            f"variables here, not {n:,}: pass x0=method.start_of(problem)."
        )
