"""Curves of log t with few parameters: cubic splines and polynomials (SPEC.md section 8)."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

from ode2opt.dynamics.coefficients.base import Array, Coefficients, Curve, as_alpha, samples
from ode2opt.dynamics.default import ALPHA, DefaultCoefficients, H
from ode2opt.errors import InputError

KNOTS = 9
DEGREE = 6


class LogTimeCurve(eqx.Module):
    """A smooth curve of log t on [t0, t1], linear in its parameters, straight beyond its ends."""

    parameters: Array
    t0: float = eqx.field(static=True)
    t1: float = eqx.field(static=True)

    @abstractmethod
    def basis(self, position: Array) -> Array:
        """Return the basis functions at a position in [0, 1] along log t."""

    def position(self, t: Array) -> Array:
        """Return where log t lies between the ends: 0 at t0, 1 at t1."""
        return (jnp.log(t) - np.log(self.t0)) / np.log(self.t1 / self.t0)

    def __call__(self, t: Array) -> Array:
        return self.basis(self.position(t)) @ self.parameters

    def regressed(self, t: np.ndarray, values: np.ndarray) -> LogTimeCurve:
        """Return the curve that fits values at times ``t`` by least squares."""
        with jax.enable_x64(True):
            times = jnp.asarray(t)
            design = np.asarray(jax.vmap(lambda time: self.basis(self.position(time)))(times))
        fitted = np.linalg.lstsq(design, values, rcond=1e-12)[0]
        return eqx.tree_at(lambda curve: curve.parameters, self, fitted)


class SplineCurve(LogTimeCurve):
    """A natural cubic spline; its parameters are the values at knots even in log t."""

    def basis(self, position: Array) -> Array:
        """Each cardinal spline: a cubic on every interval, straight lines outside."""
        count = self.parameters.shape[-1]
        cubics = _cardinal_cubics(count)  # (4, intervals, knots)
        u = position * (count - 1)
        interval = jnp.clip(jnp.floor(u), 0, count - 2).astype(int)
        start = jnp.clip(u, 0, count - 1) - interval
        c3, c2, c1, c0 = (cubics[i][interval] for i in range(4))
        value = ((c3 * start + c2) * start + c1) * start + c0
        slope = (3 * c3 * start + 2 * c2) * start + c1
        outside = u - jnp.clip(u, 0, count - 1)
        return value + slope * outside


def _cardinal_cubics(count: int) -> Array:
    knots = np.arange(count)
    return jnp.asarray(CubicSpline(knots, np.eye(count), bc_type="natural").c)


class PolynomialCurve(LogTimeCurve):
    """A Chebyshev series."""

    def basis(self, position: Array) -> Array:
        """T_0..T_m by their recurrence, with straight lines outside."""
        z = 2 * position - 1
        end = 1 + 1e-12  # the ends belong to the inside, rounding or not
        inside = jnp.where(z < -end, -1.0, jnp.where(z > end, 1.0, z))
        values, slopes = [jnp.ones_like(inside), inside], [jnp.zeros_like(inside), jnp.ones_like(z)]
        for _ in range(self.parameters.shape[-1] - 2):
            values.append(2 * inside * values[-1] - values[-2])
            slopes.append(2 * values[-2] + 2 * inside * slopes[-1] - slopes[-2])
        count = self.parameters.shape[-1]
        return jnp.stack(values[:count]) + jnp.stack(slopes[:count]) * (z - inside)


class LogTime(Coefficients):
    """beta = exp(curve), gamma = exp(curve): positive whatever the parameters are."""

    alpha: Array
    log_beta: LogTimeCurve
    log_gamma: LogTimeCurve

    def beta(self, t: Array) -> Array:
        return jnp.exp(self.log_beta(t))

    def gamma(self, t: Array) -> Array:
        return jnp.exp(self.log_gamma(t))

    def fit_to(self, beta: Curve, gamma: Curve, *, t0: float = 1.0, t1: float = 21.0) -> LogTime:
        fitted = []
        for curve, target, name in (
            (self.log_beta, beta, "beta"),
            (self.log_gamma, gamma, "gamma"),
        ):
            t, values = samples(target, t0, t1, name, positive=True)
            fitted.append(curve.regressed(t, np.log(values)))
        return eqx.tree_at(lambda c: (c.log_beta, c.log_gamma), self, tuple(fitted))

    def _start(self, curve: LogTimeCurve, alpha: Array, C: float) -> None:
        self.alpha = as_alpha(alpha)
        self.log_beta = self.log_gamma = curve
        default = DefaultCoefficients(C, float(self.alpha), H)
        fitted = self.fit_to(default.beta, default.gamma, t0=curve.t0, t1=curve.t1)
        self.log_beta, self.log_gamma = fitted.log_beta, fitted.log_gamma


class Spline(LogTime):
    """Natural cubic splines in log t, started at the default coefficients."""

    def __init__(
        self, alpha: float = ALPHA, *, knots: int = KNOTS, t0: float = 1.0, t1: float = 21.0,
        C: float = 1.0,
    ) -> None:  # fmt: skip
        if knots < 3:
            raise InputError(f"A spline needs at least 3 knots, not {knots}.")
        self._start(SplineCurve(np.zeros(knots), t0, t1), alpha, C)


class Polynomial(LogTime):
    """Polynomials in log t, started at the default coefficients."""

    def __init__(
        self, alpha: float = ALPHA, *, degree: int = DEGREE, t0: float = 1.0, t1: float = 21.0,
        C: float = 1.0,
    ) -> None:  # fmt: skip
        if degree < 1:
            raise InputError(f"A polynomial needs a degree of at least 1, not {degree}.")
        self._start(PolynomialCurve(np.zeros(degree + 1), t0, t1), alpha, C)
