"""A Hessian as a preconditioner: g -> H^-1 g by Cholesky, damped where H is singular."""

from __future__ import annotations

import numpy as np

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
