"""What a class says of its loss so that kernels can evaluate it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class NamedLoss:
    """A loss of ``ode2opt.kernels.compiled_losses``."""

    name: str
    parameter: str | None = None


SOFTMAX = NamedLoss("softmax")
"""The loss of several classes, which has a pass of its own (``ode2opt.kernels.classes``)."""
PRODUCT = NamedLoss("product")
"""No loss: its slope is b z, so that with bends for b a Hessian is multiplied."""


@dataclass(frozen=True)
class RowLoss:
    """Loss and slope of one row as plain functions of numbers, which numba can compile.

    A class of one's own with ``kernel = RowLoss(loss, slope)`` is evaluated by compiled kernels
    where they are worth it (extra ``fast``), and by its methods on arrays elsewhere. They are
    compiled once in each process. Functions that numba cannot compile are told by a warning; the
    methods go on.

    Args:
        loss: called with a score and a target, and with the parameter if there is one.
        slope: its derivative by the score, called alike.
        parameter: the name of an attribute of the problem, a number; none by default.

    Examples:
        >>> class Squares(ode2opt.LinearModel):
        ...     kernel = RowLoss(lambda z, b: 0.5 * (z - b) ** 2, lambda z, b: z - b)
        ...     # and the methods loss, slope and bend on arrays
        >>> Squares.kernel.slope(3.0, 1.0)
        2.0
    """

    loss: Callable[..., float]
    slope: Callable[..., float]
    parameter: str | None = None
