"""Stopping time and constraint violation of one instance, differentiable.

docs/mathematics.md, section 6:

    T = inf { t >= t0 : |g(X(t))| <= eps },   P = int_t0^T p dt,   Q = int_t0^T q dt

The flow is solved by Heun's method on the mesh of the sequence, or a finer one where T asks for it
(``mesh``): stable wherever the sequence is, two gradients a step, and its first stage is the
event's test as well. The sequence is simulated beside it (one more gradient) and the curvature is
estimated once a mesh point (one product). T is found inside the last step by the flow's cubic
interpolant. Nothing is computed after T, forwards or backwards; derivatives are those of automatic
differentiation, with the event's by the implicit function theorem.
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
from ode2opt.paper.check_flow import log_norm
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.coefficients.base import derivative
from ode2opt.paper.conditions import safe_sqrt
from ode2opt.paper.curvature import Estimator, PowerIteration, as_double
from ode2opt.paper.default import T0, H
from ode2opt.paper.differentiable_loop import loop, row_of
from ode2opt.paper.instance import FlowInstance, StoppingTime
from ode2opt.paper.ishd import eigac_step, ishd
from ode2opt.paper.lyapunov import Pair, delta
from ode2opt.problems.base import Point, Problem

NEWTON_STEPS = 6
COLD_STEPS = 20
FLOW_BLOWUP = 1e3  # a gradient norm that grows by this factor has failed
MIN_GRADIENT_CHANGE = 1e-6  # a change of gradient smaller than this share of it says nothing


class Rules(eqx.Module):
    """How the stopping time of a flow is measured.

    Attributes:
        eps: the gradient norm to reach.
        safety: the factor by which P takes the curvature to be larger than estimated; 1 by default.
        h: the sequence's step, 0.04 by default.
        t0: the first time, 1 by default.
        K: give up after this many steps of ``h``; 600 by default.
        kappa: of Theorem 1, in (0, 1]; 1 by default.
        lam: of Theorem 1; None (the default) is alpha - 1.
        substeps: steps of the flow in each step of the sequence; 1 by default.
        estimator: of the curvature along the way; by default a power iteration that is carried
            along, one product a step.
        printed: whether the penalty has P and Q with their units, as the paper prints them; False
            by default.
    """

    eps: Array
    safety: Array = eqx.field(default=1.0, converter=as_double)
    h: float = eqx.field(default=H, static=True)
    t0: float = eqx.field(default=T0, static=True)
    K: int = eqx.field(default=600, static=True)
    kappa: float = eqx.field(default=1.0, static=True)
    lam: float | None = eqx.field(default=None, static=True)
    substeps: int = eqx.field(default=1, static=True)
    estimator: Estimator = eqx.field(default_factory=lambda: PowerIteration(0, stir=0.02))
    printed: bool = eqx.field(default=False, static=True)

    def stopping_time(self, coefficients: Coefficients, instance: FlowInstance) -> StoppingTime:
        """Return T, P and Q of an instance."""
        return stopping_time(coefficients, *instance, self)

    def with_safety(self, safety: float) -> Rules:
        """Return the same rules with another factor on the curvature; the smaller of both is
        taken.
        """
        factor = min(safety, float(self.safety))
        return eqx.tree_at(lambda rules: rules.safety, self, np.float64(factor))

    def objective(self, found: StoppingTime) -> Array:
        """Return T where the tolerance was reached, else 0."""
        return jnp.where(found.reached, found.T, 0.0)

    @property
    def step(self) -> float:
        """The step of the flow: h / substeps."""
        return self.h / self.substeps

    @property
    def count(self) -> int:
        """The largest number of steps of the flow."""
        return self.K * self.substeps


class _Row(NamedTuple):
    """Coefficients for curvature 1 at one time: alpha/t, beta, gamma and s = gamma - beta'."""

    damping: Array
    beta: Array
    gamma: Array
    s: Array


class _FlowState(NamedTuple):
    """The flow (x, v) with its gradient g, the sequence (x_bar, u) with its own, and p and P.

    ``e`` is the sequence's last move and ``z`` the estimator's vector. Gradients are divided by
    the scale.
    """

    x: Array
    v: Array
    g: Array
    x_bar: Array
    u: Array
    g_bar: Array
    e: Array
    z: Array
    part: Array
    p: Array
    P: Array
    min_cosine: Array


class _Constants(NamedTuple):
    """What the loop needs and is not differentiated by."""

    problem: Problem
    scale: Array
    rules: Rules
    limit: Array

    @property
    def enough(self) -> Array:
        """The square of the scaled gradient norm that is to be reached."""
        return (self.rules.eps / self.scale) ** 2


@eqx.filter_jit
def stopping_time(
    coefficients: Coefficients, problem: Problem, x0: Array, scale: Array, rules: Rules
) -> StoppingTime:
    """Follow flow and sequence of one instance until the tolerance is met.

    T = inf { t >= t0 : |g(X(t))| <= eps }, with P and Q integrated up to T (docs/mathematics.md,
    section 6). Compiled; differentiable by the coefficients in reverse mode.
    """
    at = partial(row_at, coefficients)
    t = rules.t0 + rules.step * jnp.arange(rules.count + 1)
    rows = jax.vmap(at)(t)
    start, constants = _start(at(t[0]), problem, x0, scale, rules)
    state, i, over = loop(_step, start, rows, constants)
    return _finish(coefficients, state, i, over, rows, constants)


def violation(coefficients: Coefficients, t: Array, rules: Rules) -> Array:
    """Return h^2 q(t), the integrand of Q (docs/mathematics.md, section 6), for curvature 1."""
    alpha, h = coefficients.alpha, rules.h
    lam = alpha - 1 if rules.lam is None else rules.lam
    size = partial(delta, coefficients, Pair(rules.kappa, lam))
    beta, gamma, dbeta = coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t)
    s = gamma - dbeta
    w = s - beta / t
    slope = derivative(size)(t)
    terms = (
        s - beta / h, alpha * beta / t - s, slope - lam * t * w, -size(t), -w, -beta, -gamma,
    )  # fmt: skip
    return h**2 * sum(jax.nn.relu(term) for term in terms)


def row_at(coefficients: Coefficients, t: Array) -> _Row:
    """Return the coefficients at one time."""
    gamma = coefficients.gamma(t)
    s = gamma - coefficients.dbeta(t)
    return _Row(coefficients.alpha / t, coefficients.beta(t), gamma, s)


def _start(
    row: _Row, problem: Problem, x0: Array, scale: Array, rules: Rules
) -> tuple[_FlowState, _Constants]:
    point = problem.at(x0)
    g = problem.gradient_at(point) / scale
    square = jnp.sum(g**2)
    constants = _Constants(problem, scale, rules, square * FLOW_BLOWUP**2)
    z = rules.estimator.start(problem)
    if isinstance(rules.estimator, PowerIteration):
        z = PowerIteration(COLD_STEPS)(problem, x0, z).z
    p, z = _p(row, point, point, z, constants)
    v, zero = row.beta * g, jnp.asarray(0.0)
    rest = jnp.zeros_like(x0)
    state = _FlowState(x0, v, g, x0, rules.h * v, g, rest, z, zero, p, zero, jnp.asarray(1.0))
    return state, constants


def _step(
    here: _Row, there: _Row, state: _FlowState, constants: _Constants
) -> tuple[_FlowState, Array]:
    """Take one step of the flow by Heun's method, and one of the sequence where it is due."""
    problem, scale, rules, limit = constants
    step, m = rules.step, rules.substeps
    move = partial(_sequence_move, rules, here, state)
    if m == 1:
        e, u = move()
    else:
        e, u = jax.lax.cond(state.part == 0, move, lambda: (state.e, state.u))
    x_bar = problem.at(state.x_bar + e / m)
    x, v = heun(problem, scale, step, here, there, state.x, state.v, state.g)
    g, g_bar = (problem.gradient_at(point) / scale for point in (x, x_bar))
    p, z = _p(there, x, x_bar, state.z, constants)
    part = (state.part + 1) % m
    P = state.P + 0.5 * step * (state.p + p)
    square, other = jnp.sum(g**2), jnp.sum(g_bar**2)
    over = ~((square > constants.enough) & (square < limit) & (other < limit))
    min_cosine = jnp.minimum(state.min_cosine, _cosine(x.x - state.x, g, state.g))
    return _FlowState(x.x, v, g, x_bar.x, u, g_bar, e, z, part, p, P, min_cosine), over


def heun(
    problem: Problem, scale: Array, step: Any, here: _Row, there: _Row, x: Array, v: Array, g: Array
) -> tuple[Point, Array]:
    """Return point and velocity after a step of the flow by Heun's method."""
    slope = (there.beta - here.beta) / step
    dx1, dv1 = _velocity(here, slope, v, g)
    middle = problem.gradient(x + step * dx1) / scale
    dx2, dv2 = _velocity(there, slope, v + step * dv1, middle)
    return problem.at(x + 0.5 * step * (dx1 + dx2)), v + 0.5 * step * (dv1 + dv2)


def _cosine(move: Array, new: Array, old: Array) -> Array:
    """Return the cosine of a move and its change of gradient; one near rounding counts little."""
    move, new, old = jax.lax.stop_gradient((move, new, old))
    change = new - old
    size = jnp.sqrt(jnp.maximum(jnp.sum(change**2), MIN_GRADIENT_CHANGE**2 * jnp.sum(old**2)))
    length = jnp.sqrt(jnp.sum(move**2)) * size
    return jnp.sum(move * change) / jnp.where(length > 0, length, 1.0)


def _velocity(row: _Row, slope: Array, v: Array, g: Array) -> tuple[Array, Array]:
    """Return (x', v').

    beta' is the mean slope over the step: where a network with kinks bends inside a step, the
    derivative by its parameters is right nevertheless.
    """
    return ishd(v, g, row.damping, row.beta, row.gamma, slope)


def _sequence_move(rules: Rules, row: _Row, state: _FlowState) -> tuple[Array, Array]:
    """Return the sequence's move e and its next u."""
    h = rules.h
    return eigac_step(state.u, state.g_bar, h * row.beta, h**2 * row.s, h * row.damping)


def _p(row: _Row, x: Point, x_bar: Point, z: Array, constants: _Constants) -> tuple[Array, Array]:
    """Return h p, for curvature 1, and the estimator's next vector."""
    rules = constants.rules
    curvature, z = rules.estimator.along(constants.problem, x, x_bar, z)
    edge = safe_sqrt(row.s) + safe_sqrt(row.s - row.damping * row.beta)
    root = safe_sqrt(rules.safety * curvature / constants.scale)
    return rules.h * jax.nn.relu(row.beta * root - edge), z


def _finish(
    coefficients: Coefficients,
    state: _FlowState,
    i: Array,
    over: Array,
    rows: _Row,
    constants: _Constants,
) -> StoppingTime:
    """Find T inside the step that was not taken, and add the rest of the integrals."""
    problem, rules = constants.problem, constants.rules
    last = jnp.minimum(i, rules.count - 1)  # where the rows ran out, no step is left
    here, there = row_of(rows, last), row_of(rows, last + 1)
    new, _ = _step(here, there, state, constants)
    ends = (state.x, new.x, state.v - here.beta * state.g, new.v - there.beta * new.g)
    flow = partial(hermite, rules.step, *ends)
    begun = jnp.sum(state.g**2) <= constants.enough  # perhaps there was nothing to do
    reached = begun | (over & (jnp.sum(new.g**2) <= constants.enough))
    share = crossing(problem, flow, rules.eps)
    share = jnp.where(reached & ~begun, share, 0.0)
    now = rules.t0 + rules.step * i
    T = now + share * rules.step
    x_bar = problem.at(state.x_bar + share * (new.x_bar - state.x_bar))
    p, _ = _p(row_at(coefficients, T), problem.at(flow(share)), x_bar, state.z, constants)
    P = state.P + 0.5 * (T - now) * (state.p + p)
    min_cosine = jnp.minimum(state.min_cosine, new.min_cosine)
    Q = _Q(coefficients, T, rules)
    penalty = _with_units(P, Q, constants) if rules.printed else P + Q
    return StoppingTime(T, P, Q, penalty, reached, over & ~reached, min_cosine)


def _with_units(P: Array, Q: Array, constants: _Constants) -> Array:
    """Return P + Q as printed, without the factors h sqrt(scale) and h^2 scale."""
    h, scale = constants.rules.h, constants.scale
    return P / (h * jnp.sqrt(scale)) + Q / (h**2 * scale)


def _Q(coefficients: Coefficients, T: Array, rules: Rules) -> Array:
    """Integrate q to T by the trapezoidal rule on the mesh."""
    t = jnp.minimum(rules.t0 + rules.step * jnp.arange(rules.count + 1), T)
    q = jax.vmap(lambda t: violation(coefficients, t, rules))(t)
    return jnp.sum(0.5 * (q[1:] + q[:-1]) * (t[1:] - t[:-1]))


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
    root = jax.lax.stop_gradient(jax.lax.scan(newton, start, None, length=NEWTON_STEPS)[0])
    value, slope = jax.jvp(excess, (root,), (jnp.ones_like(root),))
    return root - value / jax.lax.stop_gradient(jnp.where(slope < 0, slope, -jnp.inf))
