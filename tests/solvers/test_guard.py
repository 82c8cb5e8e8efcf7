"""The guard's promise, and the paper's relay."""

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ode2opt import (
    Guard,
    InputError,
    Logistic,
    Lpp,
    Problem,
    Quadratic,
    Relay,
    Schedule,
    Status,
    solve,
)
from ode2opt.solvers import DefaultCoefficients
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages.nesterov import next_t, until_restart
from ode2opt.solvers.supervisor import supervise


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (Schedule.gradient_descent(50.0, 100), "exceeds 5 times its starting value"),
        (Schedule([1.0, 1e308, 1e308], [1.0, -1e308, 1e308], [1, 1, 1]), "starting value"),
        (Schedule([1e308] * 3, [-1e308] * 3, [1] * 3), "not finite"),
        (Schedule([0.0] * 300, [0.0] * 300, [1.0] * 300), "no progress for 100 iterations"),
        (Schedule.gradient_descent(1e-4, 20), "horizon is over"),
    ],
)
def test_each_reason_is_recorded_and_the_tolerance_reached(schedule, reason):
    problem = Quadratic(np.diag([1.0, 0.1]), np.ones(2))
    result = solve(problem, np.zeros(2), method=schedule, tol=1e-10)
    assert result.status is Status.CONVERGED
    assert [h.to for h in result.handovers] == ["lbfgs"]
    assert reason in result.handovers[0].reason
    np.testing.assert_allclose(result.x, [1, 10], atol=1e-8)


def test_a_blow_up_is_measured_from_the_start_and_not_from_the_best_point():
    """The gradient at x is x: from 1 it falls to a thousandth, and may rise to 5 again."""
    oracle = Oracle(Objective(Quadratic(np.eye(1), np.zeros(1))), tol=1e-12, max_iter=99)
    guard = Guard(blowup=5.0)
    for x in (1.0, 1e-3, 4.99):
        oracle.at(np.array([x]))
        assert guard.check(oracle) is None
    oracle.at(np.array([5.01]))
    assert str(guard.check(oracle)) == "the gradient norm exceeds 5 times its starting value"


def test_without_the_guard_the_same_schedule_is_reported_as_it_is():
    problem = Quadratic(np.eye(2), np.ones(2))
    blown = solve(
        problem, np.zeros(2), method=Schedule.gradient_descent(50.0, 1000), handover="none"
    )
    assert blown.status is Status.NON_FINITE
    assert blown.grad_norm == pytest.approx(np.sqrt(2))
    short = solve(problem, np.zeros(2), method=Schedule.gradient_descent(0.1, 5), handover="none")
    assert short.status is Status.HORIZON


def by_the_last_stage(problem, x0, tol, max_iter=100_000):
    """A solve by nothing but the stage that always arrives; its run after the end, its status."""
    run = Oracle(Objective(problem), tol=tol, max_iter=max_iter)
    with pytest.raises(Stop) as stop:
        supervise(run, run.begin(np.asarray(x0, dtype=np.float64)), [])
    return run, stop.value.status


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), log_condition=st.floats(0, 8))
def test_the_fallback_alone_solves_any_quadratic(seed, log_condition):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    w = np.logspace(-log_condition, 0, n)
    Q = (V * w) @ V.T
    problem = Quadratic((Q + Q.T) / 2, Q @ rng.standard_normal(n))
    x0 = rng.standard_normal(n)
    tol = 1e-6 * np.linalg.norm(problem.gradient(x0)) + 1e-12
    assert by_the_last_stage(problem, x0, tol)[1] is Status.CONVERGED


@given(t=st.floats(1, 1e6), ratio=st.floats(0.1, 1e3))
def test_momentum_follows_a_changing_step(t, ratio):
    """t'^2 - t' = (L'/L) t^2 is what the proof with a varying L needs."""
    new = next_t(t, ratio)
    assert new**2 - new == pytest.approx(ratio * t * t, rel=1e-9)


def test_the_fallback_follows_a_curvature_that_falls_and_rises():
    """lpp with p = 6 from far away: the curvature falls by many orders of magnitude."""
    rng = np.random.default_rng(0)
    problem = Lpp(rng.standard_normal((60, 5)), rng.standard_normal(60), p=6)
    run, status = by_the_last_stage(problem, np.full(5, 1e3), 1e-8)
    assert status is Status.CONVERGED
    assert run.calls < 3_000


@pytest.mark.parametrize("stretch", [2.0**-20, 2.0**30])
@pytest.mark.parametrize("factor", [2.0**-30, 2.0**40])
def test_the_last_stage_knows_no_units(stretch, factor):
    """factor f(stretch x) is the same run, up to nothing at all: both are powers of two."""
    rng = np.random.default_rng(3)
    A, b, x0 = rng.standard_normal((40, 6)), rng.integers(0, 2, 40), rng.standard_normal(6)
    plain = Logistic(A, b, l2=0.01)
    other = Problem.from_function(
        lambda x: factor * plain.value(stretch * x),
        lambda x: factor * stretch * plain.gradient(stretch * x),
        n=6,
    )
    tol = 1e-9 * np.linalg.norm(plain.gradient(x0))
    run, status = by_the_last_stage(plain, x0, tol)
    again, same = by_the_last_stage(other, x0 / stretch, tol * factor * stretch)
    assert status is same is Status.CONVERGED
    assert (run.k, run.calls) == (again.k, again.calls)
    np.testing.assert_array_equal(run.best_x, again.best_x * stretch)
    assert again.best_norm == run.best_norm * factor * stretch


def test_a_restart_goes_to_the_lowest_point_since_the_last_one():
    """The values at restarts never rise, each being at most that after a step from the last."""
    rng = np.random.default_rng(4)
    problem = Quadratic(np.diag(np.logspace(0, -4, 20)), rng.standard_normal(20))
    run = Oracle(Objective(problem), tol=1e-8, max_iter=20_000)
    here = run.begin(np.zeros(20))
    L, restarts = 1.0, [here]
    with suppress(Stop):
        while True:
            here, L, _ = until_restart(run, here, L)
            restarts.append(here)
    assert len(restarts) > 4
    for old, new in pairwise(restarts):
        assert new.value <= old.value - 0.4 * old.norm**2 / 2 + 1e-12  # L is at most 2.4 here


def test_a_tolerance_that_rounding_forbids_ends_as_stalled():
    V, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))
    Q = ((V * np.logspace(0, -3, 5)) @ V.T).astype(np.float32)
    problem = Quadratic((Q + Q.T) / 2, np.full(5, 1e6, np.float32))
    result = solve(problem, method=Schedule.gradient_descent(0.1, 3), tol=1e-6, max_iter=200_000)
    assert result.status is Status.STALLED
    assert result.iterations < 20_000  # of 200,000; how many hangs on rounding, so on the processor
    assert not result.success
    Q, b, x = problem.Q.astype(float), problem.b.astype(float), result.x.astype(float)
    rounding = np.finfo(np.float32).eps * (np.linalg.norm(Q, 2) * np.linalg.norm(x))
    assert 1e-6 < np.linalg.norm(Q @ x - b) < rounding  # nothing is left that float32 can tell


def test_the_relay_latches_after_the_tolerance_and_keeps_converging():
    rng = np.random.default_rng(5)
    problem = Logistic(rng.standard_normal((100, 6)), rng.integers(0, 2, 100), l2=0.01)
    L = np.linalg.eigvalsh(problem.hessian(np.zeros(6)))[-1]
    good = DefaultCoefficients(3.9).schedule(400, L)
    growing = np.where(np.arange(400) < 60, 1.0, 3.0)  # unstable from iteration 60 on
    bad = Schedule(good.a * growing, good.c * growing, good.d)
    options = {"tol": 1e-2, "max_iter": 400, "stop_at_tol": False, "history": True}
    alone = solve(problem, np.ones(6), method=bad, handover="none", **options)
    relayed = solve(problem, np.ones(6), method=bad, handover="relay", **options)
    assert alone.history.grad_norm[-1] > 0.1
    assert [h.to for h in relayed.handovers] == ["relay"]
    assert relayed.history.grad_norm[-1] < 1e-3
    latch = relayed.handovers[0].iteration
    norms = alone.history.grad_norm
    assert norms[latch] > norms[latch - 1] < 1e-2
    assert not any(a > b and b < 1e-2 for a, b in zip(norms[1:latch], norms, strict=False))


def test_the_relay_keeps_the_velocity():
    """The step after the latch has the x' it would have had: only later steps differ."""
    problem = Quadratic(np.diag([1.0, 0.5]), np.zeros(2))
    schedule = Schedule(np.full(50, 0.7), np.full(50, 0.5), np.full(50, 0.1))
    points = {}
    for handover in (Relay(), "none"):
        seen = points[str(handover)] = []
        result = solve(
            problem,
            np.array([1.0, 2.0]),
            method=schedule,
            handover=handover,
            tol=10.0,
            max_iter=50,
            stop_at_tol=False,
            callback=lambda p, seen=seen: seen.append(p.x.copy()) and None,
        )
        if result.handovers:
            latch = result.handovers[0].iteration
    relayed, plain = points.values()
    np.testing.assert_allclose(relayed[latch + 1], plain[latch + 1], rtol=1e-12)
    assert not np.allclose(relayed[latch + 2], plain[latch + 2])


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="blowup is 1"):
        Guard(blowup=1.0)
    with pytest.raises(InputError, match="patience is 0"):
        Guard(patience=0)
