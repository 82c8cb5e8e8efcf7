"""Conjugate gradients with a diagonal preconditioner: the inner loop of Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ode2opt.base.arrays import norm


def solve_by_cg(
    product: Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray | float,
    b: np.ndarray,
    goal: float,
    most: int,
) -> tuple[np.ndarray, int]:
    """Return about H^-1 b and how many products it took: a residual of at most ``goal``.

    Where a direction without curvature is met, the solution so far is returned.
    """
    d, r = np.zeros_like(b), b
    p = weights * r
    square = float(r @ p)
    for count in range(1, most + 1):
        Hp = product(p)
        bend = float(p @ Hp)
        if not bend > 0:
            return (d if count > 1 else p), count
        length = square / bend
        d = d + length * p
        r = r - length * Hp
        if not norm(r) > goal:
            break
        z = weights * r
        square, old = float(r @ z), square
        p = z + (square / old) * p
    return d, count
