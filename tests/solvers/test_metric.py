"""Metrics: EIGAC in a metric is EIGAC in other coordinates, and the guard's L-BFGS likewise."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ode2opt import Guard, InputError, Logistic, Method, Quadratic, Schedule, solve
from ode2opt.paper import DefaultCoefficients
from ode2opt.problems.transformed import Transformed
from ode2opt.solvers.metric import Metric

KINDS = ("diagonal", "lowrank", "spectral")
N = 6


def make_metric(kind, rng, n=N):
    scale = rng.uniform(0.5, 2.0, n)
    if kind == "diagonal":
        return Metric(kind, scale)
    rank = n if kind == "spectral" else 2
    V, _ = np.linalg.qr(rng.standard_normal((n, rank)))
    return Metric(kind, scale, V, rng.uniform(-0.5, 3.0, rank))


@pytest.fixture
def problem(rng):
    A = rng.standard_normal((80, N)) * [1, 0.8, 0.6, 0.4, 0.2, 0.1]
    return Logistic(A, rng.integers(0, 2, 80).astype(float), l2=0.01)


def method_in(metric, **fields):
    schedule = fields.pop("schedule", DefaultCoefficients(2.0).schedule(60))
    return Method(schedule, "test", 1e-6, "product", metric=metric, **fields)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_matrix(kind, rng, problem):
    metric = make_metric(kind, rng)
    S, on, g = metric.matrix(), metric.on(problem), rng.standard_normal(N)
    if kind != "diagonal":
        expected = np.diag(metric.scale) @ (np.eye(N) + metric.V * metric.stretch @ metric.V.T)
        np.testing.assert_allclose(S, expected)
    np.testing.assert_allclose(on.root(g), S @ g)
    np.testing.assert_allclose(on.root_transposed(g), S.T @ g)
    np.testing.assert_allclose(on(g), S @ S.T @ g)
    away = np.linalg.norm(np.linalg.solve(S, g - 1))
    assert metric.distance(g, np.ones(N)) == pytest.approx(away)


@pytest.mark.parametrize("kind", KINDS)
def test_eigac_in_a_metric_is_eigac_in_other_coordinates(kind, rng, problem):
    metric, x0 = make_metric(kind, rng), rng.standard_normal(N)
    S, method = metric.matrix(), method_in(metric)
    scale = method.scale_of(problem, x0)
    options = {"tol": 1e-9, "max_iter": 40, "handover": "none"}
    points = []
    solve(problem, x0, method=method, callback=lambda p: points.append(p.x) and None, **options)
    other = []
    solve(
        Transformed(problem, S), np.linalg.solve(S, x0), method=method.schedule.scaled(scale),
        callback=lambda p: other.append(p.x) and None, **options,
    )  # fmt: skip
    np.testing.assert_allclose(np.array(points), np.array(other) @ S.T, rtol=1e-7, atol=1e-9)


def test_the_scale_is_one_product_along_the_first_gradient(rng, problem):
    metric, x0 = make_metric("spectral", rng), rng.standard_normal(N)
    method, g = method_in(metric), problem.gradient(x0)
    v = metric.matrix() @ metric.matrix().T @ g
    expected = v @ problem.hessian(x0) @ v / (v @ g)
    assert method.scale_and_calls(problem, x0) == (pytest.approx(expected), 1)
    result = solve(problem, x0, method=method, max_iter=3, handover="none")
    assert result.iterations == 3
    assert result.oracle_calls == 1 + 1 + 2 + 1  # iteration 1 is free; the value at the end is not


def test_without_hessian_products_the_scale_costs_a_gradient(rng):
    H = np.diag([3.0, 1.0])
    method = method_in(None)
    plain = {"fun": lambda x: 0.5 * x @ H @ x, "jac": lambda x: H @ x}
    result = solve(x0=np.array([1.0, 0.0]), method=method, tol=1e-8, **plain)
    assert result.success
    from ode2opt.problems import FunctionProblem

    function = FunctionProblem(plain["fun"], plain["jac"], n=2)
    assert method.scale_of(function, np.array([1.0, 0.0])) == pytest.approx(3.0, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_back_the_metric(kind, rng, tmp_path, problem):
    metric, start = make_metric(kind, rng), rng.standard_normal(N)
    method = method_in(
        metric, start=start, guard=Guard(fallback="metric-lbfgs", power=0.5, envelope=(2.0, 0.5))
    )
    method.save(tmp_path / "m.safetensors")
    again = Method.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.metric.matrix(), metric.matrix())
    np.testing.assert_array_equal(again.start, start)
    assert again.guard == method.guard
    assert solve(problem, method=again, max_iter=0).x == pytest.approx(start)


@pytest.mark.parametrize("version", [1, 2, "3", None])
def test_files_of_another_version_are_refused(version, tmp_path):
    method, path = method_in(None), tmp_path / "m.safetensors"
    method.save(path)
    arrays = load_file(path)
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt"])
    about["version"] = version
    save_file(arrays, path, metadata={"ode2opt": json.dumps(about)})
    with pytest.raises(InputError, match=f"format version {version!r}; this ode2opt reads 3"):
        Method.load(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"metric": "round"}, "round"),
        ({"metric": 3}, "not a text"),
        ({"metric.scale": np.full(N, -1.0)}, "not above 0"),
        ({"metric.scale": np.full(N, np.nan)}, "not finite"),
        ({"metric.V": np.ones((N, 2))}, "shape"),
        ({"metric.V": np.ones((N, N))}, "orthonormal"),
        ({"metric.stretch": np.full(N, -2.0)}, "not above -1"),
        ({"metric.V": None}, "needs directions"),
        ({"start": np.full(N, np.inf)}, "start"),
    ],
)
def test_a_wrong_metric_is_said(change, sentence, rng, tmp_path):
    path = tmp_path / "m.safetensors"
    method_in(make_metric("spectral", rng), start=np.zeros(N)).save(path)
    from safetensors import safe_open

    arrays = load_file(path)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt"])
    for key, value in change.items():
        if key == "metric":
            about[key] = value
        elif value is None:
            del arrays[key]
        else:
            arrays[key] = value
    save_file(arrays, path, metadata={"ode2opt": json.dumps(about)})
    with pytest.raises(InputError, match=sentence):
        Method.load(path)


def test_a_problem_of_another_size_is_refused(rng):
    small = Quadratic(np.eye(3), np.ones(3))
    with pytest.raises(InputError, match="6 variables"):
        solve(small, np.zeros(3), method=method_in(make_metric("spectral", rng)))
    with pytest.raises(InputError, match="3 number"):
        solve(small, method=method_in(None, start=np.zeros(N)))


def test_the_guard_hands_over_to_lbfgs_in_the_metric(rng):
    """With M = 1/H the first trial of L-BFGS is Newton's step: the fallback is done at once."""
    w = np.logspace(0, -4, 20)
    V, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    problem = Quadratic((V * w) @ V.T, rng.standard_normal(20))
    metric = Metric("spectral", np.ones(20), V, w**-0.5 - 1)
    wild = Schedule(np.full(50, 30.0), np.full(50, 30.0), np.full(50, 0.1))
    method = method_in(metric, schedule=wild, guard=Guard(fallback="metric-lbfgs"))
    result = solve(problem, np.zeros(20), method=method, tol=1e-9)
    assert result.success
    assert [h.to for h in result.handovers] == ["metric-lbfgs"]
    assert result.iterations - result.handovers[0].iteration <= 3
    plain = solve(problem, np.zeros(20), method=method.replace(metric=None), tol=1e-9)
    assert plain.success
    assert plain.iterations > 10 * result.iterations


def test_the_fallback_may_run_in_a_milder_metric(rng):
    """With M = 1/H^2 it is the power 1/2 that makes the first trial Newton's step."""
    w = np.logspace(0, -4, 20)
    V, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    problem = Quadratic((V * w) @ V.T, rng.standard_normal(20))
    metric = Metric("spectral", np.ones(20), V, 1 / w - 1)
    np.testing.assert_allclose(metric.milder(0.5).matrix(), (V * w**-0.5) @ V.T, atol=1e-9)
    assert metric.milder(0.5) is metric.milder(0.5)
    steps = []
    for power in (0.5, 1.0):
        method = method_in(
            metric, schedule=Schedule(np.ones(1), np.ones(1), np.full(1, 0.1)),
            guard=Guard(fallback="metric-lbfgs", power=power),
        ).replace(scale="family", family_scale=1.0)  # fmt: skip
        result = solve(problem, np.zeros(20), method=method, tol=1e-9)
        assert result.success
        steps.append(result.iterations)
    assert steps[0] <= 3 < steps[1]


def test_directions_that_are_no_matrix_are_refused():
    with pytest.raises(InputError, match="V is no float64 array"):
        Metric("lowrank", np.ones(3), np.ones(()), np.zeros(1))


@pytest.mark.parametrize("kind", ["diagonal", "lowrank"])
def test_powers_of_a_metric(kind, rng):
    metric = make_metric(kind, rng)
    root = metric.milder(0.5)
    np.testing.assert_allclose(root.scale**2, metric.scale)
    if kind == "lowrank":
        np.testing.assert_allclose((1 + root.stretch) ** 2, 1 + metric.stretch)
    assert metric.milder(1.0) is metric
    for power in (0.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="power"):
            Guard(power=power)


def instant(metric=None, **fields):
    fallback = "lbfgs" if metric is None else "metric-lbfgs"
    given = {"scale": "family", "family_scale": 1.0, "guard": Guard(fallback=fallback)}
    return Method(None, "test", 1e-6, metric=metric, **(given | fields))


def test_a_method_without_a_table_is_its_fallback_and_costs_no_more(problem):
    ours, plain = (solve(problem, np.zeros(N), method=m, tol=1e-8) for m in (instant(), "lbfgs"))
    assert ours.success
    assert (ours.oracle_calls, ours.iterations) == (plain.oracle_calls, plain.iterations)
    np.testing.assert_array_equal(ours.x, plain.x)
    assert ours.handovers == ()
    assert ours.method == plain.method == "L-BFGS"


@pytest.mark.parametrize("handover", ["guard", "none", Guard(fallback="metric-lbfgs")])
def test_a_method_without_a_table_runs_in_its_metric_from_its_start(handover, rng):
    """With M = 1/H the first trial of L-BFGS is Newton's step."""
    w, start = np.logspace(0, -4, 20), rng.standard_normal(20)
    V, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    problem = Quadratic((V * w) @ V.T, rng.standard_normal(20))
    method = instant(Metric("spectral", np.ones(20), V, w**-0.5 - 1), start=start)
    points = []
    result = solve(
        problem, method=method, tol=1e-9, handover=handover,
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    assert result.success
    assert result.iterations <= 2
    np.testing.assert_array_equal(points[0], start)


def test_a_file_gives_back_a_method_without_a_table(rng, tmp_path):
    method, path = instant(make_metric("spectral", rng)), tmp_path / "m.safetensors"
    method.save(path)
    again = Method.load(path)
    assert again.schedule is None
    assert (again.instant, again.horizon) == (True, 0)
    np.testing.assert_array_equal(again.metric.matrix(), method.metric.matrix())


@pytest.mark.parametrize(
    "wrong", [{"scale": "product"}, {"scale": "instance"}, {"guard": Guard(fallback="nesterov")}]
)
def test_a_method_without_a_table_has_nothing_to_scale(wrong):
    with pytest.raises(InputError, match="has no table"):
        instant(**wrong)


def test_a_norm_above_the_envelope_is_handed_over(rng, problem):
    x0, guard = rng.standard_normal(N), Guard(envelope=(5.0, 5.0, 5.0, 5.0, 1e-6))
    result = solve(problem, x0, method=method_in(None, guard=guard), tol=1e-8)
    assert result.success
    assert result.handovers[0].iteration == 4
    assert "held-out" in result.handovers[0].reason
    with pytest.raises(InputError, match="envelope"):
        Guard(envelope=(1.0, -1.0))


def test_the_fallback_in_words():
    words = [Guard(fallback=name).words(True) for name in ("nesterov", "lbfgs", "metric-lbfgs")]
    assert words == ["Nesterov's method with backtracking", "L-BFGS", "L-BFGS in its metric"]
    milder = Guard(fallback="metric-lbfgs", power=0.5)
    assert milder.words(True) == "L-BFGS in a milder metric"
    assert milder.words(False) == "L-BFGS"


def test_unknown_fallbacks_are_refused():
    with pytest.raises(InputError, match="newton"):
        Guard(fallback="newton")


def test_the_relay_leaves_the_metric_with_the_same_move(rng, problem):
    metric = make_metric("spectral", rng)
    result = solve(
        problem, rng.standard_normal(N), method=method_in(metric), tol=1e-3, handover="relay",
        max_iter=400, stop_at_tol=False, history=True,
    )  # fmt: skip
    assert result.reached is not None
    assert result.grad_norm < 1e-5
