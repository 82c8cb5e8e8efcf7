"""The minimiser of a quadratic with a separable penalty (docs/mathematics.md, section 20).

Coordinate descent finds the face of the solution; Newton's step on the face, which coordinate
descent nears slowly where columns are alike, ends it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ode2opt.kernels.coordinate import TINY, descend, is_compiled
from ode2opt.penalties import Pieces
from ode2opt.solvers.stages.cholesky import CholeskyFactor

FEWEST_SWEEPS, MOST_SWEEPS = 2, {True: 100, False: 5}  # before a step on the face; compiled or not
COMPILED_SWEEPS = 100_000  # by n^2: so many that are compiled take as long as a step on the face
FACTOR_SWEEPS = 40  # variables of a face whose factorisation takes as long as a sweep, about
ROUNDS = 60  # of sweeps and a step on the face


def minimise_model(
    H: np.ndarray,
    g: np.ndarray,
    x: np.ndarray,
    pieces: Pieces,
    tol: float,
    spend: Callable[[int, int], None] = lambda moves, face: None,
) -> np.ndarray:
    """Minimise g.(z - x) + 1/2 (z - x).H(z - x) + h(z) over z, from z = x."""
    H = np.ascontiguousarray(H, dtype=np.float64)
    x, g = x.copy(), g.copy()
    diagonal = np.diagonal(H)
    top = float(diagonal.max(initial=0.0)) or 1.0
    steps = np.maximum(diagonal, TINY * top)
    least, most = FEWEST_SWEEPS, MOST_SWEEPS[compiled := is_compiled(len(x))]
    if compiled:
        least = min(max(least, COMPILED_SWEEPS // len(x) ** 2), most)
    sweeps, residual = least, np.inf
    for _ in range(ROUNDS):
        before = residual
        residual, moves = descend(H, x, g, steps, tuple(pieces), sweeps, tol)
        face = _face(x, pieces)
        spend(moves, 0 if residual <= tol else len(face))
        if residual <= tol:
            break
        fair = min(max(least, len(face) // FACTOR_SWEEPS), most)
        if len(face):
            _newton_on_face(H, x, g, pieces, face)
        sweeps = fair if residual < 0.5 * before else min(2 * max(sweeps, fair), most)
    return x


def _face(x: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Return the variables around which the penalty is smooth."""
    return np.flatnonzero(((x != 0) | (pieces.l1 == 0)) & (x > pieces.lower) & (x < pieces.upper))


def _newton_on_face(
    H: np.ndarray, x: np.ndarray, g: np.ndarray, pieces: Pieces, face: np.ndarray
) -> None:
    """Go to the minimiser on the face, or as far as h stays smooth; x and g change."""
    here, l1, l2 = x[face], pieces.l1[face], pieces.l2[face]
    sign = np.sign(here)
    lower = np.where((l1 > 0) & (here > 0), np.maximum(pieces.lower[face], 0), pieces.lower[face])
    upper = np.where((l1 > 0) & (here < 0), np.minimum(pieces.upper[face], 0), pieces.upper[face])
    block = H[np.ix_(face, face)]
    block.flat[:: len(face) + 1] += l2
    slope = g[face] + l1 * sign + l2 * here
    d = -CholeskyFactor(block)(slope)
    if not np.isfinite(d).all():
        return
    new = np.clip(here + d, lower, upper)
    moved = new - here
    bent = block @ moved
    if slope @ moved + 0.5 * (moved @ bent) > 0:  # h is linear and l2 in the block on the face
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(d > 0, (upper - here) / d, np.where(d < 0, (lower - here) / d, np.inf))
        new = np.clip(here + min(1.0, float(reach.min())) * d, lower, upper)
        moved = new - here
    x[face] = new
    g += moved @ H[face]
