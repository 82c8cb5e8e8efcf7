"""How far a computed gradient can be from the exact one: a bound by the usual error analysis.

A sum of m products has an error of at most about m units of rounding of the sum of their absolute
values (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Norms of the matrix
and of x stand for the absolute values, so that no evaluation is needed for most losses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ode2opt.base.arrays import Array, detached, epsilon, norm, sum_of_squares

if TYPE_CHECKING:
    from ode2opt.problems.linear_model import LinearModel
    from ode2opt.problems.quadratic import Quadratic

LOSS_ERROR = 16  # units of rounding of a slope, as functions of one number are computed


def matrix_norm(A: Array, squares: float | None) -> float:
    """Return the Frobenius norm of a matrix, or a little more."""
    entries, dtype = (A.nnz, A.dtype) if hasattr(A, "nnz") else (math.prod(A.shape), A.dtype)
    single = str(dtype).endswith("float32")
    tiny = float(np.finfo(np.float32 if single else np.float64).tiny)
    total = sum_of_squares(A) if squares is None else squares
    return 1.01 * math.sqrt(total + entries * tiny)  # smaller squares are lost


def of_linear_model(model: LinearModel, x: Array, value: float | None) -> float:
    """Return a bound of |computed gradient - gradient|.

    With F the norm of the rows, weights and ones included, B the largest second derivative of the
    loss, and s the slopes: scores are off by at most n u F |x|, slopes by B times that, and the sum
    over rows by N u F |s| / N.
    """
    u = epsilon(model.xp, model.dtype)
    heaviest = 1.0 if model.weights is None else float(model.xp.max(model.weights))
    F = matrix_norm(model.A, model.data.sum_of_squares)
    F = math.sqrt(heaviest * (F * F + model.intercept * model.N))
    shift = 0.0 if model.offset is None else math.sqrt(heaviest) * norm(model.offset)
    size = norm(x)
    scores = 2 * u * (model.n + 4) * (F * size + shift)
    bend, slopes = _bend_and_slopes(model, x, value, scores, F * size, heaviest)
    rows = bend * scores + u * (LOSS_ERROR + model.N) * slopes
    rows += u * LOSS_ERROR * math.sqrt(heaviest * model.N * model.width)
    return F / model.N * rows + 4 * u * max(model.l2, model.intercept_l2) * size


def of_quadratic(problem: Quadratic, x: Array) -> float:
    """Return a bound of |computed gradient - gradient|; Q may not be quite symmetric."""
    u, size = epsilon(problem.xp, problem.dtype), norm(x)
    products = (problem.n * problem.largest_entry + problem.l2) * size + norm(problem.b)
    return u * (problem.n + 4) * products + problem.n * problem.asymmetry * size


def _bend_and_slopes(
    model: LinearModel,
    x: Array,
    value: float | None,
    off: float,
    image: float,
    heaviest: float,
) -> tuple[float, float]:
    """Return bounds of the loss's second derivative near the scores, and of the norm of slopes.

    A loss l >= c with second derivative at most B has s^2 <= 2 B (l - c): the value tells enough.
    Without c, |s| <= |s(0)| + B F |x|. Without B, one product with the matrix gives both.
    """
    bend = model.slope_bound
    if bend is None:
        z = model.scores(x)
        near = [float(model.xp.max(model.curvature(each))) for each in (z - off, z, z + off)]
        slopes = math.sqrt(heaviest) * norm(_flat(model.slope(z)))
        return 2 * max(near), slopes + 2 * max(near) * off * math.sqrt(model.N)
    if model.least_loss is not None and value is not None:
        return bend, 1.01 * math.sqrt(2 * bend * model.N * max(value - model.least_loss, 0.0))
    return bend, math.sqrt(heaviest) * norm(_flat(model.slope(_at_zero(model)))) + bend * image


def _at_zero(model: LinearModel) -> Array:
    """Return the scores at x = 0."""
    if model.offset is not None:
        return 1 * model.offset
    shape = (model.N,) if model.width == 1 else (model.N, model.width)
    return model.xp.zeros(shape, dtype=model.dtype)


def _flat(values: Array) -> Array:
    return np.asarray(detached(values)).reshape(-1)
