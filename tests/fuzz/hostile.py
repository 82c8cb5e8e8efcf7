"""Hostile convex problems: ill-conditioned, badly scaled, saturated, flat, rough or degenerate.

Every problem is a sum over rows of a loss of scores z = A x, perhaps with l2/2 |x|^2, or a
quadratic. What is true of it is computed here once more in extended precision, with a bound of what
rounding in the problem's own precision may have done.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from ode2opt import LeastSquares, Logistic, Lpp, Problem, Quadratic

LIBRARIES = ("numpy", "sparse", "jax", "torch")
SHARES = (0.68, 0.2, 0.04, 0.08)
LARGEST = 300
JAX_SHAPES = ((1, 1), (5, 2), (60, 12), (40, 90), (300, 250))
Slopes = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """One problem with a start and a tolerance; ``rows`` is the same in plain float64 numbers."""

    seed: int
    kind: str
    library: str
    problem: Problem
    rows: Rows
    x0: Any
    tol: float

    @cached_property
    def first_norm(self) -> tuple[float, float]:
        """The norm at the start, with its bound."""
        return self.true_norm(self.x0)

    def true_norm(self, x: Any) -> tuple[float, float]:
        """Return the gradient norm at x in extended precision, and what rounding may have done."""
        precision = np.finfo(str(self.problem.dtype).split(".")[-1])
        return self.rows.norm(np.asarray(x).astype(np.longdouble), precision)


@dataclass(frozen=True)
class Rows:
    """The gradient A^T slope(A x) w + l2 x with bounds; ``w`` is 1/N, or 1."""

    A: np.ndarray
    b: np.ndarray
    l2: float
    w: float
    slopes: Slopes

    def norm(self, x: np.ndarray, precision: np.finfo) -> tuple[float, float]:
        """Return the norm and the bound: scores, slopes and their sum are each rounded."""
        eps, tiny = float(precision.eps), float(precision.tiny)
        A, n = self.A.astype(np.longdouble), len(x)
        z, size = A @ x, np.abs(A) @ np.abs(x)
        slope, error = self.slopes(z, self.b.astype(np.longdouble), (n + 4) * eps * size)
        g = self.w * (A.T @ slope) + self.l2 * x
        error = error + (len(z) + 8) * eps * (np.abs(slope) + error) + tiny / self.w
        bound = self.w * (np.abs(A).T @ error) + 8 * eps * (self.l2 * np.abs(x) + np.abs(g))
        bound += len(z) * tiny  # what has become zero
        return _norm(g), _norm(bound)


def _norm(v: np.ndarray) -> float:
    largest = np.max(np.abs(v), initial=0.0)
    if not 0 < largest < np.inf:
        return float(largest)
    return float(largest * np.sqrt(np.sum((v / largest) ** 2)))


def _logistic_slopes(z: np.ndarray, b: np.ndarray, dz: np.ndarray) -> tuple:
    e = np.exp(-np.abs(z))
    e = e / (1 + e)
    bend = np.minimum(0.25, np.exp(np.minimum(dz - np.abs(z), 0)))
    return np.where(z > 0, (1 - b) - e, e - b), bend * dz


def power_slopes(p: int) -> Slopes:
    def slopes(z: np.ndarray, b: np.ndarray, dz: np.ndarray) -> tuple:
        r = z - b
        return r ** (p - 1), (p - 1) * (np.abs(r) + dz) ** (p - 2) * dz

    return slopes


def hinge(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The squared hinge, C^1 only: half of max(0, 1 - b z)^2, b = +-1."""
    r = np.maximum(0, 1 - b * z)
    return 0.5 * r * r, -b * r


def huber(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Huber's loss with the threshold 1, C^1 only."""
    r = z - b
    c = np.clip(r, -1, 1)
    return c * (r - 0.5 * c), c


def steep(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|r|^2.5 / 2.5: its curvature is zero at the minimum and no Lipschitz constant holds."""
    r = z - b
    a = np.sqrt(np.abs(r))
    return np.abs(r) ** 2 * a / 2.5, r * a


def flat(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sqrt(1 + r^2): linear far out, where its curvature vanishes."""
    r = z - b
    h = np.hypot(1, r)
    return h, r / h


def log_sum_exp(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log(sum(exp(z + b))): its value is shared out so that the mean of the rows is it."""
    s = z + b
    top = np.max(s)
    e = np.exp(s - top)
    return np.full_like(s, top + np.log(np.sum(e))), len(s) * e / np.sum(e)


FUNCTIONS = {"hinge": hinge, "huber": huber, "steep": steep, "flat": flat, "lse": log_sum_exp}


def _function_slopes(name: str) -> Slopes:
    function = FUNCTIONS[name]

    def slopes(z: np.ndarray, b: np.ndarray, dz: np.ndarray) -> tuple:
        slope = function(z, b)[1]
        if name == "steep":
            bend = 1.5 * np.sqrt(np.abs(z - b) + dz)
        elif name == "lse":
            rounded = np.finfo(float).eps * (len(z) + np.max(np.abs(z + b)))
            return slope, slope * 2 * (np.max(dz) + 4 * rounded)
        else:
            bend = np.ones_like(z)
        return slope, bend * dz

    return slopes


def _function(name: str, A: np.ndarray, b: np.ndarray, l2: float, bare: bool) -> Problem:
    function, N = FUNCTIONS[name], len(A)

    def value(x: np.ndarray) -> float:
        return float(np.mean(function(A @ x, b)[0]) + 0.5 * l2 * (x @ x))

    def gradient(x: np.ndarray) -> np.ndarray:
        return A.T @ (function(A @ x, b)[1] / N) + l2 * x

    def hvp(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return A.T @ (_bends(name, A @ x, b, A @ v) / N) + l2 * v

    return Problem.from_function(value, gradient, n=A.shape[1], hvp=None if bare else hvp)


def _bends(name: str, z: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the (generalised) second derivative of the rows' losses along t."""
    r = z - b
    if name == "hinge":
        return (b * z < 1) * t
    if name == "huber":
        return (np.abs(r) < 1) * t
    if name == "steep":
        return 1.5 * np.sqrt(np.abs(r)) * t
    if name == "flat":
        return t / np.hypot(1, r) ** 3
    p = log_sum_exp(z, b)[1]
    return p * (t - (p @ t) / len(p))


def features(rng: np.random.Generator, N: int, n: int) -> np.ndarray:
    """Return a matrix of one of many kinds, with columns of many sizes and some of no use."""
    A = rng.standard_normal((N, n))
    how = rng.integers(6)
    if how == 0:  # singular values over up to five decades: Hessians of condition 1e10
        U, _, V = np.linalg.svd(A, full_matrices=False)
        A = (U * 10 ** -np.linspace(0, rng.uniform(0, 5), min(N, n))) @ V * np.sqrt(N)
    elif how == 1:
        A *= 10 ** rng.uniform(-rng.uniform(0, 4), rng.uniform(0, 4), n)
    elif how == 2:
        A = (rng.random((N, n)) < rng.uniform(0.02, 0.5)).astype(float)
    elif how == 3:  # measurements as people have them: constant, years, money
        A = np.abs(A) * np.array([1.0, 40.0, 5e4, 0.1])[np.arange(n) % 4]
        A[:, 0] = 1.0
    elif how == 4:
        A += 10 ** rng.uniform(0, 3)  # far from the origin: nearly parallel columns
    for trick in range(3):
        column, other = rng.integers(n, size=2)
        if rng.random() < 0.15:
            A[:, column] = (0.0, 1.0, A[:, other])[trick]
    return A


def _labels(rng: np.random.Generator, A: np.ndarray, separable: bool) -> np.ndarray:
    if separable:
        return (A @ rng.standard_normal(A.shape[1]) > 0).astype(float)
    z = A @ rng.standard_normal(A.shape[1])
    z /= np.max(np.abs(z)) or 1.0
    return (rng.random(len(A)) < 1 / (1 + np.exp(-5 * z))).astype(float)


def _cast(A: np.ndarray, library: str, dtype: type) -> Any:
    A = A.astype(dtype)
    if library == "sparse":
        return scipy.sparse.csr_array(A)
    if library == "jax":
        import jax.numpy as jnp

        return jnp.asarray(A)
    if library == "torch":
        import torch

        return torch.from_numpy(A)
    return A


KINDS = ("logistic", "unpenalised", "separable", "lpp", "leastsquares", "quadratic", *FUNCTIONS)


def make_case(seed: int) -> Case:
    """Return a case that depends on ``seed`` only."""
    rng = np.random.default_rng([13, seed])
    kind = str(rng.choice(KINDS))
    library = str(rng.choice(LIBRARIES, p=SHARES))
    dtype = np.float32 if rng.random() < 0.25 else np.float64
    if kind in FUNCTIONS:
        library, dtype = "numpy", np.float64
    n = int(np.exp(rng.uniform(0, np.log(LARGEST))).round())
    N = int(np.exp(rng.uniform(0, np.log(LARGEST + 100))).round())
    if library == "jax":  # which compiles anew for every shape
        N, n = JAX_SHAPES[rng.integers(len(JAX_SHAPES))]
    l2 = 0.0 if rng.random() < 0.4 else 10 ** rng.uniform(-8, 0)
    problem, rows = _problem(rng, kind, library, dtype, N, n, l2)
    x0 = _start(rng, rows, n, dtype)
    while not _is_fit(problem, x0):
        x0 = (x0 / 16).astype(dtype)
    return Case(seed, kind, library, problem, rows, _like(problem, x0), _tol(rng, rows, x0, dtype))


def _problem(
    rng: np.random.Generator, kind: str, library: str, dtype: type, N: int, n: int, l2: float
) -> tuple[Problem, Rows]:
    if kind == "quadratic":
        return _quadratic(rng, library, dtype, n)
    A = features(rng, N, n)
    size = 10 ** rng.uniform(-8, 8) if rng.random() < 0.3 else 1.0  # f(c x)
    A = (A * size).astype(dtype).astype(np.float64)
    l2 = float(l2 * size**2)
    if kind in ("logistic", "unpenalised", "separable"):
        l2 = max(l2, 1e-8) if kind == "logistic" else 0.0
        b = _labels(rng, A, kind == "separable")
        made: Problem = Logistic(_cast(A, library, dtype), _cast_b(b, library, dtype), l2=l2)
        return made, Rows(A, b, l2, 1 / N, _logistic_slopes)
    b = (rng.standard_normal(N) * 10 ** rng.uniform(-2, 2)).astype(dtype).astype(np.float64)
    if kind in FUNCTIONS:
        b = np.sign(b) if kind == "hinge" else b
        bare = rng.random() < 0.5
        return _function(kind, A, b, l2, bare), Rows(A, b, l2, 1 / N, _function_slopes(kind))
    if kind == "leastsquares":
        made = LeastSquares(_cast(A, library, dtype), _cast_b(b, library, dtype), l2=l2)
        return made, Rows(A, b, l2, 1 / N, power_slopes(2))
    p = int(rng.choice([4, 6, 10]))
    made = Lpp(_cast(A, library, dtype), _cast_b(b, library, dtype), p=p, l2=l2)
    return made, Rows(A, b, l2, 1 / N, power_slopes(p))


def _cast_b(b: np.ndarray, library: str, dtype: type) -> Any:
    return _cast(b, "numpy" if library == "sparse" else library, dtype)


def _quadratic(rng: np.random.Generator, library: str, dtype: type, n: int) -> tuple[Problem, Rows]:
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    w = 10 ** rng.uniform(-rng.uniform(0, 10 if dtype == np.float64 else 4), 0, n)
    w *= 10 ** (rng.uniform(-8, 8) if rng.random() < 0.5 else 0.0)  # c f
    Q = (V * w) @ V.T
    Q = ((Q + Q.T) / 2).astype(dtype).astype(np.float64)
    b = (Q @ rng.standard_normal(n)).astype(dtype).astype(np.float64)
    made = Quadratic(_cast(Q, library, dtype), _cast_b(b, library, dtype))
    return made, Rows(np.eye(n), b, 0.0, 1.0, _quadratic_slopes(Q))


def _quadratic_slopes(Q: np.ndarray) -> Slopes:
    def slopes(x: np.ndarray, b: np.ndarray, dx: np.ndarray) -> tuple:
        error = np.abs(Q) @ dx  # what sums of Q's rows may be off by, and more
        return Q.astype(np.longdouble) @ x - b, error

    return slopes


def _start(rng: np.random.Generator, rows: Rows, n: int, dtype: type) -> np.ndarray:
    """Return zero, a usual start, a far one, or one at which scores are large: saturated."""
    how, x = rng.integers(4), rng.standard_normal(n)
    if how == 0:
        return np.zeros(n, dtype)
    if how == 1:
        return (x * 10 ** rng.uniform(-2, 1)).astype(dtype)
    if how == 2:
        return (x * 10 ** rng.uniform(-8, 4)).astype(dtype)
    size = np.max(np.abs(rows.A @ x)) or 1.0
    return (x * 10 ** rng.uniform(-1, 2.7) / size).astype(dtype)


def _is_fit(problem: Problem, x0: np.ndarray) -> bool:
    """Whether there are numbers at a start: others are refused."""
    with np.errstate(all="ignore"):
        value, g = problem.value_and_gradient(_like(problem, x0))
    return bool(np.isfinite(float(value)) and np.all(np.isfinite(np.asarray(g))))


def _tol(rng: np.random.Generator, rows: Rows, x0: np.ndarray, dtype: type) -> float:
    """Return a share of the first norm that the precision allows."""
    norm, _ = rows.norm(x0.astype(np.longdouble), np.finfo(dtype))
    share = 10 ** (rng.uniform(-4, -1) if dtype == np.float32 else rng.uniform(-8, -2))
    tol = max(share * norm, 2 * float(np.finfo(dtype).eps))
    return float(tol) if np.isfinite(tol) else 1.0


def _like(problem: Problem, x0: np.ndarray) -> Any:
    return problem.xp.asarray(copy.copy(x0), dtype=problem.dtype)
