"""A learned method starts where it was trained: one rule, in its file, for all ways of use."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from integrations.learned import COLUMNS, logistic, method
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support import graded_rows

from ode2opt import (
    Family,
    InputError,
    Logistic,
    Lpp,
    Memory,
    Method,
    Quadratic,
    certify,
    learn,
    solve,
    trajectories,
)
from ode2opt.integrations.export import to_c
from ode2opt.integrations.jax import double, solve_all, stack, to_jax, with_arrays
from ode2opt.integrations.jax import solve as compiled_solve
from ode2opt.integrations.sklearn import LogisticRegression
from ode2opt.paper import DefaultCoefficients
from ode2opt.solvers.method_file import Formula
from ode2opt.solvers.methods import by_name
from ode2opt.study.benchmark import Settings, run_benchmark

SHIPPED, TOL = "lpp-separable", 3e-4
POINT = np.linspace(-1, 1, COLUMNS)
STARTS = {"zero": None, "paper": "paper", "learned": POINT}


def hessian(problem, x):
    return np.stack([problem.hvp(x, e) for e in np.eye(problem.n)])


def papers(problem, top):
    """1/n - g(1/n)/L with L = min(top, 4 times the largest curvature at 1/n)."""
    uniform = np.full(problem.n, 1 / problem.n)
    L = min(top, 4 * np.linalg.eigvalsh(hessian(problem, uniform))[-1])
    return uniform - problem.gradient(uniform) / L


def due(rule, problem):
    """Where a rule starts on the small problems of these tests."""
    top = np.linalg.eigvalsh(problem.A.T @ problem.A)[-1] / problem.N + problem.l2
    return {"zero": np.zeros(problem.n), "learned": POINT, "paper": papers(problem, top)}[rule]


def first_point(given, problem, **options):
    """The point of iteration 0 of a solve."""
    return solve(problem, method=given, max_iter=0, **options).x


@pytest.fixture(scope="module")
def problems():
    family = Family.from_dataset("lpp", "separable")
    return [family.sample([0, i], part="test") for i in range(3)]


def described(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["ode2opt"])


def without_start(path, **changes):
    """The same file without the word for the start, as it was written before there was one."""
    about = described(path)
    del about["start"]
    save_file(load_file(path), path, metadata={"ode2opt": json.dumps(about | changes)})


def test_a_shipped_method_takes_the_same_calls_as_from_the_start_of_its_training(problems):
    for problem in problems:
        alone = solve(problem, method=SHIPPED, tol=TOL)
        given = solve(problem, problem.start(), method=SHIPPED, tol=TOL)
        assert alone.oracle_calls == given.oracle_calls
        assert len(alone.handovers) == len(given.handovers) == 0
        np.testing.assert_array_equal(alone.x, given.x)


def test_a_start_that_is_given_wins(problems):
    zero = np.zeros(problems[0].n)
    np.testing.assert_array_equal(solve(problems[0], zero, method=SHIPPED, max_iter=0).x, zero)


@pytest.mark.parametrize("rule", STARTS)
def test_a_file_says_where_its_method_starts(tmp_path, rule):
    path, problem = tmp_path / "m.safetensors", logistic()
    method(start=STARTS[rule]).save(path)
    assert described(path)["start"] == rule
    again = Method.load(path)
    assert again.start_rule == rule
    for found in (again.start_of(problem), first_point(again, problem)):
        np.testing.assert_allclose(found, due(rule, problem), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "start", "rule"),
    [
        ({"provenance": {"options": {"target": "flow"}}}, None, "paper"),
        ({"provenance": {"options": {"target": "sequence"}}}, POINT, "learned"),
        ({}, POINT, "learned"),  # of a memory
        ({}, None, "zero"),  # written by hand
    ],
)
def test_a_file_of_before_starts_where_it_was_trained(tmp_path, options, start, rule):
    path, problem = tmp_path / "m.safetensors", logistic()
    method(start=start, **options).save(path)
    without_start(path)
    np.testing.assert_allclose(
        first_point(Method.load(path), problem), due(rule, problem), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("word", "start", "says"),
    [
        ("papr", None, "did you mean 'paper'"),
        ("learned", None, "its start is learned, and there is no array start"),
        ("paper", POINT, "its start is paper, and there is an array start"),
    ],
)
def test_a_file_whose_start_is_wrong_is_refused(tmp_path, word, start, says):
    path = tmp_path / "m.safetensors"
    method(start=start).save(path)
    without_start(path, start=word)
    with pytest.raises(InputError, match=says):
        Method.load(path)
    with pytest.raises(InputError, match="did you mean 'paper'"):
        method(start="papr")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "paper"),
        ({"start": "learned"}, "learned"),
    ],
)
def test_what_learn_returns_starts_where_it_was_trained(options, rule):
    family = Family.from_arrays("logistic", *graded_rows(), size=100, l2=1e-3)
    learned, problem = (
        learn(family, target="sequence", steps=0, validation=2, tol=1e-2, **options),
        family.sample(0),
    )
    assert learned.start_rule == rule
    due = problem.start().x0 if rule == "paper" else learned.start
    np.testing.assert_array_equal(first_point(learned, problem), due)


@pytest.mark.parametrize("rule", STARTS)
def test_bench_starts_where_solve_does(rule):
    family = Family.from_dataset("lpp", "separable")
    start = np.full(101, 0.01) if rule == "learned" else STARTS[rule]
    learned = by_name(SHIPPED).replace(start=start)
    settings = Settings((), {"mine": learned}, instances=3, jobs=1)
    found = run_benchmark(family, settings).statistics()["mine"]["oracle_calls_mean"]
    solves = [
        solve(family.sample([0, i], part="test"), method=learned, tol=settings.tol)
        for i in range(3)
    ]
    assert found == pytest.approx(np.mean([one.reached.oracle_calls for one in solves]))


def test_the_command_line_starts_where_solve_does(run_cli, problems, tmp_path):
    problem, rows = problems[0], tmp_path / "rows.npz"
    np.savez(rows, A=problem.A, b=problem.b)
    code, out, _ = run_cli(
        "solve", rows, "--problem", "lpp", "--p", "4", "--tol", TOL, "--method", SHIPPED,
        "--json", "-",
    )  # fmt: skip
    assert code == 0
    due = solve(problem, problem.start(), method=SHIPPED, tol=TOL)
    assert json.loads(out)["oracle_calls"] == due.oracle_calls
    code, out, _ = run_cli("methods", "show", SHIPPED)
    assert code == 0
    assert "the paper's, from each problem" in out


def test_an_estimator_starts_by_its_methods_rule_but_at_no_point_of_other_rows():
    problem = logistic(l2=0.0)
    rows = {"C": 1e30, "fit_intercept": False, "tol": 1e3}  # met at every point
    for rule, expected in (("zero", "zero"), ("paper", "paper"), ("learned", "zero")):
        model = LogisticRegression(solver=method(start=STARTS[rule]), **rows)
        found = model.fit(problem.A, problem.b).coef_[0]
        np.testing.assert_allclose(found, due(expected, problem), rtol=1e-9, atol=1e-12)


def kinds():
    rng = np.random.default_rng(3)
    A, b, w = rng.standard_normal((40, 6)), (rng.random(40) > 0.5).astype(float), rng.random(40)
    return [
        Logistic(A, b, l2=9.0),  # here the bound of all curvatures is the smaller part of L
        Logistic(A, b, l2=0.3, intercept=True, weights=w),
        Lpp(A, b, p=4),
        Quadratic(A.T @ A, A.T @ b, l2=0.5),
    ]


@pytest.mark.parametrize("problem", kinds(), ids=lambda problem: problem.kind)
def test_compiled_solves_start_where_solve_does_traced_or_not(problem):
    mine = method(start="paper")
    due = first_point(mine, problem)
    limits = {"max_iter": 0}
    twin = to_jax(problem)
    traced = double(jax.jit(lambda p: compiled_solve(mine, p, **limits).x))
    batches = ([problem, problem], stack([problem, problem]))
    for found in (
        compiled_solve(mine, problem, **limits).x,
        compiled_solve(mine, twin, **limits).x,
        traced(twin),
        *(solve_all(mine, batch, **limits).x[1] for batch in batches),
        double(jax.vmap(lambda p: compiled_solve(mine, p, **limits).x))(batches[1])[0],
    ):
        np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-14)
    given = np.ones(problem.n)
    np.testing.assert_array_equal(compiled_solve(mine, problem, given, **limits).x, given)


def test_a_compiled_start_knows_a_traced_penalty():
    mine, before = method(start="paper"), kinds()[1]
    again = Logistic(before.A, before.b, l2=0.7, intercept=True, weights=before.weights)

    @double
    def first(l2):
        return compiled_solve(mine, with_arrays(before, l2=l2), max_iter=0).x

    np.testing.assert_allclose(double(jax.jit(first))(jnp.asarray(0.7)), again.start().x0)


def test_a_compiled_start_of_too_many_variables_is_refused_with_the_way_out():
    wide = Logistic(np.ones((3, 513)), np.array([0.0, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"pass x0=method\.start_of\(problem\)"):
        compiled_solve(method(start="paper"), wide)


@pytest.mark.parametrize(
    ("rule", "words"),
    [("zero", "from x = 0."), ("learned", "from a learned point."), ("paper", "v - g(v)/L")],
)
def test_the_header_says_what_start_the_table_was_trained_from(rule, words):
    header, _ = to_c(method(start=STARTS[rule]), "mine").values()
    assert "The table was trained from" in header
    assert words in header


@pytest.mark.parametrize("rule", STARTS)
def test_certificates_and_trajectories_start_there_too(rule):
    flow = DefaultCoefficients(2.0)
    formula = Formula(
        "default", {"h": 0.04, "corrected": False},
        {"alpha": np.array(6.0), "C": np.array(2.0)}, 0.04, 1.0,
    )  # fmt: skip
    mine = Method(flow.schedule(30), "any", 1e-6, start=STARTS[rule], formula=formula)
    problem = logistic()
    start = due(rule, problem)
    path = trajectories(mine, problem)
    np.testing.assert_allclose(path.flow.fun[0], problem.value(start), rtol=1e-9)
    scale = trajectories(mine, problem, start).scale
    assert path.scale == pytest.approx(scale, rel=1e-6)
    assert mine.scale_of(problem) == pytest.approx(mine.scale_of(problem, start), rel=1e-6)
    given = mine.replace(start=start)
    found, same = (certify(one, [problem], K=20) for one in (mine, given))
    assert found.margins == pytest.approx(same.margins, rel=1e-5)


def test_a_memorys_method_starts_at_its_mean_solution():
    memory = Memory()
    solve(logistic(), memory=memory)
    assert memory.method().start_rule == "learned"
    np.testing.assert_array_equal(first_point(memory.method(), logistic(1)), memory.method().start)
