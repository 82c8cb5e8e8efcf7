"""The public verb: what it takes, why it stops, what it refuses."""

import signal
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from ode2opt import InputError, Logistic, Lpp, Problem, Quadratic, Schedule, Status, solve
from ode2opt.solvers.methods import smooth_names


@pytest.fixture
def problem():
    rng = np.random.default_rng(7)
    return Logistic(rng.standard_normal((60, 5)), rng.integers(0, 2, 60), l2=0.1)


def rosen_like(x):
    return float(np.sum((x - 3) ** 4 + (x - 3) ** 2))


def test_it_takes_a_function_like_scipy():
    jac = lambda x: 4 * (x - 3) ** 3 + 2 * (x - 3)  # noqa: E731
    ours = solve(rosen_like, np.zeros(4), jac=jac, tol=1e-8)
    theirs = scipy.optimize.minimize(rosen_like, np.zeros(4), jac=jac, tol=1e-10)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    both = solve(fun=lambda x: (rosen_like(x), jac(x)), x0=np.zeros(4), jac=True, tol=1e-8)
    np.testing.assert_array_equal(both.x, ours.x)
    by_jax = solve(lambda x: jnp.sum((x - 3) ** 4 + (x - 3) ** 2), np.zeros(4), tol=1e-8)
    np.testing.assert_allclose(by_jax.x, ours.x, atol=1e-6)


def test_success_means_the_tolerance_and_nothing_else(problem):
    done = solve(problem, tol=1e-6)
    assert (done.status, done.success) == (Status.CONVERGED, True)
    assert np.linalg.norm(problem.gradient(done.x)) <= 1e-6
    for method in smooth_names():
        cut = solve(problem, method=method, tol=1e-6, max_iter=2)
        assert (cut.status, cut.success, cut.iterations) == (Status.MAX_ITER, False, 2)
        assert np.linalg.norm(problem.gradient(cut.x)) == pytest.approx(cut.grad_norm)


def test_a_start_at_the_minimiser_converges_at_iteration_zero(problem):
    x = solve(problem, tol=1e-9).x
    again = solve(problem, x, tol=1e-8)
    assert (again.iterations, again.success) == (0, True)


def test_going_on_past_the_tolerance_notes_when_it_was_met(problem):
    options = {"method": "eigac-c2", "tol": 1e-3}
    stopped = solve(problem, **options)
    went_on = solve(problem, stop_at_tol=False, max_iter=200, history=True, **options)
    assert went_on.reached.iteration == stopped.iterations
    assert went_on.reached.oracle_calls == stopped.oracle_calls  # its value at the end, too
    assert len(went_on.history.grad_norm) == 201
    assert went_on.history.grad_norm[stopped.iterations] <= 1e-3
    assert min(went_on.history.grad_norm[: stopped.iterations]) > 1e-3


@pytest.mark.parametrize("method", smooth_names())
def test_the_callback_sees_every_iteration_and_can_stop(problem, method):
    seen = []

    def callback(progress):
        seen.append(progress.iteration)
        return progress.iteration == 2

    result = solve(problem, method=method, callback=callback)
    assert result.status is Status.CALLBACK
    assert seen == [0, 1, 2]
    points = []
    done = solve(
        problem, method=method, tol=1e-3,
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    assert len(points) == done.iterations + 1
    np.testing.assert_array_equal(points[-1], done.x)
    assert not np.array_equal(points[0], points[-1])


class Slow(Quadratic):
    def gradient(self, x):
        time.sleep(0.005)
        return super().gradient(x)


def test_a_time_limit_is_kept():
    problem = Slow(np.diag([1.0, 1e-8]), np.array([1.0, 1.0]))
    result = solve(problem, np.zeros(2), method="eigac-c2", tol=1e-12, max_seconds=0.2)
    assert result.status is Status.MAX_SECONDS
    assert 0.2 < result.seconds < 1.0


@pytest.mark.parametrize("method", ["eigac-c2", "gd", "lbfgs"])
def test_ctrl_c_returns_the_best_point(method):
    problem = Slow(np.diag(np.logspace(0, -12, 12)), np.ones(12))
    problem.start()  # imports what it needs
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    result = solve(problem, np.zeros(12), method=method, tol=1e-13, max_iter=10**7, max_seconds=20)
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert result.status is Status.INTERRUPTED
    assert result.iterations > 0
    assert result.grad_norm < np.sqrt(12)
    assert result.grad_norm == pytest.approx(np.linalg.norm(problem.gradient(result.x)))


def test_ctrl_c_during_the_set_up_returns_the_start():
    class Interrupted(Quadratic):
        def scale(self, x):
            raise KeyboardInterrupt

    result = solve(Interrupted(np.eye(2), np.ones(2)), np.zeros(2), method="eigac-c2")
    assert result.status is Status.INTERRUPTED
    np.testing.assert_array_equal(result.x, 0)


def test_a_function_for_both_is_asked_once_a_point():
    calls = []

    def both(x):
        calls.append(1)
        return float(x @ x), 2 * x

    result = solve(both, np.ones(3), jac=True, method="lbfgs")
    assert len(calls) == result.oracle_calls


def test_glacial_progress_is_handed_over():
    result = solve(
        lambda x: np.exp(x).sum() - x.sum(), np.full(3, 50.0), jac=lambda x: np.exp(x) - 1,
        method="eigac-c2",
    )  # fmt: skip
    assert result.success
    assert result.oracle_calls < 1_000
    assert "at this pace" in result.handovers[0].reason


@pytest.mark.parametrize("method", smooth_names())
def test_without_a_start_it_starts_at_zero(method):
    """The paper's start is meant for columns of size one: here it would be 1e6 away."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 3)) + np.array([1000.0, 0.0, 0.0])
    problem = Lpp(A, rng.standard_normal(100))
    started = solve(problem, method=method, max_iter=0)
    np.testing.assert_array_equal(started.x, 0)
    assert started.grad_norm < 1e-3 * np.linalg.norm(problem.gradient(problem.start().x0))


def test_a_norm_whose_square_overflows_is_still_a_norm():
    problem = Quadratic(np.eye(2, dtype=np.float32), np.full(2, 1e25, dtype=np.float32))
    result = solve(problem, np.zeros(2), tol=1e20)
    assert result.success
    np.testing.assert_allclose(result.x, 1e25, rtol=1e-3)


def test_a_function_that_is_not_convex_is_called_so():
    problem = Quadratic(np.diag([1.0, -1.0]), np.ones(2))
    result = solve(problem, np.zeros(2), method=Schedule.gradient_descent(0.1, 5))
    assert result.status is Status.NON_CONVEX
    assert not result.success


def test_the_callers_x0_is_not_changed(problem):
    x0 = np.ones(5)
    solve(problem, x0, max_iter=5)
    np.testing.assert_array_equal(x0, 1)


def test_float32_is_solved_in_float32():
    rng = np.random.default_rng(7)
    problem = Logistic(rng.standard_normal((60, 5)).astype(np.float32), rng.integers(0, 2, 60))
    result = solve(problem, tol=1e-4)
    assert result.success
    assert result.x.dtype == np.float32


EYE = Quadratic(np.eye(2), np.ones(2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: solve(EYE, tol=0), "tol is 0: it must be a positive number"),
        (lambda: solve(EYE, tol=-1e-3), "tol is -0.001"),
        (lambda: solve(EYE, tol="a"), "tol is 'a': it must be a number"),
        (lambda: solve(EYE, max_iter=float("nan")), "max_iter is nan"),
        (lambda: solve(EYE, max_seconds="a"), "max_seconds is 'a'"),
        (lambda: solve(EYE, method=None), "method must be a name, a Method, a Schedule"),
        (lambda: solve(EYE, handover=[1]), "Unknown handover"),
        (lambda: solve(EYE, callback=3), "callback must be a function"),
        (lambda: solve(EYE, np.ones(2) * 1j), "x0 must hold real numbers"),
        (lambda: solve(rosen_like, np.ones(2), jac="2-point"), "grad must be a function"),
        (lambda: solve(rosen_like, np.ones(2), jac=True), "must return \\(value, gradient\\)"),
        (lambda: solve(lambda x: x, np.ones(2), jac=lambda x: x), "one number is due"),
        (lambda: solve(EYE, tol=float("nan")), "tol is nan"),
        (lambda: solve(EYE, tol=1e-17), "below what float64 can reach"),
        (
            lambda: solve(Quadratic(np.eye(2, dtype=np.float32), np.ones(2)), tol=1e-8),
            "below what float32 can reach",
        ),
        (lambda: solve(EYE, np.ones(3)), r"x0 has shape \(3,\), but 2 numbers"),
        (lambda: solve(EYE, [1.0, np.nan]), r"x0\[1\] is nan"),
        (lambda: solve(EYE, "ab"), "x0 must be an array of numbers"),
        (lambda: solve(EYE, method="nesterov"), "Unknown method 'nesterov'"),
        (lambda: solve(EYE, method="eigac_c2"), "did you mean 'eigac-c2'"),
        (lambda: solve(EYE, handover="gaurd"), "did you mean 'guard'"),
        (lambda: solve(EYE, max_iter=-1), "max_iter is -1"),
        (lambda: solve(EYE, max_seconds=0), "max_seconds is 0"),
        (lambda: solve(), "one thing to minimise"),
        (lambda: solve(EYE, fun=rosen_like), "not both"),
        (lambda: solve(3.0, np.ones(2)), "float is neither a Problem nor a function"),
        (lambda: solve(rosen_like, jac=lambda x: x), "needs a start point"),
        (
            lambda: solve(rosen_like, np.ones(2), jac=lambda x: x * np.inf, method="gd"),
            "curvature at the start point|gradient is not finite at the start point",
        ),
        (
            lambda: solve(
                Problem.from_function(rosen_like, lambda x: x * np.nan, n=2),
                np.ones(2),
                method=Schedule.gradient_descent(1.0, 3),
            ),
            "gradient is not finite at the start point",
        ),
    ],
)
def test_wrong_use_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
