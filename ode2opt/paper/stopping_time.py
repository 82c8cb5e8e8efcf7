"""T, P and Q of one instance, differentiable (docs/mathematics.md, section 6).

    T = inf { t >= t0 : |g(X(t))| <= eps },   P = int_t0^T p dt,   Q = int_t0^T q dt

``heun`` steps the flow X on the mesh of the sequence, or on ``substeps`` times as fine a one; the
sequence x_bar goes along, because p (``_p``) takes the curvature between X and x_bar. T is found
inside the last step (``crossing``), and nothing is computed after it. q (``violation``) needs no
problem. Derivatives are those of automatic differentiation through the loop, with that of T by the
implicit function theorem. Penalties of one's own are ``Rules.own``, integrated beside p; another
object with the three methods of ``Rules`` serves StoPM as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.differentiable_loop import loop, row_of
from ode2opt.base.errors import Ode2OptError
from ode2opt.base.precision import double
from ode2opt.paper.coefficients import Coefficients, derivative
from ode2opt.paper.conditions import safe_sqrt
from ode2opt.paper.curvature import Estimator, PowerIteration, as_double
from ode2opt.paper.default import T0, H
from ode2opt.paper.ishd import eigac_step, ishd
from ode2opt.paper.lyapunov import Pair, delta
from ode2opt.problems.base import Point, Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.jaxed import to_jax


class FlowInstance(NamedTuple):
    """A problem on JAX arrays, its start, and the curvature that coefficients are divided by."""

    problem: Problem
    x0: Array
    scale: Array

    @classmethod
    @double
    def of(cls, problem: Problem, scale: float | None = None) -> FlowInstance:
        """Return a problem at its own start; the scale is the curvature there by default."""
        x0 = problem.start().x0
        scale = largest_curvature(problem, x0)[0] if scale is None else scale
        if not np.isfinite(scale) or scale < 0:
            raise Ode2OptError(f"This {type(problem).__name__} has the curvature {scale}.")
        numbers = (np.asarray(x0), scale or 1.0)
        return cls(to_jax(problem), *(jnp.asarray(each, dtype=jnp.float64) for each in numbers))


class StoppingTime(NamedTuple):
    """T of one instance, and how far the constraints are violated until then."""

    T: Array  # where the tolerance is met, or the instance was given up; of a sequence, iterations
    P: Array  # of stability, times h sqrt(scale): without dimension
    Q: Array  # of convergence, times h^2 scale: without dimension; zero for a sequence
    penalty: Array  # what rho multiplies
    reached: Array  # whether the gradient norm came down to the tolerance
    failed: Array  # whether flow or sequence blew up
    min_cosine: Array  # of a step and its change of gradient; not below 0 for a convex function


class Rules(eqx.Module):
    """How the stopping time of a flow is measured, and what is minimised of it."""

    eps: Array  # the gradient norm to reach
    safety: Array = eqx.field(default=1.0, converter=as_double)  # P's factor on the curvature
    h: float = eqx.field(default=H, static=True)  # the sequence's step
    t0: float = eqx.field(default=T0, static=True)
    K: int = eqx.field(default=600, static=True)  # give up after this many steps of h
    kappa: float = eqx.field(default=1.0, static=True)  # of Theorem 1, as lam
    lam: float | None = eqx.field(default=None, static=True)  # None is alpha - 1
    substeps: int = eqx.field(default=1, static=True)  # of the flow in each step of the sequence
    estimator: Estimator = eqx.field(default_factory=lambda: PowerIteration(0, stir=0.02))
    printed: bool = eqx.field(default=False, static=True)  # P and Q with units, as in the paper
    blowup: float = eqx.field(default=1e3, static=True)  # of the gradient norm: it has failed
    counted: tuple[str, ...] = eqx.field(default=("P", "Q"), static=True)  # the rest is 0
    own: Any = None  # penalties beside P and Q: ``begun`` and ``after`` of learning/flow/given.py

    def stopping_time(self, coefficients: Coefficients, instance: FlowInstance) -> StoppingTime:
        """Return T, P and Q of an instance."""
        return stopping_time(coefficients, *instance, self)

    def objective(self, found: StoppingTime) -> Array:
        """Return T where the tolerance was reached, else 0."""
        return jnp.where(found.reached, found.T, 0.0)

    def penalty(self, P: Array, Q: Array, scale: Array) -> Array:
        """Return what rho multiplies: P + Q, with their units if ``printed``."""
        if self.printed:
            return P / (self.h * jnp.sqrt(scale)) + Q / (self.h**2 * scale)
        return P + Q

    def with_safety(self, safety: float) -> Rules:
        """Return the same rules with the smaller of two factors on the curvature."""
        factor = min(safety, float(self.safety))
        return eqx.tree_at(lambda rules: rules.safety, self, np.float64(factor))

    @property
    def step(self) -> float:
        """The step of the flow."""
        return self.h / self.substeps


class _Row(NamedTuple):
    """Coefficients for curvature 1 at one time."""

    damping: Array  # alpha/t
    beta: Array
    gamma: Array
    s: Array  # gamma - beta'


class _Both(NamedTuple):
    """The flow (x, v) and the sequence (x_bar, u), with scaled gradients g and g_bar."""

    x: Array
    v: Array
    g: Array
    x_bar: Array
    u: Array
    g_bar: Array
    e: Array  # the sequence's last move
    z: Array  # the estimator's vector
    part: Array  # of the sequence's step, in substeps
    p: Array
    P: Array
    min_cosine: Array
    own: Any = None  # what penalties of one's own add up to


class _Constants(NamedTuple):
    """What the loop needs and is not differentiated by."""

    problem: Problem
    scale: Array
    rules: Rules
    enough: Array  # the square of the scaled gradient norm that is to be reached
    limit: Array  # of one that is a failure


@eqx.filter_jit
def stopping_time(
    coefficients: Coefficients, problem: Problem, x0: Array, scale: Array, rules: Rules
) -> StoppingTime:
    """Follow flow and sequence of one instance until the tolerance is met."""
    at, t = partial(row_at, coefficients), _mesh(rules)
    rows = jax.vmap(at)(t)
    start, constants = _start(coefficients, at(t[0]), problem, x0, scale, rules)
    state, i, over = loop(_step, start, rows, constants)
    return _finish(coefficients, state, i, over, rows, constants)


def _mesh(rules: Rules) -> Array:
    return rules.t0 + rules.step * jnp.arange(rules.K * rules.substeps + 1)


# Q: the conditions of Theorem 1 and of stability that need no curvature


def violation(coefficients: Coefficients, t: Array, rules: Rules) -> Array:
    """Return h^2 q(t), the integrand of Q, for curvature 1."""
    alpha = coefficients.alpha
    lam = alpha - 1 if rules.lam is None else rules.lam
    delta_at = partial(delta, coefficients, Pair(rules.kappa, lam))
    beta, gamma, dbeta = coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t)
    s = gamma - dbeta
    w = s - beta / t
    terms = (
        s - beta / rules.h,  # c <= a
        alpha * beta / t - s,  # d a <= c
        derivative(delta_at)(t) - lam * t * w,  # delta' <= lam t w
        -delta_at(t),
        -w,
        -beta,
        -gamma,
    )
    return rules.h**2 * sum(jax.nn.relu(term) for term in terms)


def _Q(coefficients: Coefficients, T: Array, rules: Rules) -> Array:
    """Integrate q to T by the trapezoidal rule on the mesh."""
    t = jnp.minimum(_mesh(rules), T)
    q = jax.vmap(lambda t: violation(coefficients, t, rules))(t)
    return jnp.sum(0.5 * (q[1:] + q[:-1]) * (t[1:] - t[:-1]))


# P: the stability condition, with the curvature between flow x and sequence x_bar


def _p(row: _Row, x: Point, x_bar: Point, z: Array, constants: _Constants) -> tuple[Array, ...]:
    """Return h p, for curvature 1, the estimator's next vector, and the curvature.

    p = [beta sqrt(mean of Lam from x to x_bar) - sqrt(s) - sqrt(s - alpha beta/t)]_+
    """
    rules = constants.rules
    curvature, z = rules.estimator.along(constants.problem, x, x_bar, z)
    edge = safe_sqrt(row.s) + safe_sqrt(row.s - row.damping * row.beta)
    root = safe_sqrt(rules.safety * curvature / constants.scale)
    p = rules.h * jax.nn.relu(row.beta * root - edge)
    return p if "P" in rules.counted else jnp.zeros_like(p), z, curvature / constants.scale


# The way to T


def row_at(coefficients: Coefficients, t: Array) -> _Row:
    """Return the coefficients at one time."""
    gamma = coefficients.gamma(t)
    s = gamma - coefficients.dbeta(t)
    return _Row(coefficients.alpha / t, coefficients.beta(t), gamma, s)


def _start(
    coefficients: Coefficients, row: _Row, problem: Problem, x0: Array, scale: Array, rules: Rules
) -> tuple[_Both, _Constants]:
    point = problem.at(x0)
    g = problem.gradient_at(point) / scale
    limit = jnp.sum(g**2) * rules.blowup**2
    constants = _Constants(problem, scale, rules, (rules.eps / scale) ** 2, limit)
    p, z, curvature = _p(row, point, point, rules.estimator.cold(problem, x0), constants)
    v, zero = row.beta * g, jnp.asarray(0.0)
    e, one = jnp.zeros_like(x0), jnp.asarray(1.0)
    own = rules.own and rules.own.begun(coefficients, row, (x0, v, g), curvature)
    return _Both(x0, v, g, x0, rules.h * v, g, e, z, zero, p, zero, one, own), constants


def _step(here: _Row, there: _Row, state: _Both, constants: _Constants) -> tuple[_Both, Array]:
    """Take one step of the flow by Heun's method, and one of the sequence where it is due."""
    problem, scale, rules, enough, limit = constants
    step, m, h = rules.step, rules.substeps, rules.h
    numbers = (h * here.beta, h**2 * here.s, h * here.damping)

    def move() -> tuple[Array, Array]:
        return eigac_step(state.u, state.g_bar, *numbers)

    e, u = move() if m == 1 else jax.lax.cond(state.part == 0, move, lambda: (state.e, state.u))
    x_bar = problem.at(state.x_bar + e / m)
    x, v = heun(problem, scale, step, here, there, state.x, state.v, state.g)
    g, g_bar = (problem.gradient_at(point) / scale for point in (x, x_bar))
    p, z, curvature = _p(there, x, x_bar, state.z, constants)
    P = state.P + 0.5 * step * (state.p + p)
    square, other = jnp.sum(g**2), jnp.sum(g_bar**2)
    over = ~((square > enough) & (square < limit) & (other < limit))
    cosine = jnp.minimum(state.min_cosine, _cosine(x.x - state.x, g, state.g))
    own, part = state.own, (state.part + 1) % m
    own = own and rules.own.after(own, there, (x.x, v, g), curvature, step)
    return _Both(x.x, v, g, x_bar.x, u, g_bar, e, z, part, p, P, cosine, own), over


def heun(
    problem: Problem, scale: Array, step: Any, here: _Row, there: _Row, x: Array, v: Array, g: Array
) -> tuple[Point, Array]:
    """Return point and velocity after a step of the flow by Heun's method."""
    slope = (there.beta - here.beta) / step  # right also where a network bends inside the step
    dx1, dv1 = ishd(v, g, here.damping, here.beta, here.gamma, slope)
    middle = problem.gradient(x + step * dx1) / scale
    dx2, dv2 = ishd(v + step * dv1, middle, there.damping, there.beta, there.gamma, slope)
    return problem.at(x + 0.5 * step * (dx1 + dx2)), v + 0.5 * step * (dv1 + dv2)


def _cosine(move: Array, new: Array, old: Array) -> Array:
    """Return the cosine of a move and its change of gradient; one near rounding counts little."""
    move, change, old = jax.lax.stop_gradient((move, new - old, old))
    size = jnp.sqrt(jnp.maximum(jnp.sum(change**2), 1e-12 * jnp.sum(old**2)))
    length = jnp.sqrt(jnp.sum(move**2)) * size
    return jnp.sum(move * change) / jnp.where(length > 0, length, 1.0)


# The end: T inside the step that was not taken


def _finish(
    coefficients: Coefficients, state: _Both, i: Array, over: Array, rows: _Row,
    constants: _Constants,
) -> StoppingTime:  # fmt: skip
    """Find T inside the step that was not taken, and add the rest of the integrals."""
    problem, scale, rules, enough, _ = constants
    last = jnp.minimum(i, len(rows.beta) - 2)  # where the rows ran out, no step is left
    here, there = row_of(rows, last), row_of(rows, last + 1)
    new, _ = _step(here, there, state, constants)
    ends = (state.x, new.x, state.v - here.beta * state.g, new.v - there.beta * new.g)
    flow = partial(hermite, rules.step, *ends)
    begun = jnp.sum(state.g**2) <= enough  # perhaps there was nothing to do
    reached = begun | (over & (jnp.sum(new.g**2) <= enough))
    share = jnp.where(reached & ~begun, crossing(problem, flow, rules.eps), 0.0)
    now = rules.t0 + rules.step * i
    T = now + share * rules.step
    x_bar = problem.at(state.x_bar + share * (new.x_bar - state.x_bar))
    row, point = row_at(coefficients, T), problem.at(flow(share))
    p, _, curvature = _p(row, point, x_bar, state.z, constants)
    P = state.P + 0.5 * (T - now) * (state.p + p)
    Q = _Q(coefficients, T, rules) if "Q" in rules.counted else jnp.zeros_like(P)
    cosine = jnp.minimum(state.min_cosine, new.min_cosine)
    penalty = rules.penalty(P, Q, scale)
    if state.own:
        moment = (point.x, state.v + share * (new.v - state.v), problem.gradient_at(point) / scale)
        penalty += rules.own.after(state.own, row, moment, curvature, T - now).integral
    return StoppingTime(T, P, Q, penalty, reached, over & ~reached, cosine)


def hermite(step: Any, x0: Array, x1: Array, dx0: Array, dx1: Array, r: Array) -> Array:
    """Return the cubic through both ends with their slopes, at a share of the step."""
    rise = x1 - x0
    bow = (1 - 2 * r) * rise + step * ((r - 1) * dx0 + r * dx1)
    return x0 + r * rise + r * (r - 1) * bow


def crossing(problem: Problem, flow: Callable[[Array], Array], eps: Array) -> Array:
    """Return the share of a step at which |g| falls to eps, with the derivative of the root."""

    def excess(r: Array) -> Array:
        return log_norm(problem, flow(r)) - target

    def newton(r: Array, _: None) -> tuple[Array, None]:
        value, slope = jax.jvp(excess, (r,), (jnp.ones_like(r),))
        return jnp.clip(r - value / jnp.where(slope < 0, slope, -jnp.inf), 0.0, 1.0), None

    start, target = jnp.asarray(0.5), jnp.log(eps)
    root = jax.lax.stop_gradient(jax.lax.scan(newton, start, None, length=6)[0])
    value, slope = jax.jvp(excess, (root,), (jnp.ones_like(root),))
    return root - value / jax.lax.stop_gradient(jnp.where(slope < 0, slope, -jnp.inf))


def log_norm(problem: Problem, x: Array) -> Array:
    """Return log |g(x)|, with a finite derivative also where g = 0."""
    square = jnp.sum(problem.gradient(x) ** 2)
    return 0.5 * jnp.log(jnp.maximum(square, jnp.finfo(square.dtype).tiny))
