"""Rows of a regression with an L1 penalty: centred, and divided by one number.

The residual x - prox(x - g) is small only in units of the variables. So all columns are divided by
one number, a power of two, for which the largest has a mean square near 1: a fit of 1000 X is the
one of X. Dense rows are centred; then there is no intercept among the variables, and the duality
gap is known. Sparse ones stay sparse, unless most of their entries are stored, and the intercept is
a variable.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ode2opt.base.arrays import Array, is_dask, is_sparse
from ode2opt.integrations.sklearn._fitting import MOST, quotient, reachable
from ode2opt.penalties import Pieces, Separable
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.losses import LeastSquares
from ode2opt.solvers import PenaltyPath, Result, path
from ode2opt.solvers.gap import duality_gap

FULL = 1 / 3  # of the entries of a sparse matrix: with more it is taken as a dense one


class RegressionFit(NamedTuple):
    """One fit.

    Attributes:
        coef: the coefficients.
        intercept: one number.
        gap: the objective is at most so much above its minimum.
        iterations: of the fit.
    """

    coef: np.ndarray
    intercept: float
    gap: float
    iterations: int


class CentredRows:
    """Rows, ready for fits of several targets and penalties.

    Attributes:
        centred: whether the mean of each column was taken out; else an intercept is a variable.
        middle: those means.
        unit: what the columns were divided by.
        rows: the rows that are fitted to.
    """

    def __init__(self, X: Array, weights: np.ndarray | None, intercept: bool) -> None:
        if is_sparse(X) and X.nnz > FULL * X.shape[0] * X.shape[1]:
            X = X.toarray()
        self.weights, self.intercept = weights, intercept
        self.centred = isinstance(X, np.ndarray)
        self.middle = np.zeros(X.shape[1])
        if intercept and self.centred:
            self.middle = np.average(np.asarray(X, dtype=np.float64), axis=0, weights=weights)
        self.unit = _unit(X, self.middle)
        if self.centred:
            self.rows = X - self.middle.astype(X.dtype)
            self.rows /= self.unit
        else:
            self.rows = X / X.dtype.type(self.unit)

    def problem(self, y: Array, l2: float = 0.0) -> tuple[LeastSquares, float]:
        """Return least squares for centred targets, and their mean."""
        mean = float(np.average(y.astype(np.float64), weights=self.weights)) * self.intercept
        variable = self.intercept and not self.centred
        b = y - y.dtype.type(mean)
        made = LeastSquares(self.rows, b, l2=l2, weights=self.weights, intercept=variable)
        return made, mean

    def penalty(self, l1_ratio: float, positive: bool) -> Separable:
        """Return the penalty whose weight is 1, for the divided columns."""
        l1, l2 = quotient(l1_ratio, self.unit), quotient((1 - l1_ratio) / self.unit, self.unit)
        return Separable(Pieces(l1=l1, l2=l2, lower=0.0 if positive else -np.inf))

    def variables(self, coef: np.ndarray) -> np.ndarray:
        """Return coefficients as a point of the problem; an intercept is 0, as targets are
        centred.
        """
        z = np.asarray(coef, dtype=np.float64) * self.unit
        return np.append(z, 0.0) if self.intercept and not self.centred else z

    def coefficients(self, z: np.ndarray, mean: float) -> tuple[np.ndarray, float]:
        """Return coefficients and intercept of a point of the problem."""
        z = np.asarray(z, dtype=np.float64)
        if self.intercept and not self.centred:
            return z[:-1] / self.unit, mean + float(z[-1])
        coef = z / self.unit
        return coef, mean - float(self.middle @ coef)


def _unit(X: Array, middle: np.ndarray) -> float:
    """Return a power of two near the root of the largest mean square of a column."""
    if is_sparse(X):
        squares = np.zeros(X.shape[1])
        np.add.at(squares, X.indices, np.square(X.data, dtype=np.float64))
    elif is_dask(X):
        squares = np.asarray((X.astype(np.float64) ** 2).sum(axis=0).compute())
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
    largest = float(np.max(squares / X.shape[0] - middle * middle, initial=0.0))
    if not 0 < largest < math.inf:
        return 1.0
    return float(2.0 ** min(max(round(math.log2(largest) / 2), -60), 60))


def largest_slope(problem: LeastSquares) -> float:
    """Return the largest entry of the gradient where all coefficients are 0; 1 where that is 0."""
    g = np.asarray(problem.gradient(np.zeros(problem.n, dtype=problem.dtype)))
    own = g[: problem.columns]
    return float(np.max(np.abs(own), initial=0.0)) or 1.0


def fit_of(
    rows: CentredRows, problem: LeastSquares, penalty: Separable | None, result: Result, mean: float
) -> RegressionFit:
    """Return coefficients, intercept and gap of a solve."""
    z, gap = np.asarray(result.x, dtype=np.float64), result.gap
    if problem.intercept:
        z, gap = _with_best_intercept(problem, penalty, z)
    if penalty is None and result.bound is not None:
        gap = result.bound.value
    coef, intercept = rows.coefficients(z, mean)
    bound = result.fun if gap is None else min(gap, result.fun)  # as nothing is below 0
    return RegressionFit(coef, intercept, bound, result.iterations)


def _with_best_intercept(
    problem: LeastSquares, penalty: Separable | None, z: np.ndarray
) -> tuple[np.ndarray, float | None]:
    """Return a point with the best intercept for its coefficients, and the gap there.

    Least squares have curvature 1 along the intercept, so that one step finds it. With the best
    intercept f is a convex function of the coefficients alone, whose gradient is f's.
    """
    z, dtype = z.copy(), np.dtype(str(problem.dtype))
    z[-1] -= float(problem.gradient(np.asarray(z, dtype=dtype))[-1])
    if penalty is None:
        return z, None
    value, g = problem.value_and_gradient(np.asarray(z, dtype=dtype))
    own, slope = z[:-1], np.asarray(g, dtype=np.float64)[:-1]
    return z, duality_gap(problem, penalty, own, slope, float(value) + float(penalty.value(own)))


def along(
    estimator: Any, rows: CentredRows, y: np.ndarray, alphas: np.ndarray, l1_ratio: float
) -> list[RegressionFit]:
    """Return fits for falling weights, each starting at the one before."""
    problem, mean = rows.problem(y)
    whole = rows.penalty(l1_ratio, estimator.positive)
    tol = reachable(estimator.tol * largest_slope(problem), problem)
    fits: dict[float, RegressionFit] = {}
    weights = np.unique(alphas[alphas > 0])[::-1]
    coef = None
    if len(weights) and (l1_ratio > 0 or estimator.positive):
        found = path_of(estimator, problem, whole, weights, tol)
        for k, alpha in enumerate(found.scales):
            coef, intercept = rows.coefficients(found.x(k), mean)
            gap = float(np.fmin(found.gaps[k], found.values[k]))
            fits[float(alpha)] = RegressionFit(coef, intercept, gap, int(found.iterations[k]))
    for alpha in np.unique(alphas)[::-1]:
        if float(alpha) not in fits:
            fits[float(alpha)] = estimator._one(rows, y, float(alpha), l1_ratio, coef)
            coef = fits[float(alpha)].coef
    return [fits[float(alpha)] for alpha in alphas]


def path_of(
    estimator: Any, problem: LinearModel, penalty: Separable, scales: np.ndarray, tol: float
) -> PenaltyPath:
    """Follow an estimator's path of falling weights, and warn where it missed its tolerance."""
    solver, most = estimator._penalised_solver(), estimator.max_iter
    found = path(problem, penalty, scales=scales, tol=tol, max_iter=most, method=solver)
    if not found.success:
        short = sum(residual > found.tol for residual in found.residuals)
        warnings.warn(
            f"{type(estimator).__name__} did not converge for {short} of {len(found)} weights: "
            f"{found.status.value} Raise max_iter, or scale the columns.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return found


def alpha_grid(
    rows: CentredRows, y: np.ndarray, l1_ratio: float, positive: bool, n: int, ratio: float
) -> np.ndarray:
    """Return weights from the least one at which all coefficients are 0, as the namesake does."""
    problem, _ = rows.problem(y)
    g = np.asarray(problem.gradient(np.zeros(problem.n, dtype=problem.dtype)), dtype=np.float64)
    g = -g[: problem.columns] * rows.unit
    largest = float(np.max(g if positive else np.abs(g), initial=0.0)) / l1_ratio
    least = float(np.finfo(np.float64).resolution)
    if largest <= least:
        return np.full(n, least)
    return np.geomspace(largest, largest * ratio, num=n)


def weighted(penalty: Separable, alpha: float) -> Separable:
    """Return a penalty times a weight, which is cut where it would overflow."""
    l1, l2, lower, upper = penalty.pieces()
    return Separable(Pieces(min(alpha * l1, MOST), min(alpha * l2, MOST), lower, upper))
