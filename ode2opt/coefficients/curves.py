"""Coefficients that are curves: splines and polynomials of log t, and straight lines."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.base.precision import jax_precision
from ode2opt.base.schedule import TimeFunction
from ode2opt.paper.coefficients import Coefficients, as_alpha, samples
from ode2opt.paper.default import ALPHA, DefaultCoefficients, H

KNOTS = 9  # of a spline, where nothing is said


class LogTimeCurve(eqx.Module):
    """A smooth function of log t on [t0, t1], linear in its parameters, a straight line beyond."""

    parameters: Array
    t0: float = eqx.field(static=True)
    t1: float = eqx.field(static=True)

    @property
    def count(self) -> int:
        """The setting that says how fine the curve is: the number of knots, or the degree."""
        return int(self.parameters.shape[-1])

    @abstractmethod
    def basis(self, position: Array) -> Array:
        """Return the values of the basis functions."""

    def position(self, t: Array) -> Array:
        """Return where log t lies between the ends: 0 at t0, 1 at t1."""
        return (jnp.log(t) - np.log(self.t0)) / np.log(self.t1 / self.t0)

    def __call__(self, t: Array) -> Array:
        return self.basis(self.position(t)) @ self.parameters

    def regressed(self, t: np.ndarray, values: np.ndarray) -> LogTimeCurve:
        """Return the curve that fits given values by least squares."""
        with jax_precision():
            times = jnp.asarray(t)
            design = np.asarray(jax.vmap(lambda time: self.basis(self.position(time)))(times))
        fitted = np.linalg.lstsq(design, values, rcond=1e-12)[0]
        return eqx.tree_at(lambda curve: curve.parameters, self, fitted)


class SplineCurve(LogTimeCurve):
    """A natural cubic spline; its parameters are the values at knots that are even in log t."""

    def basis(self, position: Array) -> Array:
        """Return the cardinal splines as sums of 1, u and the cubes (u - k)_+^3."""
        count = self.count
        u = position * (count - 1)
        cubes = jnp.maximum(u - np.arange(count), 0.0) ** 3
        ones, linear, cubic = np.split(_cardinal_splines(count), [1, 2], axis=1)
        return ones[:, 0] + linear[:, 0] * u + cubic @ cubes


@functools.cache
def _cardinal_splines(count: int) -> np.ndarray:
    """Return the weights of 1, u and the cubes in each spline that is 1 at its own knot only.

    Beyond the last knot a natural spline is straight: the cubes' weights and their first moment
    sum to zero.
    """
    knots = np.arange(count, dtype=float)
    cubes = np.maximum(knots[:, None] - knots, 0.0) ** 3
    at_knots = np.column_stack([np.ones(count), knots, cubes])
    straight = np.column_stack([np.zeros((2, 2)), np.stack([np.ones(count), knots])])
    system, values = np.vstack([at_knots, straight]), np.eye(count + 2, count)
    return np.linalg.solve(system, values).T


class PolynomialCurve(LogTimeCurve):
    """A Chebyshev series."""

    @property
    def count(self) -> int:
        """The degree."""
        return int(self.parameters.shape[-1]) - 1

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
    """Coefficients beta = exp(p(log t)) and gamma = exp(q(log t)), which are always positive."""

    log_beta: LogTimeCurve
    log_gamma: LogTimeCurve
    count_name: ClassVar[str]

    def beta(self, t: Array) -> Array:
        return jnp.exp(self.log_beta(t))

    def gamma(self, t: Array) -> Array:
        return jnp.exp(self.log_gamma(t))

    @property
    def settings(self) -> dict[str, Any]:
        curve = self.log_beta
        return {self.count_name: curve.count, "t0": curve.t0, "t1": curve.t1}

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> LogTime:
        t, b = samples(beta, t0, t1, "beta", positive=True)
        _, g = samples(gamma, t0, t1, "gamma", positive=True)
        curves = self.log_beta.regressed(t, np.log(b)), self.log_gamma.regressed(t, np.log(g))
        return eqx.tree_at(lambda c: (c.log_beta, c.log_gamma), self, curves)

    def _start(self, curve: LogTimeCurve, alpha: Array, C: float) -> None:
        self.alpha = as_alpha(alpha)
        self.log_beta = self.log_gamma = curve
        default = DefaultCoefficients(C, float(self.alpha), H)
        fitted = self.fit_to(default.beta, default.gamma, t0=curve.t0, t1=curve.t1)
        self.log_beta, self.log_gamma = fitted.log_beta, fitted.log_gamma


class Spline(LogTime):
    """Natural cubic splines in log t, started at the default coefficients."""

    count_name = "knots"

    def __init__(
        self, alpha: float = ALPHA, *, knots: int = KNOTS, t0: float = 1.0, t1: float = 21.0,
        C: float = 1.0,
    ) -> None:  # fmt: skip
        if knots < 3:
            raise InputError(f"A spline needs at least 3 knots, not {knots}.")
        self._start(SplineCurve(np.zeros(knots), t0, t1), alpha, C)


class Polynomial(LogTime):
    """Polynomials in log t, started at the default coefficients."""

    count_name = "degree"

    def __init__(
        self, alpha: float = ALPHA, *, degree: int = 6, t0: float = 1.0, t1: float = 21.0,
        C: float = 1.0,
    ) -> None:  # fmt: skip
        if degree < 1:
            raise InputError(f"A polynomial needs a degree of at least 1, not {degree}.")
        self._start(PolynomialCurve(np.zeros(degree + 1), t0, t1), alpha, C)


class Table(Coefficients):
    """Coefficients given at some times, straight lines between them, constant outside.

    Examples:
        >>> float(Table([1, 3], [20.0, 10.0], [500.0, 300.0]).beta(2.0))
        15.0
    """

    times: Array
    betas: Array
    gammas: Array

    def __init__(self, times: Array, betas: Array, gammas: Array, alpha: float = ALPHA) -> None:
        rows = [np.asarray(row, dtype=np.float64) for row in (times, betas, gammas)]
        if rows[0].ndim != 1 or len(rows[0]) < 2 or len({row.shape for row in rows}) != 1:
            shapes = ", ".join(str(row.shape) for row in rows)
            raise InputError(f"A table needs three rows of one length (2 or more), not {shapes}.")
        if np.any(np.diff(rows[0]) <= 0):
            raise InputError("A table's times must rise.")
        for name, values in (("beta", rows[1]), ("gamma", rows[2])):
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise InputError(f"A table's {name} must be finite and not negative.")
        self.alpha = as_alpha(alpha)
        self.times, self.betas, self.gammas = rows

    def beta(self, t: Array) -> Array:
        return jnp.interp(t, self.times, self.betas)

    def gamma(self, t: Array) -> Array:
        return jnp.interp(t, self.times, self.gammas)

    @property
    def settings(self) -> dict[str, Any]:
        return {"count": len(self.times)}

    @classmethod
    def blank(cls, *, count: int = 2) -> Table:  # type: ignore[override]
        """Return a table of ones, to be filled in."""
        return cls(np.arange(1.0, count + 1), np.ones(count), np.ones(count))

    @property
    def smooth(self) -> bool:
        return False

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Table:
        t, b = samples(beta, t0, t1, "beta", positive=False)
        _, g = samples(gamma, t0, t1, "gamma", positive=False)
        return Table(t, b, g, float(self.alpha))
