"""The classical methods against closed forms, plain transcriptions and scipy."""

import numpy as np
import pytest
import scipy.optimize
from support import visited

from ode2opt import Logistic, Quadratic, Status, solve
from ode2opt.solvers.methods import smooth_names


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    return Logistic(rng.standard_normal((80, 10)), rng.integers(0, 2, 80), l2=0.05)


def test_gradient_descent_contracts_each_mode_of_a_quadratic():
    w = np.array([1.0, 0.3, 0.01])
    problem = Quadratic(np.diag(w), np.zeros(3))
    x0, L = problem.start()
    assert pytest.approx(1.0) == L
    np.testing.assert_allclose(
        visited(problem, problem.start(), "gd", 30)[30], (1 - w / L) ** 30 * x0, atol=1e-14
    )


def test_nesterov_is_the_printed_recursion(problem):
    x, L = problem.start()
    y = x
    for k, point in enumerate(visited(problem, problem.start(), "nag", 50), 1):
        np.testing.assert_allclose(point, x, rtol=1e-11)
        new = x - problem.gradient(x) / L
        x, y = new + (k - 1) / (k + 2) * (new - y), new


def test_igahd_is_the_printed_recursion(problem):
    x, L = problem.start()
    s, alpha = 1 / L, 6
    beta, previous = np.sqrt(s), x
    for k, point in enumerate(visited(problem, problem.start(), "igahd", 50), alpha):
        np.testing.assert_allclose(point, x, rtol=1e-10)
        g, old = problem.gradient(x), problem.gradient(previous)
        y = x + (1 - alpha / k) * (x - previous) - beta * np.sqrt(s) * (g - old)
        y = y - beta * np.sqrt(s) / k * old
        x, previous = y - s * problem.gradient(y), x


def test_restart_makes_nesterov_linear_on_a_strongly_convex_problem():
    problem = Quadratic(np.diag(np.logspace(0, -3, 20)), np.ones(20))
    plain = solve(problem, method="nag", tol=1e-9)
    restarted = solve(problem, method="nag-restart", tol=1e-9)
    assert restarted.success
    assert restarted.iterations < 0.5 * plain.iterations


@pytest.mark.parametrize("method", smooth_names())
def test_all_methods_find_the_minimiser_that_scipy_finds(problem, method):
    reference = scipy.optimize.minimize(
        problem.value, np.zeros(10), jac=problem.gradient, method="BFGS", options={"gtol": 1e-9}
    )
    result = solve(problem, method=method, tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.grad_norm == pytest.approx(np.linalg.norm(problem.gradient(result.x)))
    assert result.fun == pytest.approx(reference.fun, abs=1e-12)
    np.testing.assert_allclose(result.x, reference.x, atol=1e-6)


def test_the_reference_is_scipys_with_ten_corrections(problem):
    x0, seen = problem.start().x0, []

    def evaluate(x):
        seen.append(np.linalg.norm(problem.gradient(x)))
        return problem.value(x), problem.gradient(x)

    scipy.optimize.minimize(
        evaluate, x0, jac=True, method="L-BFGS-B", options={"maxcor": 10, "ftol": 0, "gtol": 0}
    )
    ours = solve(problem, x0, method="lbfgs-scipy", tol=1e-15, max_iter=25, history=True)
    np.testing.assert_allclose(ours.history.grad_norm[:20], seen[:20], rtol=1e-6)


def test_a_classic_that_diverges_says_so_and_returns_its_best_point():
    class Understated(Quadratic):
        def scale(self, x):
            from ode2opt.problems import Scale

            return Scale(0.1, 0, 0.0)

    result = solve(Understated(np.eye(2), np.ones(2)), np.zeros(2), method="gd", max_iter=10_000)
    assert result.status is Status.NON_FINITE
    assert not result.success
    np.testing.assert_array_equal(result.x, 0)


def test_scipys_lbfgs_that_has_lost_itself_is_stopped(problem, monkeypatch):
    """Near gradients of 1e-150 its memory underflows, and it asks for points that are NaN."""
    monkeypatch.setattr(
        scipy.optimize, "minimize", lambda f, x, **k: f(x) and f(np.full(10, np.nan))
    )
    result = solve(problem, np.ones(10), method="lbfgs-scipy")
    assert result.status is Status.LINE_SEARCH
    np.testing.assert_array_equal(result.x, 1)
