"""The Lyapunov function E of Theorem 1 (docs/mathematics.md, section 3).

Where Theorem 1 holds, E does not rise along the flow. What follows, the bound E(t0)/delta(t) on the
value and four integral estimates, stands in ``proofs.bounds``. z may be any point.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from ode2opt.base.arrays import Array
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.ishd import State
from ode2opt.problems.base import Problem


class Pair(NamedTuple):
    """The free parameters of Theorem 1.

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


def delta(coefficients: Coefficients, pair: Pair, t: Array) -> Array:
    """Return delta(t) = t^2 (gamma - kappa beta') + (kappa (alpha - 2) - lam) t beta.

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        pair: kappa and lam.
        t: one time.
    """
    kappa, lam = pair
    beta, gamma, dbeta = coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t)
    return t**2 * (gamma - kappa * dbeta) + (kappa * (coefficients.alpha - 2) - lam) * t * beta


def energy(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint, t: Array,
    s: State, scale: Array = 1.0,
) -> Array:  # fmt: skip
    """Return the Lyapunov function E(t), which falls along the flow where Theorem 1 holds.

        E = delta (f - f(z)) + |lam (x - z) + t (x' + kappa beta g)|^2 / 2
            + lam (1 - kappa) t beta <g, x - z> + kappa (1 - kappa)/2 |t beta g|^2
            + lam (alpha - 1 - lam)/2 |x - z|^2

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f, on JAX arrays.
        pair: kappa and lam.
        reference: z and f(z).
        t: one time.
        s: position and v = x' + beta g at that time.
        scale: the coefficients are divided by it, and E is that of f/scale; 1 by default.
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


class Rates(NamedTuple):
    """The four terms by which E falls at least, and lam t w."""

    value: Array
    velocity: Array
    gradient: Array
    hessian: Array
    lam_w: Array


def rates(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint, t: Array,
    s: State, scale: Array,
) -> Rates:  # fmt: skip
    """Return the integrands of Theorem 1's estimates; for convex f, E' <= -(their sum)."""
    kappa, lam = pair
    alpha, beta = coefficients.alpha, coefficients.beta(t)
    w = coefficients.gamma(t) - coefficients.dbeta(t) - beta / t
    ddelta = jax.grad(lambda time: delta(coefficients, pair, time))(t)
    g = problem.gradient(s.x) / scale
    moved = s.v - beta * g
    return Rates(
        (lam * t * w - ddelta) * (problem.value(s.x) - reference.value) / scale,
        (alpha - 1 - lam) * t * (moved @ moved),
        kappa * t**2 * beta * w * (g @ g),
        (1 - kappa) * t**2 * beta * (problem.hvp(s.x, moved) @ moved) / scale,
        lam * t * w,
    )


def energy_rate(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint, t: Array,
    s: State, scale: Array = 1.0,
) -> Array:  # fmt: skip
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
    """
    parts = rates(coefficients, problem, pair, reference, t, s, scale)
    gap = (problem.value(s.x) - reference.value) / scale
    pull = (problem.gradient(s.x) / scale) @ (s.x - reference.x)
    convexity = parts.lam_w * (gap - pull)  # at most 0
    return convexity - parts.value - parts.velocity - parts.gradient - parts.hessian


def starting_energy(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint, x0: Array,
    t0: float, scale: float = 1.0,
) -> Array:  # fmt: skip
    """Return E(t0) of f/scale where the flow begins at rest in ``x0``.

        E(t0) = delta (f(x0) - f(z)) + lam (alpha - 1)/2 |x0 - z|^2 + lam t0 beta <g, x0 - z>
                + kappa/2 |t0 beta g|^2

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f, on any arrays.
        pair: kappa and lam.
        reference: z and f(z).
        x0: the start.
        t0: the first time.
        scale: the curvature that the coefficients are divided by; 1 by default.
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
