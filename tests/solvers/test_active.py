"""Newton's method by rows with curvature, against scipy's methods and explicit columns."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
from support import random_sparse

from ode2opt import SquaredHinge, solve
from ode2opt.base.ended import Ended
from ode2opt.problems.row_model import Line
from ode2opt.solvers.result import Status
from ode2opt.solvers.stages import active_rows

WORDS = "Newton's method by the rows with curvature"
PRODUCTS = "Newton's method by products with the rows with curvature"


def separated(N=400, n=5, noise=0.3, seed=0, **options):
    """Rows on both sides of a plane, few of them within the margin."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n))
    b = (A @ np.arange(1, n + 1) + noise * rng.standard_normal(N) > 0).astype(float)
    return SquaredHinge(A, b, **options)


def as_sparse(problem):
    A = scipy.sparse.csr_array(problem.A)
    names = ("l2", "weights", "intercept", "intercept_l2")
    return SquaredHinge(A, problem.b, **{name: getattr(problem, name) for name in names})


def by_scipy(problem):
    """Return the minimiser by a trust region with products, which knows nothing of kinks."""
    found = scipy.optimize.minimize(
        problem.value,
        np.zeros(problem.n),
        jac=problem.gradient,
        hessp=problem.hvp,
        method="trust-ncg",
        options={"gtol": 1e-10},
    )
    return found.x


@pytest.mark.parametrize("N", [400, 20_000])
@pytest.mark.parametrize("intercept_l2", [None, 0.0, 1e-3])
def test_it_finds_what_a_trust_region_finds(N, intercept_l2):
    rng = np.random.default_rng(3)
    own = {} if intercept_l2 is None else {"intercept": True, "intercept_l2": intercept_l2}
    problem = separated(N, weights=rng.integers(0, 3, N), l2=1e-3, **own)
    expected = by_scipy(problem)
    for case in (problem, as_sparse(problem)):
        result = solve(case, tol=1e-9)
        assert (result.status, result.method) == (Status.CONVERGED, WORDS)
        np.testing.assert_allclose(result.x, expected, atol=1e-7)
        assert np.linalg.norm(case.gradient(result.x)) <= 1e-9


def test_single_precision_reaches_what_it_can():
    problem = separated(l2=1e-2)
    single = SquaredHinge(problem.A.astype(np.float32), problem.b, l2=1e-2)
    result = solve(single, tol=1e-4)
    assert result.success
    assert result.x.dtype == np.float32
    np.testing.assert_allclose(result.x, by_scipy(problem), rtol=1e-2)


def test_rows_without_curvature_cost_nothing():
    """Rows far beyond the margin are nine tenths; each Hessian is charged for the others."""
    problem = separated(N=4_000, n=40, l2=1e-3)
    far = SquaredHinge(
        np.vstack([problem.A, *[50 * (2 * problem.b[:, None] - 1) * np.arange(1, 41)] * 9]),
        np.tile(problem.b, 10),
        l2=1e-4,
    )
    start = by_scipy(far)
    start = start + 1e-4 * np.linalg.norm(start) * np.ones(40)
    result = solve(far, start, method="auto", tol=1e-9)
    full = far.hessian_flops() / far.gradient_flops()
    assert result.success
    assert result.oracle_calls < 0.5 * full * result.iterations


def test_where_many_rows_have_curvature_metrics_go_on():
    rng = np.random.default_rng(1)
    A = random_sparse(rng, (30_000, 200), 0.15)
    problem = SquaredHinge(A, (rng.random(30_000) < 0.5).astype(float), l2=1e-4)
    result = solve(problem, tol=1e-7)
    assert result.success
    assert result.handovers[0].reason == Ended.TOO_DEAR.clause
    assert "L-BFGS in the metric of" in result.method


def test_separable_rows_without_penalty_end_at_once():
    problem = separated(noise=0.0)
    result = solve(problem, tol=1e-8)
    assert result.success
    assert problem.value(result.x) <= 1e-8


@pytest.mark.parametrize("intercept", [False, True])
def test_a_line_by_scores_is_the_function_along_it(intercept, rng):
    offset = rng.standard_normal(400)
    problem = separated(intercept=intercept, offset=offset, l2=0.1, intercept_l2=0.2)
    x, d = rng.standard_normal((2, problem.n))
    line, eps = Line(problem, problem.at(x), d), 1e-6
    for t in (0.0, 0.3, 2.0):
        there = line.at(t)
        np.testing.assert_allclose(there.scores, problem.scores(x + t * d))
        rise = problem.value(x + (t + eps) * d) - problem.value(x + (t - eps) * d)
        np.testing.assert_allclose(line.slope(t, there), rise / (2 * eps), rtol=1e-6)
        np.testing.assert_allclose(line.bend(there), d @ problem.hvp(there.x, d))


def test_a_penalised_intercept_is_a_column_of_ones():
    plain = separated(l2=0.3)
    implicit = separated(intercept=True, l2=0.3, intercept_l2=0.3)
    explicit = SquaredHinge(np.column_stack([plain.A, np.ones(400)]), plain.b, l2=0.3)
    x = np.linspace(-1, 1, 6)
    for name in ("value", "gradient", "hessian", "hessian_diagonal"):
        one, other = getattr(implicit, name)(x), getattr(explicit, name)(x)
        np.testing.assert_allclose(one, other, err_msg=name)
    np.testing.assert_allclose(implicit.hvp(x, x), explicit.hvp(x, x))
    assert implicit.smoothness() == pytest.approx(explicit.smoothness())


def test_trials_along_a_line_are_counted(monkeypatch):
    tried, at = [], Line.at
    monkeypatch.setattr(Line, "at", lambda line, t: tried.append(line.model.N) or at(line, t))
    problem = separated(l2=1e-3)
    calls = solve(problem, tol=1e-9).oracle_calls
    monkeypatch.setattr(Line, "operations", 0)
    without, rows = solve(problem, tol=1e-9).oracle_calls, sum(tried) / 2
    assert calls - without == pytest.approx(10 * rows / problem.gradient_flops())


def texts(N=300, n=900, seed=0, **options):
    """Sparse rows of unit length with more columns than rows; columns are seen as words are."""
    rng = np.random.default_rng(seed)
    columns = np.minimum(rng.zipf(1.3, (N, 30)) - 1, n - 1)
    A = scipy.sparse.csr_array(
        (np.ones(columns.size), (np.repeat(np.arange(N), 30), columns.ravel())), shape=(N, n)
    )
    A.sum_duplicates()
    A = scipy.sparse.csr_array(A / scipy.sparse.linalg.norm(A, axis=1)[:, None])
    b = (A @ rng.standard_normal(n) + 0.1 * rng.standard_normal(N) > 0).astype(float)
    return SquaredHinge(A, b, **options)


@pytest.mark.parametrize("l2", [1e-2, 1e-4])
@pytest.mark.parametrize("intercept", [False, True])
def test_wide_rows_are_solved_by_products_alone(l2, intercept):
    """The gradient norms of Newton's method rise and fall on the way: no reason to give up."""
    rng = np.random.default_rng(7)
    problem = texts(l2=l2, intercept=intercept, intercept_l2=l2, weights=rng.uniform(0, 2, 300))
    expected = by_scipy(problem)
    for case in (problem, SquaredHinge(problem.A.toarray(), problem.b, **options_of(problem))):
        result = solve(case, tol=1e-9)
        assert (result.status, result.method) == (Status.CONVERGED, PRODUCTS)
        assert result.handovers == ()
        assert result.iterations <= 30
        np.testing.assert_allclose(result.x, expected, atol=1e-5)


def options_of(problem):
    return {name: getattr(problem, name) for name in ("l2", "weights", "intercept", "intercept_l2")}


def test_products_give_up_where_they_are_too_many(monkeypatch):
    few = active_rows.ACTIVE_ROWS._replace(calls=5)
    monkeypatch.setattr(active_rows, "ACTIVE_ROWS", few)
    result = solve(texts(l2=1e-5), tol=1e-9)
    assert result.success
    assert result.handovers[0].reason == Ended.MANY_PRODUCTS.clause


@pytest.mark.parametrize("share", [0.2, 0.9])
@pytest.mark.parametrize("intercept", [False, True])
def test_active_rows_are_the_hessian(share, intercept, rng):
    problem = texts(l2=0.3, intercept=intercept, intercept_l2=0.2)
    for case in (problem, SquaredHinge(problem.A.toarray(), problem.b, **options_of(problem))):
        bends = rng.uniform(1, 2, 300) * (rng.random(300) < share)
        active, v = active_rows.ActiveRows(case, bends), rng.standard_normal(case.n)
        H = case.hessian_of(bends)
        np.testing.assert_allclose(active.product(v), H @ v, atol=1e-10)
        np.testing.assert_allclose(active.scaling(), 1 / np.sqrt(np.diagonal(H)), rtol=1e-10)
        assert (active.share < 0.5) == (share < 0.5)


def test_conjugate_gradients_reach_their_goal(rng):
    M = rng.standard_normal((30, 30))
    H, b = M @ M.T + 0.1 * np.eye(30), rng.standard_normal(30)
    d, products = active_rows.solve_by_cg(lambda v: H @ v, np.ones(30), b, 1e-9, 200)
    assert np.linalg.norm(H @ d - b) <= 2e-9
    assert products >= 25
    loose, fewer = active_rows.solve_by_cg(lambda v: H @ v, np.ones(30), b, 0.5, 200)
    assert np.linalg.norm(H @ loose - b) <= 0.5
    assert fewer < products
