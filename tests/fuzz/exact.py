"""What is true of a hostile problem: its gradient once more, in extended precision, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from fuzz.row_losses import LOG_SUM_EXP, Loss

from ode2opt import Problem

Slopes = Callable[[np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """One problem with a start and a tolerance; ``exact`` is the same in plain float64 numbers."""

    seed: int
    kind: str
    library: str
    problem: Problem
    exact: Exact
    x0: Any
    tol: float

    @cached_property
    def first_norm(self) -> tuple[float, float]:
        """The norm at the start, with its bound."""
        return self.true_norm(self.x0)

    def true_norm(self, x: Any) -> tuple[float, float]:
        """Return the gradient norm at x in extended precision, and what rounding may have done."""
        precision = np.finfo(str(self.problem.dtype).split(".")[-1])
        return self.exact.norm(np.asarray(x).astype(np.longdouble), precision)


@dataclass(frozen=True)
class Exact:
    """The gradient of weighted rows in extended precision; scores have one or more columns."""

    A: np.ndarray
    b: np.ndarray
    l2: np.ndarray
    weights: np.ndarray
    slopes: Slopes
    factor: float = 1.0

    def norm(self, x: np.ndarray, precision: np.finfo) -> tuple[float, float]:
        """Return the norm, and what rounding of scores, slopes and sums may have changed."""
        eps, tiny = float(precision.eps), float(precision.tiny)
        A, X = self.A.astype(np.longdouble), x.reshape(self.A.shape[1], -1)
        with np.errstate(all="ignore"):
            z, size = A @ X, np.abs(A) @ np.abs(X)
            slope, error = self.slopes(z, self.b, (A.shape[1] + 4) * eps * size, eps)
            w = (self.weights * self.factor / len(A))[:, None]
            l2 = self.l2[:, None] * self.factor
            g = A.T @ (w * slope) + l2 * X
            error = error + (len(A) + 8) * eps * (np.abs(slope) + error) + tiny
            if not np.all(np.isfinite(error)):  # rounding decides on which side of a wall x is
                return _norm(g.ravel()), math.inf
            bound = np.abs(A).T @ (w * error + tiny) + 8 * eps * (l2 * np.abs(X) + np.abs(g))
            return _norm(g.ravel()), _norm((bound + len(A) * tiny).ravel())


def by_row(loss: Loss) -> Slopes:
    """Return a loss's slopes with their errors: a slope rises with its score."""

    def slopes(z: np.ndarray, b: np.ndarray, dz: np.ndarray, eps: float) -> tuple:
        b = b.astype(np.longdouble)[:, None]
        here, above, below = loss.slope(z, b), loss.slope(z + dz, b), loss.slope(z - dz, b)
        error = np.maximum(above - here, here - below) + 16 * eps * loss.size(z, b)
        return here, np.where(np.isnan(error), np.inf, error)

    return slopes


def by_class(z: np.ndarray, b: np.ndarray, dz: np.ndarray, eps: float) -> tuple:
    """Return the slopes of a softmax with their errors."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    chosen = np.arange(z.shape[1]) == b[:, None]
    rounded = np.max(dz + 4 * eps * (1 + np.abs(z)), axis=1, keepdims=True) + 4 * eps * z.shape[1]
    others = np.where(chosen, 0, p).sum(axis=1, keepdims=True)
    slope = np.where(chosen, -others, p)
    return slope, np.minimum(1, p * np.expm1(np.minimum(2 * rounded, 700))) + 4 * eps * chosen


def by_log_sum_exp(z: np.ndarray, b: np.ndarray, dz: np.ndarray, eps: float) -> tuple:
    """Return the slopes of log(sum(exp(z + b))), times the number of rows, with their errors."""
    b = b.astype(np.longdouble)[:, None]
    slope = LOG_SUM_EXP.slope(z, b)
    return slope, slope * 2 * (np.max(dz) + 4 * eps * (len(z) + np.max(np.abs(z + b))))


def by_matrix(Q: np.ndarray) -> Slopes:
    """Return the slopes Q x - b of a quadratic, whose rows are those of the identity."""

    def slopes(x: np.ndarray, b: np.ndarray, dx: np.ndarray, eps: float) -> tuple:
        return Q.astype(np.longdouble) @ x - b[:, None], np.abs(Q) @ dx

    return slopes


def _norm(v: np.ndarray) -> float:
    largest = np.max(np.abs(v), initial=0.0)
    if not 0 < largest < np.inf:
        return float(largest)
    return float(largest * np.sqrt(np.sum((v / largest) ** 2)))


def as_function(exact: Exact, loss: Loss, bare: bool) -> Problem:
    A, b, l2, c = exact.A, exact.b, exact.l2, exact.factor
    w = exact.weights / len(A)

    def value(x: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return float(c * (w @ loss.value(A @ x, b) + 0.5 * (l2 * x) @ x))

    def gradient(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return c * (A.T @ (w * loss.slope(A @ x, b)) + l2 * x)

    def hvp(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            z, moved = A @ x, A @ v
            along = loss.along(z, b, moved) if loss.along else loss.bend(z, b) * moved
            return c * (A.T @ (w * along) + l2 * v)

    return Problem.from_function(value, gradient, n=A.shape[1], hvp=None if bare else hvp)


def random_quadratic(
    rng: np.random.Generator, n: int, dtype: type, decades: float, units: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Q, with eigenvalues over some decades and times any unit, and b in its range."""
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    w = 10 ** rng.uniform(-rng.uniform(0, decades if dtype == np.float64 else 4), 0, n)
    w *= 10 ** (rng.uniform(-units, units) if rng.random() < 0.5 else 0.0)
    Q = (V * w) @ V.T
    Q = ((Q + Q.T) / 2).astype(dtype).astype(np.float64)
    return Q, (Q @ rng.standard_normal(n)).astype(dtype).astype(np.float64)


def of_quadratic(Q: np.ndarray, b: np.ndarray) -> Exact:
    n = len(b)
    return Exact(np.eye(n), b, np.zeros(n), np.full(n, float(n)), by_matrix(Q))
