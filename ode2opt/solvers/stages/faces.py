"""Newton steps on the face that a point is on, where a penalty is smooth.

They need no model of the penalty elsewhere, so they serve balls, simplices and groups as well as
boxes. A step is kept where it lowers f + h: it may be put between two restarts of FISTA, whose
proof asks for no more (docs/mathematics.md, sections 18 and 20).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ode2opt.penalties import Face
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.stages.linear_systems import CholeskyFactor


class FaceRules(NamedTuple):
    """Limits of Newton steps on faces.

    Attributes:
        variables: of a problem whose Hessian is made, at most.
        pivots: variables that may leave the face in a row.
        shares: of a step that are tried.
    """

    variables: int = 1_000
    pivots: int = 30
    shares: tuple[float, ...] = (1.0, 0.3, 0.1, 0.01)


FACES = FaceRules()


def has_faces(oracle: Oracle) -> bool:
    """Return whether Newton steps on faces can be made: few variables, and both sides know how."""
    problem = oracle.problem
    provides = oracle.objective.provides
    if not ("hessian" in provides and "classes" not in provides) or problem.n > FACES.variables:
        return False
    return oracle.penalty.curvature_set(oracle.objective.project(np.zeros(problem.n))) is not None


def descended(oracle: Oracle, here: Evaluated) -> Evaluated:
    """Return a point that Newton steps on faces lead to; the given one where none helps."""
    H = oracle.hessian(here.x)
    for _ in range(FACES.pivots):
        face = oracle.penalty.curvature_set(here.x)
        if face is None or not face.free.any():
            break
        found, whole = _step(oracle, here, face, H)
        if found is None:
            break
        here = found
        if whole:
            break
    return here


def _step(
    oracle: Oracle, here: Evaluated, face: Face, H: np.ndarray
) -> tuple[Evaluated | None, bool]:
    """Return where a step leads, None where it helps not; and whether it stayed on the face."""
    d = _direction(here, face, H)
    if not (np.isfinite(d).all() and d.any()):
        return None, True
    with np.errstate(divide="ignore", invalid="ignore"):
        leaving = np.where((here.x != 0) & (np.sign(d) == -np.sign(here.x)), -here.x / d, np.inf)
    first = float(leaving.min())
    shares = FACES.shares
    if first < 1:
        shares = (1.0, first, *(first * one for one in shares[1:]))
    for share in shares:
        x = here.x + share * d
        if share == first:
            x[leaving <= first] = 0.0
        new = oracle.evaluate(oracle.objective.project(x), iterate=False)
        close = abs(new.value - here.value) <= oracle.rounding * abs(here.value)
        if (new.value < here.value and not close) or (close and new.norm < 0.5 * here.norm):
            return new, first >= 1 and share == 1
    return None, True


def _direction(here: Evaluated, face: Face, H: np.ndarray) -> np.ndarray:
    """Return Newton's step on the face, 0 for the variables that stay."""
    free = np.flatnonzero(face.free)
    block = H[np.ix_(free, free)] + np.diag(face.diagonal[free])
    if face.outer is not None and face.labels is not None:
        outer, labels = face.outer[free], face.labels[free]
        block -= np.outer(outer, outer) * (labels[:, None] == labels[None, :])
    solved, slope = CholeskyFactor(block), here.g[free] + face.slope[free]
    step = -solved(slope)
    if face.normal is not None:
        normal = face.normal[free]
        across = solved(normal)
        size = float(normal @ across)
        step -= (float(normal @ step) / size if size else 0.0) * across
    d = np.zeros(len(here.x))
    d[free] = step
    return d
