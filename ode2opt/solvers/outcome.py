"""How a stage of a solve ends: why it stopped, and at which point the next one goes on."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np


class Evaluated(NamedTuple):
    """A point with the value, the gradient and the gradient norm there, as NumPy arrays.

    Attributes:
        x: the point.
        value: f(x).
        g: the gradient.
        norm: its Euclidean norm.
    """

    x: np.ndarray
    value: float
    g: np.ndarray
    norm: float


class Reason(Enum):
    """Why a stage ended before the solve did; the value is the sentence that a user reads."""

    NO_STEP = "the line search found no further decrease"
    ROUNDING = "no further progress is possible at this precision"
    CHEAPER = "another preconditioner costs less than what is left"
    FAR = "the tolerance is too far away at this pace"
    STUCK = "hardly any progress in the later half of {:.0f} evaluations"
    TURN = "the other methods have a turn"
    HORIZON = "the schedule's horizon is over"
    TOO_DEAR = "rows with curvature are too many for Newton's method"
    MANY_VARIABLES = "the variables are too many for a quadratic model"
    MANY_STEPS = "Newton's method took too many steps"
    LONG_MODELS = "quadratic models took as long as thousands of evaluations"
    MANY_PRODUCTS = "Newton's method took too many products"
    NON_FINITE = "the gradient is not finite"
    BLOWUP = "the gradient norm exceeds {:g} times its starting value"
    ENVELOPE = "the gradient norm is far above that of all held-out problems"
    VALUE = "the value is above that of the start"
    PATIENCE = "no progress for {:.0f} iterations"
    ROSE = "the gradient norm rose after the tolerance was reached"


class Outcome(NamedTuple):
    """The end of a stage.

    Attributes:
        reason: why it ended.
        point: its lowest point; None where only gradients were asked for.
        number: the number in the reason's sentence, where it has one.
    """

    reason: Reason
    point: Evaluated | None = None
    number: float = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether no step of this method helps any more, at this precision."""
        return self.reason in (Reason.NO_STEP, Reason.ROUNDING)

    def __str__(self) -> str:
        return self.reason.value.format(self.number)
