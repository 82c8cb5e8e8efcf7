"""The fallback of a compiled solve is, point for point, the method with the proof."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from integrations.learned import logistic

import ode2opt
from ode2opt import Guard, Huber, Lpp, Method, Schedule
from ode2opt.integrations.jax import double, solve, to_jax
from ode2opt.integrations.jax_fallback import lower, nesterov
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages import nesterov as fallback

TRIALS = 60
START = np.linspace(-2, 3, 7)


PROBLEMS = {
    "logistic": lambda: logistic(3),
    "huber": lambda: Huber(logistic(1).A, 3 * logistic(1).b, l2=0.1),
    "quartic": lambda: Lpp(logistic().A, logistic().b, p=4, l2=1e-3),
}


def without_repeats(points):
    return [x for k, x in enumerate(points) if not (k and np.array_equal(x, points[k - 1]))]


def points_of_numpy(problem, monkeypatch):
    """Where the steps of the NumPy fallback begin; whether a restart went back to one of them."""
    begun, reached, restarts = [], [], []
    step, until = fallback._step, fallback.until_restart

    def noted_step(run, x, *rest):
        begun.append(x.x)
        found = step(run, x, *rest)
        reached.append(found.new.x)
        return found

    def noted_restart(run, x, *rest):
        restarts.append(bool(reached) and not np.array_equal(reached[-1], x.x))
        return until(run, x, *rest)

    monkeypatch.setattr(fallback, "_step", noted_step)
    monkeypatch.setattr(fallback, "until_restart", noted_restart)
    run = Oracle(Objective(problem), tol=1e-13, max_iter=2 * TRIALS)
    with pytest.raises(Stop):
        fallback.Nesterov().run(run, run.begin(START))
    return without_repeats(begun), any(restarts)


@double
def points_of_jax(problem):
    go = jax.jit(lambda p, most: nesterov(p, jnp.asarray(START), 1e-13, most).x)
    found = [np.asarray(go(to_jax(problem), k)) for k in range(TRIALS)]
    return without_repeats(found)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_point_is_that_of_numpy(name, monkeypatch):
    problem = PROBLEMS[name]()
    due, went_back = points_of_numpy(problem, monkeypatch)
    found = points_of_jax(problem)
    assert len(found) > TRIALS / 2
    np.testing.assert_allclose(found, due[: len(found)], rtol=1e-10, atol=1e-10)
    assert went_back == (name != "quartic")


def test_it_solves_as_the_guard_of_a_solve_does():
    problem = Lpp(logistic().A, logistic().b, p=4, l2=0.3)
    guard = Guard(fallback="nesterov")
    wild = Method(Schedule.heavy_ball(1.0, 0.3, 400), "any", 1e-5, "family", 18.0, guard=guard)
    due = ode2opt.solve(problem, START, method=wild, tol=1e-5)
    found = solve(wild, problem, START, fallback=5000)
    assert due.handovers[0].to == "nesterov"
    assert due.success
    assert found.success
    np.testing.assert_allclose(found.x, due.x, rtol=1e-10, atol=1e-13)


@double
def test_it_begins_at_the_lower_of_best_point_and_start():
    """Far out a gradient may be small where the value is not."""
    problem = to_jax(ode2opt.Problem.from_function(lambda x: jnp.sum(jnp.sqrt(1 + x**2)), n=2))
    low, far = jnp.asarray([0.1, 0.1]), jnp.asarray([30.0, 30.0])
    np.testing.assert_array_equal(lower(problem, far, low), low)
    np.testing.assert_array_equal(lower(problem, low, far), low)


def test_it_ends_where_rounding_leaves_no_progress():
    short = Method(Schedule.gradient_descent(1.0, 3), "any", 1e-300, "product")
    found = solve(short, logistic(), START, fallback=100_000)
    assert int(found.iterations) < 100_000
    assert float(found.grad_norm) < 1e-13
