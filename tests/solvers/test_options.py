"""Every option of solve, for every kind of method: it does something, or it is refused by name."""

import numpy as np
import pytest

from ode2opt import (
    L1,
    Guard,
    InputError,
    LeastSquares,
    Logistic,
    Memory,
    Method,
    Relay,
    Schedule,
    Status,
    solve,
)
from ode2opt.solvers import AutoOptions, Table

N = 4


def problem():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, N)) * [1.0, 0.7, 0.5, 0.3]
    return Logistic(A, (A @ np.ones(N) + rng.standard_normal(60) > 0).astype(float), l2=0.01)


def method(**parts):
    return Method(**{"schedule": None, "family": "x", "tol": 1e-3, "scale": "family"} | parts)


TABLE = Schedule.nesterov(1.0, np.linspace(0, 0.9, 200))
PENALTY = {"penalty": L1(0.01)}
KINDS = {
    "gd": {"method": "gd"},
    "nag-monitored": {"method": "nag-monitored"},
    "eigac": {"method": "eigac-c1"},
    "auto": {},
    "newton": {"method": "newton"},
    "lbfgs": {"method": "lbfgs"},
    "scipy": {"method": "lbfgs-scipy"},
    "schedule": {"method": TABLE},
    "learned": {"method": method(schedule=TABLE, family_scale=1.0)},
    "instant": {"method": method(family_scale=1.0, guard=Guard(fallback="lbfgs"))},
    "penalised": PENALTY,
    "fista": PENALTY | {"method": "fista"},
    "proximal": PENALTY
    | {"method": method(family_scale=1.0, guard=Guard(fallback="fista"),
                        proximal=Table.fista(200))},
}  # fmt: skip
EVERY = " ".join(KINDS)
WATCHED = "eigac schedule learned proximal"
EVERYBODY = ("guard", "none")


def said(kind, **options):
    """The refusal of a solve."""
    with pytest.raises(InputError) as caught:
        solve(problem(), **KINDS[kind] | options)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_limits_history_and_callback_are_for_all(kind):
    run = KINDS[kind] | {"tol": 1e-9}
    seen = []
    result = solve(problem(), max_iter=3, history=True, callback=seen.append, **run)
    assert result.iterations <= 3
    assert len(seen) == len(result.history.grad_norm) == result.iterations + 1
    assert solve(problem(), max_iter=0, **run).status is Status.MAX_ITER
    assert solve(problem(), max_seconds=1e-9, **run).status is Status.MAX_SECONDS
    assert solve(problem(), callback=lambda seen: True, **run).status is Status.CALLBACK
    loose = KINDS[kind] | {"tol": 2e-1, "max_iter": 6}
    longer = solve(problem(), stop_at_tol=False, **loose)
    assert solve(problem(), **loose).success
    assert longer.iterations > longer.reached.iteration
    start = solve(problem(), np.full(N, 0.5), max_iter=0, **run)
    np.testing.assert_array_equal(start.x, np.full(N, 0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_and_its_start_are_for_auto(kind):
    memory = Memory()
    if kind in ("auto", "penalised"):
        solve(problem(), memory=memory, **KINDS[kind])
        assert memory.known.solves == 1
    else:
        assert "memory" in said(kind, memory=memory)
    assert said(kind, start_from_memory=False).startswith("start_from_memory is for a memory")


@pytest.mark.parametrize("kind", KINDS)
def test_the_plans_options_are_for_auto(kind):
    if kind == "auto":
        solve(problem(), options=AutoOptions(rows_per_column=()))
    else:
        assert "options are for" in said(kind, options=AutoOptions())


@pytest.mark.parametrize("kind", KINDS)
def test_a_penalty_is_for_methods_with_a_prox(kind):
    if kind in ("auto", "penalised", "fista", "proximal"):
        assert solve(problem(), **KINDS[kind] | PENALTY).residual is not None
    else:
        assert "penalty" in said(kind, penalty=L1(0.01))


@pytest.mark.parametrize("kind", KINDS)
def test_who_goes_on_is_said_to_those_that_can_be_watched(kind):
    assert solve(problem(), handover="none", max_iter=3, **KINDS[kind]).handovers == ()
    if kind in ("penalised", "fista"):
        assert all(solve(problem(), handover=one, **KINDS[kind]).success for one in EVERYBODY)
    for handover in ("relay", Relay()):
        if kind in ("eigac", "schedule", "learned"):
            solve(problem(), handover=handover, tol=1e-2, **KINDS[kind])
        else:
            assert "handover" in said(kind, handover=handover)
    if kind in WATCHED.split():
        fallback = "fista" if kind == "proximal" else "nesterov"
        for settings in ({"blowup": 1.0001}, {"patience": 1}, {"envelope": (1.0, 1e-9)}):
            guard = Guard(fallback=fallback, **settings)
            assert Guard(fallback=fallback) != guard
            solve(problem(), handover=guard, **KINDS[kind])
        handed = solve(
            problem(), handover=Guard(fallback=fallback, envelope=(1, 1e-9)), **KINDS[kind]
        )
        assert handed.handovers[0].iteration == 1
    elif kind != "instant":
        assert "handover" in said(kind, handover=Guard())


def test_settings_of_a_guard_that_nobody_reads_are_refused():
    for settings, words in (
        ({"blowup": 2.0}, "blowup watches a table"),
        ({"patience": 7}, "patience watches a table"),
        ({"envelope": (1.0,)}, "envelope watches a table"),
    ):
        assert said("instant", handover=Guard(**settings)).startswith(words)
    assert solve(problem(), handover=Guard(fallback="nesterov"), **KINDS["instant"]).success
    for kind in ("schedule", "eigac", "learned", "instant"):
        assert "power is for the fallback" in said(kind, handover=Guard(power=0.5))
        assert "fallback fista is for" in said(kind, handover=Guard(fallback="fista"))
    assert "only FISTA" in said("proximal", handover=Guard())
    fista = Guard(fallback="fista", power=0.5)
    assert "power is for the fallback" in said("proximal", handover=fista)


def test_a_gradient_is_for_a_function():
    for options in ({"jac": True}, {"fun": lambda x: x @ x}):
        with pytest.raises(InputError, match="not both"):
            solve(LeastSquares(np.eye(2), np.ones(2)), **options)
    both = lambda x: (x @ x, 2 * x)  # noqa: E731
    for x in (
        solve(both, np.ones(2), jac=True).x,
        solve(fun=lambda x: x @ x, x0=np.ones(2), jac=lambda x: 2 * x).x,
    ):
        np.testing.assert_allclose(x, 0, atol=1e-6)
