"""The Lyapunov function of Theorem 1, its derivative along the flow, and what follows from it.

The Lyapunov function is E(t), the theorem says that it does not rise, and from this follow the
bound E(t0)/delta(t) on the value and the four integral estimates. All formulas stand in
docs/mathematics.md, section 3. They hold for every reference point z; a minimiser is one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_positive
from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.ishd import State
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax

if TYPE_CHECKING:
    from ode2opt.paper.check_flow import Flow


class Pair(NamedTuple):
    """The free parameters of the Lyapunov function.

    Attributes:
        kappa: in (0, 1].
        lam: in (0, alpha - 1].
    """

    kappa: float
    lam: float


class ReferencePoint(NamedTuple):
    """The point z that E is measured from: a minimiser, or any other point.

    Attributes:
        x: the point z.
        value: f(z).
    """

    x: Array
    value: Array


class IntegralEstimates(NamedTuple):
    """The four integrals of Theorem 1 along a flow from t0 to its last time.

    Each stays below E(t0) for ever, and so does their sum with E at the last time.

    Attributes:
        value: of (lam t w - delta') (f - f(z)).
        velocity: of (alpha - 1 - lam) t |x'|^2.
        gradient: of kappa t^2 beta w |g|^2.
        hessian: of (1 - kappa) t^2 beta <H x', x'>.
        first: E(t0).
        last: E at the last time.
    """

    value: float
    velocity: float
    gradient: float
    hessian: float
    first: float
    last: float

    @property
    def total(self) -> float:
        """The sum of the four integrals and E at the last time: at most ``first``."""
        return self.value + self.velocity + self.gradient + self.hessian + self.last


def delta(coefficients: Coefficients, pair: Pair, t: Array) -> Array:
    """Return delta(t) = t^2 (gamma - kappa beta') + (kappa (alpha - 2) - lam) t beta.

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        pair: kappa and lam.
        t: one time.

    Returns:
        delta at that time. Theorem 1: f(x(t)) - f* <= E(t0)/delta(t).
    """
    kappa, lam = pair
    beta, gamma, dbeta = coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t)
    return t**2 * (gamma - kappa * dbeta) + (kappa * (coefficients.alpha - 2) - lam) * t * beta


def energy(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    t: Array,
    s: State,
    scale: Array = 1.0,
) -> Array:
    """Return the Lyapunov function E(t), which falls along the flow where Theorem 1 holds.

        E = delta (f - f(z)) + |lam (x - z) + t (x' + kappa beta g)|^2 / 2
            + lam (1 - kappa) t beta <g, x - z> + kappa (1 - kappa)/2 |t beta g|^2
            + lam (alpha - 1 - lam)/2 |x - z|^2

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f, on JAX arrays (:func:`ode2opt.paper.to_jax`).
        pair: kappa and lam.
        reference: z and f(z).
        t: one time.
        s: position and v = x' + beta g at that time.
        scale: the curvature that the coefficients are divided by. E is that of f/scale, as is the
            flow with this scale; 1 by default.

    Returns:
        E(t).
    """
    kappa, lam = pair
    beta, g, away = coefficients.beta(t), problem.gradient(s.x) / scale, s.x - reference.x
    moved = s.v - beta * g
    anchored = lam * away + t * (moved + kappa * beta * g)
    return (
        delta(coefficients, pair, t) * (problem.value(s.x) - reference.value) / scale
        + 0.5 * anchored @ anchored
        + lam * (1 - kappa) * t * beta * (g @ away)
        + kappa * (1 - kappa) / 2 * (t * beta) ** 2 * (g @ g)
        + lam * (coefficients.alpha - 1 - lam) / 2 * (away @ away)
    )


def energy_rate(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    t: Array,
    s: State,
    scale: Array = 1.0,
) -> Array:
    """Return dE/dt along the flow, by its formula.

        E' = delta' (f - f(z)) - lam t w <g, x - z> - (alpha - 1 - lam) t |x'|^2
             - kappa t^2 beta w |g|^2 - (1 - kappa) t^2 beta <H x', x'>

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f, on JAX arrays.
        pair: kappa and lam.
        reference: z and f(z).
        t: one time.
        s: position and v = x' + beta g at that time.
        scale: the curvature that the coefficients are divided by; 1 by default.

    Returns:
        The derivative of :func:`energy`.
    """
    parts = _rates(coefficients, problem, pair, reference, t, s, scale)
    lam_w = pair.lam * t * parts.w
    gap = (problem.value(s.x) - reference.value) / scale
    pull = (problem.gradient(s.x) / scale) @ (s.x - reference.x)
    slope = lam_w * gap - parts.value  # delta' (f - f(z))
    return slope - lam_w * pull - parts.velocity - parts.gradient - parts.hessian


def starting_energy(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    x0: Array,
    t0: float,
    scale: float = 1.0,
) -> Array:
    """Return E(t0) of a flow that begins at rest in ``x0``; all parts that do not matter are gone.

        E(t0) = delta (f(x0) - f(z)) + lam (alpha - 1)/2 |x0 - z|^2 + lam t0 beta <g, x0 - z>
                + kappa/2 |t0 beta g|^2

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f, on NumPy or JAX arrays.
        pair: kappa and lam.
        reference: z and f(z).
        x0: the start.
        t0: the first time.
        scale: the curvature that the coefficients are divided by; 1 by default.

    Returns:
        E(t0), of f/scale.
    """
    kappa, lam = pair
    push = t0 * coefficients.beta(t0) * problem.gradient(x0) / scale
    away = x0 - reference.x
    return (
        delta(coefficients, pair, t0) * (problem.value(x0) - reference.value) / scale
        + lam * (coefficients.alpha - 1) / 2 * (away @ away)
        + lam * (push @ away)
        + kappa / 2 * (push @ push)
    )


@double
def integral_estimates(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    found: Flow,
    scale: float = 1.0,
) -> IntegralEstimates:
    """Integrate the four quantities that Theorem 1 bounds, along a flow.

    Simpson's rule on the flow's own times; for other than evenly spaced times see
    :func:`scipy.integrate.simpson`.

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f.
        pair: kappa and lam. The velocity's and the Hessian's integrals vanish for the paper's pair
            kappa = 1, lam = alpha - 1.
        reference: z and f(z). With a minimiser the sum of all is at most E(t0).
        found: a flow with at least three times, see :func:`ode2opt.paper.flow` (``ts``).
        scale: the curvature that the coefficients were divided by; 1 by default.

    Returns:
        The four integrals, E(t0) and E at the last time.

    Raises:
        InputError: the flow has fewer than three times, or was not solved.

    Example:
        >>> from ode2opt.paper import Default, flow
        >>> best = solve(problem, tol=1e-10)
        >>> found = flow(Default(1.0), problem, x0, t1=3.0, ts=np.linspace(1, 3, 401))
        >>> reference = ReferencePoint(best.x, best.fun)
        >>> estimates = integral_estimates(
        ...     Default(1.0), problem, Pair(0.5, 3.0), reference, found
        ... )
        >>> estimates.total <= estimates.first
        True
    """
    from scipy.integrate import simpson

    t = np.asarray(found.t)
    if t.ndim != 1 or len(t) < 3:
        raise InputError("Integrals along a flow need at least three of its times: give it ts.")
    if not np.all(np.isfinite(np.asarray(found.x))):
        raise InputError("The flow was not solved up to its last time: its states are not finite.")
    twin, scale = to_jax(problem), as_positive(scale, "The scale")
    pair = Pair(*map(jnp.asarray, pair))
    point = ReferencePoint(jnp.asarray(reference.x), jnp.asarray(reference.value))
    rates, energies = _along(coefficients, twin, pair, point, found, jnp.asarray(scale))
    value, velocity, gradient, hessian = (float(simpson(np.asarray(r), x=t)) for r in rates[:4])
    first, last = float(energies[0]), float(energies[-1])
    return IntegralEstimates(value, velocity, gradient, hessian, first, last)


class _Rates(NamedTuple):
    """The integrands of the four estimates, and w."""

    value: Array
    velocity: Array
    gradient: Array
    hessian: Array
    w: Array


def _rates(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    t: Array,
    s: State,
    scale: Array,
) -> _Rates:
    kappa, lam = pair
    alpha, beta = coefficients.alpha, coefficients.beta(t)
    w = coefficients.gamma(t) - coefficients.dbeta(t) - beta / t
    slope = jax.grad(lambda time: delta(coefficients, pair, time))(t)
    g = problem.gradient(s.x) / scale
    moved = s.v - beta * g
    return _Rates(
        (lam * t * w - slope) * (problem.value(s.x) - reference.value) / scale,
        (alpha - 1 - lam) * t * (moved @ moved),
        kappa * t**2 * beta * w * (g @ g),
        (1 - kappa) * t**2 * beta * (problem.hvp(s.x, moved) @ moved) / scale,
        w,
    )


@eqx.filter_jit
def _along(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    reference: ReferencePoint,
    found: Flow,
    scale: Array,
) -> tuple[_Rates, Array]:
    """Return the integrands and E at all times of a flow."""

    def one(t: Array, x: Array, v: Array) -> tuple[_Rates, Array]:
        common = (coefficients, problem, pair, reference, t, State(x, v), scale)
        return _rates(*common), energy(*common)

    return jax.vmap(one)(found.t, found.x, found.v)
