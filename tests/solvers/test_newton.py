"""Newton's method against closed forms and scipy's second-order methods."""

import tracemalloc

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from support import random_sparse

from ode2opt import InputError, LeastSquares, Logistic, Lpp, Problem, Quadratic, Status, solve
from ode2opt.problems.gram import ROUTES
from ode2opt.solvers.stages.linear_systems import CholeskyFactor


def made(kind=Logistic, N=150, n=8, seed=0, **options):
    rng = np.random.default_rng(seed)
    return kind(rng.standard_normal((N, n)), (rng.random(N) < 0.4).astype(float), **options)


def sparse(N=400, n=2000, l2=1e-3):
    rng = np.random.default_rng(0)
    A = random_sparse(rng, (N, n), 0.02)
    return Logistic(A, (rng.random(N) < 0.5).astype(float), l2=l2)


def newton(problem, x0=None, **options):
    """Newton's method alone: nothing takes over."""
    return solve(problem, x0, method="newton", handover="none", **options)


def test_one_step_solves_a_quadratic(rng):
    M = rng.standard_normal((9, 9))
    Q, b = M @ M.T + np.eye(9), rng.standard_normal(9)
    for problem in (Quadratic(Q, b), made(LeastSquares)):
        result = newton(problem, tol=1e-9)
        assert (result.iterations, result.success) == (1, True)
    np.testing.assert_allclose(newton(Quadratic(Q, b), tol=1e-9).x, np.linalg.solve(Q, b))


def test_memory_is_for_a_hessian_its_factor_and_blocks_of_rows():
    n = 900
    problem = made(N=n + 50, n=n, l2=1e-2)
    newton(problem, max_iter=1)  # libraries are loaded
    tracemalloc.start()
    newton(problem, max_iter=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * (2.2 * n**2 + 2 * ROUTES.block)


@pytest.mark.parametrize("kind", [Logistic, Lpp])
def test_the_error_is_squared_in_every_step_near_the_end(kind):
    problem = made(kind, l2=0.1)
    norms = np.array(newton(problem, tol=1e-14, history=True).history.grad_norm)
    before, after = norms[:-1], norms[1:]
    near = (before < 0.02) & (after > 1e-14)
    assert near.any()
    assert np.all(after[near] < 20 * before[near] ** 2)


@pytest.mark.parametrize("method", ["trust-exact", "Newton-CG"])
@pytest.mark.parametrize("kind", [Logistic, Lpp])
def test_the_minimiser_is_that_of_scipys_second_order_methods(kind, method):
    problem = made(kind, l2=0.01)
    reference = scipy.optimize.minimize(
        problem.value, np.zeros(8), jac=problem.gradient, hess=problem.hessian, method=method,
        options={"xtol": 1e-12} if method == "Newton-CG" else {"gtol": 1e-10},
    )  # fmt: skip
    result = newton(problem, tol=1e-9)
    assert result.status is Status.CONVERGED
    assert "by Cholesky" in result.method
    np.testing.assert_allclose(result.x, reference.x, atol=1e-6)
    assert result.fun == pytest.approx(reference.fun, abs=1e-12)


def test_far_from_the_solution_the_line_search_keeps_it_safe():
    """A whole Newton step from 30 on softplus leads to about e^30."""
    problem = Logistic(np.ones((10, 1)), [1.0] * 3 + [0.0] * 7)
    for x0 in ([30.0], [-25.0], [3.0]):
        result = newton(problem, x0, tol=1e-10)
        assert result.status is Status.CONVERGED
        assert result.x[0] == pytest.approx(np.log(3 / 7), abs=1e-8)
        assert result.iterations < 80


def test_duplicated_and_zero_columns_are_no_obstacle():
    plain = made()
    A = np.column_stack([plain.A, plain.A[:, :3], np.zeros((plain.N, 2))])
    singular = Logistic(A, plain.b)
    assert np.linalg.matrix_rank(singular.hessian(np.zeros(13))) == 8
    for problem in (singular, Logistic(scipy.sparse.csr_array(A), plain.b)):
        result = newton(problem, tol=1e-9)
        assert result.status is Status.CONVERGED
        assert result.fun == pytest.approx(newton(plain, tol=1e-9).fun, abs=1e-13)
        assert result.iterations < 12
        np.testing.assert_array_equal(result.x[11:], 0)


@pytest.mark.parametrize("method", ["newton", "auto"])
def test_separable_data_without_l2_gives_finite_points_and_a_true_status(method):
    """The infimum 0 is not attained, but gradients go to zero along finite points."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    problem = Logistic(A, (A @ rng.standard_normal(5) > 0).astype(float))
    for tol in (1e-4, 1e-8):
        result = solve(problem, method=method, tol=tol)
        assert result.status is Status.CONVERGED
        assert np.all(np.isfinite(result.x))
        assert np.linalg.norm(problem.gradient(result.x)) <= tol
        assert result.fun < 10 * tol
        assert result.iterations < 100


def test_conjugate_gradients_solve_what_is_too_wide_for_a_matrix(monkeypatch):
    problem = sparse()
    reference = scipy.optimize.minimize(
        problem.value, np.zeros(problem.n), jac=problem.gradient, hessp=problem.hvp,
        method="trust-ncg", options={"gtol": 1e-9},
    )  # fmt: skip

    def forbidden(self, x):
        raise AssertionError("a dense Hessian of a wide problem")

    monkeypatch.setattr(Logistic, "hessian", forbidden)
    result = newton(problem, tol=1e-8)
    assert result.status is Status.CONVERGED
    assert "by conjugate gradients" in result.method
    assert result.iterations < 15
    np.testing.assert_allclose(result.x, reference.x, atol=1e-4)
    assert result.fun == pytest.approx(reference.fun, abs=1e-11)


def test_conjugate_gradients_take_columns_of_any_size():
    problem = sparse()
    scales = 10 ** np.random.default_rng(1).uniform(-2, 2, problem.n)
    A = problem.A @ scipy.sparse.diags_array(scales)
    result = newton(Logistic(A.tocsr(), problem.b, l2=1e-3), tol=1e-6)
    assert result.status is Status.CONVERGED
    assert result.oracle_calls < 600


def test_a_function_gives_its_products():
    w = np.logspace(0, -3, 30)
    problem = Problem.from_function(
        lambda x: np.sum(w * (x - 1) ** 2 / 2 + (x - 1) ** 4),
        lambda x: w * (x - 1) + 4 * (x - 1) ** 3,
        n=30,
        hvp=lambda x, v: (w + 12 * (x - 1) ** 2) * v,
    )
    result = newton(problem, np.zeros(30), tol=1e-10)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.x, 1, atol=1e-6)


def test_what_a_problem_of_ones_own_calls_its_parts_does_not_matter():
    class Mine(Problem):
        n, xp, dtype, A, rows = 4, np, np.dtype(float), "something else", None

        def value(self, x):
            return float(np.sum(np.cosh(x - 1)))

        def gradient(self, x):
            return np.sinh(x - 1)

        def hvp(self, x, v):
            return np.cosh(x - 1) * v

    np.testing.assert_allclose(newton(Mine(), np.zeros(4), tol=1e-9).x, 1, atol=1e-8)


def test_without_products_it_says_what_to_do():
    with pytest.raises(InputError, match=r"newton needs second derivatives: .* or use lbfgs"):
        solve(lambda x: x @ x, np.ones(3), jac=lambda x: 2 * x, method="newton")


def test_a_function_that_is_not_convex_ends_with_a_true_status():
    problem = Quadratic(np.diag([1.0, -1.0]), np.ones(2))
    result = solve(problem, np.zeros(2), method="newton", max_iter=200)
    assert result.status is not Status.CONVERGED
    assert not result.success
    assert np.all(np.isfinite(result.x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_factor_is_the_inverse(dtype, rng):
    M = rng.standard_normal((12, 20))
    H = (M @ M.T).astype(dtype)
    g = rng.standard_normal(12)
    expected = np.linalg.solve(H.astype(float), g)
    np.testing.assert_allclose(CholeskyFactor(H)(g), expected, rtol=1e-6)
    np.testing.assert_allclose(CholeskyFactor(H).inverse() @ g, expected, rtol=1e-6)
    np.testing.assert_array_equal(H, (M @ M.T).astype(dtype))  # it is not overwritten


def test_the_factor_of_a_singular_matrix_is_damped_whatever_its_columns_are(rng):
    """H^-1 g is about the least-norm solution for g in the range, in any units of x."""
    M = rng.standard_normal((5, 8))
    H = M.T @ M
    for scales in (np.ones(8), 10 ** rng.uniform(-5, 5, 8)):
        scaled = scales[:, None] * H * scales
        g = scaled @ rng.standard_normal(8)
        x = CholeskyFactor(scaled)(g)
        np.testing.assert_allclose(
            scaled @ x / scales, g / scales, atol=1e-4 * abs(g / scales).max()
        )


def test_the_factor_takes_variables_of_any_size(rng):
    M = rng.standard_normal((12, 8))
    scales = np.logspace(-5, 5, 8)
    H = scales[:, None] * (M.T @ M) * scales
    x = rng.standard_normal(8) / scales
    np.testing.assert_allclose(CholeskyFactor(H)(H @ x) * scales, x * scales, rtol=1e-6)


def test_a_direction_that_the_matrix_does_not_know_is_given_a_curvature():
    x = CholeskyFactor(np.diag([4.0, 0.0]))(np.array([4.0, 4.0]))
    np.testing.assert_allclose(x[0], 1, rtol=1e-9)
    assert np.isfinite(x[1])
    np.testing.assert_array_equal(np.isfinite(CholeskyFactor(np.zeros((2, 2)))(np.ones(2))), True)


def test_an_indefinite_matrix_gives_a_direction_downhill(rng):
    B = rng.standard_normal((6, 6))
    g = rng.standard_normal(6)
    assert g @ CholeskyFactor(B + B.T + np.diag(np.full(6, 0.1)))(g) > 0
