"""The loss of a row as data: its formulas on arrays, and what kernels know it by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rowwise = Callable[..., Any]
"""A function of scores z and targets b, and of the parameter where there is one; elementwise."""


@dataclass(frozen=True)
class Loss:
    """A loss of scores and targets, on arrays of any library.

    Attributes:
        value: the loss of each row.
        slope: its derivative by the score, as a new array.
        curvature: its second derivative by the score.
        value_and_slope: both, where they share work; None where they share none.
        parameter: the name of an attribute of the problem that the functions take; None for none.
        curvature_bound: the largest second derivative, where there is one.
        lower_bound: a number that no loss is below, where one is known.
        compiled: the name of its copy in ``ode2opt.kernels.compiled_losses``; None without one.
    """

    value: Rowwise
    slope: Rowwise
    curvature: Rowwise
    value_and_slope: Rowwise | None = None
    parameter: str | None = None
    curvature_bound: float | None = None
    lower_bound: float | None = None
    compiled: str | None = None


PRODUCT = Loss(lambda z, b: 0 * z, lambda z, b: b * z, lambda z, b: b, compiled="product")
"""No loss: its slope is b z, so that with curvatures for b a Hessian is multiplied."""


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
        ...     # and the methods loss, slope and curvature on arrays
        >>> Squares.kernel.slope(3.0, 1.0)
        2.0
    """

    loss: Callable[..., float]
    slope: Callable[..., float]
    parameter: str | None = None
