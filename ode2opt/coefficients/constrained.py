"""Coefficients that meet conditions whatever their parameters are."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.base.precision import jax_precision
from ode2opt.base.schedule import TimeFunction
from ode2opt.coefficients.curves import KNOTS, SplineCurve
from ode2opt.paper.coefficients import Coefficients, as_alpha, samples
from ode2opt.paper.default import ALPHA, H, check_times


class Feasible(Coefficients):
    """Coefficients that meet the stability condition for all values of their parameters.

        beta = m (sqrt(s) + sqrt(s-d))^2 / (h Lam),   gamma = s beta/h + beta'

    Here s = d + (1-d) sigmoid(p) and d = alpha h/t; p and log Lam are splines in log t. Lam(t)
    models how the curvature falls along the way (1 at the start). Then d a <= c <= a, the
    stability condition for that Lam with margin m, and w > 0 hold identically
    (docs/mathematics.md, section 8).
    """

    shape: SplineCurve
    log_curvature: SplineCurve
    margin: float = eqx.field(static=True)
    h: float = eqx.field(static=True)

    def __init__(
        self, alpha: float = ALPHA, *, margin: float = 0.97, h: float = H, knots: int = KNOTS,
        t0: float = 1.0, t1: float = 21.0,
    ) -> None:  # fmt: skip
        if not 0 < margin <= 1:
            raise InputError(f"margin is {margin}: it must be above 0 and at most 1.")
        if knots < 3:
            raise InputError(f"A spline needs at least 3 knots, not {knots}.")
        self.alpha, self.margin, self.h = as_alpha(alpha), margin, h
        check_times(float(self.alpha), h, t0)
        self.shape = SplineCurve(np.full(knots, 4.0), t0, t1)
        self.log_curvature = SplineCurve(np.zeros(knots), t0, t1)

    def ratio(self, t: Array) -> Array:
        """Return s = c/a, between d and 1."""
        d = self.alpha * self.h / t
        return d + (1 - d) * jax.nn.sigmoid(self.shape(t))

    def beta(self, t: Array) -> Array:
        s, d = self.ratio(t), self.alpha * self.h / t
        edge = (jnp.sqrt(s) + jnp.sqrt(s - d)) ** 2
        return self.margin * edge / self.h * jnp.exp(-self.log_curvature(t))

    def gamma(self, t: Array) -> Array:
        return self.ratio(t) * self.beta(t) / self.h + self.dbeta(t)

    @property
    def settings(self) -> dict[str, Any]:
        knots = self.shape.parameters.shape[-1]
        return {
            "margin": self.margin, "h": self.h, "knots": knots,
            "t0": self.shape.t0, "t1": self.shape.t1,
        }  # fmt: skip

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Feasible:
        """Invert the formulas: s from gamma where it lies in (d, 1), then Lam from beta."""
        t, b = samples(beta, t0, t1, "beta", positive=True)
        _, g = samples(gamma, t0, t1, "gamma", positive=False)
        slope = np.gradient(b, t, edge_order=2)
        d = float(self.alpha) * self.h / t
        share = np.clip((self.h * (g - slope) / b - d) / (1 - d), 1e-6, 1 - 1e-6)
        s = d + (1 - d) * share
        curvature = self.margin * (np.sqrt(s) + np.sqrt(s - d)) ** 2 / (self.h * b)
        fitted = (
            self.shape.regressed(t, np.log(share / (1 - share))),
            self.log_curvature.regressed(t, np.log(curvature)),
        )
        return eqx.tree_at(lambda c: (c.shape, c.log_curvature), self, fitted)


class Proved(Coefficients):
    """Coefficients of the corrected Theorem 2 (docs/mathematics.md, section 15).

        beta(t) = (1 + (eta(t-h) iota(t-h) - 1)/iota(t)) / h,    iota(t) = (t - h)/((alpha - 1) h),
        gamma(t) - beta'(t) = (h beta(t) - 1 + alpha h/t) / h^2

    Then EIGAC with the step h has t_k = iota(t0 + k h) and eta_k = eta(t0 + k h) from k = 1 on: it
    is Nesterov's method where eta = 1. Both proofs ask for 0 < eta <= 2 and a limit on how fast eta
    grows: d log eta/d log iota <= alpha - 3 for the sequence, alpha - 3 - 2h (alpha - 2)/t for the
    flow (Theorem 1 with kappa = 1, lam = alpha - 1, where w = eta(t-h) (t - 2h)/(t h^2)). Here
    eta = 2 sigmoid(v), and the slope of v is a smooth curve of log(t - h) that stays below the
    flow's limit at t0.

    The sequence's bound is C L R^2/(eta_k t_k^2) with a constant C that the start decides, since
    t_0 is above 1; ``ode2opt prove`` finds the number for a table.
    """

    level: Array
    slopes: Array
    h: float = eqx.field(static=True)
    t0: float = eqx.field(static=True)
    t1: float = eqx.field(static=True)

    def __init__(
        self, alpha: float = ALPHA, *, h: float = H, knots: int = KNOTS, t0: float = 1.0,
        t1: float = 21.0,
    ) -> None:  # fmt: skip
        if knots < 4:
            raise InputError(f"Proved coefficients need at least 4 knots, not {knots}.")
        if not t1 > t0:
            raise InputError(f"t1 = {t1} must exceed t0 = {t0}.")
        self.alpha, self.h, self.t0, self.t1 = as_alpha(alpha), h, t0, t1
        check_times(float(self.alpha), h, t0)
        limit = self._limit(float(self.alpha))
        if not limit > 0:
            raise InputError(
                f"alpha is {float(alpha):g}: with h = {h:g} and t0 = {t0:g} it must be above "
                f"{(3 - 4 * h / t0) / (1 - 2 * h / t0):.4g}."
            )
        self.level = np.zeros(())
        self.slopes = np.full(knots, math.log(math.expm1(limit)))  # eta = 1 throughout

    def steepest(self) -> Array:
        """Return the limit of d log eta/d log iota: alpha - 3 - 2h (alpha - 2)/t0, or 0 below 0."""
        return jnp.maximum(self._limit(self.alpha), 0.0)

    def _limit(self, alpha: Any) -> Any:
        return alpha - 3 - 2 * self.h * (alpha - 2) / self.t0

    def eta(self, t: Array) -> Array:
        """Return eta at a time, in (0, 2)."""
        slopes = self.steepest() - jax.nn.softplus(self.slopes)
        return 2 * jax.nn.sigmoid(self.level + self._integrals(jnp.log(t - self.h)) @ slopes)

    def momentum_index(self, t: Array) -> Array:
        """Return iota(t) = (t - h)/((alpha - 1) h), which is t_k of the theorem at t0 + k h."""
        return (t - self.h) / ((self.alpha - 1) * self.h)

    def beta(self, t: Array) -> Array:
        before = t - self.h
        weight = self.eta(before) * self.momentum_index(before)
        return (1 + (weight - 1) / self.momentum_index(t)) / self.h

    def gamma(self, t: Array) -> Array:
        momentum = 1 - self.alpha * self.h / t
        return (self.h * self.beta(t) - momentum) / self.h**2 + self.dbeta(t)

    def _integrals(self, x: Array) -> Array:
        """Return the integrals from the first time to x of cubic B-splines, which sum to 1."""
        first, last = math.log(self.t0 - 2 * self.h), math.log(self.t1 - self.h)
        count = self.slopes.shape[-1]
        piece = (last - first) / (count - 3)
        from_start = np.arange(3, 3 - count, -1.0)  # in pieces, of each spline's own beginning
        return piece * (_ramp((x - first) / piece + from_start) - _ramp(from_start))

    @property
    def settings(self) -> dict[str, Any]:
        return {"h": self.h, "knots": self.slopes.shape[-1], "t0": self.t0, "t1": self.t1}

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Proved:
        """Invert the formula of beta for eta, where it lies in (0, 2); gamma follows."""
        t, b = samples(beta, t0, t1, "beta", positive=True)
        T, before = (np.asarray(self.momentum_index(s)) for s in (t, t - self.h))
        edge = 1e-3  # how close a fit comes to the ends 0 and 2 of the interval for eta
        eta = np.clip((1 + (self.h * b - 1) * T) / before, edge, 2 - edge)
        v = np.log(eta / (2 - eta))
        with jax_precision():
            design = np.asarray(jax.vmap(self._integrals)(jnp.log(t - 2 * self.h)))
        columns = np.column_stack([np.ones(len(t)), design])
        _, *slopes = np.linalg.lstsq(columns, v, rcond=1e-10)[0]
        limit = self._limit(float(self.alpha))
        room = np.maximum(limit - np.array(slopes), edge)
        level = np.mean(v - design @ (limit - room))
        fitted = (np.asarray(level), np.log(np.expm1(room)))
        return eqx.tree_at(lambda c: (c.level, c.slopes), self, fitted)


def _ramp(u: Array) -> Array:
    """Return the integral of the cubic B-spline on [0, 4]: it rises from 0 to 1."""
    u = jnp.clip(u, 0.0, 4.0)[..., None]
    return jnp.maximum(u - np.arange(4.0), 0.0) ** 4 @ np.array([1.0, -4.0, 6.0, -4.0]) / 24
