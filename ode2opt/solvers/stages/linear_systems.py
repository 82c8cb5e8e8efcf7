"""Systems with a Hessian: by Cholesky, damped where H is singular, or by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ode2opt.base.arrays import norm
from ode2opt.base.lapack import dpotrf, dpotri, dpotrs

DAMPING = 1e-12  # in diagonals of H, always there: what is lost is below rounding of the step


class CholeskyFactor:
    """The inverse of H + damping diag(H), the smallest damping that a factorisation allows.

    Measured in diagonals, it does not depend on how large the columns are. A direction that H does
    not know at all is given the largest curvature.
    """

    def __init__(self, H: np.ndarray, damping: float = DAMPING) -> None:
        H = np.asarray(H, dtype=np.float64)
        H = H if H.flags.f_contiguous else H.T  # symmetric: LAPACK's order without a second copy
        diagonal = H.diagonal()
        top = float(diagonal.max(initial=0.0)) or 1.0
        diagonal = np.where(diagonal > DAMPING**2 * top, diagonal, top)
        self.damping = damping
        while True:
            damped = H.copy(order="F")
            damped.T.reshape(-1)[:: len(H) + 1] += self.damping * diagonal
            self._factor, info = dpotrf(damped, overwrite_a=1, clean=0)
            if info == 0 or self.damping > 1e6:
                break
            self.damping *= 100

    def inverse(self) -> np.ndarray:
        """Return H^-1 as a matrix: for a preconditioner that is used many times."""
        upper = np.triu(dpotri(self._factor)[0])
        return upper + np.triu(upper, 1).T

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """Return H^-1 g."""
        return dpotrs(self._factor, g)[0]


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
