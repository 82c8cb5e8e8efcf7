"""Restarts are steps like all others: logged, shown, checkpointed, and resumed bit for bit."""

import json

import numpy as np
import pytest

from ode2opt import Family, InputError, Method, learn
from ode2opt.learning import make_options
from ode2opt.learning.begin import options_for, start_run
from ode2opt.learning.config import read_config
from ode2opt.learning.run import Training
from ode2opt.learning.sequence.background import MetricRecipe
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.study.run_report import run_report

SHORT = {
    "target": "sequence", "metric": "diagonal", "steps": 4, "batch": 2, "validate_every": 3,
    "validation": 2, "tol": 1e-2, "horizon": 30, "knots": 4,
}  # fmt: skip
WARM_UP = 2  # half of the steps


def family():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 6)) * np.logspace(0, -1, 6)
    b = (A @ np.ones(6) + 0.5 * rng.standard_normal(300) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=60, l2=1e-3)


@pytest.fixture(scope="module", autouse=True)
def _two_ways():
    """A diagonal metric, looked for at the start and along the path: two restarts, cheaply."""
    recipes = [MetricRecipe("diagonal", "start"), MetricRecipe("diagonal", "path")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SolvedBeforehand, "recipes", lambda self: recipes)
        yield


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def same_method(first, second):
    first, second = (Method.load(path / "method.safetensors") for path in (first, second))
    np.testing.assert_array_equal(first.metric.scale, second.metric.scale)
    assert first.statistics["validation"] == second.statistics["validation"]
    assert (first.schedule is None) == (second.schedule is None)
    if first.schedule is not None:
        np.testing.assert_array_equal(first.schedule.a, second.schedule.a)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """A folder, and what the callback saw."""
    folder, seen = tmp_path_factory.mktemp("unbroken") / "run", []
    learn(family(), out=folder, callback=lambda step: seen.append(step), **SHORT)
    return folder, seen


def test_restarts_are_logged_and_shown(unbroken):
    folder, seen = unbroken
    lines = metrics(folder)
    assert [(line.get("restart"), line["step"]) for line in lines] == [
        (1, 0), (1, 1), (2, 0), (2, 1), (None, 0), (None, 1), (None, 2), (None, 3),
    ]  # fmt: skip
    assert [step.done for step in seen] == list(range(1, 9))
    assert {step.steps for step in seen} == {2 * WARM_UP + SHORT["steps"]}
    assert all(line["stopping_time"] > 0 for line in lines)
    assert all(line["validation"] is None for line in lines if "restart" in line)
    first, second = (lines[i]["stopping_time"] for i in (0, WARM_UP))
    assert first != second  # the same problems in another metric


def test_the_report_of_a_run_tells_restarts_from_steps(unbroken, tmp_path):
    page = tmp_path / "report.html"
    run_report(unbroken[0]).save(page)
    text = page.read_text()
    assert "4 of 4 steps" in text
    assert "beginning 2" in text


@pytest.mark.parametrize("done", [1, 4, 6])
def test_broken_off_in_any_stage_it_ends_like_an_unbroken_run(unbroken, tmp_path, done):
    folder = tmp_path / "run"

    def interrupt(step):
        if step.done == done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(family(), out=folder, callback=interrupt, **SHORT)
    assert len(metrics(folder)) == done
    assert (folder / "checkpoints" / f"step-{done:06}.safetensors").exists()
    learn(family(), out=folder, resume=True)  # with the options that it has
    assert metrics(folder) == metrics(unbroken[0])
    same_method(folder, unbroken[0])
    choices = [json.loads((path / "choice.json").read_text()) for path in (folder, unbroken[0])]
    assert choices[0] == choices[1]


def test_an_interruption_while_a_restart_is_judged_loses_no_step(unbroken, tmp_path, monkeypatch):
    def interrupted(self, number):
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_next_stage", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learn(family(), out=folder, **SHORT)
    run = start_run(family(), make_options(SHORT), folder, True)
    assert (run.position.step, run.position.done, run.position.prices) == (WARM_UP, WARM_UP, ())
    run.run()
    assert metrics(folder) == metrics(unbroken[0])


def test_training_goes_on_from_what_the_best_restart_has_learned(unbroken, tmp_path):
    choice = json.loads((unbroken[0] / "choice.json").read_text())
    prices = [one["price"] for one in choice["tried"]]
    best = int(np.argmin(prices))
    assert choice["chosen"] == ["diagonal", ("start", "path")[best]]
    run, ends = start_run(family(), make_options(SHORT), None, False), []

    def keep(step):
        if step.line.get("restart") is None:
            return True
        if step.line["step"] == WARM_UP - 1:
            ends.append(run.state.parameters.table.log_a)
        return False

    seen = []
    judge = run._judge
    run._judge = lambda validation: (seen.append(run.state.parameters.table.log_a),
                                     judge(validation))  # fmt: skip
    run.run(keep)
    np.testing.assert_array_equal(seen[0], ends[best])


def test_a_callback_may_end_training_among_restarts(tmp_path):
    method = learn(family(), out=tmp_path / "run", callback=lambda step: True, **SHORT)
    assert method.schedule is not None
    assert not method.provenance["finished"]
    assert method.statistics["validation"]["total"] == SHORT["validation"]


def test_resuming_takes_the_options_of_the_run_and_refuses_others(unbroken):
    folder = unbroken[0]
    assert options_for({}, resume_from=folder) == make_options(SHORT)
    assert options_for({"steps": 4}, resume_from=folder) == make_options(SHORT)
    with pytest.raises(InputError, match="target is 'sequence' there and 'flow' here"):
        options_for({"target": "flow"}, resume_from=folder)
    with pytest.raises(InputError, match="knots is 4 there and 5 here"):
        learn(family(), out=folder, resume=True, knots=5)
    with pytest.raises(InputError, match="alpha is for --target flow"):
        learn(family(), out=folder, resume=True, alpha=5.0)


@pytest.mark.parametrize("resume", [True, False])
def test_a_run_of_an_older_layout_is_refused(unbroken, tmp_path, resume):
    config = json.loads((unbroken[0] / "config.json").read_text())
    del config["layout"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"older layout.*start anew, with another --out"):
        learn(family(), out=tmp_path, resume=resume, **SHORT)
    with pytest.raises(InputError, match="older layout"):
        read_config(tmp_path)
