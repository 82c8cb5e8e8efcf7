"""The default coefficients as a JAX module (docs/mathematics.md, section 8)."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.paper.coefficients.base import Coefficients, as_alpha, samples
from ode2opt.paper.default import ALPHA, DefaultCoefficients, H
from ode2opt.paper.schedule import TimeFunction


class Default(Coefficients):
    """The paper's hand-made coefficients, with a C that can be learned.

        beta = C/h - C alpha/(2t),   gamma = beta/h, or beta/h + beta' with ``corrected``

    See docs/mathematics.md, section 8.
    """

    C: Array
    h: float = eqx.field(static=True)
    corrected: bool = eqx.field(static=True)

    def __init__(
        self, C: float = 1.0, alpha: float = ALPHA, *, h: float = H, corrected: bool = False
    ) -> None:
        if not C > 0:
            raise InputError(f"C is {C:g}: it must be positive.")
        self.C, self.alpha, self.h, self.corrected = np.float64(C), as_alpha(alpha), h, corrected

    def _formula(self) -> DefaultCoefficients:
        return DefaultCoefficients(self.C, self.alpha, self.h)

    def beta(self, t: Array) -> Array:
        return self._formula().beta(t)

    def gamma(self, t: Array) -> Array:
        formula = self._formula()
        return formula.gamma(t) + formula.dbeta(t) if self.corrected else formula.gamma(t)

    @property
    def settings(self) -> dict[str, Any]:
        return {"h": self.h, "corrected": self.corrected}

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Default:
        """Fit C to beta by least squares; gamma follows from it."""
        t, values = samples(beta, t0, t1, "beta", positive=True)
        shape = DefaultCoefficients(1.0, float(self.alpha), self.h).beta(t)
        C = shape @ values / (shape @ shape)
        return Default(C, float(self.alpha), h=self.h, corrected=self.corrected)
