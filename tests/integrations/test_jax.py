"""The compiled solve: NumPy's iterates, batches with bad members, derivatives of the minimiser."""

import copy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from integrations.learned import (
    COLUMNS,
    HORIZON,
    NOT_LEARNED,
    ROWS,
    logistic,
    method,
    metrics,
    table,
)
from support import said_without, visited

import ode2opt
from ode2opt import (
    Guard,
    InputError,
    Logistic,
    Lpp,
    Method,
    Problem,
    Quadratic,
    Schedule,
    Softmax,
)
from ode2opt.integrations import jax as ours
from ode2opt.integrations.jax import (
    SENTENCES,
    double,
    solve,
    solve_all,
    stack,
    to_jax,
    with_arrays,
)
from ode2opt.solvers.methods import by_name

START = np.linspace(-1, 1, COLUMNS)
LONG = Schedule.heavy_ball(1.0, 0.4, 3000)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [(kind, "family") for kind in metrics()]
    + [pytest.param("none", "product", marks=pytest.mark.exhaustive)]
    + [("spectral", "product"), ("none", "instance")],
)
def test_the_iterates_are_those_of_numpy(kind, scale):
    problem, chosen = logistic(), method(metrics()[kind], scale)
    points = visited(problem, START, chosen, HORIZON)
    norms = [np.linalg.norm(problem.gradient(x)) for x in points]
    for k in range(HORIZON + 1):
        found = solve(chosen, problem, START, tol=1e-12, max_iter=k)
        best = int(np.argmin(norms[: k + 1]))
        assert int(found.iterations) == k
        np.testing.assert_allclose(found.x, points[best], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found.grad_norm, norms[best], rtol=1e-9)
    assert np.linalg.norm(points[-1] - START) > 0.1


@pytest.mark.parametrize("form", ["sparse", "jax", "weights", "softmax", "function"])
def test_problems_of_every_kind_are_taken(form):
    base = logistic()
    rng = np.random.default_rng(3)
    problem = {
        "sparse": lambda: Logistic(sp.csr_array(base.A), base.b, l2=0.05),
        "jax": lambda: Logistic(jnp.asarray(base.A), jnp.asarray(base.b), l2=0.05),
        "weights": lambda: Logistic(base.A, base.b, weights=1 + base.b, intercept=True, l2=0.05),
        "softmax": lambda: Softmax(base.A, rng.integers(0, 3, ROWS), l2=0.05),
        "function": lambda: Problem.from_function(lambda x: jnp.sum((x - 1) ** 4 + x**2), n=4),
    }[form]
    problem = double(problem)()
    chosen = Method(LONG, "any", 1e-8, "instance")
    found, due = solve(chosen, problem), double(ode2opt.solve)(problem, tol=1e-9)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, due.x, atol=1e-6)


def test_the_defaults_are_the_methods():
    learned = method(start=START)
    found = solve(learned, logistic())
    due = ode2opt.solve(logistic(), method=learned, tol=learned.tol, handover="none")
    np.testing.assert_allclose(found.x, due.x, rtol=1e-10)
    assert found.message == due.message
    assert int(found.iterations) == due.iterations


def test_a_method_may_be_given_by_its_name_or_its_path(tmp_path):
    method().save(tmp_path / "mine.safetensors")
    due = solve(method(), logistic())
    np.testing.assert_array_equal(solve(tmp_path / "mine.safetensors", logistic()).x, due.x)
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((300, 123)), np.arange(300) % 2.0, l2=0.1)
    loaded = by_name("logistic-a5a")
    for call in (solve, lambda one, each, **more: solve_all(one, [each], **more)):
        due, found = (call(one, problem, max_iter=9) for one in (loaded, "logistic-a5a"))
        np.testing.assert_array_equal(found.x, due.x)


@pytest.mark.parametrize("way", ["list", "stack", "vmap"])
def test_a_bad_problem_does_not_spoil_the_others(way):
    good = [Lpp(logistic(seed).A, logistic(seed).b, p=2, l2=0.05) for seed in range(4)]
    huge = Lpp(30 * good[0].A, good[0].b, p=2, l2=0.05)  # far beyond the family's scale
    broken = with_arrays(good[0], b=np.full(ROWS, np.nan))
    problems = [good[0], huge, good[1], broken, *good[2:]]
    quick = Schedule.heavy_ball(1.0, 0.3, 400)
    chosen = Method(quick, "least squares", 1e-3, "family", 18.0, metrics()["diagonal"])
    if way == "vmap":
        found = double(jax.vmap(lambda p: solve(chosen, p, tol=1e-3)))(stack(problems))
    else:
        found = solve_all(chosen, problems if way == "list" else stack(problems), tol=1e-3)
    for i, problem in enumerate(problems):
        if i in (1, 3):
            continue
        alone = ode2opt.solve(problem, method=chosen, tol=1e-3, handover="none")
        np.testing.assert_allclose(found.x[i], alone.x, rtol=1e-10, atol=1e-13)
        assert int(found.iterations[i]) == alone.iterations
    assert found.success.tolist() == [True, False, True, False, True, True]
    assert "blew up" in found.message[1]
    assert "not finite" in found.message[3]
    assert np.all(np.isfinite(found.x))


@pytest.mark.parametrize("way", ["list", "vmap"])
def test_the_fallback_solves_what_the_guard_stops_and_nothing_else(way):
    good = Lpp(logistic().A, logistic().b, p=2, l2=0.05)
    huge = Lpp(30 * good.A, good.b, p=2, l2=0.05)
    broken = with_arrays(good, b=np.full(ROWS, np.nan))
    chosen = Method(Schedule.heavy_ball(1.0, 0.3, 400), "any", 1e-6, "family", 18.0)
    problems = stack([good, huge, broken])
    with_it, without = (
        double(jax.vmap(lambda p, more=more: solve(chosen, p, fallback=more)))(problems)
        if way == "vmap"
        else solve_all(chosen, problems, fallback=more)
        for more in (5000, 0)
    )
    assert with_it.success.tolist() == [True, True, False]
    assert without.success.tolist() == [True, False, False]
    for i in (0, 2):
        np.testing.assert_array_equal(with_it.x[i], without.x[i])
        assert int(with_it.iterations[i]) == int(without.iterations[i])
    assert "not finite" in with_it.message[2]
    assert np.linalg.norm(huge.gradient(np.asarray(with_it.x[1]))) <= 1.001e-6
    assert int(without.iterations[1]) < int(with_it.iterations[1]) < 2000
    due = ode2opt.solve(huge, tol=1e-9, method="newton").x
    np.testing.assert_allclose(with_it.x[1], due, atol=1e-5)


def test_a_fallback_keeps_to_its_limit_and_to_that_of_the_caller():
    chosen = Method(Schedule.gradient_descent(1.0, 20), "any", 1e-12, "product")
    table = solve(chosen, logistic(), START)
    assert int(table.iterations) == 20
    found = solve(chosen, logistic(), START, fallback=7)
    assert int(found.iterations) == 27
    assert found.message == table.message
    assert found.grad_norm <= table.grad_norm
    assert int(solve(chosen, logistic(), START, max_iter=5, fallback=7).iterations) == 5


def test_derivatives_do_not_ask_who_solved_it():
    short = Method(Schedule.gradient_descent(1.0, 3), "any", 1e-11, "product")
    long = Method(LONG, "any", 1e-11, "product")
    problem = to_jax(logistic(l2=0.3))
    due = double(jax.grad(lambda p: solve(long, p).x[0]))(problem)
    found = double(jax.grad(lambda p: solve(short, p, fallback=5000).x[0]))(problem)
    np.testing.assert_allclose(found.b, due.b, rtol=1e-6)


@pytest.mark.parametrize(
    ("guard", "schedule", "word"),
    [
        (Guard(), Schedule.gradient_descent(99.0, 200), "exceeds 5 times"),
        (Guard(envelope=(1.0,) * 5 + (1e-9,) * 20), LONG.scaled(50.0), "held-out"),
        (Guard(patience=7), Schedule.gradient_descent(1e-9, 200), "no progress"),
    ],
)
def test_the_guard_stops_where_the_solvers_guard_hands_over(guard, schedule, word):
    chosen = Method(schedule, "any", 1e-9, "family", 1.0, guard=guard)
    handover = ode2opt.solve(logistic(), START, method=chosen, tol=1e-9).handovers[0]
    assert word in handover.reason
    found = solve(chosen, logistic(), START)
    assert int(found.iterations) == handover.iteration
    assert found.message.startswith("The guard")


def test_another_problem_method_or_limit_of_the_same_shape_does_not_compile_anew():
    solve(method(metrics()["spectral"]), logistic(), START)
    before = ours._one._cache_size()
    other = Method(table().scaled(2.0), "other", 1e-3, "family", 5.0, metrics()["spectral"])
    solve(other, logistic(1), -START, max_iter=9)
    assert ours._one._cache_size() == before


@pytest.mark.parametrize("kind", ["none", "spectral"])
def test_derivatives_by_data_are_those_of_finite_differences(kind):
    problem = logistic(l2=0.3)
    chosen = Method(LONG, "any", 1e-12, "product", metric=metrics()[kind])
    direction = np.random.default_rng(5).standard_normal(COLUMNS)

    @double
    def outcome(A, b, weights):
        return solve(chosen, with_arrays(weighted, A=A, b=b, weights=weights)).x @ direction

    weighted = Logistic(problem.A, problem.b, l2=0.3, weights=np.linspace(0.5, 1.5, ROWS))
    data = (weighted.A, weighted.b, weighted.weights)
    slopes = double(jax.grad(outcome, (0, 1, 2)))(*data)
    entries = ((3, 2), (11,), (20,))
    for i, (slope, entry) in enumerate(zip(slopes, entries, strict=True)):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = [np.array(values) for values in data]
            moved[i][entry] += step
            ends.append(float(outcome(*moved)))
        assert float(slope[entry]) == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5)
        assert abs(float(slope[entry])) > 1e-4


RIDGED = {
    "intercept": lambda: Logistic(logistic().A, logistic().b, l2=0.3, intercept=True),
    "softmax": lambda: Softmax(logistic().A, np.arange(ROWS) % 3, l2=0.3),
}


@pytest.mark.parametrize("kind", RIDGED)
def test_the_derivative_by_l2_is_that_of_finite_differences(kind):
    problem = RIDGED[kind]()
    chosen = Method(LONG, "any", 1e-12, "product")
    direction = np.cos(np.arange(problem.n))

    @double
    def outcome(l2):
        return solve(chosen, with_arrays(problem, l2=l2)).x @ direction

    def minimum(l2):
        again = copy.copy(problem)
        again.l2 = l2
        return ode2opt.solve(again, tol=1e-13, method="newton").x @ direction

    assert float(outcome(0.3)) == pytest.approx(minimum(0.3), rel=1e-8)
    slope = float(double(jax.grad(outcome))(0.3))
    due = (minimum(0.3 + 1e-4) - minimum(0.3 - 1e-4)) / 2e-4
    assert slope == pytest.approx(due, rel=1e-5)
    assert abs(due) > 1e-3


def test_the_derivative_by_l2_and_by_data_is_the_closed_form():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    Q, b = root @ root.T + np.eye(4), rng.standard_normal(4)
    chosen = Method(LONG, "any", 1e-13, "product")
    problem = with_arrays(Quadratic(Q, b, l2=9.0), l2=0.5)
    slope = double(jax.grad(lambda p: solve(chosen, p).x[0]))(problem)
    inverse = np.linalg.inv(Q + 0.5 * np.eye(4))
    np.testing.assert_allclose(slope.l2, -(inverse @ inverse @ b)[0], rtol=1e-8)
    np.testing.assert_allclose(slope.inner.b, inverse[0], rtol=1e-8)
    other = with_arrays(problem, b=2 * b)
    np.testing.assert_allclose(solve(chosen, other).x, inverse @ (2 * b), rtol=1e-8)
    path = solve_all(chosen, [with_arrays(problem, l2=l2) for l2 in (0.0, 0.5)])
    np.testing.assert_allclose(path.x, [np.linalg.solve(Q, b), inverse @ b], rtol=1e-8)


def test_derivatives_of_a_whole_problem_of_a_batch_and_forwards():
    chosen = Method(LONG, "any", 1e-12, "product")
    problems = [logistic(seed, l2=0.3) for seed in range(2)]

    def first(p):
        return solve(chosen, p).x[0]

    whole = double(jax.grad(first))(to_jax(problems[1]))
    each = double(jax.vmap(jax.grad(first)))(stack(problems))
    np.testing.assert_allclose(each.b[1], whole.b, rtol=1e-8)
    np.testing.assert_allclose(each.A.T[1], whole.A.T, rtol=1e-8)
    along = np.linspace(-1, 1, ROWS)
    forwards = double(
        lambda b, db: jax.jvp(lambda b: first(with_arrays(problems[1], b=b)), (b,), (db,))[1]
    )(problems[1].b, along)
    assert float(forwards) == pytest.approx(float(np.asarray(whole.b) @ along), rel=1e-8)


def test_what_a_function_closes_over_can_be_differentiated_by():
    chosen = Method(LONG, "any", 1e-11, "product")

    @double
    def minimum(ridge):
        return solve(chosen, lambda x: jnp.sum((x - 1) ** 2 + ridge * x**2), np.zeros(3)).x[0]

    # The minimiser of (x - 1)^2 + r x^2 is 1 / (1 + r).
    assert float(double(jax.grad(minimum))(0.5)) == pytest.approx(-1 / 1.5**2, rel=1e-8)


def test_a_gradient_too_large_to_be_squared_is_no_infinity():
    problem = ode2opt.Quadratic(np.eye(2), np.array([1e200, 1e200]))
    found = solve(Schedule.gradient_descent(1.0, 5), problem, tol=1e190)
    assert found.success
    np.testing.assert_allclose(found.x, 1e200)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(
            (lambda given=given: solve(given, logistic()), said)
            for given, said in NOT_LEARNED.items()
        ),
        (lambda: solve("logistic-phishing", logistic()), "no table"),
        (lambda: solve(Path("nowhere.safetensors"), logistic()), "nowhere.safetensors"),
        (lambda: with_arrays(logistic(), l2=-1.0), "l2 is -1"),
        (lambda: with_arrays(Problem.from_function(jnp.sum, n=2), l2=1.0), "has no l2"),
        (lambda: solve(method(), logistic(), np.zeros(3)), "x0 has shape"),
        (lambda: solve(table(), logistic(), tol=-1), "tol is -1"),
        (lambda: solve(table(), logistic(), fallback=-1), "fallback is -1"),
        (lambda: solve_all(table(), [logistic(), Lpp(np.eye(3), np.ones(3))]), "be stacked"),
        (lambda: solve_all(table(), [logistic()], np.zeros((2, COLUMNS))), "x0 has shape"),
        (lambda: solve_all(table(), []), "no problem in the batch"),
        (lambda: solve(table(), 3, START), "int is neither"),
        (lambda: solve(table(), jnp.sum), "needs a start point"),
        (lambda: with_arrays(logistic(), c=1), "Unknown array 'c'"),
        (
            lambda: solve(method(metrics()["diagonal"]), Lpp(np.eye(3), np.ones(3))),
            "for 7 variables; this problem has 3",
        ),
        (
            lambda: solve(method(scale="instance"), Lpp(np.eye(600), np.ones(600))),
            "up to 512 variables",
        ),
        (lambda: jax.grad(lambda p: solve(table(), p).x[0])(to_jax(logistic())), "double"),
    ],
)
def test_what_cannot_run_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong()


def test_every_sentence_is_one():
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in SENTENCES)


def test_without_jax_it_says_what_to_install():
    said = said_without("jax", "import ode2opt.integrations.jax")
    assert "pip install 'ode2opt[learn]' (in a clone: pip install -e '.[learn]')" in said
