"""What an attack on solves once broke: each of these was a wrong answer, a stall or a crash."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from support import counting

from ode2opt import (
    Guard,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Method,
    Problem,
    Quadratic,
    Schedule,
    Status,
    solve,
)
from ode2opt.base.precision import jax_precision
from ode2opt.solvers.metric import Metric


@pytest.mark.parametrize("method", ["eigac-c2", "eigac-c4", "lbfgs"])
def test_a_saturated_start_is_left(method):
    """The gradient is smaller far out, where nothing moves any more; the minimum is not there."""
    problem = Logistic(np.ones((10, 1)), [1.0] * 3 + [0.0] * 7)
    result = solve(problem, [40.0], method=method)
    assert result.success
    assert result.x[0] == pytest.approx(math.log(3 / 7), abs=1e-4)


def test_columns_as_people_have_them_need_no_scaling():
    """A constant, years and money, from 0.01: under any schedule as by L-BFGS."""
    rng = np.random.default_rng(0)
    years, money = rng.uniform(18, 90, 500), rng.lognormal(10.5, 0.7, 500)
    A = np.stack([np.ones(500), years, money], axis=1)
    b = rng.random(500) < 1 / (1 + np.exp(-(0.05 * (years - 50) + (money - 4e4) / 3e4)))
    problem, x0 = Logistic(A, b.astype(float)), np.full(3, 0.01)
    tol = 1e-6 * np.linalg.norm(problem.gradient(x0))
    rival = solve(problem, x0, method="lbfgs-scipy", tol=tol)
    assert rival.success
    for method in ("eigac-c1", "eigac-c2", "eigac-c4", Schedule.gradient_descent(1.0, 100)):
        result = solve(problem, x0, method=method, tol=tol)
        assert result.success
        assert result.oracle_calls < 10 * rival.oracle_calls + 1_000
        np.testing.assert_allclose(A @ result.x, A @ rival.x, atol=0.1)


def test_lbfgs_in_a_wrong_metric_is_watched():
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((200, 30)), rng.integers(0, 2, 200), l2=0.01)
    metric = Metric("diagonal", rng.permutation(np.logspace(-2, 2, 30)))
    method = Method(
        Schedule.gradient_descent(1.0, 1), "test", 1e-6, "family", 1.0, metric,
        guard=Guard(fallback="metric-lbfgs"),
    )  # fmt: skip
    result = solve(problem, method=method, tol=1e-8)
    assert result.success
    assert result.oracle_calls < 1_000


@pytest.mark.parametrize("method", ["eigac-c2", "lbfgs"])
def test_lengths_are_measured_in_the_problems_own(method):
    result = solve(Lpp([[1e6]], [1.0], p=10), [3e-6], tol=1.0, method=method)
    assert result.success
    assert result.oracle_calls < 500


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1.5e308), (np.float32, 2.5e38)])
@pytest.mark.parametrize("method", ["auto", "lbfgs"])
def test_a_norm_too_large_for_its_precision_is_no_success(dtype, size, method):
    """f = |x|^2/4, so that the gradient is x/2."""
    with jax_precision():
        eye, zeros = jnp.eye(2, dtype=dtype), jnp.zeros(2, dtype=dtype)
        x0 = jnp.full((2,), size, dtype=dtype)
        with pytest.raises(InputError, match="start"):
            solve(LeastSquares(eye, zeros), x0, method=method)
        result = solve(LeastSquares(eye, zeros), x0 / 4, method="eigac-c2", max_iter=3)
    x = np.asarray(result.x, dtype=np.longdouble)
    assert np.all(np.isfinite(x))
    assert result.grad_norm == pytest.approx(float(np.sqrt(np.sum((x / 2) ** 2))), rel=1e-6)
    assert result.success == (result.grad_norm <= 1e-6)


def test_infinity_is_no_solution():
    """At infinity the logistic gradient is zero."""
    problem = Logistic(np.ones((1, 1), np.float32), np.ones(1, np.float32))
    steps = Schedule([1e39] * 3, [1e39] * 3, [1.0] * 3)
    result = solve(problem, np.zeros(1, np.float32), method=steps)
    assert np.all(np.isfinite(result.x))
    assert math.isfinite(result.fun)
    gradient = 1 / (1 + math.exp(float(result.x[0])))
    assert result.success == (gradient <= 1e-6)


@pytest.mark.parametrize("start", [700.0, 740.0, 800.0])
@pytest.mark.parametrize("method", ["eigac-c2", "gd", "auto"])
def test_a_curvature_that_underflows_is_no_error(start, method):
    problem = Logistic([[1.0], [1.0]], [0, 1])
    result = solve(problem, [start], method=method, max_iter=2_000)
    assert np.all(np.isfinite(result.x))
    assert result.success == (result.grad_norm <= 1e-6)
    assert result.success or method == "gd"


def log_sum_exp(A, b):
    def both(x):
        z = A @ x + b
        top = z.max()
        e = np.exp(z - top)
        return top + math.log(e.sum()), A.T @ (e / e.sum())

    return Problem.from_function(lambda x: both(x)[0], lambda x: both(x)[1], n=A.shape[1])


def small_convex(seed):
    """A small convex problem whose gradients end in rounding."""
    rng = np.random.default_rng(seed)
    N, n = rng.integers(1, 12), rng.integers(1, 6)
    A = rng.standard_normal((N, n)) * 10.0 ** rng.integers(-2, 4)
    if seed % 3 == 0:
        return log_sum_exp(A, rng.standard_normal(N)), rng.standard_normal(n)
    b = (A @ rng.standard_normal(n) > 0) if seed % 3 == 1 else rng.random(N) < 0.5
    return Logistic(A, b.astype(float)), rng.standard_normal(n)


def test_convex_functions_are_never_called_something_else():
    for seed in range(120):
        problem, x0 = small_convex(seed)
        tol = max(1e-13 * np.linalg.norm(problem.gradient(x0)), 3e-16)  # down into rounding
        result = solve(
            problem, x0, method=Schedule.gradient_descent(1e-30, 1), tol=tol, max_iter=300,
            handover=Guard(fallback="nesterov"),
        )  # fmt: skip
        assert result.status is not Status.NON_CONVEX, seed


def test_rounding_is_not_taken_for_concavity():
    """A quadratic whose gradient has an error that changes with the last digits of x."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        w, c = 10.0 ** rng.uniform(-3, 0, n), rng.standard_normal(n)
        problem = Problem.from_function(
            lambda x, w=w, c=c: 0.5 * float(w @ (x - c) ** 2),
            lambda x, w=w, c=c: w * (x - c) + 1e-9 * np.sin(1e16 * x),
            n=n,
        )
        result = solve(
            problem, rng.standard_normal(n), method=Schedule.gradient_descent(1e-30, 1), tol=1e-13,
            max_iter=400, handover=Guard(fallback="nesterov"),
        )  # fmt: skip
        assert result.status in (Status.STALLED, Status.MAX_ITER), seed


def test_not_convex_is_said_with_two_points_that_prove_it():
    problem = Quadratic(np.diag([1.0, -1.0]), np.ones(2))
    result = solve(problem, np.zeros(2), method=Schedule.gradient_descent(0.1, 5))
    assert result.status is Status.NON_CONVEX
    assert not result.success
    x, y, product, rounding = result.concave
    again = float((problem.gradient(x) - problem.gradient(y)) @ (x - y))
    assert again == pytest.approx(product, rel=1e-6)
    assert again < -100 * rounding < 0
    assert f"{product:.3g}" in result.message


@pytest.mark.parametrize("method", ["auto", "gd", "nag", "igahd", "eigac-c2", "lbfgs", "newton"])
@pytest.mark.parametrize("x0", [None, np.full(4, 0.3)])
def test_every_call_counts_the_start_and_the_last_value_too(method, x0):
    rng = np.random.default_rng(2)
    problem = counting(Logistic(rng.standard_normal((60, 4)), rng.integers(0, 2, 60), l2=0.1))
    result = solve(problem, x0, method=method)
    assert result.success
    assert result.oracle_calls == pytest.approx(problem.tally.calls)


class Seen(Quadratic):
    """A quadratic that keeps all points at which it was asked for a gradient, and the arrays."""

    def gradient(self, x):
        g = super().gradient(x)
        self.__dict__.setdefault("seen", []).append((float(np.linalg.norm(g)), x.copy(), x))
        return g


@pytest.mark.parametrize("max_iter", range(1, 12))
def test_the_smallest_gradient_that_igahd_saw_is_returned(max_iter):
    problem = Seen(np.diag([1.0, 0.2, 0.01]), np.ones(3))
    result = solve(problem, np.zeros(3), method="igahd", tol=1e-9, max_iter=max_iter)
    norm, x, _ = min(problem.seen, key=lambda seen: seen[0])
    assert result.grad_norm == pytest.approx(norm, rel=1e-12)
    np.testing.assert_allclose(result.x, x)


def test_a_tolerance_met_between_two_iterates_is_met():
    problem = Seen(np.diag([1.0, 0.2, 0.01]), np.ones(3))
    for tol in np.logspace(0, -4, 60):
        problem.seen = []
        result = solve(problem, np.zeros(3), method="igahd", tol=tol, max_iter=2_000)
        assert result.success
        assert [norm <= tol for norm, _, _ in problem.seen].index(True) == len(problem.seen) - 1


@pytest.mark.parametrize("rising", [2, 3, 7, 20])
def test_the_best_point_is_kept_without_a_copy_and_never_overwritten(rising):
    """Steps that first help and then lead away; the best vector is one that the problem saw."""
    problem = Seen(np.diag([1.0, 0.5]), np.ones(2))
    steps = np.where(np.arange(40) < rising, 0.3, -0.5)
    schedule = Schedule(steps, steps, np.full(40, 0.7))
    result = solve(problem, np.zeros(2), method=schedule, max_iter=30, handover="none")
    norm, x, _ = min(problem.seen, key=lambda seen: seen[0])
    assert result.grad_norm == pytest.approx(norm, rel=1e-12)
    np.testing.assert_array_equal(result.x, x)
    assert any(np.shares_memory(result.x, given) for _, _, given in problem.seen)
