"""What is known of f(x) - f* after a solve, and from where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ode2opt.base.errors import WorkersLostError

if TYPE_CHECKING:
    from ode2opt.base.arrays import Array
    from ode2opt.problems.base import Problem

STRONG_CONVEXITY = "strong convexity"
MONITORED = "the monitored certificate"
CONVEXITY = "convexity"
IN_PRECONDITIONER = ", distances being those of the preconditioner"
FURTHER = 2.0  # in distances of x from the start: how far points are that x is compared with
MARGIN = 1 + 1e-12  # for the few operations that make the number

Distance = Callable[[np.ndarray, np.ndarray], float]
"""How far two points are apart."""


def euclidean(x: np.ndarray, y: np.ndarray) -> float:
    """Return |x - y|."""
    return float(np.linalg.norm(x - y))


@dataclass(frozen=True)
class Bound:
    """An upper bound of f(x) - f(z), x being the point of a result.

    Attributes:
        value: the bound; the true difference is never larger.
        source: where it comes from, in a word or two: "strong convexity".
        radius: for which z it holds: None for every z, so that it bounds f(x) - f* (the infimum);
            a number for every z no further than this from the start point.
        statement: what is known, as a sentence.

    Examples:
        >>> print(Bound(5e-10, "strong convexity"))
        f(x) - f* is at most 5.00e-10, by strong convexity.
    """

    value: float
    source: str
    radius: float | None = None

    @property
    def statement(self) -> str:
        if self.radius is None:
            return f"f(x) - f* is at most {rounded_up(self.value)}, by {self.source}."
        return (
            f"f(x) - f(z) is at most {rounded_up(self.value)} for every z within "
            f"{self.radius:.3g} of the start point, by {self.source}."
        )

    def __str__(self) -> str:
        return self.statement


@dataclass(frozen=True, eq=False)
class LowerBound:
    """What a method has proved of f while it ran, for all z, with d the distance of z and a center:

        f(z) >= min(least_seen, level - slope d - factor d^2).

    Attributes:
        level: a number.
        factor: a number, 0 or above.
        center: the point that the method compares with.
        start: where the solve began.
        source: by what it is proved, in a word or two.
        slope: a number, 0 or above.
        least_seen: the least value of f where the proof is about lower z only; else infinity.
        distance: that of two points; Euclidean, or that of a preconditioner.
    """

    level: float
    factor: float
    center: np.ndarray
    start: np.ndarray
    source: str = MONITORED
    slope: float = 0.0
    least_seen: float = math.inf
    distance: Distance = euclidean

    def against(self, x: np.ndarray, value: float, unit: float) -> Bound | None:
        """Return what it says of a point: f(x) - f(z) for all z up to twice as far from the
        start.
        """
        radius = FURTHER * self.distance(x, self.start)
        far = radius + self.distance(self.center, self.start)
        below = self.level - (self.slope + self.factor * far) * far
        found = MARGIN * (value - min(self.least_seen, below)) + unit * abs(value)
        if not math.isfinite(found):
            return None
        where = "" if self.distance is euclidean else IN_PRECONDITIONER
        return Bound(max(found, 0.0), self.source + where, radius)


def best_bound(
    bounds: Sequence[LowerBound], x: np.ndarray, value: float, unit: float
) -> Bound | None:
    """Return the smallest of what several lower bounds say of a point; None where there are
    none.
    """
    found = [one.against(x, value, unit) for one in bounds]
    return min(filter(None, found), key=lambda one: one.value, default=None)


def rounded_up(value: float) -> str:
    """Return a positive number with three digits, not below it.

    Examples:
        >>> rounded_up(1.2341e-7)
        '1.24e-07'
    """
    text = f"{value:.2e}"
    if float(text) >= value or not math.isfinite(value):
        return text
    _, exponent = text.split("e")
    return f"{float(text) + 10.0 ** (int(exponent) - 2):.2e}"


def by_strong_convexity(
    problem: Problem, x: Array, grad_norm: float, value: float, unit: float
) -> Bound | None:
    """Return (|g| + r)^2 / (2 mu), the bound for a strongly convex function; None for others.

    f(z) >= f(x) + <g, z - x> + mu/2 |z - x|^2 for every z, and its smallest value on the right is
    f(x) - |g|^2 / (2 mu) (docs/bounds.md). Here r is how far the computed gradient
    can be from the exact one. The result is rounded up to the last digits of f(x): smaller
    differences of values cannot be told.
    """
    mu = problem.strong_convexity()
    if not mu > 0:
        return None
    try:
        norm = grad_norm * (1 + problem.n * unit) + problem.gradient_rounding(x, value)
    except WorkersLostError:  # nobody is left to tell it
        return None
    bound = max(MARGIN * norm * norm / (2 * mu), unit * abs(value))
    return Bound(bound, STRONG_CONVEXITY) if math.isfinite(bound) else None
