"""The Lyapunov function of Theorem 1 and its derivative along the flow.

See docs/mathematics.md, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from ode2opt.dynamics.coefficients import Coefficients
from ode2opt.dynamics.diffrax_flow import State
from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem


class Pair(NamedTuple):
    """The free parameters kappa in (0, 1] and lam in (0, alpha - 1]."""

    kappa: float
    lam: float


class Minimum(NamedTuple):
    """A minimiser and the value there."""

    x: Array
    value: Array


def delta(coefficients: Coefficients, pair: Pair, t: Array) -> Array:
    """Return t^2 (gamma - kappa beta') + (kappa (alpha - 2) - lam) t beta."""
    kappa, lam = pair
    beta, gamma, dbeta = coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t)
    return t**2 * (gamma - kappa * dbeta) + (kappa * (coefficients.alpha - 2) - lam) * t * beta


def energy(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    minimum: Minimum,
    t: Array,
    s: State,
    scale: Array = 1.0,
) -> Array:
    """Return E(t), which falls along the flow whenever the convergence conditions hold.

    It is that of f/scale, as is the flow with this scale.
    """
    kappa, lam = pair
    beta, g, away = coefficients.beta(t), problem.gradient(s.x) / scale, s.x - minimum.x
    moved = s.v - beta * g
    anchored = lam * away + t * (moved + kappa * beta * g)
    return (
        delta(coefficients, pair, t) * (problem.value(s.x) - minimum.value) / scale
        + 0.5 * anchored @ anchored
        + lam * (1 - kappa) * t * beta * (g @ away)
        + kappa * (1 - kappa) / 2 * (t * beta) ** 2 * (g @ g)
        + lam * (coefficients.alpha - 1 - lam) / 2 * (away @ away)
    )


def energy_rate(
    coefficients: Coefficients,
    problem: Problem,
    pair: Pair,
    minimum: Minimum,
    t: Array,
    s: State,
    scale: Array = 1.0,
) -> Array:
    """Return dE/dt by the formula of docs/mathematics.md, section 3."""
    kappa, lam = pair
    alpha, beta = coefficients.alpha, coefficients.beta(t)
    w = coefficients.gamma(t) - coefficients.dbeta(t) - beta / t
    g, away = problem.gradient(s.x) / scale, s.x - minimum.x
    moved = s.v - beta * g
    return (
        jax.grad(lambda time: delta(coefficients, pair, time))(t)
        * (problem.value(s.x) - minimum.value)
        / scale
        - lam * t * w * (g @ away)
        - (alpha - 1 - lam) * t * (moved @ moved)
        - kappa * t**2 * beta * w * (g @ g)
        - (1 - kappa) * t**2 * beta * (problem.hvp(s.x, moved) @ moved) / scale
    )
