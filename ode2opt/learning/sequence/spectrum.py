"""Preconditioners made from the mean Hessian of training problems, and a learned filter of it.

A spectrum is the mean Hessian taken apart: directions, each with its depth, which is how many
decades its eigenvalue lies below the largest. A preconditioner stretches each direction by a length
that depends on its depth. Whitening makes all directions alike, down to a floor. The filter starts
there and learns the length at each depth; no flat direction can become the steepest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers.lowrank import EXTRA, RANK, nystrom
from ode2opt.solvers.metric import Metric

FLOOR = 1e-3  # of the largest part: what lies far below it is not stretched any further
DEEPEST = 7  # decades below the top that the filter tells apart
WHITENING_LOGITS = (4.0, 4.0, 3.0, 0.0, -3.0, -4.0, -4.0, -4.0)  # logits of about the whitening
SLOPE_ONE = 50.0  # a logit whose slope is 1 to rounding
LARGEST_BASIS = 1_000  # variables up to which a whole basis is kept
JACOBI_FLOOR = 1e-3
SMALLEST_EIGENVALUE = 1e-14


class Spectrum(NamedTuple):
    """The matrix D^-1 (r (I - V V^T) + V diag(w) V^T) D^-1 with D = diag(scaling), w = 10^-depth.

    Attributes:
        scaling: the diagonal of D, for each variable.
        rest: the depth of r, for all that V leaves out; where V has no columns, one for each
            variable.
        V: orthonormal columns.
        depth: the decades of each column below the largest part.
    """

    scaling: Array
    rest: Array
    V: Array
    depth: Array


class Filter(eqx.Module):
    """The squared length at each depth.

    Its log10 rises with depth at a slope in (0, 1), which is linear between whole depths.
    With slope 0 a part stays as it is, with slope 1 it becomes as steep as the largest. Training
    starts near :func:`whitened`.
    """

    logits: Array

    def __init__(self, logits: Sequence[float] = WHITENING_LOGITS) -> None:
        self.logits = jnp.asarray(logits)

    @classmethod
    def whitening(cls) -> Filter:
        """Return the filter that makes all parts alike, down to the deepest."""
        return cls((SLOPE_ONE,) * len(WHITENING_LOGITS))

    def __call__(self, depth: Array) -> Array:
        """Return the squared length at a depth."""
        depth = jnp.clip(jnp.asarray(depth), 0.0, float(DEEPEST))
        slopes = jax.nn.sigmoid(self.logits)
        height = sum(slopes[j] * (_rise(depth, j) - _rise(0.0, j)) for j in range(DEEPEST + 1))
        return 10**height


def _rise(depth: Array, knot: int) -> Array:
    """Return the integral up to ``depth`` of the hat function at a knot."""
    return _ramp(depth - knot + 1) - 2 * _ramp(depth - knot) + _ramp(depth - knot - 1)


def _ramp(z: Array) -> Array:
    return 0.5 * jnp.maximum(z, 0.0) ** 2


class SquaredLengths(NamedTuple):
    """The squared lengths by which a preconditioner stretches the parts of a spectrum.

    Attributes:
        rest: of what V leaves out.
        directions: of each column of V.
    """

    rest: Array
    directions: Array


@eqx.filter_jit
def filtered(spectrum: Spectrum, filter_: Filter) -> SquaredLengths:
    """Return the squared lengths that a filter gives the parts of a spectrum."""
    return SquaredLengths(filter_(spectrum.rest), filter_(spectrum.depth))


def whitened(spectrum: Spectrum) -> SquaredLengths:
    """Return the squared lengths 1/(w + 1e-3), w being a part's eigenvalue over the largest."""
    return SquaredLengths(
        *(1 / (10.0 ** -np.asarray(d) + FLOOR) for d in (spectrum.rest, spectrum.depth))
    )


def apply(spectrum: Spectrum, squares: SquaredLengths, g: Array) -> Array:
    """Return M g, the preconditioned gradient."""
    z = spectrum.scaling * g
    if spectrum.V.shape[1]:
        more = (squares.directions - squares.rest) * (z @ spectrum.V)
        return spectrum.scaling * (squares.rest * z + spectrum.V @ more)
    return spectrum.scaling * squares.rest * z


def metric_of(kind: str, spectrum: Spectrum, squares: SquaredLengths) -> Metric | None:
    """Return a spectrum with its lengths as a preconditioner for solving."""
    if kind == "none":
        return None
    rest, directions = (np.asarray(part) for part in squares)
    scale = np.asarray(spectrum.scaling) * np.sqrt(rest) * np.ones(len(spectrum.V))
    if kind == "diagonal":
        return Metric(kind, scale)
    return Metric(kind, scale, np.array(spectrum.V), np.sqrt(directions / rest) - 1)


def spectrum_of(metric: Metric | None, n: int) -> Spectrum:
    """Return the spectrum whose parts a preconditioner makes all alike.

    ``Filter.whitening()`` of it is the preconditioner again, up to a factor.
    """
    if metric is None or metric.V is None or metric.stretch is None:
        scale = np.ones(n) if metric is None else metric.scale
        return Spectrum(scale, np.zeros(()), np.zeros((n, 0)), np.zeros(0))
    depth = 2 * np.log10(1 + metric.stretch)
    rest = 0.0 if metric.V.shape[1] < n else float(depth.min())  # a whole basis leaves nothing out
    top = min(rest, float(depth.min()))
    return Spectrum(metric.scale, np.asarray(rest - top), metric.V, depth - top)


def basis_for(n: int) -> str:
    """Return the kind of preconditioner for a number of variables."""
    return "spectral" if n <= LARGEST_BASIS else "lowrank"


class CurvaturePoints(NamedTuple):
    """A problem with the points at which its Hessian is taken.

    Attributes:
        problem: the problem.
        points: where the Hessian is taken.
        weights: the weight of each point.
    """

    problem: Problem
    points: Sequence[np.ndarray]
    weights: Sequence[float]

    def total(self, of: Callable[[Problem, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return a weighted sum over the points."""
        pairs = zip(self.points, self.weights, strict=True)
        parts = (weight * np.asarray(of(self.problem, x), np.float64) for x, weight in pairs)
        return sum(parts)  # type: ignore[return-value]


def _mean(
    points: Sequence[CurvaturePoints], of: Callable[[Problem, np.ndarray], np.ndarray]
) -> np.ndarray:
    return sum(one.total(of) for one in points) / len(points)  # type: ignore[return-value]


def _none(points: Sequence[CurvaturePoints], seed: int) -> Spectrum:
    n = points[0].problem.n
    return Spectrum(np.ones(n), np.zeros(()), np.zeros((n, 0)), np.zeros(0))


def _diagonal(points: Sequence[CurvaturePoints], seed: int) -> Spectrum:
    diagonal = _mean(points, lambda problem, x: problem.hessian_diagonal(x))
    n = len(diagonal)
    return Spectrum(np.ones(n), _depth(diagonal), np.zeros((n, 0)), np.zeros(0))


def _spectral(points: Sequence[CurvaturePoints], seed: int) -> Spectrum:
    w, V = np.linalg.eigh(_mean(points, lambda problem, x: problem.hessian(x)))
    return Spectrum(np.ones(len(w)), np.zeros(()), np.ascontiguousarray(V), _depth(w))


def _lowrank(points: Sequence[CurvaturePoints], seed: int) -> Spectrum:
    """Randomised Nystrom after a Jacobi scaling: products with the Hessian and O(n r) memory."""
    diagonal = _mean(points, lambda problem, x: problem.hessian_diagonal(x))
    scaling = (diagonal / (diagonal.max() or 1.0) + JACOBI_FLOOR) ** -0.25
    n = len(scaling)
    rank = min(RANK, n)
    rng = np.random.default_rng(seed)
    probes, _ = np.linalg.qr(rng.standard_normal((n, min(rank + EXTRA, n))))

    def image(problem: Problem, x: np.ndarray) -> np.ndarray:
        columns = (problem.hvp(x, scaling * probe) for probe in probes.T)
        return np.column_stack([scaling * np.asarray(column) for column in columns])

    w, V = nystrom(probes, _mean(points, image), rank)
    left = float(np.sum(scaling**2 * diagonal) - np.sum(w)) / max(n - rank, 1)
    depths = _depth(np.append(w, max(left, 0.0)))
    return Spectrum(scaling, depths[-1], V, depths[:-1])


def _depth(values: np.ndarray) -> np.ndarray:
    """Return decades below the largest."""
    top = float(np.max(values, initial=0.0)) or 1.0
    return -np.log10(np.maximum(values / top, SMALLEST_EIGENVALUE))


SPECTRUM_KINDS: dict[str, Callable[[Sequence[CurvaturePoints], int], Spectrum]] = {
    "none": _none,
    "diagonal": _diagonal,
    "spectral": _spectral,
    "lowrank": _lowrank,
}
"""Kinds of preconditioner: each makes a spectrum from the Hessians of training problems."""
