"""Training: what it writes, that it can be broken off and taken up, what it says when it cannot."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ode2opt import Family, InputError, Logistic, Method, Ode2OptError, Problem, learn, solve
from ode2opt.learning import make_options
from ode2opt.learning.begin import options_for, start_run
from ode2opt.learning.flow.given import NOTHING, taken_out
from ode2opt.learning.registry import read_options
from ode2opt.paper import Default, Feasible, Neural, Spline

SHORT = {
    "coefficients": "spline", "steps": 6, "validate_every": 2, "validation": 2, "horizon": 80,
    "tol": 1e-2,
}  # fmt: skip
FIELDS = {"step", "stopping_time", "P", "Q", "loss", "validation", "seconds"}


def small(l2=0.02):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 5)) * [1, 0.8, 0.6, 0.4, 0.2]
    b = (A @ np.arange(5) + rng.standard_normal(400) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=100, l2=l2)


def metrics(folder):
    """All lines but for the time they took."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    method = learn(small(), out=folder, **SHORT)
    return folder, method


def test_the_run_directory_keeps_its_contract(unbroken):
    folder, _ = unbroken
    names = {path.name for path in folder.iterdir()}
    assert {"method.safetensors", "config.json", "metrics.jsonl", "checkpoints"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(6))
    assert all(set(line) >= FIELDS for line in lines)
    assert [line["validation"] is not None for line in lines] == [False, True] * 3


@pytest.mark.parametrize(
    "first",
    [Spline(5.0, knots=5, C=1.5), Neural(width=4), Feasible(h=0.05, knots=4)],
    ids=lambda first: type(first).__name__,
)
def test_training_begins_at_the_coefficients_that_are_given(first):
    options = options_for(taken_out({"coefficients": first})[0])
    again = read_options(json.loads(json.dumps(options.as_dict())))
    for found in (options.first_coefficients(), again.first_coefficients()):
        assert type(found) is type(first)
        t = np.geomspace(1, 30, 50)
        np.testing.assert_allclose(found.curves(t), first.curves(t), rtol=1e-14)
        assert float(found.alpha) == float(first.alpha) == options.alpha


def test_a_class_of_coefficients_stands_for_its_name():
    plain, given = taken_out({"coefficients": Spline})
    assert given is NOTHING
    assert options_for(plain) == options_for({"coefficients": "spline"})


@pytest.mark.exhaustive
def test_a_run_begins_at_an_instance_and_knows_it_again(tmp_path):
    steep, folder = Spline(knots=4, C=2.5), tmp_path / "run"
    method = learn(small(), out=folder, **SHORT | {"coefficients": steep, "steps": 1, "lr": 1e-12})
    start = steep.schedule(0.04, 1.0, len(method.schedule))
    np.testing.assert_allclose(method.schedule.a, start.a, rtol=1e-6)
    with pytest.raises(InputError, match="belongs to another configuration: first"):
        learn(small(), out=folder, resume=True, coefficients=Spline(knots=4))
    for same in ({}, {"coefficients": steep}, {"coefficients": "spline"}):
        with pytest.raises(InputError, match="it is finished"):  # and of this configuration
            learn(small(), out=folder, resume=True, **same)


def test_learning_shortens_the_stopping_time(unbroken):
    folder, method = unbroken
    lines = metrics(folder)
    assert lines[-1]["stopping_time"] < lines[0]["stopping_time"]
    assert method.statistics["validation"]["feasible"]
    assert method.certificate["levels"]["flow"] == (
        method.certificate["margins"]["convergence"] > 0
    )


def test_the_saved_method_is_the_returned_one_and_solves(unbroken):
    folder, method = unbroken
    saved = Method.load(folder / "method.safetensors")
    np.testing.assert_array_equal(saved.schedule.a, method.schedule.a)
    assert saved.provenance["finished"]
    assert len(saved.provenance["family"]["hash"]) == 64
    problem = small().sample(5, part="test")
    np.testing.assert_array_equal(saved.start_of(problem), problem.start().x0)
    learned = solve(problem, method=saved, tol=1e-2)
    default = solve(problem, problem.start(), method="eigac-c1", tol=1e-2)
    assert learned.success
    assert learned.iterations < default.iterations


def test_a_run_that_was_broken_off_ends_like_an_unbroken_one(unbroken, tmp_path):
    folder, whole = unbroken
    broken = tmp_path / "run"
    learn(small(), out=broken, callback=lambda step: step.line["step"] == 2, **SHORT)
    assert len(metrics(broken)) == 3
    with (broken / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 3, "half a li')  # a crash in the middle of a line
    method = learn(small(), out=broken, resume=True, **SHORT)
    assert metrics(broken) == metrics(folder)
    np.testing.assert_array_equal(method.schedule.a, whole.schedule.a)


def test_ctrl_c_keeps_what_was_earned(unbroken, tmp_path):
    def interrupt(step):
        if step.line["step"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(small(), out=tmp_path / "run", callback=interrupt, **SHORT)
    learn(small(), out=tmp_path / "run", resume=True, **SHORT)
    assert metrics(tmp_path / "run") == metrics(unbroken[0])


def test_an_interruption_inside_a_step_goes_back_to_the_one_before(unbroken, tmp_path):
    training = start_run(small(), make_options(SHORT), tmp_path / "run", False)
    real, calls = training.stage.validated, []

    def interrupted(state):
        calls.append(state)
        if len(calls) == 3:
            raise KeyboardInterrupt  # the step's update is made, its validation is not
        return real(state)

    training.stage.validated = interrupted
    with pytest.raises(KeyboardInterrupt):
        training.run()
    learn(small(), out=tmp_path / "run", resume=True, **SHORT)
    assert metrics(tmp_path / "run") == metrics(unbroken[0])


def test_an_interruption_before_the_first_step_does_not_judge_the_start_twice(tmp_path):
    def interrupted(*args):
        raise KeyboardInterrupt

    training = start_run(small(), make_options(SHORT), tmp_path / "run", False)
    training.stage.step = interrupted
    with pytest.raises(KeyboardInterrupt):
        training.run()
    again = start_run(small(), make_options(SHORT), tmp_path / "run", True)
    again.run(lambda step: True)
    assert (again.position.step, again.position.stale) == (1, 0)


@pytest.mark.exhaustive  # the next test kills where it hurts most
def test_kill_9_and_resume_give_the_same_metrics(unbroken, tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_training import SHORT, learn, small\n"
        f"learn(small(), out={str(tmp_path / 'run')!r}, **SHORT)"
    )
    log = tmp_path / "run" / "metrics.jsonl"
    with subprocess.Popen([sys.executable, "-c", script]) as child:
        try:
            while not (log.exists() and log.stat().st_size):
                assert child.poll() is None
                time.sleep(0.01)
        finally:
            child.kill()
    learn(small(), out=tmp_path / "run", resume=True, **SHORT)
    assert metrics(tmp_path / "run") == metrics(unbroken[0])


def test_kill_9_while_a_checkpoint_is_written_goes_back_to_the_one_before(unbroken, tmp_path):
    folder = tmp_path / "run"
    script = (
        f"import os, signal, sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_training import SHORT, learn, small\n"
        "def look(event, args):\n"
        "    if event == 'os.rename' and str(args[1]).endswith('step-000004.safetensors'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(look)\n"
        f"learn(small(), out={str(folder)!r}, **SHORT)"
    )
    child = subprocess.run([sys.executable, "-c", script], timeout=300, check=False)
    assert child.returncode == -signal.SIGKILL
    assert len(list(folder.glob("checkpoints/.ode2opt-*"))) == 1
    learn(small(), out=folder, resume=True, **SHORT)
    assert metrics(folder) == metrics(unbroken[0])
    assert list(folder.rglob(".*")) == []


def test_a_full_disk_keeps_the_last_checkpoint(unbroken, tmp_path, monkeypatch):
    from ode2opt.learning import run_directory

    real, saved = run_directory.write_atomically, []

    def full(path, write):
        if path.parent.name == "checkpoints" and len(saved) == 2:
            raise OSError(28, "No space left on device")
        saved.append(path) if path.parent.name == "checkpoints" else None
        real(path, write)

    monkeypatch.setattr(run_directory, "write_atomically", full)
    with pytest.raises(Ode2OptError, match=r"No space left.*step-000002.*--resume"):
        learn(small(), out=tmp_path / "run", **SHORT)
    monkeypatch.setattr(run_directory, "write_atomically", real)
    learn(small(), out=tmp_path / "run", resume=True, **SHORT)
    assert metrics(tmp_path / "run") == metrics(unbroken[0])


def test_what_cannot_be_resumed_is_said(unbroken, tmp_path):
    folder, _ = unbroken
    with pytest.raises(InputError, match="nothing to resume"):
        learn(small(), out=tmp_path, resume=True, **SHORT)
    with pytest.raises(InputError, match="it is finished"):
        learn(small(), out=folder, resume=True, **SHORT)
    with pytest.raises(
        InputError, match="belongs to another configuration: steps is 6 there and 9"
    ):
        learn(small(), out=folder, resume=True, **SHORT | {"steps": 9})
    with pytest.raises(InputError, match="belongs to another configuration: hash"):
        learn(small(l2=0.5), out=folder, resume=True, **SHORT)
    with pytest.raises(InputError, match="holds a run already"):
        learn(small(), out=folder, **SHORT)
    with pytest.raises(InputError, match="name the run's folder"):
        learn(small(), resume=True, **SHORT)


def test_a_family_that_never_reaches_the_tolerance_is_told_at_once(tmp_path):
    with pytest.raises(Ode2OptError, match=r"within 80 iterations: raise .* nothing to resume"):
        learn(small(), **SHORT | {"tol": 1e-13})


def test_a_function_that_is_not_convex_is_named_once():

    def hill(x):
        """Two valleys along the second variable; the start is on the hill between them."""
        y = x[1] - 0.4
        return 2 * x[0] ** 2 + y**4 / 4 - y**2 / 2

    def sampler(rng):
        return Problem.from_function(hill, n=2)

    with pytest.warns(UserWarning, match="Training problem 0 of sampler.*is not convex") as seen:
        learn(
            Family.from_sampler(sampler),
            callback=lambda step: step.line["step"] == 1,
            **SHORT | {"tol": 1e-1},
        )
    assert len([w for w in seen if "not convex" in str(w.message)]) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"coefficients": "magic"}, "Unknown coefficients 'magic'"),
        ({"coefficients": 3}, "a class of ode2opt.coefficients as Spline, or an instance"),
        ({"coefficients": dict}, "or an instance as Spline"),
        ({"coefficients": Default}, "Unknown coefficients 'default'"),
        ({"coefficients": Spline(7.0), "alpha": 6.0}, "alpha is 6.0, but the coefficients have 7"),
        ({"coefficients": Feasible(h=0.05), "h": 0.04}, "h is 0.04, but the coefficients have"),
        ({"coefficients": Spline(), "target": "sequence"}, "are for --target flow"),
        ({"first": {"settings": 1}}, "no settings and parameters"),
        ({"optimizer": "adamm"}, "did you mean 'adam'"),
        ({"steps": 0}, "steps is 0"),
        ({"lr": -1}, "lr is -1"),
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"alpha": 30.0}, "t0 = 1 must exceed"),
        ({"kappa": 2.0}, "kappa is 2"),
        ({"lam": 9.0}, "lam is 9"),
        ({"safety": 0.5}, "safety is 0.5"),
        ({"momentum": 1.0}, "momentum is 1"),
        ({"epochs": 3}, "has no option epochs"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(InputError, match=said):
        learn(small(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "sgd", "decay": "constant", "estimator": "global", "scale": "family"},
        {"optimizer": "adamw", "decay": "exponential", "coefficients": "neural",
         "activation": "relu", "learn_alpha": True, "estimator": "l0l1"},
    ],
)  # fmt: skip
def test_every_way_of_training_makes_a_method(options):
    training = start_run(small(), make_options(SHORT | {"steps": 2} | options), None, False)
    before = training.stage.stopm.learned(training.state).parameters()
    method = training.run()
    after = training.stage.stopm.learned(training.state).parameters()
    moved = {name for name in before if np.any(before[name] != after[name])}
    assert ("alpha" in moved) == options.get("learn_alpha", False)
    assert len(moved) >= 2
    assert (method.family_scale is not None) == (options.get("scale") == "family")


def test_what_is_no_family_is_told_with_the_way_out(rng):
    problem = Logistic(rng.standard_normal((20, 2)), np.arange(20) % 2)
    with pytest.raises(InputError, match=r"needs a Family of problems, not Logistic: see Family\."):
        learn(problem)


def test_the_old_name_of_a_training_step_works_and_warns():
    import ode2opt.learning

    with pytest.warns(DeprecationWarning, match="TrainingStep"):
        old = ode2opt.learning.Step
    assert old is ode2opt.learning.TrainingStep
