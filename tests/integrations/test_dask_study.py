"""bench, reproduce and train on the workers of a real cluster: the same numbers, whatever dies."""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from support import interrupted

from ode2opt import Family, InputError
from ode2opt.base.errors import WorkersLostError
from ode2opt.executor import THIS_PROCESS
from ode2opt.integrations.dask import DaskExecutor
from ode2opt.study.benchmark import Settings, run_benchmark
from ode2opt.study.reproduction import plan, running
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.plan import Effort, Item

SETTINGS = Settings(("nag", "lbfgs", "memory"), instances=6, max_iter=60, jobs=1)
TINY = Effort(instances=2)


@pytest.fixture(scope="module")
def family():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 6)) * np.logspace(0, -1, 6)
    b = (A @ np.ones(6) + 0.5 * rng.standard_normal(300) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=60, l2=1e-2)


def without_seconds(found):
    if isinstance(found, list):
        return [without_seconds(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {name: without_seconds(one) for name, one in found.items() if "seconds" not in name}


def kill_one(cluster):
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)


@pytest.mark.parametrize("killed", [None, 2])
def test_a_benchmark_has_the_numbers_of_one_process(client, cluster, family, killed):
    due = run_benchmark(family, SETTINGS)
    done = []

    def advance():
        done.append(1)
        if len(done) == killed:
            kill_one(cluster)

    found = run_benchmark(family, SETTINGS, advance, DaskExecutor(client))
    assert len(done) == SETTINGS.instances
    assert without_seconds(found.statistics()) == without_seconds(due.statistics())


def test_items_of_a_study_have_the_numbers_of_one_process(client, cluster, tmp_path):
    """While they are made, a worker is killed."""
    items = [Item("classics", problem, "breast_cancer") for problem in plan.PROBLEMS]
    prints, found = {(item.problem, item.dataset): "x" for item in items}, []
    for name, executor in (("alone", THIS_PROCESS), ("workers", DaskExecutor(client))):
        store = Store(tmp_path / name, {}, prints)
        timer = threading.Timer(0.5, kill_one, (cluster,))
        if executor.remote:
            timer.start()
        assert running.run_items(store, TINY, items, executor) == []
        found.append([without_seconds(store.load(item)) for item in items])
    timer.join()
    assert found[0] == found[1]


def test_more_items_than_are_under_way_come_in_order_or_as_they_are_done(client):
    executor, items = DaskExecutor(client), range(20)
    assert list(executor.map(max, 5, items)) == [max(5, i) for i in items]
    assert sorted(executor.map(max, 5, items, ordered=False)) == [max(5, i) for i in items]


def test_work_that_is_no_longer_wanted_is_given_up(client):
    found = DaskExecutor(client).map(slowly, 0.01, range(400))
    assert next(found) == 0
    found.close()
    ended = time.monotonic() + 20
    while (left := client.run_on_scheduler(unfinished)) and time.monotonic() < ended:
        time.sleep(0.1)
    assert left == 0


def slowly(seconds, item):
    time.sleep(seconds)
    return item


def unfinished(dask_scheduler):
    """On the scheduler: how many such tasks it has yet to finish."""
    return sum(str(key).startswith("_done") for key in dask_scheduler.tasks)


def test_a_folder_that_workers_do_not_see_is_told(client, tmp_path):
    DaskExecutor(client).check_folder(tmp_path)
    with pytest.raises(InputError, match=r"does not see .*missing"):
        DaskExecutor(client).check_folder(tmp_path / "missing")


def test_what_fails_on_a_worker_is_told(client):
    def spoiled(shared, item):
        raise InputError(f"Item {item} is spoiled.")

    with pytest.raises(InputError, match="Item 7 is spoiled"):
        list(DaskExecutor(client).map(spoiled, None, [7]))


@pytest.mark.parametrize(
    "command",
    [
        ["bench", "logistic", "breast_cancer", "--methods", "lbfgs", "--instances", "3"],
        ["train", "logistic", "breast_cancer", "--target", "sequence", "--steps", "0"],
    ],
)
def test_commands_share_their_work(run_cli, cluster, tmp_path, command):
    found = []
    for name, more in (("alone", []), ("shared", ["--cluster", cluster.scheduler_address])):
        out = ["--out", tmp_path / name] if command[0] == "train" else ["--jobs", "1"]
        code, text, err = run_cli(*command, *out, *more, "--json", "-")
        link = f"Dask's dashboard: {cluster.dashboard_link}\n" if more else ""
        assert (code, err) == (0, link)
        found.append(without_seconds(json.loads(text)) | {"run": None})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["bench", "logistic", "breast_cancer", "--workers", "2"], "is for --cluster local"),
        (["train", "logistic", "breast_cancer", "--workers", "2"], "is for --cluster local"),
        (["reproduce", "--only", "table1", "--workers", "2"], "is for --cluster local"),
        (["bench", "logistic", "breast_cancer", "--cluster", "tcp://127.0.0.1:9"], "No scheduler"),
        (["train", "logistic", "breast_cancer", "--cluster", "tcp://127.0.0.1:9"], "No scheduler"),
        (["reproduce", "--only", "table1", "--cluster", "tcp://127.0.0.1:9"], "No scheduler"),
    ],
)
def test_wrong_use_is_told(run_cli, tmp_path, monkeypatch, real_data, command, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ode2opt.integrations.dask.clusters.ANSWER", 0.5)
    code, _, err = run_cli(*command)
    assert code == 2
    assert words in " ".join(err.split())


TELLING = """
import contextlib, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background
from ode2opt.cli import bench, main
bench.bar = lambda *given: contextlib.nullcontext(lambda: print("one", flush=True))
main()
"""


@pytest.mark.exhaustive  # a cluster of its own
def test_ctrl_c_ends_a_benchmark_and_leaves_no_process(tmp_path):
    command = [
        sys.executable, "-c", TELLING, "bench", "logistic", "breast_cancer", "--methods", "gd",
        "--instances", "2000", "--max-iter", "3000", "--cluster", "local", "--workers", "2",
    ]  # fmt: skip
    assert "of 2000 instances" in interrupted(command)


def test_workers_that_are_gone_are_told(client, cluster, family, monkeypatch):
    monkeypatch.setattr("ode2opt.integrations.dask.workers.PATIENCE", 1.0)
    settings = replace(SETTINGS, instances=60)

    def send_all_home():
        """Return when no worker is left, so that what is not done yet cannot be done."""
        cluster.scale(0)
        ended = time.monotonic() + 30
        while client.scheduler_info()["workers"] and time.monotonic() < ended:
            time.sleep(0.02)

    try:
        with pytest.raises(WorkersLostError, match="no worker for 1 seconds"):
            run_benchmark(family, settings, send_all_home, DaskExecutor(client))
    finally:
        cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
