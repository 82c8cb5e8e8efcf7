"""L-BFGS with Armijo's rule, for functions that may be infinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

PAIRS = 10  # of steps and changes of the gradient that are remembered
DECREASE = 1e-4  # the share of the promised decrease that a step has to bring
HALVINGS = 25
FIRST_MOVE = 0.03  # the largest change of a parameter in the first step
CURVED = 1e-10  # the least cosine of a step and the change of the gradient to be remembered

ValueAndSlope = Callable[[np.ndarray], tuple[float, np.ndarray]]


def descend(
    objective: ValueAndSlope, z: np.ndarray, steps: int
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield points and values of L-BFGS after each accepted step.

    A trial point counts only where the value is finite and has fallen enough (Armijo), so that no
    point is yielded at which the function is infinite.
    """
    value, g = objective(z)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(steps):
        d = -_product(pairs, g)
        if not pairs:
            d *= FIRST_MOVE / max(float(np.abs(d).max()), FIRST_MOVE)
        found = _armijo(objective, z, value, g, d)
        if found is None and pairs:
            pairs = []
            d = -g * FIRST_MOVE / max(float(np.abs(g).max()), FIRST_MOVE)
            found = _armijo(objective, z, value, g, d)
        if found is None:
            return
        new, value, g_new = found
        s, y = new - z, g_new - g
        if s @ y > CURVED * math.sqrt(float(s @ s) * float(y @ y)):
            pairs = [*pairs[-(PAIRS - 1) :], (s, y)]
        z, g = new, g_new
        yield z, value


def _armijo(
    objective: ValueAndSlope, z: np.ndarray, value: float, g: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return the first of z + d, z + d/2, ... that brings enough; None where none does."""
    slope, t = float(g @ d), 1.0
    if not slope < 0:
        return None
    for _ in range(HALVINGS):
        new = z + t * d
        there, g_new = objective(new)
        if there <= value + DECREASE * t * slope:
            return new, there, g_new
        t /= 2
    return None


def _product(pairs: list[tuple[np.ndarray, np.ndarray]], g: np.ndarray) -> np.ndarray:
    """Return the inverse Hessian of L-BFGS times g, by the two loops."""
    q, shares = g.copy(), []
    for s, y in reversed(pairs):
        share = float(s @ q) / float(s @ y)
        q -= share * y
        shares.append(share)
    if pairs:
        s, y = pairs[-1]
        q *= float(s @ y) / float(y @ y)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float(y @ q) / float(s @ y)) * s
    return q
