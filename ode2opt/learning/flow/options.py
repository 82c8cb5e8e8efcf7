"""Options of the flow's target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ode2opt.dynamics.default import (
    ACTIVATIONS,
    ALPHA,
    T0,
    DefaultCoefficients,
    H,
    check_pair,
    check_times,
)
from ode2opt.errors import InputError, shown
from ode2opt.learning.options import POSITIVE, Options, Range, again, option

if TYPE_CHECKING:
    from ode2opt.dynamics.coefficients import Coefficients

SCALES = ("instance", "family")
METRICS = ("none",)
ESTIMATORS = ("power", "global", "l0l1")
PANEL = "Of a flow"

LEARNABLE: dict[str, Callable[[Any, FlowOptions], Coefficients]] = {
    "feasible": lambda kinds, o: kinds.Feasible(o.alpha, h=o.h, t0=o.t0, t1=o.t1),
    "spline": lambda kinds, o: kinds.Spline(o.alpha, t0=o.t0, t1=o.t1),
    "polynomial": lambda kinds, o: kinds.Polynomial(o.alpha, t0=o.t0, t1=o.t1),
    "neural": lambda kinds, o: kinds.Neural(o.alpha, activation=o.activation, seed=o.seed, t1=o.t1),
}
"""Kinds of coefficients that can be learned: ``dynamics.coefficients`` makes an empty one."""


@dataclass(frozen=True, kw_only=True)
class FlowOptions(Options):
    """What a flow is learned with; the defaults serve all problems of the paper."""

    target: ClassVar[str] = "flow"
    panel: ClassVar[str] = PANEL

    steps: int = again("steps", 150)
    coefficients: str = again("coefficients", "feasible", choices=LEARNABLE)
    scale: str = again("scale", "instance", choices=SCALES)
    metric: str = again("metric", "none", choices=METRICS)
    batch: int = again("batch", 2)
    horizon: int = again("horizon", 600)
    penalty: float = again("penalty", 10.0)
    activation: str = option("softplus", "Of neural coefficients.", PANEL, choices=ACTIVATIONS)
    alpha: float = option(ALPHA, "The damping, at the start.", PANEL, range=Range(1, ends="()"))
    learn_alpha: bool = option(False, "Learn the damping, too.", PANEL)
    h: float = option(H, "Step of the discretisation.", PANEL, range=POSITIVE)
    t0: float = option(T0, "Its first time.", PANEL, range=POSITIVE)
    C: float = option(2.0, "Default coefficients to start from.", PANEL, range=POSITIVE)
    kappa: float = option(1.0, "Of Theorem 1, in (0, 1].", PANEL, range=Range(0, 1, "(]"))
    lam: float | None = option(None, "Of Theorem 1; alpha - 1 by default.", PANEL, range=POSITIVE)
    estimator: str = option(
        "power", "How the curvature along the way is found.", PANEL, choices=ESTIMATORS
    )
    safety: float = option(1.2, "Factor on that curvature in training.", PANEL, range=Range(1))
    first: Mapping[str, Any] | None = option(
        None, "Settings and parameters to begin with, of coefficients given to learn().", None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_times(self.alpha, self.h, self.t0)
        if self.first is not None and not all(
            isinstance(self.first.get(part), dict) for part in ("settings", "parameters")
        ):
            raise InputError(f"first is {shown(self.first)}: it has no settings and parameters.")
        check_pair(self.kappa, self.alpha - 1 if self.lam is None else self.lam, self.alpha)

    @property
    def t1(self) -> float:
        """The time of the horizon."""
        return self.t0 + self.h * self.horizon

    def _rate(self) -> float:
        return 1e-3 if self.optimizer == "sgd" or self.coefficients == "neural" else 3e-2

    def first_coefficients(self) -> Coefficients:
        """Return the coefficients to start from: those given, or close to the default ones.

        Needs JAX.
        """
        from ode2opt.dynamics import coefficients as kinds

        if self.first is not None:
            arrays = {name: np.asarray(v) for name, v in self.first["parameters"].items()}
            return kinds.restored(self.coefficients, self.first["settings"], arrays)
        default = DefaultCoefficients(self.C, self.alpha, self.h, self.t0)
        blank = LEARNABLE[self.coefficients](kinds, self)
        return blank.fit_to(default.beta, default.gamma, t0=self.t0, t1=self.t1)
