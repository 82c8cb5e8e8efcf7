"""Proximal Newton: its models, working sets and samples, against other solvers and definitions."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import lsq_linear, nnls
from sklearn.linear_model import Lasso

from ode2opt import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    Huber,
    L1Ball,
    LeastSquares,
    Logistic,
    NonNegative,
    Parts,
    Poisson,
    Quadratic,
    Simplex,
    solve,
)
from ode2opt.kernels import available
from ode2opt.kernels.coordinate import SparseColumns, descend_columns, has_columns
from ode2opt.penalties import Pieces
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.stages import model_descent
from ode2opt.solvers.stages.faces import descended
from ode2opt.solvers.stages.model_descent import minimise_model, minimise_on_budget

KERNELS = pytest.mark.skipif(not available(), reason="numba is not installed")


def residual_of(problem, penalty, x):
    """|x - prox(x - g)| by the definition."""
    g = np.asarray(problem.gradient(x), dtype=np.float64)
    return np.linalg.norm(x - penalty.on(problem).prox(x - g, 1.0))


def rows(N, n, seed=0, correlation=0.7):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n))
    A[:, 1:] += correlation * A[:, :-1]
    truth = rng.standard_normal(n) * (rng.random(n) < 0.2)
    score = A @ truth
    return A, score / score.std() + 0.5 * rng.standard_normal(N)


def words(N, n, seed=0):
    rng = np.random.default_rng(seed)
    A = sparse.random(N, n, 0.02, random_state=rng, format="csr")
    score = A @ rng.standard_normal(n)
    return A, score / score.std() + 0.5 * rng.standard_normal(N)


def critical(problem):
    return float(np.abs(problem.gradient(np.zeros(problem.n))).max())


def hostile_pieces(rng, n, kind):
    nothing, far = np.zeros(n), np.full(n, np.inf)
    if kind == "l1":
        return Pieces(rng.random(n) * (rng.random(n) < 0.8), nothing, -far, far)
    if kind == "elastic net":
        return Pieces(rng.random(n), rng.random(n), -far, far)
    low = rng.standard_normal(n)
    return Pieces(
        rng.random(n) * (kind == "both"), nothing, low, low + np.where(rng.random(n) < 0.3, 0, 1)
    )


@pytest.mark.parametrize("kernels", [pytest.param("on", marks=KERNELS), "off"])
@pytest.mark.parametrize("kind", ["l1", "elastic net", "box", "both"])
@pytest.mark.parametrize(("n", "rank"), [(7, 7), (60, 60), (60, 20), (60, 0)])
def test_a_model_is_minimised(n, rank, kind, kernels, monkeypatch):
    monkeypatch.setenv("ODE2OPT_KERNELS", kernels)
    rng = np.random.default_rng(n + rank)
    B = rng.standard_normal((rank, n))
    H, c = B.T @ B, B.T @ rng.standard_normal(rank)
    pieces = hostile_pieces(rng, n, kind)
    if kind == "l1" and rank < n:
        pieces = pieces._replace(l1=pieces.l1 + 0.1)  # else there may be no minimiser
    x = np.clip(rng.standard_normal(n), pieces.lower, pieces.upper)
    z = minimise_model(H, H @ x - c, x, pieces, 1e-9)
    g, (l1, l2, lower, upper) = H @ z - c, pieces
    y = z - g
    y = np.clip((y - np.clip(y, -l1, l1)) / (1 + l2), lower, upper)
    assert np.linalg.norm(z - y) <= 1e-8
    assert np.all((z >= lower) & (z <= upper))


@KERNELS
def test_columns_give_the_minimiser_of_the_matrix():
    rng = np.random.default_rng(5)
    dense = rng.standard_normal((80, 50)) * (rng.random((80, 50)) < 0.2)
    dense[:, 3] = 0
    B = sparse.csc_matrix(dense)
    pieces = hostile_pieces(rng, 50, "elastic net")
    ridge, x, g = rng.random(50), rng.standard_normal(50), rng.standard_normal(50)
    columns = SparseColumns(B.data, B.indices.astype(np.int32), B.indptr.astype(np.int64))
    assert has_columns()
    shares, among = rng.random(80), np.arange(50)
    given = (columns, shares, among, x, g, ridge, tuple(pieces))
    z, size = descend_columns(*given, 1000, 1e-12)
    assert size <= 1e-12
    H = dense.T @ (shares[:, None] * dense) + np.diag(ridge)
    assert np.allclose(z, minimise_model(H, g, x, pieces, 1e-12), atol=1e-9)


def test_lasso_of_scikit_learn():
    A, b = rows(400, 80)
    weight = 0.02 * critical(LeastSquares(A, b))
    result = solve(LeastSquares(A, b), penalty=L1(weight), tol=1e-10)
    theirs = Lasso(alpha=weight, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(A, b)
    assert result.success
    assert result.iterations <= 3
    assert np.allclose(result.x, theirs.coef_, atol=1e-8)


def test_limits_of_scipy():
    A, b = rows(200, 60)
    ours = solve(LeastSquares(A, b), penalty=Box(-0.05, 0.1), tol=1e-11)
    theirs = lsq_linear(A, b, (-0.05, 0.1), tol=1e-14, max_iter=500)
    assert ours.success
    assert np.allclose(ours.x, theirs.x, atol=1e-6)
    ours = solve(LeastSquares(A, b), penalty=NonNegative(), tol=1e-11)
    assert ours.success
    assert np.allclose(ours.x, nnls(A, b)[0], atol=1e-8)


KINDS = {
    "tall": lambda: rows(6000, 40),
    "wide": lambda: rows(150, 600),
    "sparse": lambda: words(600, 900),
    "sparse, wide": lambda: words(300, 3000),
}


@pytest.mark.parametrize("share", [0.3, 0.01])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_the_same_point_as_fista(kind, loss, share):
    A, b = KINDS[kind]()
    problem = LeastSquares(A, b) if loss == "squares" else Logistic(A, (b > 0).astype(float))
    penalty = ElasticNet(share * critical(problem), 0.9)
    ours = solve(problem, penalty=penalty, tol=1e-8)
    assert ours.success
    assert not ours.handovers
    assert residual_of(problem, penalty, ours.x) <= 1e-8 * (1 + 1e-4)
    fista = solve(problem, penalty=penalty, tol=1e-8, method="fista", max_iter=50_000)
    assert ours.fun == pytest.approx(fista.fun, rel=1e-9)
    assert ours.oracle_calls < fista.oracle_calls


@KERNELS
def test_many_variables_by_columns():
    A, b = words(1500, 4000)
    for problem in (
        LeastSquares(A, b, intercept=True, l2=1e-6),
        Logistic(A, (b > 0).astype(float), intercept=True),
    ):
        penalty = L1(1e-3 * critical(problem))
        result = solve(problem, penalty=penalty, tol=1e-7)
        assert len(result.support) > 1000
        assert result.success
        assert not result.handovers
        assert residual_of(problem, penalty, result.x) <= 1e-7 * (1 + 1e-4)


def test_without_kernels_many_variables_are_fistas(monkeypatch):
    monkeypatch.setenv("ODE2OPT_KERNELS", "off")
    A, b = words(1500, 4000)
    problem = LeastSquares(A, b)
    result = solve(problem, penalty=L1(1e-3 * critical(problem)), tol=1e-4)
    assert result.success
    assert [one.to for one in result.handovers] == ["fista"]


@pytest.mark.parametrize(
    "make",
    [
        lambda A, b: Poisson(A, np.floor(np.exp(b)), intercept=True, offset=0.1 * b),
        lambda A, b: Huber(A, 3 * b, delta=0.5, weights=1 + np.abs(b)),
        lambda A, b: Quadratic(A.T @ A, A.T @ b),
        lambda A, b: Quadratic(sparse.csr_matrix(A.T @ A), A.T @ b, l2=1.0),
        lambda A, b: Parts(Logistic, [(A[:200], b[:200] > 0), (A[200:], b[200:] > 0)]),
        lambda A, b: LeastSquares(A.astype(np.float32), b.astype(np.float32), intercept=True),
    ],
)
def test_other_problems(make):
    problem = make(*rows(500, 20))
    single = problem.dtype == np.float32
    penalty, tol = L1(0.05 * critical(problem)) + Box(-0.2, 1.0), 1e-4 if single else 1e-8
    result = solve(problem, penalty=penalty, tol=tol)
    assert result.success
    assert not result.handovers
    assert residual_of(problem, penalty, result.x) <= tol * (1.05 if single else 1 + 1e-4)


@pytest.mark.parametrize("penalty", [Simplex(2.0), L1Ball(2.0), L1Ball(1e6)])
@pytest.mark.parametrize("rank", [20, 5])
def test_a_model_on_a_simplex_or_a_ball(penalty, rank):
    rng = np.random.default_rng(rank)
    B = rng.standard_normal((rank, 20))
    H, c = B.T @ B, B.T @ (5 * rng.standard_normal(rank))
    x = penalty.prox(rng.standard_normal(20), 1.0)
    z = penalty.project(minimise_on_budget(H, H @ x - c, x, penalty, 1e-8))
    assert np.isfinite(float(penalty.value(z)))
    assert np.linalg.norm(z - penalty.prox(z - (H @ z - c), 1.0)) <= 1e-6


def test_a_model_whose_minimiser_jumps():
    """Three equal slopes and no curvature: all or none at a multiplier, a third each between."""
    g = np.array([1.0, 1.0, 1.0, 2.0])
    z = minimise_on_budget(np.zeros((4, 4)), g, np.zeros(4), Simplex(3.0), 1e-9)
    assert np.allclose(z, [1.0, 1.0, 1.0, 0.0])


def test_a_step_on_a_face_is_exact_for_a_quadratic():
    bends = np.array([1.0, 10.0, 100.0])
    problem = Quadratic(np.diag(bends), np.zeros(3))
    oracle = Oracle(Objective(problem, Simplex()), tol=1e-16, max_iter=9)
    found = descended(oracle, oracle.begin(np.full(3, 1 / 3)))
    assert np.allclose(found.x, 1 / bends / np.sum(1 / bends), atol=1e-12)


@pytest.mark.parametrize(
    "penalty", [Simplex(3.0), L1Ball(3.0), GroupL1(0.05, [range(0, 20, 2), range(1, 20, 2)])]
)
def test_columns_of_different_size(penalty):
    A, b = rows(100, 20)
    A *= 10.0 ** np.linspace(-3, 3, 20)
    for problem in (LeastSquares(A, b), Logistic(A, (b > 0).astype(float))):
        ours = solve(problem, penalty=penalty, tol=1e-6, max_iter=2000)
        assert ours.success
        assert residual_of(problem, penalty, ours.x) <= 1e-6 * (1 + 1e-4)
        fista = solve(problem, penalty=penalty, tol=1e-6, method="fista", max_iter=2000)
        assert not fista.success
        assert ours.fun <= fista.fun


def test_some_of_the_columns():
    A, b = rows(50, 9)
    index = np.array([1, 4, 8])
    for matrix in (A, sparse.csr_matrix(A)):
        problem = Logistic(matrix, (b > 0).astype(float), l2=0.1, intercept=True)
        x = np.random.default_rng(0).standard_normal(4)
        whole = np.zeros(10)
        whole[[*index, 9]] = x
        part = problem.with_columns(index)
        assert part.n == 4
        assert float(part.value(x)) == pytest.approx(float(problem.value(whole)))
        assert np.allclose(part.gradient(x), problem.gradient(whole)[[*index, 9]])


@pytest.mark.parametrize("seed", range(4))
def test_work_in_models_is_counted_and_bounded(seed, monkeypatch):
    """Columns of many sizes, rates of many powers of e: models that are hard to minimise."""
    made = []

    class Counted(model_descent.CholeskyFactor):
        def __init__(self, H):
            made.append(len(H))
            super().__init__(H)

    monkeypatch.setattr(model_descent, "CholeskyFactor", Counted)
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((17, 29)) * 10 ** rng.uniform(2, 5, 29)
    counts = np.floor(1000 * rng.random(17))
    result = solve(Poisson(A, counts), penalty=L1Ball(0.1), max_iter=50, tol=1e-9)
    assert len(made) <= 4 * result.oracle_calls
    assert result.oracle_calls <= 4_000


LIMITED = """
import sys
import numpy as np
from ode2opt import L1, Poisson, solve

rng = np.random.default_rng(0)
problem = Poisson(0.3 * rng.standard_normal((90, 40)), np.floor(3 * rng.random(90)))
result = solve(problem, penalty=L1(0.01), tol=1e-9, max_seconds=30.0)
assert result.success
assert "numba" not in sys.modules
free = solve(problem, penalty=L1(0.01), tol=1e-9)
assert "numba" in sys.modules
again = solve(problem, penalty=L1(0.01), tol=1e-9, max_seconds=30.0)
assert again.x.tobytes() == free.x.tobytes(), "what is loaded is used"
assert np.allclose(result.x, free.x, atol=1e-7)
"""


@KERNELS
def test_a_solve_with_little_time_compiles_nothing(tmp_path):
    """Compiling takes 17 s on a slow machine, whatever limit was set."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
