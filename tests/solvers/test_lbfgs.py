"""L-BFGS against scipy's, the textbook's recursion, and itself in other coordinates."""

import tracemalloc
from contextlib import suppress
from itertools import count

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from ode2opt import Logistic, Lpp, Problem, Status, solve
from ode2opt.problems.transformed import Transformed
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages.lbfgs import CORRECTIONS, Corrections, lbfgs


def log_cosh(n):
    scales = np.logspace(0, 2, n)
    return Problem.from_function(
        lambda x: np.sum(np.logaddexp(scales * x - 1, 1 - scales * x)),
        lambda x: scales * np.tanh(scales * x - 1),
        n=n,
    )


def exponentials(n):
    w = np.arange(1, n + 1)
    return Problem.from_function(
        lambda x: np.sum(np.exp(w * x / n) - x), lambda x: w / n * np.exp(w * x / n) - 1, n=n
    )


def linear_model(kind, seed, **options):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 20)) * np.logspace(0, -1.5, 20)
    return kind(A, (rng.random(200) < 0.4).astype(float), **options)


PROBLEMS = [
    *(linear_model(Logistic, seed, l2=10.0**-seed) for seed in range(1, 6)),
    *(linear_model(Lpp, seed, p=p) for seed in range(2) for p in (2, 4, 6)),
    *(make(n) for make in (log_cosh, exponentials) for n in (5, 20)),
]


class Arrived(Exception):  # noqa: N818
    """The tolerance is reached."""


def evaluations_of_scipy(problem, tol):
    """How many evaluations scipy's L-BFGS-B with ten corrections takes from ones."""
    norms = []

    def evaluate(x):
        g = problem.gradient(x)
        norms.append(np.linalg.norm(g))
        if norms[-1] <= tol:
            raise Arrived
        return problem.value(x), g

    with pytest.raises(Arrived):
        scipy.optimize.minimize(
            evaluate, np.ones(problem.n), jac=True, method="L-BFGS-B",
            options={"maxcor": 10, "ftol": 0, "gtol": 0},
        )  # fmt: skip
    return len(norms)


def test_it_needs_as_many_evaluations_as_scipys():
    ours = [solve(problem, np.ones(problem.n), method="lbfgs", tol=1e-5) for problem in PROBLEMS]
    assert all(result.success and not result.handovers for result in ours)
    needed = np.array([result.oracle_calls for result in ours])
    theirs = np.array([evaluations_of_scipy(problem, 1e-5) for problem in PROBLEMS])
    assert needed.sum() == pytest.approx(theirs.sum(), rel=0.05)
    assert np.all(needed[:9] == pytest.approx(theirs[:9], rel=0.05))


@pytest.mark.parametrize("problem", PROBLEMS[::3], ids=lambda problem: type(problem).__name__)
def test_it_finds_the_minimum_that_scipy_finds(problem):
    reference = scipy.optimize.minimize(
        problem.value, np.ones(problem.n), jac=problem.gradient, method="BFGS",
        options={"gtol": 1e-9},
    )  # fmt: skip
    result = solve(problem, np.ones(problem.n), method="lbfgs", tol=1e-8)
    assert result.fun == pytest.approx(reference.fun, rel=1e-10)
    assert result.grad_norm == pytest.approx(np.linalg.norm(problem.gradient(result.x)))


def two_loops(pairs, M, g):
    """-H g by the textbook's recursion, with H_0 = s.y / y.My M of the last pair."""
    q, lengths = g.copy(), []
    for s, y in reversed(pairs):
        lengths.append((s @ q) / (s @ y))
        q -= lengths[-1] * y
    s, y = pairs[-1]
    r = (s @ y) / (y @ M @ y) * (M @ q)
    for (s, y), length in zip(pairs, reversed(lengths), strict=True):
        r += (length - (y @ r) / (s @ y)) * s
    return -r


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 12), identity=st.booleans())
def test_the_compact_form_is_the_two_loop_recursion(seed, most, identity):
    rng, n = np.random.default_rng(seed), 15
    H, M = (B @ B.T / n + 0.1 * np.eye(n) for B in rng.standard_normal((2, n, n)))
    M = np.eye(n) if identity else M
    memory, pairs = Corrections(n, most), []
    assert memory.empty
    for k in range(2 * most + 3):
        s, g = rng.standard_normal((2, n))
        y = H @ s
        if k % 5 == 4:  # no positive curvature: left out by both
            memory.add(s, -y, M @ -y)
        else:
            memory.add(s, y, M @ y)
            pairs = [*pairs, (s, y)][-most:]
        expected = two_loops(pairs, M, g)
        size = np.linalg.norm(expected)
        np.testing.assert_allclose(memory.direction(g, M @ g), expected, atol=1e-9 * size)
    memory.clear()
    np.testing.assert_array_equal(memory.direction(g, M @ g), -(M @ g))


def test_pairs_that_are_no_numbers_are_left_out():
    memory, one = Corrections(3), np.ones(3)
    for bad in (np.nan, np.inf, 0.0, -1.0):
        memory.add(one, bad * one, bad * one)
    assert memory.empty


def path(problem, x, metric, steps):
    """The points that L-BFGS asks for, with the first trial at half of -M g."""
    points = []
    run = Oracle(
        Objective(problem), tol=1e-14, max_iter=steps,
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    with suppress(Stop):
        lbfgs(run, run.evaluate(x), metric, first=0.5)
    return np.array(points)


@pytest.mark.parametrize("problem", PROBLEMS[::4], ids=lambda problem: type(problem).__name__)
def test_a_metric_is_a_change_of_coordinates(problem):
    rng, n = np.random.default_rng(0), problem.n
    S = np.eye(n) + 0.3 * rng.standard_normal((n, n)) / np.sqrt(n)
    x = rng.standard_normal(n)
    ours = path(problem, x, lambda g: S @ (S.T @ g), 14)
    other = path(Transformed(problem, S), np.linalg.solve(S, x), None, 14)
    np.testing.assert_allclose(ours, other @ S.T, atol=1e-6)


@pytest.mark.parametrize("kind", [Logistic, Lpp])
def test_float32_is_evaluated_in_float32(kind):
    seen = set()

    class Watched(kind):
        def value_and_gradient(self, x):
            seen.add(x.dtype)
            return super().value_and_gradient(x)

    problem = linear_model(kind, 0, l2=1e-2)
    single = Watched(problem.A.astype(np.float32), problem.b.astype(np.float32), l2=1e-2)
    ours, exact = (solve(p, method="lbfgs", tol=1e-5) for p in (single, problem))
    assert ours.success
    assert seen == {np.dtype(np.float32)}
    assert ours.x.dtype == np.float32
    assert ours.oracle_calls <= exact.oracle_calls + 3
    np.testing.assert_allclose(ours.x, exact.x, atol=5e-3)


def vectors_held(n):
    """How many vectors of n numbers NumPy holds; n must be a length that nothing else here has."""
    traces = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    )
    return sum(trace.size // (8 * n) for trace in traces.traces if trace.size % (8 * n) == 0)


def test_memory_does_not_grow_with_iterations():
    """Vectors are counted at gradients and after iterations: other threads' memory is not seen."""
    n, moments, held = 20_011, (30, 60, 150), {}
    w = np.logspace(0, -5, n)

    def note(where, k):
        if k in moments:
            held[where, k] = vectors_held(n)

    calls = count()

    def gradient(x):
        found = w * (x - 1)
        note("gradient", next(calls))
        return found

    problem = Problem.from_function(lambda x: w @ (x - 1) ** 2 / 2, gradient, n=n)
    tracemalloc.start()
    try:
        result = solve(
            problem, np.zeros(n), method="lbfgs", tol=1e-14, max_iter=150,
            callback=lambda progress: note("iteration", progress.iteration),
        )  # fmt: skip
    finally:
        tracemalloc.stop()
    assert result.iterations == 150
    for where in ("gradient", "iteration"):
        found = [held[where, k] for k in moments]
        assert min(found) > 2 * CORRECTIONS
        assert max(found) - min(found) <= 3  # the best point may be one of the others
        assert max(found) <= 2 * CORRECTIONS + 14


def test_a_gradient_of_the_wrong_sign_ends_in_the_line_search():
    problem = Problem.from_function(lambda x: x @ x, lambda x: -2 * x, n=3)
    result = solve(problem, np.ones(3), method="lbfgs", handover="none")
    assert result.status is Status.LINE_SEARCH
    np.testing.assert_array_equal(result.x, 1)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**30, 2.0**400])
def test_the_size_of_the_function_does_not_matter(scale):
    """The first trial has the length one, whatever the gradient is; the path is the same."""
    w = np.logspace(0, -3, 10)
    one, other = (
        solve(
            lambda x, c=c: c * (w @ (x - 1) ** 2) / 2, np.zeros(10),
            jac=lambda x, c=c: c * w * (x - 1), method="lbfgs", tol=1e-8 * c,
        )
        for c in (1.0, scale)
    )  # fmt: skip
    assert one.success
    np.testing.assert_allclose(other.x, one.x, rtol=1e-6)
    assert other.oracle_calls == pytest.approx(one.oracle_calls, abs=2)


@pytest.mark.parametrize("seed", range(6))
def test_values_with_rounding_of_many_units_do_not_mislead_a_search(seed):
    """A saturating curve whose parameters are of sizes 1e2 and 1e-4: slopes of 1e-15 are right."""
    t = np.linspace(77, 760, 14)
    y = 437 * 3e-4 * t / (1 + 3e-4 * t) + 0.06 * np.random.default_rng(seed).standard_normal(14)

    def residuals(b):
        return b[0] * b[1] * t / (1 + b[1] * t) - y

    def jacobian(b):
        return np.column_stack([b[1] * t / (1 + b[1] * t), b[0] * t / (1 + b[1] * t) ** 2])

    start = np.array([500, 1e-4])
    result = solve(
        lambda b: float(residuals(b) @ residuals(b)),
        start,
        jac=lambda b: 2 * jacobian(b).T @ residuals(b),
        method="lbfgs",
        tol=1e-6,
    )
    expected = scipy.optimize.least_squares(
        residuals, start, jacobian, x_scale=start, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.x, expected.x, rtol=1e-6)
