"""The instant method: its metric, what makes it, and that training has to beat it."""

import json
import time

import equinox as eqx
import numpy as np
import pytest
from support import graded_rows

from ode2opt import Family, InputError, Method, learn, solve
from ode2opt.learning import make_options
from ode2opt.learning.comparison import (
    ProblemSet,
    calls_of,
    comparison_sentence,
    solve_all_by,
    summary,
)
from ode2opt.learning.sequence import instant_run, restarts, spectrum
from ode2opt.learning.sequence.background import MetricRecipe
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.instant import instant, plain_instant
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.learning.sequence.target import SequenceTarget

OPTIONS = {"target": "sequence", "steps": 0, "tol": 1e-3, "validation": 3}


def family(**options):
    return Family.from_arrays("logistic", *graded_rows(), size=100, **{"l2": 1e-5} | options)


@pytest.fixture(scope="module")
def known():
    return SolvedBeforehand(family(), make_options(OPTIONS))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instant") / "run"
    return folder, learn(family(), out=folder, **OPTIONS)


def test_the_metric_is_the_inverse_of_the_mean_hessian_with_a_floor(known):
    mean = 0
    for problem, x0, end in known.solved[-1]:
        for x in (x0, end):
            hessian = problem.hessian(x)
            mean = mean + hessian / np.trace(hessian)
    mean /= np.linalg.eigvalsh(mean)[-1]
    S = plain_instant(known)[-1].metric.matrix()
    np.testing.assert_allclose(S @ S.T, np.linalg.inv(mean + 1e-3 * np.eye(8)), rtol=1e-8)


def test_the_first_trial_has_about_the_length_of_a_newton_step(known):
    method = plain_instant(known)[-1]
    for problem, x0, end in known.solved[-1]:
        S, g = method.metric.matrix(), problem.gradient(x0)
        trial = S @ (S.T @ g) / method.family_scale
        longest = trial @ problem.hessian(end) @ trial, trial @ problem.hessian(x0) @ trial
        assert min(longest) < trial @ g < max(longest)  # between the exact steps of both ends


def test_a_wide_family_gets_low_rank(known, monkeypatch):
    monkeypatch.setattr(spectrum, "LARGEST_BASIS", 7)
    monkeypatch.setattr(spectrum, "RANK", 4)
    methods = plain_instant(known)
    assert {method.metric.kind for method in methods} == {"lowrank"}
    assert methods[-1].metric.V.shape == (8, 4)


def test_a_fold_does_not_know_its_own_rows():
    A, b = graded_rows(400, 4)
    A[:, 3] = 0.0
    A[200:300, 3] = 1.0  # what only the third of four folds knows
    there = Family.from_arrays("logistic", A, b, size=50, test=(A, b), l2=1e-6)
    methods = plain_instant(SolvedBeforehand(there, make_options(OPTIONS | {"metric": "diagonal"})))
    stretch = [method.metric.scale[3] / method.metric.scale.min() for method in methods]
    assert stretch[2] > 20
    assert max(stretch[:2] + stretch[3:]) < 5


def test_no_steps_make_a_finished_method_without_training(monkeypatch):
    def refused(*args, **options):
        raise AssertionError("a sequence was begun")

    monkeypatch.setattr(restarts, "sequence_plan", refused)
    monkeypatch.setattr(SequenceTarget, "__init__", refused)
    began = time.perf_counter()
    method = learn(family(), **OPTIONS)
    assert time.perf_counter() - began < 20
    assert method.instant
    assert method.provenance["finished"]
    assert method.start == "paper"


def test_it_is_saved_like_any_run(made):
    folder, method = made
    saved = Method.load(folder / "method.safetensors")
    assert saved.instant
    assert saved.words == "L-BFGS in its metric"
    np.testing.assert_array_equal(saved.metric.matrix(), method.metric.matrix())
    assert saved.statistics == method.statistics
    assert saved.certificate["levels"] == {
        "flow": False,
        "linear": False,
        "proved": False,
        "guarded": True,
    }
    assert set(saved.certificate["margins"].values()) == {None}
    assert (folder / "metrics.jsonl").read_text() == ""
    assert json.loads((folder / "config.json").read_text())["options"]["steps"] == 0
    with pytest.raises(InputError, match="it is finished"):
        learn(family(), out=folder, resume=True, **OPTIONS)


def test_it_needs_far_fewer_calls_than_lbfgs_as_its_statistics_say(made):
    _, method = made
    problems = [family().sample([0, 2, i], part="test") for i in range(20)]
    found = {
        name: np.mean([calls_of(solve(p, p.start().x0, method=by, tol=1e-3)) for p in problems])
        for name, by in (("method", method), ("lbfgs", "lbfgs"), ("auto", "auto"))
    }
    fresh = method.statistics["fresh"]
    assert fresh["problems"] == method.statistics["test"]["reached"] == 20
    assert fresh["calls"] == pytest.approx(found)
    assert fresh["calls"]["method"] < 0.5 * fresh["calls"]["lbfgs"]
    assert method.statistics["held_out"]["problems"] == 9
    assert set(fresh["seconds"]) == {"method", "lbfgs", "auto"}


def test_with_a_learned_start_the_metric_looks_there():
    learned = SolvedBeforehand(family(), make_options(OPTIONS | {"start": "learned"}))
    assert all(np.array_equal(one.x0, learned.starts[-1]) for one in learned.solved[-1])
    method = plain_instant(learned)[-1]
    np.testing.assert_array_equal(method.start, learned.starts[-1])
    problem = family().sample([9, 0])
    calls = [
        calls_of(solve(problem, x0, method=one, tol=1e-3))
        for x0, one in (
            (None, method),
            (
                problem.start().x0,
                plain_instant(SolvedBeforehand(family(), make_options(OPTIONS)))[-1],
            ),
        )
    ]
    assert calls[0] < calls[1]


def test_a_metric_that_harms_is_not_taken():
    """On folds that have nothing in common, held-out problems prefer plain L-BFGS."""
    rng = np.random.default_rng(0)
    A = 0.02 * rng.standard_normal((400, 8))
    for fold in range(4):
        A[100 * fold : 100 * (fold + 1), 2 * fold : 2 * fold + 2] *= 100
    b = (A @ rng.standard_normal(8) + 0.3 * rng.standard_normal(400) > 0).astype(float)
    apart = Family.from_arrays("logistic", A, b, size=50, test=(A, b), l2=1e-3)
    known = SolvedBeforehand(apart, make_options(OPTIONS | {"validation": 8}))
    held_out = HeldOut(known)
    found = instant(known, held_out)
    whole = mean_calls(held_out.solved(plain_instant(known)))
    assert mean_calls(found.results) <= min(whole, mean_calls(held_out.baselines["lbfgs"]))
    assert (found.method.guard.fallback, found.method.guard.power) != ("metric-lbfgs", 1.0)


@pytest.fixture(scope="module")
def target():
    options = make_options(OPTIONS | {"steps": 10, "horizon": 60})
    return SequenceTarget(
        family(), options, MetricRecipe("spectral", "path"), SolvedBeforehand(family(), options)
    )


@pytest.mark.parametrize(("worth", "kept"), [(True, "table"), (False, "instant")])
def test_training_has_to_beat_the_instant_method(target, monkeypatch, worth, kept):
    monkeypatch.setattr("ode2opt.learning.sequence.target.beats_instant", lambda *args: worth)
    monkeypatch.setattr(
        "ode2opt.learning.sequence.target.best_choice",
        lambda tried, solved, *rest: (tried[0], solved(tried[0])),
    )
    method = target.finalized(target.start, target.method(target.start, 20))
    assert (method.metric is target.instant.method.metric) == (kept == "instant")
    assert method.instant == (kept == "instant")
    calls = method.statistics["held_out"]["calls"]
    assert set(calls) == {"method", "instant", "lbfgs", "auto"}
    assert (calls["method"] == calls["instant"]) == (kept == "instant")
    assert ("instant" in target.baselines(method)) == (kept == "table")


def test_useless_steps_are_given_up_for_the_instant_method(target):
    tiny = eqx.tree_at(lambda t: t.table.log_a, target.start, target.start.table.log_a - 20)
    tiny = eqx.tree_at(lambda t: t.filter.logits, tiny, tiny.filter.logits - 20)
    method = target.finalized(tiny, target.method(tiny, 10))
    assert method.metric is target.instant.method.metric
    assert method.statistics["validation"]["reached"] == 9


def test_broken_off_it_can_be_gone_on_with(tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    monkeypatch.setattr("ode2opt.learning.sequence.restarts.SolvedBeforehand", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(family(), out=folder, **OPTIONS)
    assert not folder.exists()
    monkeypatch.undo()
    monkeypatch.setattr(instant_run, "instant", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(family(), out=folder, **OPTIONS)
    monkeypatch.undo()
    assert learn(family(), out=folder, resume=True, **OPTIONS).instant


def test_all_methods_begin_at_the_same_point(known):
    problems = [known.problem(1, i) for i in range(3)]
    starts = [np.full(8, 0.1 * i) for i in range(3)]
    method = plain_instant(known)[-1].replace(start=np.ones(8))
    methods = {"a": [method] * 3, "b": ["lbfgs"] * 3}
    found = solve_all_by(methods, ProblemSet(problems, starts, 1e-3))
    for i, (problem, x0) in enumerate(zip(problems, starts, strict=True)):
        first = np.linalg.norm(problem.gradient(x0))
        assert {each[i].history.grad_norm[0] for each in found.values()} == {first}
    seen = summary(found)
    assert seen["reached"] == {"a": 3, "b": 3}
    assert seen["calls"]["b"] == np.mean([one.reached.oracle_calls for one in found["b"]])
    assert seen["seconds"]["b"] == np.median([one.reached.seconds for one in found["b"]])


def counts(**changes):
    return {
        "problems": 20, "reached": {"method": 20, "lbfgs": 20, "auto": 20, "instant": 20},
        "calls": {"method": 10.0, "lbfgs": 123.0, "auto": 5.0, "instant": 10.4},
        "seconds": {"method": 0.001, "lbfgs": 0.002, "auto": 0.001, "instant": 0.0005},
    } | changes  # fmt: skip


def test_the_sentence_says_what_was_measured():
    assert comparison_sentence(counts()) == (
        "On 20 fresh test problems it takes, beside L-BFGS, 12.3 times fewer gradients and 2.0 "
        "times fewer seconds; beside auto, 2.0 times more and as many; beside the instant method, "
        "as many and 2.0 times more."
    )
    missed = counts(reached={"method": 20, "lbfgs": 3})
    assert "beside L-BFGS (which reached 3 only), 12.3 times" in comparison_sentence(missed)
    assert "instant" not in comparison_sentence(missed)
    assert comparison_sentence(counts(reached={"method": 19})) == (
        "It reached the tolerance on 19 of 20 fresh test problems."
    )
