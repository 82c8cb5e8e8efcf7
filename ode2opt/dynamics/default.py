"""Default coefficients: beta = (C/h - C alpha/(2t))/L, gamma = beta/h.

See docs/mathematics.md, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ode2opt.dynamics.schedule import Schedule

ALPHA, H, T0 = 6.0, 0.04, 1.0
LONGEST = 100_000
"""The longest schedule of default coefficients; beyond it the guard's fallback does better."""


@dataclass(frozen=True)
class DefaultCoefficients:
    """The paper's hand-made coefficients for a curvature of 1.

    C = 1 is what its tables show, C = 4 what its text prints. With a tight L the largest stable C
    is 3.956; C = 2 is safe where L is only estimated.
    """

    C: float
    alpha: float = ALPHA
    h: float = H
    t0: float = T0

    def beta(self, t: Any) -> Any:
        """Return the Hessian damping at time ``t``."""
        return self.C / self.h - self.C * self.alpha / (2 * t)

    def gamma(self, t: Any) -> Any:
        """Return the weight of the gradient at time ``t``."""
        return self.beta(t) / self.h

    def dbeta(self, t: Any) -> Any:
        """Return the derivative of beta at time ``t``."""
        return self.C * self.alpha / (2 * t**2)

    def schedule(self, K: int, L: float = 1.0) -> Schedule:
        """Return ``K`` iterations for curvature ``L``."""
        curves = (self.beta, self.gamma, self.dbeta)
        return Schedule.from_coefficients(self.alpha, *curves, h=self.h, t0=self.t0, K=K).scaled(L)
