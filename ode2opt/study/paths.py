"""Paths of a flow and of a sequence on one problem, and what is measured along them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import Ode2OptError
from ode2opt.base.precision import double
from ode2opt.learning.sequence.in_metric import in_metric
from ode2opt.paper.check_flow import flow
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.conditions import Convergence
from ode2opt.paper.ishd import State, eigac_step
from ode2opt.paper.lyapunov import Pair, ReferencePoint, energy
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.solvers import Method


class Path(NamedTuple):
    """Points at rising times, and what was found there.

    Attributes:
        t: the times.
        x: the points, one a row.
        fun: f at each.
        grad_norm: the Euclidean norm of the gradient at each.
        energy: the Lyapunov function at each; None where no minimiser was given.
    """

    t: np.ndarray
    x: np.ndarray
    fun: np.ndarray
    grad_norm: np.ndarray
    energy: np.ndarray | None


class MethodCoordinates:
    """A problem in the coordinates y of a method, x = S y, where flow and sequence run.

    S is the root of the method's preconditioner; without one x = y.
    """

    def __init__(
        self, learned: Method | None, problem: Problem, x0: np.ndarray, scale: float
    ) -> None:
        self.scale, self.S = scale, None
        self.outer = inner = to_jax(problem)
        self.y0 = x0
        if learned is not None and learned.metric is not None:
            moved = in_metric(learned.replace(scale="family", family_scale=scale), [problem], [x0])
            inner, self.y0 = to_jax(moved.problems[0]), moved.starts[0]
            self.S = learned.metric.matrix()
        self.inner = inner

    def flow(self, coefficients: Coefficients, times: np.ndarray) -> State:
        """Return the states of the flow at given times."""
        found = flow(
            coefficients, self.inner, self.y0, t0=times[0], t1=times[-1], ts=times, scale=self.scale
        )
        if not (bool(found.succeeded) and np.all(np.isfinite(found.x))):
            raise Ode2OptError(
                f"The flow could not be followed from t = {times[0]:g} to {times[-1]:g}: take "
                f"fewer iterations, or a larger scale than {self.scale:.3g}."
            )
        return State(np.asarray(found.x), np.asarray(found.v))

    @double
    def sequence(self, numbers: tuple[Array, Array, Array], h: float) -> State:
        """Return the iterates of EIGAC and their velocities u/h."""
        a, c, d = map(jnp.asarray, numbers)
        scaled = (a / self.scale, c / self.scale, d)
        y, u = _sequence(self.inner, scaled, jnp.asarray(self.y0))
        return State(np.asarray(y), np.asarray(u) / h)

    @double
    def minimum(self, best: np.ndarray) -> ReferencePoint:
        """Return a minimiser in the method's coordinates, and f there."""
        y = best if self.S is None else np.linalg.solve(self.S, best)
        return ReferencePoint(jnp.asarray(y), self.outer.value(jnp.asarray(best)))

    @double
    def path(
        self,
        coefficients: Coefficients,
        found: Convergence | None,
        minimum: ReferencePoint | None,
        times: np.ndarray,
        states: State,
    ) -> Path:
        """Return states in the problem's own variables, with f, |g| and the Lyapunov function."""
        x = states.x if self.S is None else states.x @ self.S.T
        fun, norms = map(np.asarray, _measured(self.outer, jnp.asarray(x)))
        if found is None or minimum is None:
            return Path(times, x, fun, norms, None)
        pair = Pair(jnp.asarray(found.kappa), jnp.asarray(found.lam))
        scale, there = jnp.asarray(self.scale), State(*map(jnp.asarray, states))
        energies = _energies(
            coefficients, self.inner, pair, minimum, jnp.asarray(times), there, scale
        )
        return Path(times, x, fun, norms, np.asarray(energies))


@eqx.filter_jit
def _sequence(
    problem: Problem, numbers: tuple[Array, Array, Array], x0: Array
) -> tuple[Array, Array]:
    """Return x_0..x_K and u_0..u_K of EIGAC."""

    def step(state: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[Any, Any]:
        x, u = state
        e, after = eigac_step(u, problem.gradient(x), *row)
        return (x + e, after), (x + e, after)

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    x, u = (jnp.concatenate([one[None], rest]) for one, rest in zip(start, later, strict=True))
    return x, u


@eqx.filter_jit
def _measured(problem: Problem, points: Array) -> tuple[Array, Array]:
    """Return f and the gradient norm at each point."""
    gradients = jax.vmap(problem.gradient)(points)
    return jax.vmap(problem.value)(points), jnp.linalg.norm(gradients, axis=1)


@eqx.filter_jit
def _energies(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    minimum: ReferencePoint,
    times: Array,
    states: State,
    scale: Array,
) -> Array:
    """Return the Lyapunov function at each time."""
    at = partial(energy, coefficients, problem, pair, minimum)
    return jax.vmap(lambda t, x, v: at(t, State(x, v), scale))(times, *states)
