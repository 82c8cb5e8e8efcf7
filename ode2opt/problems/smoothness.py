"""A proved upper bound of the curvature of f(S y), S a preconditioner's root.

The Hessian of many losses stays below one fixed matrix B, whatever the point. The largest
eigenvalue of S^T B S is then a smoothness constant of y -> f(S y). Estimates such as Lanczos or
power iteration approach an eigenvalue from below. Here every step errs upwards, rounding included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ode2opt.base.arrays import Array, detached, epsilon, is_sparse
from ode2opt.base.errors import InputError

if TYPE_CHECKING:
    from ode2opt.problems.base import Problem
    from ode2opt.problems.linear_model import LinearModel


@dataclass(frozen=True)
class CurvatureBound:
    """How the bound is found. All are positive.

    Attributes:
        exact: up to this many variables, or rows, a matrix of that size is formed.
        steps: of the iteration on absolute values, at most.
        close: how near to the best bound it stops, relative to that.
        smallest: share of the iterated vector's largest entry: no entry may become 0.
        block: entries of a block of rows.
    """

    exact: int = 2_000
    steps: int = 60
    close: float = 1e-4
    smallest: float = 1e-10
    block: int = 1 << 20


BOUND = CurvatureBound()


class Preconditioner(Protocol):
    """S = diag(scale) (I + V diag(stretch) V^T), as :class:`ode2opt.solvers.metric.Metric` is."""

    @property
    def n(self) -> int:
        """The number of variables."""

    @property
    def scale(self) -> np.ndarray:
        """One positive number for each variable."""

    @property
    def V(self) -> np.ndarray | None:
        """Orthonormal directions as columns; None for a diagonal preconditioner."""

    @property
    def stretch(self) -> np.ndarray | None:
        """By how much each direction is stretched, above -1."""

    def matrix(self) -> np.ndarray:
        """Return S as a matrix."""


def smoothness_bound(problem: Problem, metric: Preconditioner | None) -> float:
    """Return an upper bound of the largest eigenvalue of S^T H(x) S over all x."""
    if metric is not None:
        _check(problem, metric)
    with np.errstate(over="ignore", invalid="ignore"):
        if problem.n <= BOUND.exact:
            bound = _by_variables(problem, metric)
        elif _few_rows(problem):
            bound = _by_rows(problem, metric)  # type: ignore[arg-type]
        else:
            bound = _by_absolute_values(problem, metric)
    if not math.isfinite(bound):
        raise InputError(
            "The curvature's bound overflows: scale the columns, or take a milder preconditioner."
        )
    return bound


def no_bound(problem: Problem) -> InputError:
    """Return the error for a problem whose curvature has no known limit."""
    return InputError(
        f"{problem.kind} has no known smoothness constant, because its second derivatives have no "
        f"known upper limit: use a method that needs none, such as 'auto', or give your own loss a "
        f"slope_bound."
    )


def absolute_gram_product(A: Array, bends: np.ndarray, v: np.ndarray, ones: bool) -> np.ndarray:
    """Return |A|^T diag(bends) |A| v, by blocks of rows."""
    N, n = A.shape
    total = np.zeros_like(v)
    for first in range(0, N, rows := max(1, BOUND.block // n)):
        block = abs(A[first : first + rows])
        block = block if is_sparse(block) else np.asarray(detached(block))
        image = block @ v[:n]
        image = (image + v[n] if ones else image) * _column(bends[first : first + rows], image)
        total[:n] += block.T @ image
        if ones:
            total[n] += image.sum(axis=0)
    return total


def _column(weights: np.ndarray, like: np.ndarray) -> np.ndarray:
    return weights if like.ndim == 1 else weights[:, None]


def _check(problem: Problem, metric: Preconditioner) -> None:
    if not all(hasattr(metric, name) for name in ("n", "scale", "V", "stretch", "matrix")):
        raise InputError(f"metric must be a Metric or None, not {type(metric).__name__}.")
    if metric.n != problem.n:
        raise InputError(
            f"The preconditioner is for {metric.n} variables; this problem has {problem.n}."
        )


def _few_rows(problem: Problem) -> bool:
    return problem.rows is not None and problem.rows <= BOUND.exact and hasattr(problem, "A")


def _by_variables(problem: Problem, metric: Preconditioner | None) -> float:
    """Form S^T B S. An entry of B has a rounding error of at most N + n units of d_i d_j.

    Here d_i^2 is the i-th diagonal entry of B, by which Cauchy and Schwarz bound the others.
    """
    B = np.asarray(detached(problem.hessian_bound()), dtype=np.float64)
    lengths = np.sqrt(np.maximum(B.diagonal(), 0.0))
    if metric is not None:
        S = metric.matrix()
        B, lengths = S.T @ B @ S, np.abs(S).T @ lengths
    return _largest(B) + _rounding(problem) * float(lengths @ lengths)


def _by_rows(problem: LinearModel, metric: Preconditioner | None) -> float:
    """Form the matrix with the same eigenvalues that has as many columns as there are rows.

    The penalty is added as a number: S^T P S is at most max(scale^2 p) (1 + stretch)^2.
    """
    scale, V, stretch = _parts(problem, metric)
    bends = problem.bends_bound()
    per_class = scale.reshape(-1, problem.width)
    if problem.width == 1 and V is not None:
        top = _top_of_rows(problem, bends, scale, V, stretch)
    else:
        kinds = np.unique(per_class, axis=1).T
        top = _longest(stretch) * max(_top_of_rows(problem, bends, kind) for kind in kinds)
    return top + _longest(stretch) * float(np.max(scale**2 * problem.penalties()))


def _top_of_rows(
    problem: LinearModel,
    bends: np.ndarray,
    scale: np.ndarray,
    V: np.ndarray | None = None,
    stretch: np.ndarray | None = None,
) -> float:
    """Return a bound of the largest eigenvalue of D A S S^T A^T D with D^2 = diag(bends)."""
    from scipy.sparse import diags_array

    A = problem.A if problem.sparse else np.asarray(detached(problem.A), dtype=np.float64)
    n = A.shape[1]
    scaled = A @ diags_array(scale[:n]) if problem.sparse else A * scale[:n]
    gram = scaled @ scaled.T
    gram = gram.toarray() if is_sparse(gram) else gram
    ones = float(scale[n]) if problem.intercept else 0.0
    gram = gram + ones**2
    size, weights = 1.0, np.sqrt(bends)
    if V is not None and stretch is not None:
        image = scaled @ V[:n] + (ones * V[n:] if problem.intercept else 0.0)
        middle = 2 * np.diag(stretch) + stretch[:, None] * (V.T @ V) * stretch
        gram, size = gram + image @ middle @ image.T, 1.0 + float(np.linalg.norm(middle))
    trace = float(np.sum(bends * (np.asarray((scaled**2).sum(axis=1)).ravel() + ones**2)))
    return _largest(weights[:, None] * gram * weights) + _rounding(problem) * size * trace


def _by_absolute_values(problem: Problem, metric: Preconditioner | None) -> float:
    """Return max_i (|D B D| v)_i / v_i for D = diag(scale) and a good v > 0, times the stretch.

    For every v > 0 that is at least the spectral radius of |D B D| (Collatz and Wielandt), which is
    at least that of D B D; products with |D B D| bring v near the best one. Where entries of one
    sign make B, the bound is tight.
    """
    scale, _, stretch = _parts(problem, metric)
    v, best = np.ones(problem.n), math.inf
    for _ in range(BOUND.steps):
        image = scale * problem.absolute_product(scale * v)
        best = min(best, float(np.max(image / v)))
        lowest = float(v @ image / (v @ v))
        top = float(image.max())
        if not 0 < top < math.inf or best <= (1 + BOUND.close) * lowest:
            break
        v = np.maximum(image / top, BOUND.smallest)
    return _longest(stretch) * best * (1 + _rounding(problem))


def _parts(
    problem: Problem, metric: Preconditioner | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    if metric is None:
        return np.ones(problem.n), None, None
    return metric.scale, metric.V, metric.stretch


def _longest(stretch: np.ndarray | None) -> float:
    """Return the square of the norm of I + V diag(stretch) V^T, V orthonormal to 1e-6."""
    if stretch is None:
        return 1.0
    return (1 + max(float(np.max(stretch, initial=0.0)), 0.0) * (1 + 1e-6 * len(stretch))) ** 2


def _largest(C: np.ndarray) -> float:
    if not np.all(np.isfinite(C)):
        return math.inf
    size = float(np.abs(C).max()) or 1.0  # squares of numbers near the largest would overflow
    C = C / size
    return size * max(float(np.linalg.eigvalsh((C + C.T) / 2)[-1]), 0.0)


def _rounding(problem: Problem) -> float:
    """Return a bound of the relative rounding error of sums over rows, then over variables."""
    unit: Any = epsilon(problem.xp, problem.dtype)
    return float(unit) * ((problem.rows or problem.n) + 4 * problem.n + 10)
