"""Training with workers that help is, bit for bit, training alone."""

import json
import os
import signal

import numpy as np
import pytest

from ode2opt import Family, Method, learn
from ode2opt.base.errors import InputError, WorkersLostError
from ode2opt.executor import THIS_PROCESS
from ode2opt.integrations.dask import DaskExecutor
from ode2opt.learning.sequence.background import MetricRecipe
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand

FLOW = {
    "coefficients": "spline", "steps": 3, "batch": 3, "validate_every": 2, "validation": 2,
    "horizon": 80, "tol": 1e-2,
}  # fmt: skip
SEQUENCE = {
    "target": "sequence", "metric": "diagonal", "steps": 4, "batch": 3, "validate_every": 3,
    "validation": 2, "tol": 1e-2, "horizon": 30, "knots": 4,
}  # fmt: skip
INSTANT = {"target": "sequence", "metric": "diagonal", "steps": 0, "validation": 2, "tol": 1e-2}
CASES = {"flow": FLOW, "sequence": SEQUENCE, "instant": INSTANT}


def family():
    """Problems of the shape of those in tests/learning/test_training.py: compiled once for both."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 5)) * np.logspace(0, -1, 5)
    b = (A @ np.ones(5) + 0.5 * rng.standard_normal(400) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=100, l2=0.02)


@pytest.fixture(scope="module", autouse=True)
def _two_ways():
    """Two restarts, cheaply; workers need not know."""
    recipes = [MetricRecipe("diagonal", "start"), MetricRecipe("diagonal", "path")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SolvedBeforehand, "recipes", lambda self: recipes)
        yield


def metrics(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) | {"seconds": None} for line in lines]


def without_seconds(found):
    if not isinstance(found, dict):
        return found
    return {key: without_seconds(value) for key, value in found.items() if key != "seconds"}


def assert_same(one, other):
    """All that a method is, but for seconds."""
    for name in ("horizon", "tol", "family_scale", "guard", "certificate", "provenance"):
        assert getattr(one, name) == getattr(other, name), name
    assert without_seconds(one.statistics) == without_seconds(other.statistics)
    assert (one.schedule is None) == (other.schedule is None)
    if one.schedule is not None:
        for name in "acd":
            np.testing.assert_array_equal(
                getattr(one.schedule, name), getattr(other.schedule, name)
            )
    if one.metric is not None:
        np.testing.assert_array_equal(one.metric.scale, other.metric.scale)
    if one.formula is not None:
        for name, values in one.formula.parameters.items():
            np.testing.assert_array_equal(values, other.formula.parameters[name])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What is learned without help."""
    folders = {name: tmp_path_factory.mktemp("alone") / name for name in CASES}
    return folders, {
        name: learn(family(), out=folders[name], **options) for name, options in CASES.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_workers_change_no_bit(client, alone, tmp_path, name):
    found = learn(family(), out=tmp_path / "run", executor=DaskExecutor(client), **CASES[name])
    assert_same(found, alone[1][name])
    assert_same(Method.load(tmp_path / "run" / "method.safetensors"), found)
    assert metrics(tmp_path / "run") == metrics(alone[0][name])


@pytest.mark.exhaustive  # two workers are started anew
def test_a_killed_worker_changes_no_bit(client, cluster, alone, tmp_path):
    def kill(step):
        if step.done in (1, 5):  # in a restart, and in the last stage
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    executor = DaskExecutor(client)
    found = learn(family(), out=tmp_path / "run", callback=kill, executor=executor, **SEQUENCE)
    assert_same(found, alone[1]["sequence"])
    assert metrics(tmp_path / "run") == metrics(alone[0]["sequence"])


def test_begun_with_workers_it_is_gone_on_with_alone(client, alone, tmp_path):
    executor, folder = DaskExecutor(client), tmp_path / "run"
    learn(family(), out=folder, callback=lambda step: step.done == 3, executor=executor, **SEQUENCE)
    assert_same(learn(family(), out=folder, resume=True), alone[1]["sequence"])
    assert metrics(folder) == metrics(alone[0]["sequence"])


def test_where_all_are_gone_the_last_step_is_kept(alone, tmp_path):
    class Leaving:
        """An executor whose workers leave after some calls."""

        remote, left = False, 6

        def map(self, work, shared, items, threads=False):
            self.left -= 1
            if self.left < 0:
                raise WorkersLostError("The cluster has had no worker for 20 seconds.")
            return THIS_PROCESS.map(work, shared, items)

    with pytest.raises(WorkersLostError):
        learn(family(), out=tmp_path / "run", executor=Leaving(), **SEQUENCE)
    done = len(metrics(tmp_path / "run"))
    assert done > 0
    assert_same(learn(family(), out=tmp_path / "run", resume=True), alone[1]["sequence"])
    assert metrics(tmp_path / "run") == metrics(alone[0]["sequence"])


def test_an_error_on_a_worker_is_told(client):
    def spoiled(shared, item):
        raise InputError(f"Problem {item} is not to be had.")

    with pytest.raises(InputError, match="Problem 0 is not to be had"):
        list(DaskExecutor(client).map(spoiled, None, [0, 1]))
    found = DaskExecutor(client).map(lambda shared, item: shared + item, 1, range(5))
    assert list(found) == [1, 2, 3, 4, 5]
