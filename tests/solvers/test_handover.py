"""``handover``: the same words mean the same for every method, with and without a memory."""

import numpy as np
import pytest

from ode2opt import (
    Guard,
    InputError,
    Logistic,
    Memory,
    Method,
    Relay,
    Schedule,
    SquaredHinge,
    Status,
    solve,
)
from ode2opt.solvers import METHODS
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.methods import runs_a_table, smooth_names
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.plan import plan
from ode2opt.solvers.stages import active_rows

WITHOUT_TABLE = [name for name in smooth_names() if not runs_a_table(METHODS[name])]
TABLE = Schedule.heavy_ball(1.0, 0.9, K=50)
INSTANT = Method(None, "by hand", tol=1e-6, scale="family", family_scale=1.0)


def value(x):
    return 0.25 * float((x - 1) @ (x - 1)) ** 2


def misleading(x):
    """The gradient of ``value``, but near the minimum it points the wrong way.

    No line search finds a decrease there, so that every stage gives up.
    """
    r = x - 1
    return (float(r @ r) if r @ r > 1e-2 else -1.0) * r


def logistic(N=3000, n=40):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((N, n)) * np.logspace(0, -1.5, n)
    return Logistic(A, (rng.random(N) < 0.5).astype(float), l2=1e-4)


@pytest.mark.parametrize("memory", [False, True], ids=["auto", "memory"])
def test_without_a_handover_auto_stops_where_its_first_stage_gives_up(memory):
    options = {"memory": Memory()} if memory else {}
    alone = solve(value, np.zeros(3), jac=misleading, tol=1e-8, handover="none", **options)
    assert alone.status is Status.LINE_SEARCH
    assert alone.handovers == ()
    assert alone.method == "L-BFGS"
    helped = solve(value, np.zeros(3), jac=misleading, tol=1e-8, max_iter=200)
    assert helped.handovers[0].to == "nesterov"


@pytest.mark.parametrize("memory", [False, True], ids=["auto", "memory"])
def test_without_a_handover_auto_runs_the_first_stage_of_its_plan(memory):
    problem = logistic()
    options = {"memory": Memory()} if memory else {}
    run = Oracle(Objective(problem), tol=1e-9, max_iter=10**4)
    here = run.begin(np.zeros(problem.n))
    first = plan(Objective(problem), Costs(problem, count_calls=memory))[0]
    with pytest.raises(Exception, match="The gradient norm reached") as stop:
        first.run(run, here)
    assert stop.value.status is Status.CONVERGED
    alone = solve(problem, tol=1e-9, handover="none", **options)
    assert alone.success
    assert (alone.handovers, alone.iterations) == ((), run.k)
    np.testing.assert_array_equal(alone.x, run.best_x)


def test_a_stage_that_gives_up_for_another_reason_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 5))
    scores = A @ rng.standard_normal(5) + rng.standard_normal(400)
    problem = SquaredHinge(A, (scores > 0).astype(float))
    monkeypatch.setattr(active_rows, "ACTIVE_ROWS", active_rows.ACTIVE_ROWS._replace(steps=1))
    alone = solve(problem, tol=1e-12, handover="none")
    assert alone.status is Status.GAVE_UP
    assert alone.handovers == ()
    assert solve(problem, tol=1e-10).success


@pytest.mark.parametrize("method", WITHOUT_TABLE)
def test_what_watches_a_table_is_refused_by_methods_without_one(method):
    for handover in ("relay", Relay(), Guard()):
        with pytest.raises(InputError, match=r"has none: use handover='guard' or 'none'"):
            solve(logistic(60, 4), method=method, handover=handover)


def test_a_relay_is_refused_by_an_instant_method_and_by_a_memory():
    problem = logistic(60, 4)
    for options in ({"method": INSTANT}, {"memory": Memory()}):
        with pytest.raises(InputError, match="handover relay watches the tables"):
            solve(problem, handover="relay", **options)
    guard = Guard(fallback="lbfgs")
    assert solve(problem, method=INSTANT, handover=guard).success


@pytest.mark.parametrize("method", [*WITHOUT_TABLE, INSTANT], ids=str)
def test_every_method_can_run_alone(method):
    result = solve(logistic(60, 4), method=method, handover="none", tol=1e-3, max_iter=50)
    assert result.handovers == ()
