"""Hostile convex problems: ill-conditioned, badly scaled, saturated, flat, rough or degenerate.

Every problem is a sum over rows of a loss of scores z = A x, perhaps with l2/2 |x|^2, or a
quadratic. What is true of it is computed once more in extended precision (exact.py).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse
from fuzz.exact import (
    Case,
    Exact,
    Slopes,
    as_function,
    by_log_sum_exp,
    by_row,
    of_quadratic,
    random_quadratic,
)
from fuzz.row_losses import FLAT, KNOWN, LOG_SUM_EXP, power

from ode2opt import LeastSquares, Logistic, Lpp, Problem, Quadratic

LIBRARIES = ("numpy", "sparse", "jax", "torch")
SHARES = (0.68, 0.2, 0.04, 0.08)
LARGEST = 300
JAX_SHAPES = ((1, 1), (5, 2), (60, 12), (40, 90), (300, 250))


FUNCTIONS = {
    "hinge": KNOWN["hinge"],
    "huber": KNOWN["huber"],
    **FLAT,
    "lse": LOG_SUM_EXP,
}


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
    problem, exact = _problem(rng, kind, library, dtype, N, n, l2)
    x0 = _start(rng, exact, n, dtype)
    while not _is_fit(problem, x0):
        x0 = (x0 / 16).astype(dtype)
    return Case(
        seed, kind, library, problem, exact, _like(problem, x0), _tol(rng, exact, x0, dtype)
    )


def _problem(
    rng: np.random.Generator, kind: str, library: str, dtype: type, N: int, n: int, l2: float
) -> tuple[Problem, Exact]:
    if kind == "quadratic":
        Q, b = random_quadratic(rng, n, dtype, 10, 8)
        made: Problem = Quadratic(_cast(Q, library, dtype), _cast_b(b, library, dtype))
        return made, of_quadratic(Q, b)
    A = features(rng, N, n)
    size = 10 ** rng.uniform(-8, 8) if rng.random() < 0.3 else 1.0  # f(c x)
    A = (A * size).astype(dtype).astype(np.float64)
    l2 = float(l2 * size**2)

    def exact(b: np.ndarray, slopes: Slopes) -> Exact:
        return Exact(A, b, np.full(n, l2), np.ones(N), slopes)

    if kind in ("logistic", "unpenalised", "separable"):
        l2 = max(l2, 1e-8) if kind == "logistic" else 0.0
        b = _labels(rng, A, kind == "separable")
        made = Logistic(_cast(A, library, dtype), _cast_b(b, library, dtype), l2=l2)
        return made, exact(b, by_row(KNOWN["logistic"]))
    b = (rng.standard_normal(N) * 10 ** rng.uniform(-2, 2)).astype(dtype).astype(np.float64)
    if kind in FUNCTIONS:
        b = (b > 0).astype(float) if kind == "hinge" else b
        loss = FUNCTIONS[kind]
        known = exact(b, by_log_sum_exp if kind == "lse" else by_row(loss))
        return as_function(known, loss, bare=bool(rng.random() < 0.5)), known
    p = 2 if kind == "leastsquares" else int(rng.choice([4, 6, 10]))
    rows = _cast(A, library, dtype), _cast_b(b, library, dtype)
    made = LeastSquares(*rows, l2=l2) if p == 2 else Lpp(*rows, p=p, l2=l2)
    return made, exact(b, by_row(power(p)))


def _cast_b(b: np.ndarray, library: str, dtype: type) -> Any:
    return _cast(b, "numpy" if library == "sparse" else library, dtype)


def _start(rng: np.random.Generator, exact: Exact, n: int, dtype: type) -> np.ndarray:
    """Return zero, a usual start, a far one, or one at which scores are large: saturated."""
    how, x = rng.integers(4), rng.standard_normal(n)
    if how == 0:
        return np.zeros(n, dtype)
    if how == 1:
        return (x * 10 ** rng.uniform(-2, 1)).astype(dtype)
    if how == 2:
        return (x * 10 ** rng.uniform(-8, 4)).astype(dtype)
    size = np.max(np.abs(exact.A @ x)) or 1.0
    return (x * 10 ** rng.uniform(-1, 2.7) / size).astype(dtype)


def _is_fit(problem: Problem, x0: np.ndarray) -> bool:
    """Whether there are numbers at a start: others are refused."""
    with np.errstate(all="ignore"):
        value, g = problem.value_and_gradient(_like(problem, x0))
    return bool(np.isfinite(float(value)) and np.all(np.isfinite(np.asarray(g))))


def _tol(rng: np.random.Generator, exact: Exact, x0: np.ndarray, dtype: type) -> float:
    """Return a share of the first norm that the precision allows."""
    norm, _ = exact.norm(x0.astype(np.longdouble), np.finfo(dtype))
    share = 10 ** (rng.uniform(-4, -1) if dtype == np.float32 else rng.uniform(-8, -2))
    tol = max(share * norm, 2 * float(np.finfo(dtype).eps))
    return float(tol) if np.isfinite(tol) else 1.0


def _like(problem: Problem, x0: np.ndarray) -> Any:
    return problem.xp.asarray(copy.copy(x0), dtype=problem.dtype)
