"""``oracle_calls`` against an independent count of all that a solve asks its problem for."""

import numpy as np
import pytest
import scipy.sparse
from support import counting

from ode2opt import (
    Guard,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Memory,
    Method,
    Problem,
    Quadratic,
    Relay,
    Schedule,
    Status,
    solve,
)
from ode2opt.solvers import DefaultCoefficients
from ode2opt.solvers.methods import smooth_names
from ode2opt.solvers.metric import Metric

COLUMNS = 12


def data(rows=1500, columns=COLUMNS, seed=0, density=0.5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) * np.logspace(0, -1.5, columns)
    A *= rng.random(A.shape) < density
    return A, (rng.random(rows) < 0.4).astype(float)


def sparse(rows, columns, seed=0, density=0.1):
    A, b = data(rows, columns, seed, density)
    return scipy.sparse.csr_array(A), b


def function(hvp):
    inner = Logistic(*data(200), l2=0.01)
    return Problem.from_function(
        inner.value, inner.gradient, n=COLUMNS, hvp=inner.hvp if hvp else None
    )


def quadratic():
    M = np.random.default_rng(1).standard_normal((COLUMNS, COLUMNS))
    return Quadratic(M @ M.T + np.eye(COLUMNS), np.ones(COLUMNS))


PROBLEMS = {
    "dense logistic": lambda: Logistic(*data(), l2=0.01),
    "sparse logistic": lambda: Logistic(*sparse(1500, COLUMNS), l2=0.01),
    "wide logistic": lambda: Logistic(*data(20, 60), l2=0.01),
    "lpp": lambda: Lpp(*data(), l2=0.01),
    "least squares": lambda: LeastSquares(*data()),
    "quadratic": quadratic,
    "function with products": lambda: function(True),
    "function": lambda: function(False),
}


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return counting(PROBLEMS[request.param]())


def crossed(first, second, quick):
    """Return all pairs of two lists; those that are not quick are marked exhaustive."""
    pairs = ((one, other) for one in first for other in second)
    return [
        pytest.param(*pair, marks=() if quick(*pair) else pytest.mark.exhaustive) for pair in pairs
    ]


def assert_counted(problem, x0=None, **options):
    """Solve; the run's account and the problem's own must be the same."""
    problem.tally.calls = 0
    result = solve(problem, x0, **options)
    assert result.oracle_calls == pytest.approx(problem.tally.calls, abs=1e-9)
    return result


PLANNERS = ("auto", "newton", "lbfgs")  # they ask each kind of problem for something else
KINDS_OF_ACCOUNT = ("dense logistic", "quadratic", "function")


@pytest.mark.parametrize(
    ("problem", "method"),
    crossed(PROBLEMS, smooth_names(), lambda name, m: m in PLANNERS or name in KINDS_OF_ACCOUNT),
    indirect=["problem"],
)
def test_every_built_in_method_counts_what_it_asks_for(problem, method):
    if method == "newton" and not problem.has_hvp:
        with pytest.raises(InputError, match="needs second derivatives"):
            solve(problem, method=method)
        return
    result = assert_counted(problem, method=method, max_iter=20_000)
    assert result.success or method == "ogm"  # its gradients fall slowly along steep directions
    short = assert_counted(problem, np.ones(problem.n), method=method, max_iter=2)
    assert short.status is Status.MAX_ITER or short.success


def test_the_papers_start_brings_its_price_along(problem):
    start = problem.start()
    for method, price in (("gd", start.scale.oracle_calls), ("lbfgs", 0)):
        problem.tally.calls = 0
        result = solve(problem, start, method=method)
        assert result.oracle_calls == problem.tally.calls + price


def learned(problem, **fields):
    n = problem.n
    V, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((n, 2)))
    given = {
        "schedule": DefaultCoefficients(2.0).schedule(40), "family": "test", "tol": 1e-6,
        "metric": Metric("lowrank", np.full(n, 1.5), V, np.array([0.5, 1.0])),
        "scale": "product", "guard": Guard(fallback="metric-lbfgs"),
    }  # fmt: skip
    return Method(**(given | fields))


TOGETHER = {("product", "metric-lbfgs"), ("instance", "nesterov"), ("family", "lbfgs")}


@pytest.mark.parametrize(
    ("scale", "fallback"),
    crossed(
        ["product", "instance", "family"],
        ["nesterov", "lbfgs", "metric-lbfgs"],
        lambda *pair: pair in TOGETHER,
    ),
)
def test_a_learned_method_counts_what_it_asks_for(problem, scale, fallback):
    method = learned(problem, scale=scale, family_scale=9.0, guard=Guard(fallback=fallback))
    assert assert_counted(problem, method=method).success
    assert_counted(problem, method=method, handover="none")


@pytest.mark.parametrize("handover", ["guard", "none"])
def test_an_instant_method_counts_what_it_asks_for(problem, handover):
    method = learned(problem, schedule=None, scale="family", family_scale=1.0)
    assert assert_counted(problem, method=method, handover=handover).success


@pytest.mark.parametrize(
    ("step", "fallback"),
    crossed(
        [1e-9, 1e3, 1e308],
        ["nesterov", "lbfgs"],
        lambda step, one: (step == 1e3) == (one == "lbfgs"),
    ),
)
def test_a_handover_by_the_guard_is_counted(problem, step, fallback):
    wild = Schedule.heavy_ball(step, 0.5, 30)
    result = assert_counted(
        problem, np.ones(problem.n), method=wild, handover=Guard(fallback=fallback)
    )
    assert result.success
    assert result.handovers


def test_a_stage_in_a_bad_metric_and_its_successor_are_counted(problem):
    bad = Metric("diagonal", np.logspace(-2, 2, problem.n))
    method = learned(problem, schedule=None, scale="family", family_scale=1.0, metric=bad)
    assert assert_counted(problem, method=method).success


def test_the_relay_counts_what_it_asks_for(problem):
    L = 9 * problem.scale(np.ones(problem.n)).L
    good = DefaultCoefficients(3.9).schedule(200, L)
    growing = np.where(np.arange(200) < 40, 1.0, 1e4)
    bad = Schedule(good.a * growing, good.c * growing, good.d)
    tol = 0.2 * np.linalg.norm(problem.gradient(np.ones(problem.n)))
    result = assert_counted(
        problem, np.ones(problem.n), method=bad, handover=Relay(), tol=tol,
        max_iter=200, stop_at_tol=False,
    )  # fmt: skip
    assert [handover.to for handover in result.handovers] == ["relay"]


LARGE = {
    "in the metric of a sample": lambda: Logistic(*data(8000, 100), l2=1e-4),
    "in metrics of more and more rows": lambda: Lpp(*data(8000, 100), l2=1e-4),
    "in the metric of all rows": lambda: Logistic(*data(2000, 60), l2=1e-4),
    "sparse, in the metric of a sample": lambda: Logistic(*sparse(20_000, 60), l2=1e-4),
    "sparse, in metrics of more rows": lambda: Lpp(*sparse(10_000, 200, density=0.05), l2=1e-4),
    "by conjugate gradients": lambda: Logistic(*sparse(500, 3000, density=0.01), l2=1e-4),
}


@pytest.mark.parametrize("name", LARGE)
def test_work_on_some_rows_counts_their_share(name):
    result = assert_counted(counting(LARGE[name]()), tol=1e-7)
    assert result.success
    assert result.oracle_calls < 200


@pytest.mark.parametrize("name", LARGE)
def test_a_solve_with_a_memory_counts_what_it_asks_for_and_what_it_learns(name):
    memory, whole = Memory(), LARGE[name]()
    for seed in range(5):
        index = np.random.default_rng(seed).choice(whole.N, whole.N * 9 // 10, replace=False)
        problem = counting(whole.subset(index))
        assert assert_counted(problem, memory=memory, tol=1e-7).success
    assert memory.solves == 5
    assert memory.known.hessians or not name.endswith("all rows")


def test_a_memory_counts_for_every_kind_of_problem(problem):
    memory = Memory()
    for k in range(6):
        assert assert_counted(problem, memory=memory, tol=10.0 ** -(k + 3)).success
        assert assert_counted(problem, np.full(problem.n, k / 9), memory=memory).success


def test_an_interrupted_solve_counts_what_it_asked_for():
    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    for method in ("auto", "lbfgs", "eigac-c2", "nag-restart"):
        result = assert_counted(counting(function(False)), method=method, callback=interrupt)
        assert result.status is Status.INTERRUPTED
