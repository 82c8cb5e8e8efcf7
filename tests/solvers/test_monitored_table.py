"""A certified table at solve time: what is checked, what is told."""

import numpy as np
import pytest
from support import visited

from ode2opt import Logistic, Method, Quadratic, solve
from ode2opt.learning.sequence.certified.candidates import CandidateMaker
from ode2opt.learning.sequence.certified.rows import LearnedRows
from ode2opt.proofs.table import two_step_rows
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.metric import Metric


def monitored(L, rho, metric=None, count=12) -> Method:
    rows = LearnedRows("nag", count)
    return CandidateMaker(rows, "x", 1e-6, L, 30, [metric]).unchecked(rows.first(), rho)[-1]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    return Logistic(rng.standard_normal((80, 6)), rng.integers(0, 2, 80), l2=0.01)


@pytest.fixture(scope="module")
def metric():
    rng = np.random.default_rng(2)
    V = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    return Metric("spectral", np.ones(6), V, np.linspace(-0.5, 2, 6))


@pytest.mark.parametrize("preconditioned", [False, True])
def test_it_runs_the_two_step_rows(problem, metric, preconditioned):
    metric = metric if preconditioned else None
    S = metric.matrix() if preconditioned else np.eye(6)
    L, x0 = problem.smoothness(metric), np.ones(6)
    method = monitored(L, 1.0, metric)
    found = visited(problem, x0, method, 40)
    y, before, g_before = x0, x0, 0.0
    for k, (m, p, q) in enumerate(two_step_rows(method.schedule)):
        np.testing.assert_allclose(found[k], y, atol=1e-10)
        g = S @ S.T @ problem.gradient(y)
        y, before, g_before = y + m * (y - before) - (p * g - q * g_before) / L, y, g


@pytest.mark.parametrize("rho", [2.0**-10, 2.0**-3, 1.0])
def test_it_finds_the_smoothness_wherever_it_begins(rho):
    quadratic = Quadratic(np.diag(np.logspace(0, -2, 20)), np.ones(20))
    result = solve(quadratic, method=monitored(1.0, rho), tol=1e-6, handover="none")
    assert result.success
    assert result.method.count("restarted") <= -np.log2(rho)


@pytest.mark.parametrize("iterations", [5, 12, 20, 60, 200])
@pytest.mark.parametrize("rho", [0.25, 1.0])
def test_the_bound_is_never_below_the_true_gap(problem, metric, iterations, rho):
    """Against the minimiser, which is inside the radius after some iterations."""
    plain = Logistic(problem.A, problem.b)
    best = solve(plain, tol=1e-12)
    L, x0 = plain.smoothness(metric), best.x + 0.3 * np.ones(6)
    method = monitored(L, rho, metric)
    result = solve(plain, x0, method=method, tol=1e-12, max_iter=iterations, handover="none")
    assert result.bound is not None
    away = np.linalg.norm(np.linalg.solve(metric.matrix(), best.x - x0))
    if away <= result.bound.radius:
        assert result.fun - best.fun <= result.bound.value
    else:
        assert iterations == 5


def test_what_was_proved_is_told_after_a_handover(problem, metric):
    """The guard gives up on the table before its last row; what convexity says is still true."""
    plain = Logistic(problem.A, problem.b)
    best = solve(plain, tol=1e-12)
    x0 = best.x + 0.3 * np.ones(6)
    method = monitored(plain.smoothness(metric), 1.0, metric)
    result = solve(plain, x0, method=method.replace(guard=Guard(patience=2)), tol=1e-9)
    assert result.handovers
    assert result.fun - best.fun <= result.bound.value
    away = np.linalg.norm(np.linalg.solve(metric.matrix(), result.x - x0))
    assert result.bound.radius == pytest.approx(2 * away)
