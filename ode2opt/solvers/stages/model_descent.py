"""The minimiser of a quadratic with a penalty (docs/mathematics.md, section 20).

Where the penalty is separable, coordinate descent finds the face of the solution; Newton's step on
the face, which coordinate descent nears slowly where columns are alike, ends it.

On a simplex or an l1 ball a multiplier m of the sum is searched for: with m the ball is the penalty
m |z|_1 and the simplex the constraint z >= 0 with m added to every slope. The sum falls as m grows,
so m is found between two limits, and where the minimiser jumps there the point between the two
sides is one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ode2opt.kernels.coordinate import TINY, descend, is_compiled
from ode2opt.penalties import L1Ball, SeparableTerms, Simplex
from ode2opt.solvers.stages.linear_systems import CholeskyFactor


class DescentRules(NamedTuple):
    """Sweeps of coordinate descent between steps on faces, and the search for a multiplier.

    Attributes:
        fewest_sweeps: before a step on the face.
        most_sweeps: the same at most, where they are not compiled.
        most_compiled: the same where they are.
        compiled_sweeps: by n^2: so many that are compiled take as long as a step on the face.
        factor_sweeps: variables of a face whose factorisation takes as long as a sweep, about.
        rounds: of sweeps and a step on the face.
        multipliers: tried for a sum.
        exact: relative error of the sum.
        sharper: share of the tolerance that each quadratic of the search is solved to.
    """

    fewest_sweeps: int = 2
    most_sweeps: int = 5
    most_compiled: int = 100
    compiled_sweeps: int = 100_000
    factor_sweeps: int = 40
    rounds: int = 60
    multipliers: int = 100
    exact: float = 1e-13
    sharper: float = 0.1


DESCENT = DescentRules()


def minimise_model(
    H: np.ndarray,
    g: np.ndarray,
    x: np.ndarray,
    pieces: SeparableTerms,
    tol: float,
    spend: Callable[[int, int], None] = lambda moves, face: None,
) -> np.ndarray:
    """Minimise g.(z - x) + 1/2 (z - x).H(z - x) + h(z) over z, from z = x."""
    H = np.ascontiguousarray(H, dtype=np.float64)
    x, g = x.copy(), g.copy()
    diagonal = np.diagonal(H)
    top = float(diagonal.max(initial=0.0)) or 1.0
    steps = np.maximum(diagonal, TINY * top)
    compiled, least = is_compiled(len(x)), DESCENT.fewest_sweeps
    most = DESCENT.most_compiled if compiled else DESCENT.most_sweeps
    if compiled:
        least = min(max(least, DESCENT.compiled_sweeps // len(x) ** 2), most)
    sweeps, residual = least, np.inf
    for _ in range(DESCENT.rounds):
        before = residual
        residual, moves = descend(H, x, g, steps, tuple(pieces), sweeps, tol)
        face = _face(x, pieces)
        spend(moves, 0 if residual <= tol else len(face))
        if residual <= tol:
            break
        fair = min(max(least, len(face) // DESCENT.factor_sweeps), most)
        if len(face):
            _newton_on_face(H, x, g, pieces, face)
        sweeps = fair if residual < 0.5 * before else min(2 * max(sweeps, fair), most)
    return x


def _face(x: np.ndarray, pieces: SeparableTerms) -> np.ndarray:
    """Return the variables around which the penalty is smooth."""
    return np.flatnonzero(((x != 0) | (pieces.l1 == 0)) & (x > pieces.lower) & (x < pieces.upper))


def _newton_on_face(
    H: np.ndarray, x: np.ndarray, g: np.ndarray, pieces: SeparableTerms, face: np.ndarray
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
        pieces = SeparableTerms(weight, nothing, -most if ball else nothing, most)
        z = minimise_model(H, slope, z, pieces, DESCENT.sharper * tol, spend)
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
    for k in range(DESCENT.multipliers):
        middle = (a * share_b - b * share_a) / (share_b - share_a)
        if k % 3 == 2 or not a < middle < b:
            middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        found, off = solved(middle)
        if abs(off) <= DESCENT.exact * radius:
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
