"""Options of the target "flow"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.learning.options import COUNT, POSITIVE, Options, Range, ReadWith, option, override
from ode2opt.paper.default import (
    ACTIVATIONS,
    ALPHA,
    T0,
    DefaultCoefficients,
    H,
    check_pair,
    check_times,
)

if TYPE_CHECKING:
    from ode2opt.paper.coefficients import Coefficients

OWN = "own"  # coefficients that are a module given to learn()
FLOW_SCALES = ("instance", "family", "paper")
UNITS = ("free", "printed")
FLOW_METRICS = ("none",)
ESTIMATORS = ("power", "global", "l0l1")
FLOW_PANEL = "Of a flow"

LEARNABLE: dict[str, Callable[[Any, FlowOptions], Coefficients]] = {
    "feasible": lambda kinds, o: kinds.Feasible(o.alpha, h=o.h, t0=o.t0, t1=o.t1),
    "proved": lambda kinds, o: kinds.Proved(o.alpha, h=o.h, t0=o.t0, t1=o.t1),
    "spline": lambda kinds, o: kinds.Spline(o.alpha, t0=o.t0, t1=o.t1),
    "polynomial": lambda kinds, o: kinds.Polynomial(o.alpha, t0=o.t0, t1=o.t1),
    "neural": lambda kinds, o: kinds.Neural(
        o.alpha, activation=o.activation, seed=o.seed, t1=o.t1, plain=o.units == "printed"
    ),
}
"""Kinds of coefficients that can be learned: ``ode2opt.coefficients`` makes an empty one."""


@dataclass(frozen=True, kw_only=True)
class FlowOptions(Options):
    """What a flow is learned with; the defaults serve all problems of the paper.

    The other options are those of :class:`Options`.

    Attributes:
        steps: updates of the parameters; 1 or more, 150 by default.
        coefficients: "feasible" (the default), "proved", "spline", "polynomial" or "neural"; in
            Python a module as well, see :func:`ode2opt.learn`.
        scale: divide by the curvature of each "instance" (the default), by that of the "family",
            or by the "paper"'s step constant L (docs/mathematics.md, section 9).
        metric: "none": a flow has no preconditioner.
        batch: problems of a step; 1 or more, 2 by default.
        horizon: iterations after which a problem is given up; 1 or more, 600 by default.
        penalty: the coefficient rho of P + Q; positive, 10 by default.
        activation: of neural coefficients; "softplus" by default.
        alpha: the damping at the start; above 1, 6 by default.
        learn_alpha: whether the damping is learned, too; False by default.
        h: the step of the discretisation; positive, 0.04 by default.
        t0: its first time; positive, 1 by default.
        substeps: steps of the flow in each step of the discretisation; 1 or more. None (the
            default) takes the first of 1, 2, 4, 8 and 16 with which halving the flow's step changes
            T - t0 by less than 1% on the first batch.
        C: of the default coefficients that training starts from; positive, 2 by default.
        kappa: of Theorem 1; in (0, 1], 1 by default.
        lam: of Theorem 1; positive, alpha - 1 by default.
        estimator: of the curvature along the way: "power" (the default), "global" or "l0l1".
        safety: the factor on that curvature in training; at least 1, 1.2 by default.
        units: "free" (the default): P and Q in the loss are dimensionless, and networks have units
            of about their size. "printed": as in the paper, both have the units of beta and gamma.
        first: settings and parameters to start from, made of coefficients that are given to
            ``learn``; None by default.
    """

    target: ClassVar[str] = "flow"
    panel: ClassVar[str] = FLOW_PANEL

    steps: int = override("steps", 150)
    coefficients: str = override("coefficients", "feasible", choices=LEARNABLE, further=(OWN,))
    scale: str = override("scale", "instance", choices=FLOW_SCALES)
    metric: str = override("metric", "none", choices=FLOW_METRICS)
    batch: int = override("batch", 2)
    horizon: int = override("horizon", 600)
    penalty: float = override("penalty", 10.0)
    activation: str = option(
        "softplus", "Of neural coefficients.", FLOW_PANEL, choices=ACTIVATIONS,
        needs=ReadWith("coefficients", ("neural",)),
    )  # fmt: skip
    alpha: float = option(
        ALPHA, "The damping, at the start.", FLOW_PANEL, range=Range(1, ends="()")
    )
    learn_alpha: bool = option(False, "Learn the damping, too.", FLOW_PANEL)
    h: float = option(H, "Step of the discretisation.", FLOW_PANEL, range=POSITIVE)
    t0: float = option(T0, "Its first time.", FLOW_PANEL, range=POSITIVE)
    substeps: int | None = option(
        None,
        "Steps of the flow in each of the sequence; by default so many that T is within 1%.",
        FLOW_PANEL,
        range=COUNT,
    )
    C: float = option(2.0, "Default coefficients to start from.", FLOW_PANEL, range=POSITIVE)
    kappa: float = option(1.0, "Of Theorem 1, in (0, 1].", FLOW_PANEL, range=Range(0, 1, "(]"))
    lam: float | None = option(
        None, "Of Theorem 1; alpha - 1 by default.", FLOW_PANEL, range=POSITIVE
    )
    estimator: str = option(
        "power", "How the curvature along the way is found.", FLOW_PANEL, choices=ESTIMATORS
    )
    safety: float = option(1.2, "Factor on that curvature in training.", FLOW_PANEL, range=Range(1))
    units: str = option(
        "free",
        "P and Q in the loss, and networks: free of units, or as the paper prints them.",
        FLOW_PANEL,
        choices=UNITS,
    )
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
        """The time of the horizon, t0 + h horizon."""
        return self.t0 + self.h * self.horizon

    def _rate(self) -> float:
        return 1e-3 if self.optimizer == "sgd" or self.coefficients == "neural" else 3e-2

    def first_coefficients(self) -> Coefficients:
        """Return the coefficients that training starts from. Needs JAX.

        Returns:
            Those of ``first``, or a fit to the default coefficients with the constant ``C``.
        """
        from ode2opt import coefficients as kinds

        if self.first is not None:
            arrays = {name: np.asarray(v) for name, v in self.first["parameters"].items()}
            return kinds.restored(self.coefficients, self.first["settings"], arrays)
        if self.coefficients == OWN:
            raise InputError(
                "coefficients 'own' are a module that learn() is given: give it, also to resume."
            )
        default = DefaultCoefficients(self.C, self.alpha, self.h, self.t0)
        blank = LEARNABLE[self.coefficients](kinds, self)
        return blank.fit_to(default.beta, default.gamma, t0=self.t0, t1=self.t1)
