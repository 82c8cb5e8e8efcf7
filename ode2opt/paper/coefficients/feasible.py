"""Coefficients that meet the stability condition whatever their parameters.

See docs/mathematics.md, section 8.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.paper.coefficients.base import (
    Coefficients,
    as_alpha,
    samples,
)
from ode2opt.paper.coefficients.log_time import KNOTS, SplineCurve
from ode2opt.paper.default import ALPHA, H, check_times
from ode2opt.paper.schedule import TimeFunction

MARGIN = 0.97
EDGE = 1e-6  # how close a fit comes to the ends of the interval for s


class Feasible(Coefficients):
    """Coefficients that meet the stability condition for all values of their parameters.

        beta = m (sqrt(s) + sqrt(s-d))^2 / (h Lam),   gamma = s beta/h + beta'

    Here s = d + (1-d) sigmoid(p) and d = alpha h/t; p and log Lam are splines in log t. Lam(t)
    models how the curvature falls along the way (1 at the start). Then d a <= c <= a, the
    stability condition for that Lam with margin m, and w > 0 hold identically
    (docs/mathematics.md, section 8).
    """

    alpha: Array
    shape: SplineCurve
    log_curvature: SplineCurve
    margin: float = eqx.field(static=True)
    h: float = eqx.field(static=True)

    def __init__(
        self, alpha: float = ALPHA, *, margin: float = MARGIN, h: float = H, knots: int = KNOTS,
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
        share = np.clip((self.h * (g - slope) / b - d) / (1 - d), EDGE, 1 - EDGE)
        s = d + (1 - d) * share
        curvature = self.margin * (np.sqrt(s) + np.sqrt(s - d)) ** 2 / (self.h * b)
        fitted = (
            self.shape.regressed(t, np.log(share / (1 - share))),
            self.log_curvature.regressed(t, np.log(curvature)),
        )
        return eqx.tree_at(lambda c: (c.shape, c.log_curvature), self, fitted)
