"""Solves with a penalty, against cvxpy and scikit-learn, and on every kind of problem."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso, LogisticRegression

from ode2opt import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    InputError,
    L1Ball,
    LeastSquares,
    Logistic,
    NonNegative,
    Parts,
    Penalty,
    Quadratic,
    Simplex,
    SquaredHinge,
    Status,
    solve,
)


def data(rows=60, columns=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns))
    b = A[:, :3] @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(rows)
    return A, b


A, B = data()
Y = (B > 0).astype(float)


def residual_of(problem, penalty, x):
    """|x - prox(x - g)| by the definition."""
    x = np.asarray(x, dtype=np.float64)
    g = np.asarray(problem.gradient(x), dtype=np.float64)
    return np.linalg.norm(x - penalty.on(problem).prox(x - g, 1.0))


PENALTIES = {
    "l1": L1(0.1),
    "l1 by column": L1(np.linspace(0, 0.3, 12)),
    "elastic net": ElasticNet(0.2, 0.5),
    "groups": GroupL1(0.2, [range(0, 12, 2), range(1, 12, 2)]),
    "not negative": NonNegative(),
    "box": Box(-0.3, 0.4),
    "simplex": Simplex(),
    "ball": L1Ball(1.0),
    "l1, not negative": L1(0.1) + NonNegative(),
}


def cvxpy_penalty(cp, name, x):
    """The same penalty in cvxpy's words: what is added, and constraints."""
    return {
        "l1": (0.1 * cp.norm1(x), []),
        "l1 by column": (cp.sum(cp.multiply(np.linspace(0, 0.3, 12), cp.abs(x))), []),
        "elastic net": (0.1 * cp.norm1(x) + 0.05 * cp.sum_squares(x), []),
        "groups": (0.2 * (cp.norm2(x[::2]) + cp.norm2(x[1::2])), []),
        "not negative": (0, [x >= 0]),
        "box": (0, [x >= -0.3, x <= 0.4]),
        "simplex": (0, [x >= 0, cp.sum(x) == 1]),
        "ball": (0, [cp.norm1(x) <= 1]),
        "l1, not negative": (0.1 * cp.norm1(x), [x >= 0]),
    }[name]


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("kind", ["squares", "logistic"])
def test_agrees_with_clarabel(name, kind):
    cp = pytest.importorskip("cvxpy")
    x = cp.Variable(12)
    added, limits = cvxpy_penalty(cp, name, x)
    if kind == "squares":
        problem, f = LeastSquares(A, B), cp.sum_squares(A @ x - B)
        f = f * float(problem.value(np.zeros(12)) / (B @ B))
    else:
        problem = Logistic(A, Y)
        f = cp.sum(cp.logistic(A @ x) - cp.multiply(Y, A @ x)) / len(A)
    least = cp.Problem(cp.Minimize(f + added), limits).solve(solver="CLARABEL")
    result = solve(problem, penalty=PENALTIES[name], tol=1e-9)
    assert result.success
    assert result.status is Status.CONVERGED
    assert result.message == "The residual reached the tolerance."
    assert result.residual <= 1e-9
    assert residual_of(problem, PENALTIES[name], result.x) <= 1e-9 * (1 + 1e-4)
    assert result.fun == pytest.approx(least, abs=1e-6)
    assert np.allclose(result.x, x.value, atol=2e-4)
    assert result.bound is None
    if name in ("l1 by column", "not negative"):  # a column without a weight has no dual
        assert result.gap is None or result.gap < 1e-6
    else:
        assert 0 <= result.gap < 1e-6
        assert result.fun - result.gap <= least + 1e-6


def test_the_gap_holds_far_from_the_solution():
    for name in ("l1", "groups", "box", "elastic net", "simplex", "l1, not negative"):
        for problem in (LeastSquares(A, B), Logistic(A, Y)):
            least = solve(problem, penalty=PENALTIES[name], tol=1e-10).fun
            early = solve(problem, penalty=PENALTIES[name], tol=1e-10, max_iter=3)
            assert early.fun - least <= early.gap + 1e-12
            assert early.gap < 100 * max(1.0, early.fun)


def test_agrees_with_scikit_learn():
    share = float(LeastSquares(A, B).value(np.zeros(12)) / (B @ B))  # the problem's own factor
    theirs = Lasso(alpha=0.1, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, B)
    ours = solve(LeastSquares(A, B), penalty=L1(0.1 * 2 * len(A) * share), tol=1e-10)
    assert np.allclose(ours.x, theirs.coef_, atol=1e-7)
    assert list(ours.support) == list(np.flatnonzero(theirs.coef_))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(
            penalty="l1", solver="saga", C=1 / (0.05 * len(A)), tol=1e-12, max_iter=20_000
        ).fit(A, Y)
    ours = solve(Logistic(A, Y, intercept=True), penalty=L1(0.05), tol=1e-10)
    assert np.allclose(ours.x[:-1], theirs.coef_[0], atol=1e-6)
    assert ours.x[-1] == pytest.approx(theirs.intercept_[0], abs=1e-6)
    assert ours.support[-1] == 12


def kinds_of_problems():
    import jax.numpy as jnp

    H, c = A.T @ A / len(A), A.T @ B / len(A)
    yield "sparse", Logistic(sparse.csr_matrix(A), Y), 1e-8
    yield "jax", Logistic(jnp.asarray(A), jnp.asarray(Y)), 1e-5
    yield "parts", Parts(Logistic, [(A[:30], Y[:30]), (A[30:], Y[30:])]), 1e-8
    yield "quadratic", Quadratic(H, c), 1e-8
    try:
        import torch
    except ImportError:
        return
    yield "torch", Logistic(torch.as_tensor(A), torch.as_tensor(Y)), 1e-8


def test_every_kind_of_problem():
    H, c = A.T @ A / len(A), A.T @ B / len(A)
    dense = {
        name: solve(Logistic(A, Y), penalty=PENALTIES[name], tol=1e-9).x for name in ("l1", "box")
    }
    for kind, problem, tol in kinds_of_problems():
        for name in ("l1", "box"):
            result = solve(problem, penalty=PENALTIES[name], tol=tol)
            assert result.success, (kind, name, result)
            assert type(result.x) is type(problem.xp.zeros(1))
            if kind != "quadratic":
                assert np.allclose(np.asarray(result.x), dense[name], atol=1e3 * tol), (kind, name)
    by_function = solve(
        lambda x: 0.5 * x @ H @ x - c @ x,
        np.zeros(12),
        jac=lambda x: H @ x - c,
        penalty=PENALTIES["l1"],
        tol=1e-9,
    )
    by_problem = solve(Quadratic(H, c), penalty=PENALTIES["l1"], tol=1e-9)
    assert by_function.success
    assert np.allclose(by_function.x, by_problem.x, atol=1e-7)


def test_single_precision_keeps_to_a_box_that_it_cannot_hold():
    problem = LeastSquares(A.astype(np.float32), B.astype(np.float32))
    result = solve(problem, penalty=Box(-0.3, 0.1), tol=1e-5)  # neither is a number of float32
    assert result.success
    assert result.x.dtype == np.float32
    assert np.all(result.x >= -0.3 - 1e-7)
    assert np.all(result.x <= 0.1 + 1e-7)


def test_a_start_outside_is_projected():
    result = solve(LeastSquares(A, B), np.full(12, 9.0), penalty=Box(0, 0.5), max_iter=0)
    assert np.array_equal(result.x, np.full(12, 0.5))
    assert not result.success
    assert result.status is Status.MAX_ITER


def test_what_a_result_tells():
    result = solve(LeastSquares(A, B), penalty=L1(0.1), history=True)
    assert result.history.grad_norm[-1] == result.residual == result.measure[1]
    g = LeastSquares(A, B).gradient(result.x)
    assert result.grad_norm == pytest.approx(np.linalg.norm(g))
    assert "residual" in str(result)
    assert "residual" in repr(result)
    assert "gap" in str(result)
    assert result.summary()["residual"] == result.residual
    assert result.summary()["gap"] == result.gap
    smooth = solve(LeastSquares(A, B))
    assert smooth.residual is smooth.support is smooth.gap is None
    assert "residual" not in smooth.summary()


class Half(Penalty):
    def value(self, x):
        return 0.5 * (x @ x)

    def prox(self, x, step):
        return x / (1 + step)


def broken(name, answer):
    """Return a penalty one of whose methods answers something else."""
    return type("Broken", (Half,), {name: lambda self, x, *step: answer(x)})()


def test_a_penalty_of_ones_own():
    ours = solve(LeastSquares(A, B), penalty=Half(), tol=1e-9)
    theirs = solve(LeastSquares(A, B, l2=1.0), tol=1e-10)
    assert np.allclose(ours.x, theirs.x, atol=1e-8)
    assert ours.gap is None


class Nothing(Penalty):
    def value(self, x):
        return 0.0

    def prox(self, x, step):
        return x


@pytest.mark.parametrize("method", ["auto", "fista"])
@pytest.mark.parametrize("penalty", [Nothing(), Box(-100.0, 100.0)], ids=["own", "box"])
def test_separable_rows_are_solved_where_a_step_lands_on_a_minimiser(penalty, method):
    """Labels tell the sign of the first column, so x = c e_1 has slope 0 for a large c."""
    for seed in range(10):
        rows = np.random.default_rng(seed).standard_normal((7, 5))
        problem = SquaredHinge(rows, (rows[:, 0] > 0).astype(float))
        assert not problem.gradient(1e3 * np.eye(5)[0]).any()
        result = solve(problem, penalty=penalty, method=method, tol=1e-8)
        assert result.status is Status.CONVERGED, (seed, result.residual)
        assert np.linalg.norm(problem.gradient(result.x)) <= 1e-8


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("prox", lambda x: x[:3], "shape"),
        ("prox", lambda x: np.nan * x, "not finite"),
        ("prox", lambda x: x + 1j, "The prox of Broken is not made of real numbers"),
        ("prox", lambda x: "x", "not made of real numbers"),
        ("value", lambda x: None, "The value of Broken is None, not a number"),
        ("value", lambda x: x, "not a number"),
        ("value", lambda x: 1j, "The value of Broken is 1j, not a number"),
        ("value", lambda x: np.nan, "The value of Broken is nan where its projection leads"),
        ("value", lambda x: np.inf, "The value of Broken is inf where"),
        ("conjugate", lambda v: "a", "The conjugate of Broken is 'a', not a number"),
    ],
)
def test_a_penalty_of_ones_own_that_is_wrong(name, answer, words):
    with pytest.raises(InputError, match=words):
        solve(LeastSquares(A, B), penalty=broken(name, answer))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": 0.1}, "must be a Penalty"),
        ({"penalty": L1}, "L1"),
        ({"penalty": L1([1.0, 2.0])}, "2 numbers"),
        ({"penalty": L1(1.0), "method": "lbfgs"}, "for smooth functions"),
        ({"penalty": L1(1.0), "method": "fist"}, "Unknown method 'fist': did you mean 'fista'"),
        ({"penalty": L1(1.0), "tol": 1e-20}, "tol"),
        ({"method": "fista"}, "penalties"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        solve(LeastSquares(A, B), **options)


def test_a_concave_function_is_told():
    result = solve(
        lambda x: -0.5 * x @ x, np.full(3, 0.1), jac=lambda x: -x, penalty=Box(-1.0, 2.0)
    )
    assert result.success or result.status is Status.NON_CONVEX
    saddle = solve(
        lambda x: np.sum(np.cos(x)), np.full(3, 0.3), jac=lambda x: -np.sin(x), penalty=L1(1e-3)
    )
    assert saddle.status is Status.NON_CONVEX
    assert saddle.concave is not None
    assert saddle.gap is None
    assert not saddle.success


@pytest.mark.parametrize("seed", range(60))
def test_hostile_problems(seed):
    """The first of those of the soak, judged by its own arithmetic."""
    soak = importlib.import_module("soak_composite")
    one = soak.case(seed)
    result = solve(one.problem, penalty=one.penalty, tol=one.tol, max_iter=2000)
    assert soak.faults(one, result) == []


def test_a_weight_above_the_critical_one_gives_zero():
    for problem in (LeastSquares(A, B), Logistic(A, Y)):
        slope = np.abs(problem.gradient(np.zeros(12))).max()
        result = solve(problem, np.ones(12), penalty=L1(1.01 * slope), tol=1e-12)
        assert result.success
        assert not len(result.support)
        assert not result.x.any()


def test_a_large_start_is_no_solution():
    """x - prox(x - g) is 0 by rounding where |x| is large; the residual must not be."""
    result = solve(
        lambda x: float(x @ x) * 1e-20, np.full(2, 1e18), jac=lambda x: 2e-20 * x, penalty=L1(1e-6),
        max_iter=0,
    )  # fmt: skip
    assert result.residual == pytest.approx(np.sqrt(2) * (0.02 + 1e-6), rel=1e-6)
