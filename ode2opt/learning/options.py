"""What a training run is made with: every option, its default and its limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

from ode2opt.dynamics.coefficients import Coefficients, Feasible, Neural, Polynomial, Spline
from ode2opt.dynamics.coefficients.base import check_times
from ode2opt.dynamics.coefficients.neural import ACTIVATIONS
from ode2opt.dynamics.conditions import check_pair
from ode2opt.dynamics.default import ALPHA, T0, DefaultCoefficients, H
from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count, as_number, as_positive

TARGETS = ("flow", "sequence")
METRICS = ("auto", "none", "diagonal", "spectral", "lowrank")
REFERENCES = ("auto", "start", "path")
STARTS = ("paper", "learned")
SCALES = ("instance", "family")
OPTIMIZERS = ("sgd", "adam", "adamw")
DECAYS = ("constant", "cosine", "exponential")
ESTIMATORS = ("power", "global", "l0l1")

LEARNABLE: dict[str, Callable[[Options], Coefficients]] = {
    "feasible": lambda o: Feasible(o.alpha, h=o.h, t0=o.t0, t1=o.t1),
    "spline": lambda o: Spline(o.alpha, t0=o.t0, t1=o.t1),
    "polynomial": lambda o: Polynomial(o.alpha, t0=o.t0, t1=o.t1),
    "neural": lambda o: Neural(o.alpha, activation=o.activation, seed=o.seed, t1=o.t1),
}
"""Kinds of coefficients that can be learned: the options make an empty one."""

BY_TARGET: dict[str, dict[str, Any]] = {
    "flow": {
        "coefficients": "feasible", "steps": 150, "batch": 2, "penalty": 10.0, "horizon": 600,
        "scale": "instance", "metric": "none",
    },
    "sequence": {
        "coefficients": "spline", "steps": 100, "batch": 8, "penalty": 0.1, "horizon": 150,
        "scale": "family", "metric": "auto",
    },
}  # fmt: skip
"""Defaults that depend on the target."""

OWN: dict[str, tuple[str, ...]] = {
    "flow": (
        "alpha", "learn_alpha", "h", "t0", "C", "kappa", "lam", "estimator", "safety", "activation",
    ),
    "sequence": ("knots", "margin", "reference", "start"),
}  # fmt: skip
"""Options that one target alone reads: with the other they are refused."""

CHOICES: dict[str, Collection[str]] = {
    "coefficients": LEARNABLE, "metric": METRICS, "reference": REFERENCES, "start": STARTS,
    "activation": ACTIVATIONS, "optimizer": OPTIMIZERS, "decay": DECAYS, "scale": SCALES,
    "estimator": ESTIMATORS,
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Options of :func:`ode2opt.learn`; the defaults serve all problems of the paper.

    Where the default is None it depends on the target (``BY_TARGET``).

    Attributes:
        target: whose stopping time is minimised: the flow's, or that of the guarded sequence.
        coefficients: feasible, spline, polynomial or neural; a sequence has a spline.
        metric: of a sequence: none, diagonal, spectral, lowrank, or auto, by training problems.
        reference: where the metric looks at curvature: start, path or auto.
        start: of a sequence: the paper's start point, or one learned from solutions.
        knots: of the spline of a sequence.
        margin: how far from the edge of linear stability a sequence's penalty begins.
        activation: of the neural ones: softplus, elu or relu.
        tol: the gradient norm to reach.
        steps: updates of the parameters; 0 is a sequence's instant method, without a table.
        batch: problems a step.
        seed: drives which problems are drawn.
        blocks: make every second training and validation problem of rows that follow each other,
            so that what is learned holds for sub-populations of an ordered file as well.
        optimizer: adam, adamw, or sgd with momentum as in the paper.
        lr: its step size; by default 3e-2, but 1e-3 for neural coefficients and for sgd.
        momentum: of sgd.
        decay: how the step size falls: constant, cosine or exponential (to a hundredth).
        clip: the largest norm of one problem's gradient.
        penalty: the coefficient rho of P + Q.
        penalty_growth: its growth at each validation that finds a violation; 1 keeps it.
        alpha, learn_alpha: the damping at the start, and whether it is learned.
        h, t0: step and first time of the discretisation.
        C: the default coefficients to start from.
        kappa, lam: the pair of Theorem 1; lam is alpha - 1 by default.
        scale: divide by each instance's curvature at the start, or by one number for the family.
        estimator: curvature along the way by power, global or l0l1.
        safety: the factor by which training takes it to be larger.
        horizon: iterations after which a problem counts as not reached.
        validate_every: steps between validations.
        validation: held-out problems of the training split.
        patience: validations without progress after which training stops early.
    """

    target: str = "flow"
    coefficients: str = None  # type: ignore[assignment]
    metric: str = None  # type: ignore[assignment]
    reference: str = "auto"
    start: str = "paper"
    knots: int = 9
    margin: float = 0.0
    activation: str = "softplus"
    tol: float = 3e-4
    steps: int = None  # type: ignore[assignment]
    batch: int = None  # type: ignore[assignment]
    seed: int = 0
    blocks: bool = True
    optimizer: str = "adam"
    lr: float | None = None
    momentum: float = 0.9
    decay: str = "cosine"
    clip: float = 3.0
    penalty: float = None  # type: ignore[assignment]
    penalty_growth: float = 1.1
    alpha: float = ALPHA
    learn_alpha: bool = False
    h: float = H
    t0: float = T0
    C: float = 2.0
    kappa: float = 1.0
    lam: float | None = None
    scale: str = None  # type: ignore[assignment]
    estimator: str = "power"
    safety: float = 1.2
    horizon: int = None  # type: ignore[assignment]
    validate_every: int = 10
    validation: int = 8
    patience: int = 8

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise unknown_name("target", str(self.target), TARGETS)
        for name, default in BY_TARGET[self.target].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        for name, known in CHOICES.items():
            if (value := getattr(self, name)) not in known:
                raise unknown_name(name, str(value), known)
        self._check_numbers()
        self._check_target()

    def _check_numbers(self) -> None:
        as_count(self.steps, "steps", least=0 if self.target == "sequence" else 1)
        for name in ("batch", "horizon", "validate_every", "validation", "patience"):
            as_count(getattr(self, name), name)
        as_count(self.seed, "seed", least=0)
        as_count(self.knots, "knots", least=2)
        for name in ("tol", "clip", "C", "h", "t0"):
            as_positive(getattr(self, name), name)
        if self.lr is not None:
            as_positive(self.lr, "lr")
        for name in ("momentum", "margin"):
            if not 0 <= as_number(value := getattr(self, name), name) < 1:
                raise InputError(f"{name} is {value:g}: it must be at least 0 and below 1.")
        for name in ("penalty_growth", "safety"):
            if not 1 <= as_number(value := getattr(self, name), name) < math.inf:
                raise InputError(f"{name} is {value:g}: it must be at least 1, and finite.")
        check_times(as_number(self.alpha, "alpha"), self.h, self.t0)
        check_pair(self.kappa, self.alpha - 1 if self.lam is None else self.lam, self.alpha)

    def _check_target(self) -> None:
        """Refuse options that the other target alone has."""
        for target in set(TARGETS) - {self.target}:
            for name in OWN[target]:
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise InputError(
                        f"{name} is for --target {target}; a {self.target} does not use it."
                    )
        if self.target == "flow":
            as_positive(self.penalty, "penalty")
            if self.metric != "none":
                raise InputError("metric is for --target sequence; a flow has none.")
            return
        if not 0 <= as_number(self.penalty, "penalty") < math.inf:
            raise InputError(f"penalty is {self.penalty:g}: it must be at least 0, and finite.")
        if self.coefficients != "spline" or self.scale != "family":
            raise InputError(
                "A sequence is learned as a spline with the scale family; "
                "other coefficients and scales are for --target flow."
            )

    @property
    def t1(self) -> float:
        """The time of the horizon."""
        return self.t0 + self.h * self.horizon

    @property
    def learning_rate(self) -> float:
        """The step size: as given, or what suits optimiser and coefficients."""
        if self.lr is not None:
            return self.lr
        if self.target == "sequence":
            return 5e-2
        return 1e-3 if self.optimizer == "sgd" or self.coefficients == "neural" else 3e-2

    def first_coefficients(self) -> Coefficients:
        """Return the coefficients to start from, close to the default ones."""
        default = DefaultCoefficients(self.C, self.alpha, self.h, self.t0)
        blank = LEARNABLE[self.coefficients](self)
        return blank.fit_to(default.beta, default.gamma, t0=self.t0, t1=self.t1)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
