"""The EIGAC loop: what it calls and what it allocates."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from ode2opt import Logistic, Problem, Quadratic, Schedule, Status, solve
from ode2opt.solvers.methods import smooth_names

pytestmark = pytest.mark.usefixtures("x64")


class Counting(Quadratic):
    calls = 0

    def gradient(self, x):
        self.calls += 1
        return super().gradient(x)


def test_the_first_gradient_is_used_twice():
    problem = Counting(np.eye(3), np.ones(3))
    result = solve(problem, np.zeros(3), method=Schedule.gradient_descent(0.1, 10), max_iter=10)
    assert result.iterations == 10
    assert problem.calls == 10
    assert result.oracle_calls == 10 + 1  # the value that the result reports


def test_the_loop_allocates_nothing_beyond_its_few_vectors():
    n = 200_000
    gradient = np.empty(n)

    class Held(Problem):
        xp, dtype = np, np.dtype(float)

        def value(self, x):
            return 0.0

        def gradient(self, x):
            np.subtract(x, 1.0, out=gradient)
            return gradient

    problem = Held()
    problem.n = n
    x0 = np.zeros(n)
    tracemalloc.start()
    solve(problem, x0, method=Schedule.heavy_ball(0.1, 0.5, 50), tol=1e-12, max_iter=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4.5 * x0.nbytes  # x, u, the start and the best point


@pytest.mark.parametrize("library", [jnp.asarray, torch.asarray])
@pytest.mark.parametrize("method", smooth_names())
def test_every_method_runs_on_every_array_library(library, method):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 5)), rng.integers(0, 2, 40).astype(float)
    plain = solve(Logistic(A, b, l2=0.1), method=method, tol=1e-8)
    other = solve(Logistic(library(A), library(b), l2=0.1), method=method, tol=1e-8)
    assert other.status is Status.CONVERGED
    assert type(other.x) is type(library(A))
    assert other.iterations == pytest.approx(plain.iterations, abs=2)
    np.testing.assert_allclose(np.asarray(other.x), plain.x, atol=1e-6)


@pytest.mark.parametrize("library", [jnp.asarray, torch.asarray])
def test_the_guard_runs_on_every_array_library(library):
    problem = Quadratic(library(np.diag([1.0, 10.0])), library(np.ones(2)))
    result = solve(problem, library(np.zeros(2)), method=Schedule.gradient_descent(99.0, 50))
    assert result.success
    assert len(result.handovers) == 1
    np.testing.assert_allclose(np.asarray(result.x), [1.0, 0.1], atol=1e-6)


@pytest.mark.parametrize("library", [jnp.asarray, torch.asarray])
def test_a_result_on_every_array_library_is_shown(library):
    result = solve(Quadratic(library(np.eye(2)), library(np.array([3.0, 4.0]))), tol=1e-12)
    assert str(result).endswith("2 numbers, norm 5: 3, 4")
    assert "2 numbers, norm 5: 3, 4" in result._repr_html_()


@pytest.mark.parametrize("a", [0.0, 1e-310])
def test_a_step_of_nothing_is_allowed(a):
    schedule = Schedule(np.full(200, a), np.full(200, 0.05), np.full(200, 0.2))
    result = solve(Quadratic(np.eye(2), np.ones(2)), np.zeros(2), method=schedule, handover="none")
    assert result.status is Status.CONVERGED
