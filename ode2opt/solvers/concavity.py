"""Evidence that a function is not convex: two points between which its gradient turns back.

The gradient of a convex function is monotone: <g(x) - g(y), x - y> >= 0 for all x and y. A
negative product proves the contrary, if it is more than rounding. Rounding does not grow with the
distance and goes up as often as down; so evidence is a slope that falls from point to point along
a segment, by far more than it changes when the points change in their last digits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ode2opt.base.arrays import epsilon, norm

if TYPE_CHECKING:
    from ode2opt.solvers.objective import Evaluated
    from ode2opt.solvers.oracle import Oracle


class ConcavityRules(NamedTuple):
    """When a fall of the slope is evidence, and no rounding.

    Attributes:
        points: on the segment.
        window: points in a row between which the slope must fall.
        beyond: by how many times more than rounding explains.
    """

    points: int = 9
    window: int = 5
    beyond: float = 1e3


RULES = ConcavityRules()


class Concave(NamedTuple):
    """Two points with <g(x) - g(y), x - y> = ``product`` < 0, and what rounding explains of it.

    Attributes:
        x: one point.
        y: the other.
        product: <g(x) - g(y), x - y>, which is negative.
        rounding: how much of it rounding may explain.
    """

    x: np.ndarray
    y: np.ndarray
    product: float
    rounding: float

    def __str__(self) -> str:
        return (
            f"<g(x) - g(y), x - y> is {self.product:.3g} at two points where rounding explains "
            f"{self.rounding:.1g}"
        )


def concave_between(oracle: Oracle, one: Evaluated, other: Evaluated) -> Concave | None:
    """Return evidence from the segment between two evaluated points, or None; costs gradients."""
    moved = other.x - one.x
    length = norm(moved)
    if not 0 < length < math.inf:
        return None
    along = moved / length
    shares = np.linspace(0, 1, RULES.points)
    inner = [oracle.evaluate(one.x + share * moved, iterate=False) for share in shares[1:-1]]
    points = [one, *inner, other]
    slopes = np.array([float(point.g @ along) for point in points])
    if not np.all(np.isfinite(slopes)):
        return None
    rounding = max(_rounding(oracle, point, along) for point in (one, other))
    for first in range(RULES.points - RULES.window + 1):
        window = slopes[first : first + RULES.window]
        fall = float(window[0] - window[-1])
        if np.all(np.diff(window) < 0) and fall > RULES.beyond * rounding:
            # Rounded scores move in steps: at one point last digits may change nothing.
            inside = points[first + 1 : first + RULES.window - 1]
            rounding = max(rounding, *(_rounding(oracle, point, along) for point in inside))
            if fall <= RULES.beyond * rounding:
                continue
            x, y = points[first + RULES.window - 1].x, points[first].x
            apart = length * (RULES.window - 1) / (RULES.points - 1)
            return Concave(x, y, -fall * apart, rounding * apart)
    return None


def _rounding(oracle: Oracle, here: Evaluated, along: np.ndarray) -> float:
    """Return what rounding does to the slope at a point, by what its last digits do to it."""
    eps = epsilon(oracle.problem.xp, oracle.problem.dtype)
    signs = np.where(np.arange(len(here.x)) % 2, 1.0, -1.0)
    shaken = oracle.evaluate(here.x * (1 + 2 * eps * signs), iterate=False)
    change = abs(float((shaken.g - here.g) @ along))
    return change + eps * math.sqrt(len(along)) * max(norm(here.g), oracle.first_norm)
