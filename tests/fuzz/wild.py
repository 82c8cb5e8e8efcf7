"""Wild problems: walls, scores that overflow, steep starts, odd arrays, weights of all sizes.

They stand beside the problems of ``hostile``: all losses of the package, losses that users write,
plain functions, quadratics of conditions to 1e12, in units from 1e-12 to 1e12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from fuzz.exact import (
    Case,
    Exact,
    _norm,
    as_function,
    by_class,
    by_row,
    of_quadratic,
    random_quadratic,
)
from fuzz.row_losses import FLAT, KNOWN, STEEP, WALLS, power, user_model

from ode2opt import (
    Huber,
    LeastSquares,
    Logistic,
    Lpp,
    Poisson,
    Problem,
    Quadratic,
    Softmax,
    SquaredHinge,
)

LOSSES = WALLS | STEEP | KNOWN | FLAT | {"power": power(6)}
OWN = {"poisson": Poisson, "huber": Huber, "hinge": SquaredHinge, "logistic": Logistic}
KINDS = (*WALLS, *STEEP, *OWN, *("poisson", "huber"), "lpp", "leastsquares", "softmax", "quadratic")
FORMS = ("plain", "fortran", "strided", "big-endian", "read-only", "list", "csr", "csc", "coo")
LARGEST = 60


def make_case(seed: int) -> Case:
    """Return a case that depends on ``seed`` only."""
    rng = np.random.default_rng([29, seed])
    kind = str(rng.choice(KINDS))
    dtype = np.float32 if rng.random() < 0.15 else np.float64
    if kind == "quadratic":
        return _quadratic_case(rng, seed, dtype)
    N, n = (int(np.exp(rng.uniform(0, np.log(LARGEST))).round()) for _ in range(2))
    if kind == "softmax" and rng.random() < 0.05:
        N, n = int(rng.integers(200, 400)), int(rng.integers(100, 250))
    A, unit = _matrix(rng, N, n, dtype)
    l2 = 0.0 if rng.random() < 0.4 else float(10 ** rng.uniform(-10, 0) * unit**2)
    weights = 10 ** rng.uniform(-6, 6, N) if rng.random() < 0.25 else np.ones(N)
    intercept = bool(rng.random() < 0.25)
    problem, exact, form = _problem(rng, kind, A, l2, weights, intercept, dtype)
    x0 = _fit(problem, exact, _start(rng, kind, exact, problem.n, dtype))
    return Case(seed, kind, form, problem, exact, x0, _tol(rng, exact, x0, dtype))


def _matrix(rng: np.random.Generator, N: int, n: int, dtype: type) -> tuple[np.ndarray, float]:
    """Return features of conditions up to 1e6 (Hessians: 1e12), and the unit they are in."""
    A = rng.standard_normal((N, n))
    how = rng.integers(5)
    if how == 0:
        U, _, V = np.linalg.svd(A, full_matrices=False)
        A = (U * 10 ** -np.linspace(0, rng.uniform(0, 6), min(N, n))) @ V * np.sqrt(N)
    elif how == 1:
        A *= 10 ** rng.uniform(-rng.uniform(0, 3), rng.uniform(0, 3), n)
    elif how == 2:
        A = (rng.random((N, n)) < rng.uniform(0.05, 0.5)) * rng.integers(-3, 4, (N, n))
    elif how == 3:
        A = np.abs(A) + rng.choice([0.0, 10.0])
    spread = 12 if dtype == np.float64 else 5
    unit = 10 ** rng.uniform(-spread, spread) if rng.random() < 0.4 else 1.0
    return (A * unit).astype(dtype).astype(np.float64), float(unit)


def _targets(rng: np.random.Generator, kind: str, A: np.ndarray) -> np.ndarray:
    N = len(A)
    if kind in ("hinge", "logistic"):
        return (rng.random(N) < rng.uniform(0.1, 0.9)).astype(float)
    if kind == "softmax":
        classes = int(rng.integers(3, 8))
        return np.minimum(np.arange(N) % classes, rng.integers(0, classes, N) + 1).astype(float)
    if kind == "poisson":
        return rng.poisson(10 ** rng.uniform(-1, 3), N).astype(float)
    size = 10 ** rng.uniform(-2, 1.3)
    if kind in WALLS or kind == "gamma":
        return size * (0.1 + rng.random(N))
    size = min(size, 4.0) if kind == "exp square" else size
    return size * rng.standard_normal(N)


def _problem(
    rng: np.random.Generator, kind: str, A: np.ndarray, l2: float, weights: np.ndarray,
    intercept: bool, dtype: type,
) -> tuple[Problem, Exact, str]:  # fmt: skip
    b = _targets(rng, kind, A).astype(dtype).astype(np.float64)
    weights = (weights / weights.mean()).astype(dtype).astype(np.float64)
    ridge = np.full(A.shape[1], l2)
    whole, ridge_of_all = A, ridge
    if intercept:
        whole, ridge_of_all = np.column_stack([A, np.ones(len(A))]), np.append(ridge, 0.0)
    if kind == "softmax":
        exact = Exact(whole, b, ridge_of_all, weights, by_class)
        form = str(rng.choice(FORMS))
        made = Softmax(_shaped(A, form, dtype), b, l2=l2, weights=weights, intercept=intercept)
        return made, exact, form
    p = int(rng.choice([4, 6, 10]))
    loss = LOSSES.get(kind) or power(2 if kind == "leastsquares" else p)
    exact = Exact(whole, b, ridge_of_all, weights, by_row(loss))
    if dtype == np.float64 and rng.random() < 0.25:  # the same as a plain function, times a factor
        factor = float(10 ** rng.uniform(-12, 12) if rng.random() < 0.5 else 1.0)
        exact = Exact(whole, b, ridge_of_all, weights, by_row(loss), factor)
        return as_function(exact, loss, bare=bool(rng.random() < 0.6)), exact, "function"
    form = str(rng.choice(FORMS))
    kinds = OWN | {"leastsquares": LeastSquares}
    model: Any = kinds[kind] if kind in kinds else Lpp if kind == "lpp" else user_model(loss)
    options = {"p": p} if kind == "lpp" else {}
    made = model(
        _shaped(A, form, dtype), b.astype(dtype), l2=l2, weights=weights, intercept=intercept,
        **options,
    )  # fmt: skip
    return made, exact, form


def _shaped(A: np.ndarray, form: str, dtype: type) -> Any:
    """Return the matrix in one of the forms that people have."""
    A = A.astype(dtype)
    if form == "fortran":
        return np.asfortranarray(A)
    if form == "strided":
        return np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3]
    if form == "big-endian" and dtype == np.float64:
        return A.astype(">f8")
    if form == "read-only":
        A.flags.writeable = False
    if form == "list" and dtype == np.float64:
        return A.tolist()
    if form in ("csr", "csc", "coo"):
        return getattr(scipy.sparse, f"{form}_array")(A)
    return A


def _start(rng: np.random.Generator, kind: str, exact: Exact, n: int, dtype: type) -> np.ndarray:
    """Return zero, a start at usual scores, or one on the steep side: by a wall, or overflowing."""
    how, x = rng.integers(4), rng.standard_normal(n)
    scores = exact.A @ x.reshape(exact.A.shape[1], -1)
    top = float(np.max(np.abs(scores))) or 1.0
    if how == 0:
        return np.zeros(n, dtype)
    if how == 1:
        return (x / top * 10 ** rng.uniform(-2, 0.5)).astype(dtype)
    if kind in WALLS:
        reach = np.max(np.abs(scores).ravel() / exact.b) or 1.0
        return (x / reach * (1 - 10 ** rng.uniform(-9, -1))).astype(dtype)
    most = {"exp square": 26.0, "lpp": 1e8}.get(kind, 700.0) * (1.0 if dtype == np.float64 else 0.1)
    return (x / top * most ** rng.uniform(0.3, 1)).astype(dtype)


def _fit(problem: Problem, exact: Exact, x0: np.ndarray) -> np.ndarray:
    """Return the start, nearer to zero where there are no numbers."""
    for _ in range(60):
        with np.errstate(all="ignore"):
            value, g = problem.value_and_gradient(x0)
        if np.isfinite(float(value)) and np.isfinite(_norm(np.asarray(g).astype(np.longdouble))):
            return x0
        x0 = (x0 / 2).astype(x0.dtype)
    return np.zeros_like(x0)


def _tol(rng: np.random.Generator, exact: Any, x0: np.ndarray, dtype: type) -> float:
    """Return a share of the norm at zero or at the start that the precision allows, mostly."""
    precision = np.finfo(dtype)
    places = [exact.norm(x.astype(np.longdouble), precision) for x in (0 * x0, x0)]
    norm, bound = min((place for place in places if np.isfinite(place[0])), default=(1.0, 0.0))
    share = 10 ** (rng.uniform(-4, -1) if dtype == np.float32 else rng.uniform(-8, -2))
    tol = max(share * norm, min(10 ** rng.uniform(0.5, 3) * bound, norm / 2), 2 * precision.eps)
    return float(tol) if np.isfinite(tol) else 1.0


def _quadratic_case(rng: np.random.Generator, seed: int, dtype: type) -> Case:
    n = int(np.exp(rng.uniform(0, np.log(LARGEST))).round())
    Q, b = random_quadratic(rng, n, dtype, 12, 12)
    problem, exact = Quadratic(_shaped(Q, "fortran", dtype), b.astype(dtype)), of_quadratic(Q, b)
    x0 = (rng.standard_normal(n) * 10 ** rng.uniform(-3, 3)).astype(dtype)
    return Case(seed, "quadratic", "fortran", problem, exact, x0, _tol(rng, exact, x0, dtype))
