"""The minimiser of a quadratic on a simplex or an l1 ball, by the multiplier of the sum.

With a multiplier m the ball is the penalty m |z|_1 and the simplex the constraint z >= 0 with m
added to every slope. The sum falls as m grows, so m is found between two limits, and where the
minimiser jumps there the point between the two sides is one, too (docs/mathematics.md, section 20).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ode2opt.penalties import L1Ball, Pieces, Simplex
from ode2opt.solvers.composite.descent import minimise_model

ROUNDS = 100  # of a search for the multiplier
EXACT = 1e-13  # relative error of the sum
SHARPER = 0.1  # of the tolerance: what each quadratic is solved to


def minimise_on_budget(
    H: np.ndarray,
    g: np.ndarray,
    x: np.ndarray,
    penalty: Simplex | L1Ball,
    tol: float,
    spend: Callable[[int, int], None] = lambda moves, face: None,
) -> np.ndarray:
    """Minimise g.(z - x) + 1/2 (z - x).H(z - x) over the z of a simplex or an l1 ball."""
    n, radius, ball = len(x), penalty.radius, isinstance(penalty, L1Ball)
    nothing, most = np.zeros(n), np.full(n, radius)
    z = np.clip(x, -radius if ball else 0.0, radius)

    def solved(multiplier: float) -> tuple[np.ndarray, float]:
        """Return the minimiser for a multiplier, from the last one, and by how much it is over."""
        nonlocal z
        weight = np.full(n, multiplier if ball else 0.0)
        slope = g + H @ (z - x) + (0.0 if ball else multiplier)
        pieces = Pieces(weight, nothing, -most if ball else nothing, most)
        z = minimise_model(H, slope, z, pieces, SHARPER * tol, spend)
        return z, float(np.abs(z).sum()) - radius

    still = g - H @ x  # the slope at 0
    low = 0.0 if ball else -float(np.abs(still).max() + radius * np.abs(H).sum(axis=1).max())
    high = float(np.abs(still).max()) if ball else float(np.max(-still))
    below, over = solved(low)
    if over <= 0:  # the ball's inside, or nothing moves
        return below
    return _between(solved, (low, below, over), (high, nothing, -radius), radius)


def _between(
    solved: Callable[[float], tuple[np.ndarray, float]],
    low: tuple[float, np.ndarray, float],
    high: tuple[float, np.ndarray, float],
    radius: float,
) -> np.ndarray:
    """Return the minimiser whose sum is right, by the Illinois variant of false position."""
    (a, at_a, over), (b, at_b, under) = low, high
    share_a, share_b, side = over, under, 0
    for k in range(ROUNDS):
        middle = (a * share_b - b * share_a) / (share_b - share_a)
        if k % 3 == 2 or not a < middle < b:
            middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        found, off = solved(middle)
        if abs(off) <= EXACT * radius:
            return found
        if off > 0:
            a, at_a, over = middle, found, off
            share_a, share_b = off, share_b * (0.5 if side > 0 else 1.0)
            side = 1
        else:
            b, at_b, under = middle, found, off
            share_b, share_a = off, share_a * (0.5 if side < 0 else 1.0)
            side = -1
    share = over / (over - under)
    return (1 - share) * at_a + share * at_b
