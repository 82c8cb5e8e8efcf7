"""The default coefficients in NumPy, and the ranges of numbers (docs/mathematics.md, 3 and 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ode2opt.base.errors import InputError
from ode2opt.base.schedule import Schedule

ALPHA, H, T0 = 6.0, 0.04, 1.0
ACTIVATIONS = ("softplus", "elu", "relu")  # of neural coefficients
RELATIVE_ROUNDING = 1e-9  # conditions may be missed by this share: their sides are rounded


@dataclass(frozen=True)
class DefaultCoefficients:
    """The paper's hand-made coefficients for a curvature of 1.

        beta(t) = C/h - C alpha/(2t),   gamma(t) = beta(t)/h

    C = 1 is what the paper's tables show, C = 4 what its text prints. With a tight L the largest
    stable C is 3.956; C = 2 is safe where L is only estimated.

    Examples:
        >>> DefaultCoefficients(2.0).schedule(K=300, L=4.0)
        Schedule(300 iterations, a 0.44 to 0.495, c 0.438 to 0.495, d 0.0185 to 0.24)
    """

    C: float
    alpha: float = ALPHA
    h: float = H
    t0: float = T0
    longest: ClassVar[int] = 100_000  # iterations; beyond, the guard's fallback does better

    def beta(self, t: Any) -> Any:
        """Return the Hessian damping C/h - C alpha/(2t)."""
        return self.C / self.h - self.C * self.alpha / (2 * t)

    def gamma(self, t: Any) -> Any:
        """Return the weight of the gradient, beta/h."""
        return self.beta(t) / self.h

    def dbeta(self, t: Any) -> Any:
        """Return the derivative of beta, C alpha/(2 t^2)."""
        return self.C * self.alpha / (2 * t**2)

    def schedule(self, K: int, L: float = 1.0) -> Schedule:
        """Return the Euler discretisation with step ``h`` from ``t0`` on."""
        curves = (self.beta, self.gamma, self.dbeta)
        return Schedule.from_coefficients(self.alpha, *curves, h=self.h, t0=self.t0, K=K).scaled(L)


def check_times(alpha: float, h: float, t0: float) -> None:
    """Refuse numbers that no discretisation can have."""
    if not alpha > 1:
        raise InputError(f"alpha is {alpha:g}: it must be above 1.")
    if not h > 0:
        raise InputError(f"h is {h:g}: the step must be positive.")
    if not t0 > alpha * h:
        raise InputError(f"t0 = {t0:g} must exceed alpha h = {alpha * h:g}.")


def check_pair(kappa: float, lam: float, alpha: float) -> None:
    """Refuse constants that the conditions of Theorem 1 cannot have."""
    if not alpha > 1:
        raise InputError(f"alpha is {alpha:g}: it must be above 1.")
    if not 0 < kappa <= 1:
        raise InputError(f"kappa is {kappa:g}: it must lie in (0, 1].")
    if not 0 < lam <= (alpha - 1) * (1 + RELATIVE_ROUNDING):
        raise InputError(f"lam is {lam:g}: it must lie in (0, alpha - 1] = (0, {alpha - 1:g}].")
