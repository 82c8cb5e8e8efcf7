"""The sequence's stopping time in a learned metric: against solves and finite differences."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import graded_rows

from ode2opt import Family, InputError, Logistic, Lpp, Method, Quadratic, Schedule, learn, solve
from ode2opt.learning import SequenceOptions, make_options
from ode2opt.learning.sequence.background import MetricRecipe
from ode2opt.learning.sequence.objective import (
    Learned,
    SequenceInstance,
    SequenceRules,
    SplineTable,
    sequence_time,
)
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.learning.sequence.spectrum import (
    SPECTRUM_KINDS,
    CurvaturePoints,
    Filter,
    apply,
    filtered,
    metric_of,
    nystrom,
    whitened,
)
from ode2opt.learning.sequence.target import SequenceTarget
from ode2opt.paper import double, to_jax
from ode2opt.problems.family import Fold
from ode2opt.study.certify import certify

KINDS = tuple(SPECTRUM_KINDS)
SHORT = {
    "target": "sequence", "steps": 30, "batch": 2, "validate_every": 10, "validation": 3,
    "tol": 1e-3, "horizon": 60,
}  # fmt: skip


def family(l2=1e-5):
    return Family.from_arrays("logistic", *graded_rows(), size=100, l2=l2)


def instance(kind, problem):
    look = CurvaturePoints(problem, [problem.start().x0], [1.0])
    spectrum = jax.tree.map(jnp.asarray, SPECTRUM_KINDS[kind]([look], 0))
    return SequenceInstance(to_jax(problem), jnp.asarray(problem.start().x0), spectrum)


def learned_tree(rng, K=60):
    tree = Learned(SplineTable(6, K), Filter())
    leaves, shape = jax.tree.flatten(tree)
    moved = [leaf + 0.2 * rng.standard_normal(np.shape(leaf)) for leaf in leaves]
    return jax.tree.unflatten(shape, moved)


def rules(tol=1e-3, fallback=20.0, margin=0.2, blowup=5.0, scale=1.0):
    return SequenceRules(*map(jnp.asarray, (tol, blowup, fallback, margin, scale)))


def metric_in(kind, one, tree):
    return metric_of(kind, one.spectrum, filtered(one.spectrum, tree.filter))


def problem_of(name):
    A, b = graded_rows(200)
    return Logistic(A, b, l2=0.01) if name == "logistic" else Lpp(A, b, l2=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stopping_time_is_that_of_a_solve(kind, rng, x64):
    problem, scale = problem_of("logistic"), 0.3
    one, tree = instance(kind, problem), learned_tree(rng)
    found = sequence_time(tree, one, rules(scale=scale))
    schedule = Schedule(*(np.asarray(row) for row in tree.table()))
    method = Method(schedule, "test", 1e-3, "family", scale, metric=metric_in(kind, one, tree))
    result = solve(problem, np.asarray(one.x0), method=method, tol=1e-3)
    assert bool(found.reached)
    assert not result.handovers
    assert int(np.ceil(float(found.T))) == result.iterations


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("logistic", "reached"),
        ("lpp", "table ends"),
        pytest.param("lpp", "reached", marks=pytest.mark.exhaustive),
        pytest.param("logistic", "table ends", marks=pytest.mark.exhaustive),
    ],
)
def test_derivatives_agree_with_differences(name, case, rng, x64):
    problem, tree = problem_of(name), learned_tree(rng, 60 if case == "reached" else 8)
    one = instance("spectral", problem)
    law = rules(1e-3 if case == "reached" else 1e-9, margin=0.9)  # so wide that P is not zero
    flat, back = jax.flatten_util.ravel_pytree(tree)

    def loss(theta):
        found = sequence_time(back(theta), one, law)
        return found.T + 3 * found.P, (found.reached, found.P)

    (_, (reached, P)), slope = jax.value_and_grad(loss, has_aux=True)(flat)
    assert bool(reached) == (case == "reached")
    assert float(P) > 0.1 or name == "logistic"
    value = jax.jit(lambda theta: loss(theta)[0])
    for _ in range(3):
        v = jnp.asarray(rng.standard_normal(flat.size))
        difference = (value(flat + 1e-6 * v) - value(flat - 1e-6 * v)) / 2e-6
        assert float(slope @ v) == pytest.approx(float(difference), rel=1e-4, abs=1e-6)


def test_a_blow_up_is_charged_for_the_fallback(rng, x64):
    one, tree = instance("spectral", problem_of("lpp")), learned_tree(rng)
    tree = eqx.tree_at(lambda t: t.table.log_a, tree, tree.table.log_a + 6)
    short, long = (sequence_time(tree, one, rules(fallback=f)) for f in (10.0, 20.0))
    assert bool(short.failed)
    assert not bool(short.reached)
    assert float(long.T - short.T) > 10.0  # more than the fallback from the start: it is farther


def test_violations_are_those_of_linear_stability(x64):
    """On a quadratic with curvature 1 everywhere, (a - c/2)/(2 - d) is known at each step."""
    quadratic = Quadratic(np.eye(3), np.ones(3))
    one = SequenceInstance(
        to_jax(quadratic), jnp.zeros(3), jax.tree.map(jnp.asarray, SPECTRUM_KINDS["none"](
            [CurvaturePoints(quadratic, [np.zeros(3)], [1.0])], 0))
    )  # fmt: skip
    tree = Learned(SplineTable(4, 5), Filter())
    tree = eqx.tree_at(lambda t: t.table.log_a, tree, jnp.full(4, jnp.log(3.5)))
    a, c, d = tree.table()
    expected = np.log(np.maximum((a - c / 2) / (2 - d) / 0.8, 1.0))[1:]  # the first is no move
    found = sequence_time(tree, one, rules(1e-12, blowup=1e9))
    assert float(found.P) == pytest.approx(float(expected.sum()))
    assert expected.max() > 0


def test_the_table_keeps_its_order_whatever_is_learned(rng, x64):
    for _ in range(20):
        tree = jax.tree.map(lambda leaf: leaf + 3 * rng.standard_normal(np.shape(leaf)),
                            SplineTable(5, 40))  # fmt: skip
        a, c, d = tree()
        assert np.all((d * a <= c) & (c <= a) & (d > 0) & (d < 1))


def test_the_filter_stretches_without_turning_flat_into_steep(rng, x64):
    depth = jnp.linspace(0, 9, 200)
    for _ in range(20):
        one = eqx.tree_at(lambda f: f.logits, Filter(), 4 * rng.standard_normal(8))
        squares = np.asarray(one(depth))
        assert np.all(np.diff(squares) >= 0)
        assert np.all(np.diff(squares * 10.0 ** -np.asarray(depth)) <= 1e-12)
    flat = eqx.tree_at(lambda f: f.logits, Filter(), jnp.full(8, -50.0))
    full = eqx.tree_at(lambda f: f.logits, Filter(), jnp.full(8, 50.0))
    np.testing.assert_allclose(flat(depth), 1.0)
    np.testing.assert_allclose(full(depth[:150]), 10.0 ** np.asarray(depth[:150]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_metric_of_a_file_is_the_one_of_training(kind, rng, x64):
    problem, tree = problem_of("logistic"), learned_tree(rng)
    one, g = instance(kind, problem), rng.standard_normal(8)
    metric = metric_in(kind, one, tree)
    expected = g if metric is None else metric.on(problem)(g)
    np.testing.assert_allclose(
        apply(one.spectrum, filtered(one.spectrum, tree.filter), g), expected
    )


def test_full_filter_makes_the_reference_hessian_round(x64):
    problem = problem_of("logistic")
    one = instance("spectral", problem)
    full = eqx.tree_at(lambda f: f.logits, Filter(), jnp.full(8, 50.0))
    S = metric_of("spectral", one.spectrum, filtered(one.spectrum, full)).matrix()
    w = np.linalg.eigvalsh(S.T @ problem.hessian(problem.start().x0) @ S)
    assert w[-1] / w[0] == pytest.approx(1.0, abs=1e-6)


def test_nystrom_finds_the_large_eigenpairs(rng):
    V, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    w = np.append(np.linspace(5, 1, 10), np.zeros(30))
    H = (V * w) @ V.T
    probes, _ = np.linalg.qr(rng.standard_normal((40, 14)))
    values, vectors = nystrom(probes, H @ probes, 10)
    np.testing.assert_allclose(values, w[:10], rtol=1e-6)
    np.testing.assert_allclose(vectors * values @ vectors.T, H, atol=1e-6)


def test_folds_are_stretches_of_the_file_and_their_rest():
    A = np.arange(300.0)[:, None] + 1
    numbers = Family.from_arrays("lpp", A, np.zeros(300), size=30, test=(A, np.zeros(300)))
    inside = numbers.sample(0, fold=Fold(1, 3)).A[:, 0]
    outside = numbers.sample(0, fold=Fold(1, 3, others=True)).A[:, 0]
    assert inside.min() > 100
    assert inside.max() <= 200
    assert not np.any((outside > 100) & (outside <= 200))
    assert len(numbers.sample(0, fold=Fold(0, 20)).A) == 15  # all that a small fold has
    assert numbers.train_rows == 300


def test_spectra_are_cross_fitted():
    """A direction that only one fold knows is flat in that fold's own spectrum."""
    A, b = graded_rows(400, 4)
    A[:, 3] = 0.0
    A[200:300, 3] = 1.0
    there = Family.from_arrays("logistic", A, b, size=50, test=(A, b), l2=1e-6)
    spectra = SolvedBeforehand(there, SequenceOptions(tol=1e-2)).spectra("diagonal", "start")
    depths = [float(spectrum.rest[3]) for spectrum in spectra]
    assert depths[2] > 3
    assert max(depths[:2] + depths[3:]) < 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequence") / "run"
    return folder, learn(family(), out=folder, **SHORT)


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def test_a_learned_sequence_beats_lbfgs(trained):
    folder, method = trained
    problems = [family().sample([5, i], part="test") for i in range(5)]
    ours = [solve(p, p.start(), method=method, tol=1e-3) for p in problems]
    theirs = [solve(p, p.start(), method="lbfgs", tol=1e-3) for p in problems]
    assert all(result.success for result in ours)
    assert sum(r.oracle_calls for r in ours) < sum(r.oracle_calls for r in theirs)
    assert Method.load(folder / "method.safetensors").metric.kind == method.metric.kind


def test_the_choice_of_the_metric_is_kept(trained):
    choice = json.loads((trained[0] / "choice.json").read_text())
    prices = {(one["metric"], one["reference"]): one["price"] for one in choice["tried"]}
    assert len(prices) == 2
    assert prices[tuple(choice["chosen"])] == min(prices.values())
    assert trained[1].metric.kind == choice["chosen"][0]


def test_broken_off_before_the_first_step_the_folder_is_free(tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(SolvedBeforehand, "recipes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(family(), out=tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", KINDS)
@double
def test_a_spectrum_of_single_precision_is_double(kind):
    A, b = (part.astype(np.float32) for part in graded_rows(100))
    problem = Logistic(A, b)
    assert problem.dtype == np.float32
    spectrum = SPECTRUM_KINDS[kind]([CurvaturePoints(problem, [problem.start().x0], [1.0])], 0)
    assert {part.dtype for part in spectrum} == {np.dtype(np.float64)}
    assert metric_of(kind, spectrum, whitened(spectrum)) is not None or kind == "none"


def test_families_that_cannot_be_learned_are_told(rng):
    solved_by_one_step = Family.from_sampler(lambda rng: Quadratic(np.eye(3), np.ones(3)))
    with pytest.raises(InputError, match=r"meet the gradient norm 0\.001 where they start"):
        learn(solved_by_one_step, **SHORT)
    of_all_sizes = Family.from_sampler(
        lambda rng: Quadratic(np.eye(n := int(rng.integers(2, 9))), rng.standard_normal(n))
    )
    with pytest.raises(InputError, match="must have one size"):
        learn(of_all_sizes, **SHORT)


def test_where_the_fallback_is_better_it_begins_at_once():
    """With useless steps there is no table, and the guard has nothing to hand over."""
    target = target_for("spectral")
    tiny = eqx.tree_at(lambda t: t.table.log_a, target.start, target.start.table.log_a - 20)
    method = target.finalized(tiny, target.method(tiny, 10))
    assert method.instant
    problem = target.problem(1, 0)
    result = solve(problem, problem.start().x0, method=method, tol=1e-3)
    assert result.success
    assert not result.handovers
    assert result.oracle_calls == result.iterations + 1  # the start and one for each iteration


def test_a_sequence_resumes_bit_for_bit(trained, tmp_path):
    def stop(step):
        return step.line["step"] == 14

    learn(family(), out=tmp_path / "run", callback=stop, **SHORT)
    learn(family(), out=tmp_path / "run", resume=True, **SHORT)
    assert metrics(tmp_path / "run") == metrics(trained[0])
    first, again = (path / "method.safetensors" for path in (trained[0], tmp_path / "run"))
    np.testing.assert_array_equal(
        Method.load(first).metric.matrix(), Method.load(again).metric.matrix()
    )


def target_for(metric, **options):
    options = make_options(SHORT | options)
    recipe = MetricRecipe(metric, "start")
    return SequenceTarget(family(), options, recipe, SolvedBeforehand(family(), options))


@pytest.mark.parametrize("start", ["paper", "learned"])
def test_the_certificate_is_that_of_the_transformed_problem(start):
    target = target_for("spectral", start=start)
    method = target.method(target.start, 10)
    problem = family().sample([5, 0], part="test")
    certificate = certify(method, [problem])
    margin = certificate.margins["linear"]
    x0 = problem.start().x0 if start == "paper" else method.start
    S = method.metric.matrix()
    top = np.linalg.eigvalsh(S.T @ problem.hessian(x0) @ S)[-1] / method.family_scale
    a, c, d = (getattr(method.schedule, key)[0] for key in "acd")
    assert margin <= 1 - (a - c / 2) * top / (2 - d) + 1e-6
    first = certificate.traces[0].curvature[0] / method.family_scale
    assert first == pytest.approx(1.01 * top, rel=1e-3)


def test_a_learned_start_is_near_the_solutions():
    target = target_for("none", start="learned")
    problem = family().sample([9, 0])
    learned = target.background.starts[-1]
    norms = [np.linalg.norm(problem.gradient(x)) for x in (learned, problem.start().x0)]
    assert norms[0] < 0.5 * norms[1]
    method = target.method(double(lambda: target.start)(), 10)
    result = solve(problem, method=method, max_iter=0)
    np.testing.assert_array_equal(result.x, learned)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "flow", "metric": "spectral"}, "--target sequence"),
        ({"target": "flow", "start": "learned"}, "--target sequence"),
        ({"target": "sequence", "coefficients": "neural"}, "--target flow"),
        ({"target": "sequence", "scale": "instance"}, "--target flow"),
        ({"target": "sequence", "alpha": 5.0}, "alpha is for --target flow"),
        ({"target": "sequence", "learn_alpha": True}, "learn_alpha is for --target flow"),
        ({"target": "sequence", "estimator": "l0l1"}, "estimator is for --target flow"),
        ({"target": "flow", "knots": 5}, "knots is for --target sequence"),
        ({"target": "flow", "reference": "path"}, "reference is for --target sequence"),
        ({"target": "sequence", "steps": -1}, "steps is -1"),
        ({"target": "flow", "steps": 0}, "steps is 0"),
        ({"target": "sequence", "metric": "best"}, "metric"),
        ({"target": "sequence", "reference": "end"}, "reference"),
        ({"target": "sequence", "margin": 1.0}, "margin"),
        ({"target": "sequence", "penalty": -1.0}, "penalty"),
        ({"target": "series"}, "target"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        make_options(options)
