"""The conditions under which a method may be trusted (docs/mathematics.md, sections 3 and 4).

Functions of the numbers a, c, d and a curvature are elementwise, on NumPy or JAX arrays. A margin
is positive where its condition holds with room, zero on the edge, negative where it fails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.paper.coefficients import Coefficients, Curves, Default
from ode2opt.paper.default import RELATIVE_ROUNDING, check_pair, check_times

# The flow: convergence (Theorem 1) and growth (Theorem 2) ----------------------------------------


class Convergence(NamedTuple):
    """Scaled conditions of Theorem 1 for (kappa, lam): delta > 0, w >= 0, delta' <= lam t w."""

    kappa: float
    lam: float
    t: np.ndarray
    delta: np.ndarray  # delta / (t^2 gamma)
    w: np.ndarray  # w / gamma
    slack: np.ndarray  # (lam t w - delta') / (t gamma)

    @property
    def at_each_time(self) -> np.ndarray:
        """The smallest of the three at each time."""
        return np.minimum(np.minimum(self.delta, self.w), self.slack)

    @property
    def margin(self) -> float:
        """The smallest over all times."""
        return float(self.at_each_time.min())


def convergence(
    coefficients: Coefficients, t: Array, kappa: float = 1.0, lam: float | None = None
) -> Convergence:
    """Check the conditions of Theorem 1 on a grid of times."""
    alpha = float(coefficients.alpha)
    lam = alpha - 1 if lam is None else lam
    check_pair(kappa, lam, alpha)
    rows = _linear_conditions(_checked(coefficients, t), alpha)
    delta, w, slack = (row[0] + kappa * row[1] + lam * row[2] for row in rows)
    return Convergence(kappa, lam, np.asarray(t, dtype=float), delta, w, slack)


def best_pair(coefficients: Coefficients, t: Array, gap: float = 1e-3) -> Convergence:
    """Return the pair with kappa <= 1 - gap, lam <= (alpha - 1)(1 - gap) of largest margin.

    The conditions are linear in (kappa, lam), so this is a linear program. Only such a pair
    gives the integral estimates |g| = O(1/(t beta)) and |x'| = O(1/t).
    """
    from scipy.optimize import linprog

    alpha = float(coefficients.alpha)
    rows = _linear_conditions(_checked(coefficients, t), alpha)
    constant, by_kappa, by_lam = (np.concatenate([row[i] for row in rows]) for i in range(3))
    found = linprog(  # maximise the margin m subject to m - kappa p - lam q <= constant
        [0, 0, -1], np.column_stack([-by_kappa, -by_lam, np.ones_like(constant)]), constant,
        bounds=[(gap, 1 - gap), (gap * (alpha - 1), (1 - gap) * (alpha - 1)), (None, None)],
    )  # fmt: skip
    if not found.success:
        raise InputError(f"The search for (kappa, lam) failed: {found.message}")
    return convergence(coefficients, t, float(found.x[0]), float(found.x[1]))


def best_convergence(coefficients: Coefficients, t: Array) -> Convergence:
    """Return a pair with kappa < 1 where one holds, else the paper's kappa = 1, lam = alpha - 1."""
    strict = best_pair(coefficients, t)
    return strict if strict.margin > 0 else convergence(coefficients, t)


def _linear_conditions(c: Curves, alpha: float) -> list[tuple[Array, Array, Array]]:
    """Return the normalised delta, w and slack as (constant, factor of kappa, factor of lam)."""
    t, beta, gamma = c.t, c.beta, c.gamma
    size = np.where(gamma > 0, gamma, 1.0)
    zero = np.zeros_like(t)
    w = gamma - c.dbeta - beta / t
    delta = (t**2 * gamma, -(t**2) * c.dbeta + (alpha - 2) * t * beta, -t * beta)
    slope = (
        2 * t * gamma + t**2 * c.dgamma,
        -2 * t * c.dbeta - t**2 * c.d2beta + (alpha - 2) * (beta + t * c.dbeta),
        -(beta + t * c.dbeta),
    )
    return [
        tuple(part / (t**2 * size) for part in delta),
        (w / size, zero, zero),
        (-slope[0] / (t * size), -slope[1] / (t * size), (t * w - slope[2]) / (t * size)),
    ]


class Growth(NamedTuple):
    """The growth constants: |beta'| <= C1 beta, |gamma' - beta''| <= C2 sigma, beta <= C3 w.

    Here sigma = gamma - beta'. The paper's Theorem 2 bounds C2 alone, by 1/h - 1/t0.

    Attributes:
        C1: of beta; infinite where beta vanishes and beta' does not.
        C2: of sigma.
        C3: of beta beside w.
        limit: 1/h - 1/t0.
    """

    C1: float
    C2: float
    C3: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether C1 and C3 are finite and C2 is at most the limit."""
        return bool(np.isfinite(self.C1) and np.isfinite(self.C3) and self.C2 <= self.limit)


def growth(coefficients: Coefficients, t: Array, h: float) -> Growth:
    """Return the smallest growth constants on a grid of times."""
    c = _checked(coefficients, t)
    s, w = c.gamma - c.dbeta, c.gamma - c.dbeta - c.beta / c.t
    return Growth(
        _ratio(np.abs(c.dbeta), c.beta),
        _ratio(np.abs(c.dgamma - c.d2beta), s),
        _ratio(c.beta, w),
        1 / h - 1 / float(c.t.min()),
    )


def _ratio(top: np.ndarray, bottom: np.ndarray) -> float:
    """Return the largest top/bottom; infinite where the bottom is not positive and the top is."""
    if np.any((bottom <= 0) & (top > 0)):
        return np.inf
    return float(np.max(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)))


def _checked(coefficients: Coefficients, t: Array) -> Curves:
    t = np.asarray(t, dtype=float)
    if t.ndim != 1 or not len(t) or np.any(t <= 0):
        raise InputError("The conditions need a grid of positive times.")
    curves = coefficients.curves(t)
    for name, values in zip(Curves._fields, curves, strict=True):
        if not np.all(np.isfinite(values)):
            raise InputError(f"{name} is not finite at t = {t[~np.isfinite(values)][0]:.4g}.")
        if name in ("beta", "gamma") and np.any(values < 0):
            at = f"t = {t[values < 0][0]:.4g}"
            raise InputError(f"{name} is negative at {at}: the theory needs {name} >= 0.")
    return curves


# The sequence: stability and contraction --------------------------------------------------------


def stability_margin(a: Array, c: Array, d: Array, curvature: Array) -> Array:
    """Margin of the paper's condition d a <= c <= a, sqrt(a Lam) <= sqrt(c/a) + sqrt(c/a - d).

    1 - a Lam / (sqrt(s) + sqrt(s - d))^2 with s = c/a, or by how much s <= 1, s >= d, a > 0 or
    d >= 0 fails, if that is less.
    """
    xp = array_namespace(a)
    s = c / xp.where(a == 0, xp.ones_like(a), a)
    order = xp.minimum(xp.where(a > 0, xp.minimum(1 - s, s - d), -xp.ones_like(a)), d)
    edge = (safe_sqrt(s) + safe_sqrt(s - d)) ** 2
    room = 1 - a * curvature / xp.where(edge > 0, edge, xp.full_like(edge, 1e-300))
    return xp.where(order < -RELATIVE_ROUNDING, xp.minimum(order, room), room)


def linear_margin(a: Array, c: Array, d: Array, curvature: Array) -> Array:
    """Margin of exact linear stability for all modes with curvature l in (0, ``curvature``].

    c l > 0, (c - a) l < d and (a - c/2) l + d < 2 are linear in l, so its ends decide: the largest
    l, where the last two are divided by d and 2 - d, and 0, where 0 < d < 2 is left.
    """
    xp = array_namespace(a)
    momentum = d - (c - a) * curvature
    swing = 2 - d - (a - c / 2) * curvature
    momentum = momentum / xp.where(d > 0, d, xp.ones_like(d))
    swing = swing / xp.where(d < 2, 2 - d, xp.ones_like(d))
    margin = xp.minimum(momentum, swing)
    margin = xp.where((d > 0) & (d < 2), margin, xp.minimum(margin, xp.minimum(d, 2 - d)))
    return xp.where(c > 0, margin, xp.minimum(margin, c * curvature))


class Contraction(NamedTuple):
    """The contraction factor rho on a mode of curvature l, and what it is made of."""

    A: Array  # c l
    B: Array  # (a l + d)/2
    C: Array  # B^2 - A; negative where the mode oscillates
    rho: Array  # the spectral radius of the one-step matrix


def contraction(a: Array, c: Array, d: Array, curvature: Array) -> Contraction:
    """Return rho = sqrt(1 - 2 B + A) where C < 0, and |1 - B| + sqrt(C) elsewhere."""
    xp = array_namespace(a)
    A, B = c * curvature, (a * curvature + d) / 2
    C = B**2 - A
    rho = xp.where(C < 0, safe_sqrt(1 - 2 * B + A), xp.abs(1 - B) + safe_sqrt(C))
    return Contraction(A, B, C, rho)


def safe_sqrt(z: Array) -> Array:
    """Return sqrt(max(z, 0)) with a finite derivative everywhere (double where)."""
    xp = array_namespace(z)
    positive = z > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, z, xp.ones_like(z))), xp.zeros_like(z))


def largest_stable_C(
    alpha: float = 6.0, h: float = 0.04, t0: float = 1.0, K: int = 10_000, corrected: bool = False
) -> float:
    """Return the largest C whose default coefficients meet the stability condition for Lam = 1.

    Examples:
        >>> round(largest_stable_C(), 3)
        3.956
    """
    check_times(alpha, h, t0)
    schedule = Default(1.0, alpha, h=h, corrected=corrected).schedule(h, t0, K)
    ratio = 1 - stability_margin(schedule.a, schedule.c, schedule.d, np.ones(K))
    return float(1 / ratio.max())  # a is proportional to C, and c/a does not depend on it
