"""Largest eigenvalues without matrices: Lanczos on products, power steps on differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.arrays import Array, epsilon, is_sparse
from ode2opt.base.errors import InputError

if TYPE_CHECKING:
    from ode2opt.problems.base import Problem


@dataclass(frozen=True)
class Eigenvalues:
    """How largest eigenvalues are found. All count from 1.

    Attributes:
        formed: up to this many variables the matrix is formed.
        dense_gram: up to this many columns A^T A is formed; its eigenvalue costs n/2 gradients.
        power_steps: at most, where there are no products; a few reach 1e-3 of the value.
        few_vectors_from: variables from which on Lanczos keeps fewer vectors, for memory.
    """

    formed: int = 8
    dense_gram: int = 512
    power_steps: int = 30
    few_vectors_from: int = 100_000


LANCZOS = Eigenvalues()


def largest_eigenvalue(
    product: Callable[[np.ndarray], np.ndarray], n: int, dtype: Any
) -> tuple[float, int]:
    """Return the largest eigenvalue of a symmetric operator and how many products it took.

    Up to 8 variables the matrix is formed; beyond, Lanczos with a relative tolerance of 1e-8.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    products = 0

    def counted(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        return product(v.reshape(-1))

    if n <= LANCZOS.formed:
        columns = np.stack([counted(e) for e in np.eye(n, dtype=dtype)])
        if not np.all(np.isfinite(columns)):
            return math.nan, products
        size = float(np.abs(columns).max()) or 1.0  # numbers near the largest would overflow
        columns = columns / size
        return size * float(np.linalg.eigvalsh((columns + columns.T) / 2)[-1]), products
    operator = LinearOperator((n, n), matvec=counted, dtype=dtype)
    v0 = np.random.default_rng(0).standard_normal(n).astype(dtype)
    if not np.any(first := counted(v0)):
        return 0.0, products
    if not np.all(np.isfinite(first)):
        return math.nan, products
    options: dict[str, Any] = {"tol": 1e-8 if np.dtype(dtype) == np.float64 else 1e-4, "v0": v0}
    options["ncv"] = min(
        n, 20 if n < LANCZOS.few_vectors_from else 6
    )  # the vectors that Lanczos keeps
    if _takes_random_numbers():
        options["rng"] = np.random.default_rng(0)
    try:
        top = eigsh(operator, k=1, which="LA", return_eigenvectors=False, **options)[0]
    except ArpackNoConvergence as error:  # a cluster at the top: any member of it will do
        top = max(error.eigenvalues, default=float(v0 @ counted(v0) / (v0 @ v0)))
    return float(top), products


@cache
def _takes_random_numbers() -> bool:
    """Whether Lanczos takes random numbers, as from SciPy 1.17 on: else the system gives some."""
    from scipy.sparse.linalg import eigsh

    return "rng" in signature(eigsh).parameters


def largest_curvature(problem: Problem, x: Array) -> tuple[float, int]:
    """Return the largest eigenvalue of the Hessian and the oracle calls it took."""
    if not problem.has_hvp:
        return _power_on_differences(problem, x)
    product, size = problem.curvature_operator(x)
    xp, dtype = problem.xp, np.asarray(x).dtype

    def on_host(v: np.ndarray) -> np.ndarray:
        return np.asarray(product(xp.asarray(v, dtype=problem.dtype)))

    return largest_eigenvalue(on_host, size, dtype)


def curvature_along(problem: Problem, x: Array, g: Array, v: Array) -> float:
    """Return <v, H v> / <v, g>, at the price of one oracle call.

    For v = M g this is the curvature of f(S .), M = S S^T, along its gradient. Without
    Hessian-vector products, H v comes from a second gradient close by. Where products with v
    overflow, it is divided by a power of two, which changes no digit.
    """
    xp = problem.xp
    largest, unit, down = float(xp.max(xp.abs(v))), 1.0, float(v @ g)
    if down == math.inf and largest < math.inf:
        unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
        v, largest = v / unit, largest / unit
        down = float(v @ g)
    if not 0 < down < math.inf:
        return math.nan
    if problem.has_hvp:
        return unit * (float(v @ problem.hvp(x, v)) / down)
    length = math.sqrt(epsilon(xp, problem.dtype)) * max(1.0, float(xp.max(xp.abs(x)))) / largest
    return unit * (float(v @ (problem.gradient(x + length * v) - g)) / length / down)


def gram_eigenvalue(A: Array) -> tuple[float, int]:
    """Return the largest eigenvalue of A^T A / N and its price in gradients."""
    N, n = A.shape
    if n <= LANCZOS.dense_gram:
        with np.errstate(over="ignore", invalid="ignore"):
            gram = A.T @ A
        gram = gram.toarray() if is_sparse(gram) else np.asarray(gram)
        if not np.all(np.isfinite(gram)):
            raise InputError("The columns are so large that A^T A overflows: scale them.")
        return float(np.linalg.eigvalsh(gram)[-1]) / N, math.ceil(n / 2)
    host = A if is_sparse(A) else np.asarray(A)
    wide = host if N < n else host.T  # A A^T has the same eigenvalue and may be smaller
    top, products = largest_eigenvalue(lambda v: wide @ (wide.T @ v), min(N, n), host.dtype)
    return top / N, products


def _power_on_differences(problem: Problem, x: Array) -> tuple[float, int]:
    """Power iteration with H v replaced by a difference of gradients."""
    xp = problem.xp
    base = problem.gradient(x)
    length = math.sqrt(epsilon(xp, problem.dtype)) * max(1.0, float(xp.max(xp.abs(x))))
    z = xp.asarray(np.random.default_rng(0).standard_normal(problem.n), dtype=problem.dtype)
    z /= math.sqrt(float(z @ z))
    top = 0.0
    for step in range(LANCZOS.power_steps):
        Hz = (problem.gradient(x + length * z) - base) / length
        norm = math.sqrt(float(Hz @ Hz))
        if not math.isfinite(norm) or norm == 0.0:
            return norm, step + 2
        done = abs(norm - top) <= 1e-3 * norm
        top, z = norm, Hz / norm
        if done:
            break
    return top, step + 2
