"""Tables learned inside their proof: every accepted point is certified, the result is proved."""

import json

import numpy as np
import pytest

from ode2opt import Family, InputError, Method, Schedule, learn, solve
from ode2opt.base.errors import Ode2OptError
from ode2opt.base.precision import jax_precision
from ode2opt.learning.registry import make_options
from ode2opt.learning.sequence.certified import candidates
from ode2opt.learning.sequence.certified.descent import descend
from ode2opt.learning.sequence.certified.objective import BarrierObjective, CertifiedInstance
from ode2opt.learning.sequence.certified.rows import LearnedRows
from ode2opt.learning.sequence.certified.training import has_room, train_rows
from ode2opt.problems.function import FunctionProblem
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.exact import check
from ode2opt.proofs.table import two_step_rows
from ode2opt.solvers.metric import Metric
from ode2opt.study.certify import certify
from ode2opt.study.prove import prove

SMALL = {
    "target": "sequence", "steps": 12, "horizon": 40, "batch": 1, "validation": 2, "tol": 1e-3,
    "metric": "none", "knots": 3,
}  # fmt: skip


def family_of(kind="logistic"):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((240, 5)) * np.logspace(0, -1, 5)
    b = (A @ np.ones(5) + rng.standard_normal(240) > 0).astype(float)
    return Family.from_arrays(kind, A, b, size=40)


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def method(steps):
    return learn(family_of(), certified=2.0, callback=steps.append, **SMALL)


def adversaries(L=1.0):
    """One-dimensional quadratics and Huber functions with curvature at most L."""
    for c in np.linspace(0.02, 1, 25):
        yield lambda x, c=c: (c * L * x**2 / 2, c * L * x)
        yield lambda x, c=c: (
            L * (x**2 / 2 if abs(x) <= c else c * abs(x) - c**2 / 2),
            L * np.clip(x, -c, c),
        )


def test_what_is_learned_is_proved_exactly_below_the_cap(method):
    found = check(dict(method.proof))
    assert 0.5 < found.ratio < 2
    rows = two_step_rows(method.schedule)
    K = len(found.proof.rows)
    chain = worst_case(rows[:K], tail="nag", star="convex")
    assert chain.ratio == pytest.approx(float(found.ratio), rel=1e-4)
    assert np.abs(rows[:K] - LearnedRows("nag", K).first()).max() > 1e-3  # it has learned something


def test_every_step_was_certified(steps):
    assert len(steps) >= 6
    assert all(0 < one.line["ratio"] < 2 for one in steps)


def test_the_file_keeps_proof_and_monitoring(method, tmp_path):
    method.save(tmp_path / "m.safetensors")
    again = Method.load(tmp_path / "m.safetensors")
    assert again.monitored == method.monitored
    proof = prove(tmp_path / "m.safetensors")
    assert proof.proved
    assert float(proof.found.ratio) < 2
    assert proof.found.tau <= method.monitored.tau


def test_the_promise_holds_on_adversaries_for_all_k(method):
    """f(y_k) - |g_k|^2/(2L) - f* <= ratio L R^2/(2 t_k^2), from the last learned point on."""
    found = check(dict(method.proof))
    rows, last, theta = two_step_rows(method.schedule), found.proof.last, float(found.proof.theta)
    for f in adversaries():
        y = before = 1.0
        g_before = 0.0
        for k, (m, p, q) in enumerate(rows):
            value, g = f(y)
            if k >= last:
                bound = float(found.ratio) / (2 * (theta + (k - last) / 2) ** 2)
                assert value - g**2 / 2 <= bound + 1e-12
            y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g


def test_the_certificate_says_proved(method):
    problems = [family_of().sample(i) for i in range(2)]
    certificate = certify(method, problems)
    assert certificate.levels["proved"]
    assert "at most" in certificate.bound
    assert method.certificate["levels"]["proved"]


def test_it_solves_and_tells_a_bound(method):
    problem = family_of().sample(7, part="test")
    result = solve(problem, method=method, tol=1e-3)  # from problem.start()
    best = solve(problem, tol=1e-10)
    assert result.success
    assert result.bound.radius >= np.linalg.norm(best.x - problem.start().x0) / 2
    if np.linalg.norm(best.x - problem.start().x0) <= result.bound.radius:
        assert result.fun - best.fun <= result.bound.value


def objective(cap, tail="nag", count=12):
    problem = family_of().sample(0)
    rows = LearnedRows(tail, count)
    with jax_precision():
        from ode2opt.problems.jaxed import to_jax

        instance = CertifiedInstance(to_jax(problem), problem.start().x0, ())
        return BarrierObjective(rows, cap, [instance], problem.smoothness(), 1e-3, 30)


def test_the_derivative_is_that_of_finite_differences():
    one = objective(3.0)
    rng = np.random.default_rng(0)
    rows = one.rows.first() * (1 - 0.02 * rng.random((12, 3)))
    direction = rng.standard_normal((12, 3))
    direction[0, [0, 2]] = 0
    _, slope = one(rows, 0.5)
    h = 1e-5
    difference = (one(rows + h * direction, 0.5)[0] - one(rows - h * direction, 0.5)[0]) / (2 * h)
    assert np.sum(slope * direction) == pytest.approx(difference, rel=1e-3)


@pytest.mark.parametrize("tail", ["nag", "ogm"])
def test_accepted_points_are_inside_the_cap_and_cost_less(tail):
    one = objective(1.5, tail)
    points = list(train_rows(one, 3, 12))
    assert points
    for point in points:
        found = worst_case(point.rows, tail=tail, star=one.rows.star)
        assert found.solved
        assert found.ratio < 1.5
    assert one.count(points[-1].rows)[0] < one.count(one.rows.first())[0]


def test_beyond_the_cap_the_value_is_infinite():
    one = objective(1.5)
    assert one(2 * one.rows.first(), 1.0)[0] == np.inf
    assert one(np.full((12, 3), np.nan), 1.0)[0] == np.inf


def test_a_cap_of_1_leaves_nesterov_no_room_and_ogm_some():
    assert not has_room(objective(1.0))
    assert has_room(objective(1.0, "ogm"))


def test_no_exact_ratio_exceeds_the_cap():
    """A cap of 1 gives Nesterov's own bound, 1 exactly, not 1 and a rounding."""
    for cap in (1.0, 1.05):
        method = learn(family_of(), certified=cap, **SMALL)
        assert check(dict(method.proof)).ratio <= cap
        assert prove(method).found.ratio <= cap
    rows = LearnedRows("nag", 12)
    maker = candidates.CandidateMaker(rows, "x", 1e-3, 1.0, 40, [None])
    with pytest.raises(Ode2OptError, match="in exact arithmetic only"):
        maker.proved(rows.first(), 1.0)  # the solver's multipliers miss it by 1e-9


def test_a_run_that_was_stopped_goes_on_to_the_same_table(method, steps, tmp_path):
    out = tmp_path / "run"
    first = learn(family_of(), certified=2.0, out=out, callback=lambda one: one.done == 8, **SMALL)
    assert not first.provenance["finished"]
    assert prove(first).found.ratio <= 2
    more = []
    again = learn(family_of(), certified=2.0, out=out, resume=True, callback=more.append, **SMALL)
    assert 0 < len(more) < len(steps)
    assert [one.line["loss"] for one in more] == [one.line["loss"] for one in steps[-len(more) :]]
    np.testing.assert_array_equal(again.schedule.a, method.schedule.a)
    assert again.proof == method.proof
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(len(steps)))


def test_descent_never_steps_where_the_function_is_infinite():
    """-x - y - mu log(1 - x^2 - y^2) is least at x = y = a with 2 a^2 + 2 mu a = 1."""
    mu = 0.05

    def barrier(x):
        room = 1 - x @ x
        if room <= 0:
            return np.inf, 0 * x
        return -x.sum() - mu * np.log(room), -1 + 2 * mu * x / room

    points = [x for x, _ in descend(barrier, np.array([-0.9, 0.1]), 60)]
    assert max(x @ x for x in points) < 1
    np.testing.assert_allclose(points[-1], (-mu + (mu**2 + 2) ** 0.5) / 2, atol=1e-6)


def test_a_proof_that_fails_is_told():
    """No other method takes its place."""
    rows = LearnedRows("nag", 12)
    maker = candidates.CandidateMaker(rows, "x", 1e-3, 1.0, 40, [None])
    with pytest.raises(Ode2OptError, match="in exact arithmetic only 1 is proved"):
        maker.proved(rows.first(), 0.9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"certified": 0.5}, "certified is 0.5: it must be at least 1"),
        ({"certified": float("nan")}, "certified"),
        ({"certified": 2.0, "coefficients": "proved"}, "give one of certified and coefficients"),
        ({"tail": "ogm"}, "tail ogm is for a certified table"),
        ({"certified": 2.0, "tail": "gd"}, "gd"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        make_options({"target": "sequence"} | options)


@pytest.mark.parametrize("kind", ["lpp", "poisson"])
def test_a_family_without_a_smoothness_constant_is_refused(kind):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((120, 3))
    b = rng.integers(0, 3, 120).astype(float) if kind == "poisson" else np.sign(A[:, 0])
    family = Family.from_arrays(kind, A, b, size=40)
    with pytest.raises(InputError, match=r"needs a bound of the curvature: .* no known smoothness"):
        learn(family, certified=2.0, **SMALL)


def test_a_preconditioner_that_is_not_positive_is_refused():
    with pytest.raises(InputError, match="not above 0"):
        Metric("diagonal", np.array([1.0, 0.0]))


def test_a_problem_without_values_is_told_so(method):
    no_values = FunctionProblem(lambda x: np.nan, lambda x: 0 * x + 1.0, n=5)
    with pytest.raises(InputError, match="checks its proof by values"):
        solve(no_values, np.zeros(5), method=method)


def test_a_monitored_method_takes_no_relay(method):
    problem = family_of().sample(0)
    with pytest.raises(InputError, match="takes no relay"):
        solve(problem, method=method, handover="relay")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"proof": None}, "without a proof by plain convexity"),
        ({"proof": {"star": "convex", "tail": "nag"}}, "damaged proof"),
        ({"scale": "instance"}, "scale family"),
    ],
)
def test_monitoring_needs_a_whole_proof(method, changed, sentence):
    with pytest.raises(InputError, match=sentence):
        method.replace(**changed)


@pytest.mark.parametrize("text", ["1e999999999", "9" * 5000, f"1{'0' * 380}"])
def test_a_multiplier_that_is_longer_than_a_number_is_refused(method, text):
    """The first would be a billion digits long before anybody looks at it."""
    proof = dict(method.proof) | {"w": [text, *method.proof["w"][1:]]}
    with pytest.raises(InputError, match="damaged proof"):
        method.replace(proof=proof)


def test_a_bound_that_the_proof_does_not_give_is_refused(method):
    lower = candidates.MonitoredSettings(method.monitored.rho, method.monitored.tau / 2)
    with pytest.raises(InputError, match="the file is damaged"):
        prove(method.replace(monitored=lower))


def test_a_proof_of_another_table_is_refused(method):
    other = Schedule(method.schedule.a * 0.99, method.schedule.c, method.schedule.d)
    with pytest.raises(InputError, match="another table"):
        prove(method.replace(schedule=other))


@pytest.mark.exhaustive
def test_the_command_trains_and_proves(tmp_path, run_cli):
    run_cli(
        "train", "logistic", "separable", "--target", "sequence", "--certified", "2", "--steps",
        "12", "--out", str(tmp_path / "run"), "--quiet",
    )  # fmt: skip
    run_cli("prove", str(tmp_path / "run/method.safetensors"), "--json", str(tmp_path / "p.json"))
    assert json.loads((tmp_path / "p.json").read_text())["ratio_to_nesterov"] < 2
