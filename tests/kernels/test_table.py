"""The compiled loop of a table with a prox against NumPy's."""

import numpy as np
import pytest

pytest.importorskip("numba")

from ode2opt import Guard, Method, Quadratic, solve
from ode2opt.penalties import L1, Box, ElasticNet, NonNegative, Simplex
from ode2opt.proofs.table import Table
from ode2opt.solvers import penalised_table

N = 60


@pytest.fixture
def problem(rng):
    A = rng.standard_normal((90, N))
    return Quadratic(A.T @ A, A.T @ rng.standard_normal(90), l2=0.5)


def method(problem, table, **guard):
    scale = float(np.linalg.eigvalsh(problem.Q)[-1]) + problem.l2
    return Method(
        schedule=None, family="made up", tol=1e-6, scale="family", family_scale=scale,
        guard=Guard(fallback="fista", **guard), proximal=table,
    )  # fmt: skip


def both(monkeypatch, problem, penalty, given, **options):
    """Solve by the compiled loop, and by NumPy."""
    used = []
    follow = penalised_table.follow_table
    noted = lambda *args: (end := follow(*args), used.append(end.ended))[0]  # noqa: E731
    monkeypatch.setattr(penalised_table, "follow_table", noted)
    fast = solve(problem, penalty=penalty, method=given, **options)
    assert used
    monkeypatch.setenv("ODE2OPT_KERNELS", "0")
    return fast, solve(problem, penalty=penalty, method=given, **options)


def wild(K, m=1.0, p=40.0):
    return Table(np.full(K, m), np.full(K, p), np.zeros(K), np.zeros(K))


CASES = [
    (L1(20.0), Table.fista(200), {}),
    (ElasticNet(20.0, 0.5), Table.fista(200), {}),
    (Box(np.linspace(-0.2, 0.0, N), 0.1), Table.fista(200), {}),
    (L1(5.0) + NonNegative(), Table.fista(200), {}),
    (L1(20.0), Table.fista(5), {}),  # the horizon
    (L1(20.0), wild(50), {"blowup": 10.0}),
    (L1(20.0), Table.fista(200), {"envelope": (1e-6,) * 9}),
    (L1(20.0), wild(300, 0.0, 1e-9), {"patience": 7}),
    (L1(20.0), wild(50, 1.0, 3.0), {"blowup": 1e300}),  # the value
]


@pytest.mark.parametrize(("penalty", "table", "guard"), CASES)
def test_it_does_what_numpy_does(monkeypatch, problem, penalty, table, guard):
    fast, slow = both(monkeypatch, problem, penalty, method(problem, table, **guard), tol=1e-7)
    assert fast.success
    assert slow.success
    assert fast.iterations == pytest.approx(slow.iterations, abs=1)
    assert [(one.iteration, one.reason) for one in fast.handovers] == [
        (one.iteration, one.reason) for one in slow.handovers
    ]
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-7)
    assert fast.oracle_calls == pytest.approx(slow.oracle_calls, abs=2)
    r = fast.x - penalty.prox(fast.x - problem.gradient(fast.x), 1.0)
    assert np.linalg.norm(r) <= 1e-7


def test_limits_hold(monkeypatch, problem):
    given = method(problem, Table.fista(200))
    fast, slow = both(monkeypatch, problem, L1(20.0), given, tol=1e-9, max_iter=7)
    assert fast.iterations == slow.iterations == 7
    assert fast.status is slow.status


def test_numpy_has_what_the_loop_does_not_do(monkeypatch, problem):
    monkeypatch.setattr(penalised_table, "follow_table", None)
    given = method(problem, Table.fista(400))
    seen = []
    solve(problem, penalty=L1(20.0), method=given, tol=1e-6, callback=seen.append)
    assert len(seen) > 10
    solve(problem, penalty=L1(20.0), method=given, tol=1e-6, history=True)
    solve(problem, penalty=Simplex(), method=given, tol=1e-6)
    solve(problem, penalty=L1(20.0), method=given, tol=1e-6, max_seconds=60)
