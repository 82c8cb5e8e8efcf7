"""Problems on the workers of a real cluster of processes are those of one matrix."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support import interrupted, random_sparse, said_without
from written_losses import LOSSES, Case

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Memory,
    solve,
)
from ode2opt.base.errors import WorkersLostError
from ode2opt.executor import LocalExecutor
from ode2opt.executor.local import MEMORY_SHARE
from ode2opt.integrations import sklearn
from ode2opt.integrations.dask import DaskExecutor, from_dask, open_executor
from ode2opt.integrations.dask.clusters import check_versions
from ode2opt.integrations.dask.groups import group_size
from ode2opt.integrations.dask.workers import teams
from ode2opt.problems.parts import Block, Parts, files_in_parts
from ode2opt.solvers.result import Status

N, n = 240, 5
X0 = da.ones((6, 2), chunks=3)
CUTS = [0, 30, 30, 31, 100, 101, 180, N]  # uneven, one part without rows


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((N, n))
    z = A @ rng.standard_normal(n) + rng.standard_normal(N)
    return A, z, (z > 0).astype(float)


def pieces(A, b, **more):
    """Uneven parts, one of them without rows."""
    return [
        Piece(f"Piece {i}", Block(A[i:j], b[i:j], **{name: v[i:j] for name, v in more.items()}))
        for i, j in pairwise(CUTS)
    ]


class Piece:
    """A source that travels to the workers with its rows."""

    def __init__(self, name, block):
        self.name, self.block, self.bytes = name, block, len(block)

    def read(self):
        return self.block


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "lpp6"])
def test_every_loss_has_the_answers_and_the_solution_of_one_matrix(client, loss):
    case = Case(loss, "all", N=N, n=n)
    options = case.options | {"intercept": loss != "softmax"}  # free up to one number
    own = {name: options.pop(name) for name in ("weights", "offset") if name in options}
    A = sp.csr_array(case.A) if loss == "huber" else case.A
    mine = Parts(case.kind, pieces(A, case.b, **own), executor=DaskExecutor(client), **options)
    whole = case.kind(A, case.b, **own, **options)
    x, v = np.linspace(-0.3, 0.3, mine.n), np.arange(mine.n) / mine.n
    close = {"rtol": 1e-11, "atol": 1e-13}
    for found, due in zip(mine.value_and_gradient(x), whole.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(found, due, **close)
    np.testing.assert_allclose(mine.hvp(x, v), whole.hvp(x, v), **close)
    for name in ("hessian", "hessian_diagonal", "gradient_error", "unseen_curvature"):
        np.testing.assert_allclose(getattr(mine, name)(x), getattr(whole, name)(x), **close)
    index = np.array([0, 29, 30, 31, 99, 150, N - 1])
    np.testing.assert_allclose(mine.subset(index).gradient(x), whole.subset(index).gradient(x))
    assert mine.passes == 8
    found, due = (solve(problem, tol=1e-10) for problem in (mine, whole))
    assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_any_number_of_parts_has_the_sums_of_threads(client, data, count):
    A, z, _ = data
    parts = list(zip(np.array_split(A, count), np.array_split(z, count), strict=True))
    mine, due = (
        Parts(Huber, parts, executor=one) for one in (DaskExecutor(client), LocalExecutor())
    )
    x = np.ones(n)
    np.testing.assert_allclose(mine.gradient(x), due.gradient(x), rtol=1e-12, atol=1e-14)


def test_one_executor_serves_several_problems(client, data):
    A, z, b = data
    x, executors = np.full(n, 0.2), [DaskExecutor(client), LocalExecutor(threads=2)]
    for executor in executors:
        first = Parts(Logistic, pieces(A, b), executor=executor)
        second = Parts(LeastSquares, pieces(A[:, :3], z), executor=executor)
        np.testing.assert_allclose(first.gradient(x), Logistic(A, b).gradient(x), rtol=1e-11)
        due = LeastSquares(A[:, :3], z).gradient(x[:3])
        np.testing.assert_allclose(second.gradient(x[:3]), due, rtol=1e-11)
        np.testing.assert_array_equal(list(executor.map(max, 2, [1, 3])), [2, 3])


def test_solvers_and_memories_find_the_point_of_one_matrix(client, data):
    A, _, b = data
    due = solve(Logistic(A, b, l2=0.01), tol=1e-10)
    mine, memory = Parts(Logistic, pieces(A, b), executor=DaskExecutor(client), l2=0.01), Memory()
    for options in ({"method": "lbfgs"}, {"memory": memory}, {"memory": memory}):
        found = solve(mine, tol=1e-10, **options)
        assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)
    assert "2 workers" in mine.held.description()


def test_a_large_point_goes_to_each_worker_once(client, data):
    A = random_sparse(np.random.default_rng(0), (60, 20_000), 0.01)
    b = np.arange(60.0)
    parts = [Piece("a", Block(A[:20], b[:20])), Piece("b", Block(A[20:], b[20:]))]
    mine = Parts(LeastSquares, parts, executor=DaskExecutor(client))
    x = np.linspace(0, 1, 20_000)
    np.testing.assert_allclose(mine.gradient(x), LeastSquares(A, b).gradient(x), atol=1e-12)


def test_dask_arrays_make_a_problem_in_parts(client, data):
    A, _, b = data
    X, y = da.from_array(A, chunks=(70, 2)), da.from_array(b, chunks=100)
    weights = np.linspace(1, 2, N)
    mine = Logistic(X, y, l2=0.01, weights=weights)
    assert isinstance(mine, Parts)
    assert (isinstance(mine, Logistic), mine.kind) == (False, "Logistic")
    assert isinstance(mine.executor, DaskExecutor)
    due = solve(Logistic(A, b, l2=0.01, weights=weights), tol=1e-10)
    np.testing.assert_allclose(solve(mine, tol=1e-10).x, due.x, rtol=1e-8)


def test_dask_frames_make_a_problem_in_parts(client, data):
    A, z, _ = data
    frame = dd.from_pandas(pd.DataFrame(A, columns=list("abcde")).assign(y=z), npartitions=3)
    x = np.full(n, 0.3)
    due = LeastSquares(A, z).gradient(x)
    for mine in (LeastSquares(frame, "y"), LeastSquares(frame[list("abcde")], frame["y"])):
        np.testing.assert_allclose(mine.gradient(x), due, rtol=1e-11)


ESTIMATORS = [
    ("array", sklearn.LogisticRegression, {"C": 0.5}),
    ("array", sklearn.PoissonRegressor, {"alpha": 0.1}),
    ("array", sklearn.LpRegression, {"alpha": 0.01}),
    ("frame", sklearn.Ridge, {"alpha": 3.0}),
    ("array", sklearn.LogisticRegression, {"C": 0.5, "class_weight": "balanced"}),
    ("array", sklearn.LogisticRegression, {"C": 0.5, "l1_ratio": 0.5}),
    ("array", sklearn.Lasso, {"alpha": 0.05}),
    ("frame", sklearn.ElasticNet, {"alpha": 0.05, "fit_intercept": False}),
    ("array", sklearn.ElasticNet, {"alpha": 0.05, "l1_ratio": 0.0}),
    ("array", sklearn.Ridge, {"positive": True}),
    ("array", sklearn.LinearSVC, {"class_weight": {0: 2.0, 1: 1.0, 2: 0.5}}),
    ("frame", sklearn.LinearSVC, {"C": 0.3, "intercept_scaling": 2.0}),
]


@pytest.mark.parametrize(("form", "kind", "options"), ESTIMATORS)
def test_estimators_fit_where_the_rows_are_and_predict_lazily(client, data, form, kind, options):
    A, z, _ = data
    labelled = kind in (sklearn.LogisticRegression, sklearn.LinearSVC)
    y = np.digitize(z, [-1, 1]) if labelled else np.abs(z)
    frame = pd.DataFrame(A, columns=list("abcde"))
    rows, X, targets = A, da.from_array(A, chunks=(90, n)), da.from_array(y, chunks=90)
    if form == "frame":
        rows, X = frame, dd.from_pandas(frame, npartitions=2)
        targets = dd.from_pandas(pd.Series(y), npartitions=2)
    due = kind(tol=1e-9, max_iter=1_000, **options).fit(rows, y)
    found = kind(tol=1e-9, max_iter=1_000, **options).fit(X, targets)
    np.testing.assert_allclose(found.coef_, due.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.intercept_, due.intercept_, rtol=1e-5, atol=1e-7)
    predicted = found.predict(X)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), due.predict(rows), rtol=1e-5, atol=1e-7)
    if kind is sklearn.LinearSVC:
        scores = found.decision_function(X)
        np.testing.assert_allclose(scores.compute(), due.decision_function(rows), atol=1e-6)
    if kind is sklearn.LogisticRegression:
        shares = found.predict_proba(X)
        assert shares.shape[1] == 3
        np.testing.assert_allclose(shares.compute(), due.predict_proba(rows), atol=1e-6)


def test_balanced_classes_count_the_weights_of_rows(client, data):
    A, _, b = data
    weights = np.linspace(0.5, 2, N)
    model = {"tol": 1e-9, "max_iter": 1_000, "class_weight": "balanced"}
    due = sklearn.LogisticRegression(**model).fit(A, b, weights)
    X, y = da.from_array(A, chunks=(90, n)), da.from_array(b, chunks=90)
    for given in (weights, da.from_array(weights, chunks=90)):
        found = sklearn.LogisticRegression(**model).fit(X, y, given)
        np.testing.assert_allclose(found.coef_, due.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        sklearn.LogisticRegression(**model).fit(X, b).coef_,
        sklearn.LogisticRegression(**model).fit(A, b).coef_,
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (sklearn.LogisticRegressionCV(), "LogisticRegressionCV does not take Dask's arrays"),
        (sklearn.HuberRegressor(), "HuberRegressor does not take Dask's arrays"),
    ],
)
def test_estimators_that_cannot_say_so(estimator, words):
    with pytest.raises(InputError, match=words):
        estimator.fit(X0, da.arange(6, chunks=3) % 2)


def test_without_a_client_threads_work_on_dask_arrays(data):
    A, z, _ = data
    mine = from_dask(LeastSquares, da.from_array(A, chunks=(70, n)), z, executor=LocalExecutor())
    np.testing.assert_allclose(mine.gradient(np.ones(n)), LeastSquares(A, z).gradient(np.ones(n)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LeastSquares(X0, da.ones(5)), "b has 5 numbers, but A has 6 rows"),
        (lambda: LeastSquares(X0, np.ones(5)), r"b has shape \(5,\) and A \(6, 2\)"),
        (lambda: LeastSquares(X0[0], np.ones(2)), "must be a matrix"),
        (lambda: LeastSquares(X0, "y"), "There is no column 'y'"),
        (lambda: LeastSquares(X0[X0[:, 0] > 0], da.ones(6)), "b comes in 1 blocks"),
    ],
)
def test_arrays_that_do_not_fit_are_told(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_words_in_a_frame_are_columns(client, kind):
    frame = pd.DataFrame({"a": list("ppqqrr"), "b": np.arange(6.0), "y": [0, 1, 0, 1, 1, 1]})
    parts = dd.from_pandas(frame.astype({"a": kind}), npartitions=3)
    problem = Logistic(parts, "y", l2=0.1)
    A = pd.get_dummies(frame[["b", "a"]], prefix_sep="=", dtype=float)
    assert problem.names == list(A.columns)
    x = np.array([1.0, -2, 3, 4])
    due = Logistic(A.to_numpy(), frame["y"], l2=0.1).gradient(x)
    np.testing.assert_allclose(problem.gradient(x), due)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.date_range("2020", periods=2), "Column 'a' is datetime64.*neither numbers nor words"),
        (pd.Series(["p", None], dtype=object), "1 cells of column 'a' are missing"),
        (pd.Series(["p", 5], dtype=object), "Column 'a' has numbers among its words"),
    ],
)
def test_columns_of_a_frame_that_do_not_fit_are_told(column, words):
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(pd.DataFrame({"a": column, "y": [0, 1]}), npartitions=1)
        with pytest.raises(InputError, match=words):
            Logistic(frame, "y")


def test_a_bad_row_is_named_and_the_workers_go_on(client, data, tmp_path):
    (tmp_path / "a.csv").write_text("p,y\n1,0\n2,1\n")
    (tmp_path / "b.csv").write_text("p,y\n1,0\nnan,1\n")
    for damage, words in (
        ("nan", "b.csv: line 3, column 'p' is missing"),
        ("x", "b.csv: line 3, column 'p'"),
    ):
        (tmp_path / "b.csv").write_text(f"p,y\n1,0\n{damage},1\n")
        with pytest.raises(InputError, match=words):
            Parts(
                Logistic,
                files_in_parts(tmp_path, label="y"),
                labels=True,
                executor=DaskExecutor(client),
            )
    A, _, b = data
    mine = Parts(Logistic, pieces(A, b), executor=DaskExecutor(client))
    assert np.isfinite(mine.value(np.zeros(n)))


@pytest.mark.parametrize("asked", [8, 1])
def test_a_killed_worker_changes_nothing(client, cluster, data, monkeypatch, asked):
    """Whether the client asks it, or the only other worker that it asks does."""
    monkeypatch.setattr("ode2opt.integrations.dask.workers.teams", partial(teams, most=asked))
    A, _, b = data
    client.wait_for_workers(2, timeout=60)
    mine = Parts(Logistic, pieces(A, b), executor=DaskExecutor(client), l2=0.01)
    due = solve(Logistic(A, b, l2=0.01), method="lbfgs", tol=1e-10)

    def kill(progress):
        if progress.iteration == 3:
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    found = solve(mine, method="lbfgs", tol=1e-10, callback=kill)
    assert found.iterations == due.iterations
    assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)


def test_workers_pass_a_question_on(client, data, monkeypatch):
    A, _, b = data
    x = np.full(n, 0.3)
    client.wait_for_workers(2, timeout=60)
    mine = Parts(Logistic, pieces(A, b), executor=DaskExecutor(client))
    due = mine.gradient(x)
    monkeypatch.setattr("ode2opt.integrations.dask.workers.teams", partial(teams, most=1))
    np.testing.assert_array_equal(mine.gradient(x), due)
    with pytest.raises(AttributeError, match="no_such_thing"):
        mine._sum("no_such_thing")


@pytest.mark.parametrize("count", [1, 2, 8, 9, 64, 65, 1_000])
def test_everybody_is_in_one_team_and_nobody_asks_more_than_a_few(count):
    def names(workers):
        led = teams(workers)
        assert len(led) <= 8
        return [name for leader, team in led.items() for name in [leader, *names(team[1:])]]

    everybody = [(f"w{i}", []) for i in range(count)]
    assert sorted(names(everybody)) == sorted(name for name, _ in everybody)


def hold(share):
    """On a worker: how much of its memory it may hold."""
    from ode2opt.integrations.dask import groups

    groups.MEMORY_SHARE = share


def test_what_workers_may_not_hold_is_read_in_each_pass(client, data, tmp_path):
    A, z, _ = data
    for i, (start, end) in enumerate(pairwise([0, 50, 200, N])):
        np.savez(tmp_path / f"{i}.npz", A=A[start:end], b=z[start:end])
    client.run(hold, -1.0)
    try:
        mine = Parts(LeastSquares, files_in_parts(tmp_path), executor=DaskExecutor(client))
        x = np.ones(n)
        np.testing.assert_allclose(mine.gradient(x), LeastSquares(A, z).gradient(x), rtol=1e-11)
        (tmp_path / "1.npz").unlink()
        with pytest.raises(InputError, match=r"1\.npz"):
            mine.gradient(x)
    finally:
        client.run(hold, MEMORY_SHARE)


@pytest.mark.parametrize(
    ("count", "slots", "size"), [(1, 2, 1), (7, 2, 1), (64, 2, 8), (64, 1, 16), (1_000, 4, 32)]
)
def test_groups_are_powers_of_two_and_some_for_each_worker(count, slots, size):
    assert group_size([1_000] * count, slots) == size
    assert group_size([1 << 30] * count, slots) == 1
    assert group_size([1_000] * count, slots, memory=16_000) == 1


def test_an_address_nobody_answers_at_is_told_in_seconds():
    began = time.monotonic()
    with (
        pytest.raises(InputError, match="No scheduler answers at"),
        open_executor("tcp://127.0.0.1:9"),
    ):
        pass
    assert time.monotonic() - began < 30


def test_other_versions_on_a_worker_are_told():
    ours = {"dask": "1", "distributed": "1", "ode2opt": "1"}
    found = {"client": {"packages": ours}, "workers": {"w": {"packages": ours}}}
    check_versions(found)
    for name in ours:
        for other in ("2", None):
            found["workers"]["w"] = {"packages": ours | {name: other}}
            with pytest.raises(InputError, match=f"worker at w has {name}"):
                check_versions(found)


def test_options_of_a_local_cluster_do_not_go_with_an_address():
    with (
        pytest.raises(InputError, match="are for --cluster local"),
        open_executor("tcp://x:1", workers=2),
    ):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """The rows in three CSV files."""
    A, _, b = data
    where = tmp_path_factory.mktemp("parts")
    frame = pd.DataFrame(A, columns=list("abcde")).assign(y=np.where(b, "yes", "no"))
    for i, (start, end) in enumerate(pairwise([0, 50, 200, N])):
        frame[start:end].to_csv(where / f"part-{i}.csv", index=False)
    return where


def test_a_pattern_is_solved_on_a_running_cluster(run_cli, cluster, folder, data, tmp_path):
    A, _, b = data
    code, out, err = run_cli(
        "solve", folder / "part-*.csv", "--problem", "logistic", "--label", "y", "--l2", 1e-2,
        "--scale-columns", "--cluster", cluster.scheduler_address, "--tol", 1e-10,
        "--out", tmp_path / "x.npz", "--json", "-",
    )  # fmt: skip
    assert (code, err) == (0, f"Dask's dashboard: {cluster.dashboard_link}\n")
    assert json.loads(out)["success"]
    sizes = abs(A).max(axis=0)
    due = solve(Logistic(A / sizes, b, l2=1e-2), tol=1e-10).x / sizes
    np.testing.assert_allclose(np.load(tmp_path / "x.npz")["x"], due, rtol=1e-7)


TELLING = """
import contextlib, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background
from ode2opt.cli import main, solve
solve.spinner = lambda *given: contextlib.nullcontext(lambda progress: print("one", flush=True))
main()
"""


def test_ctrl_c_writes_the_best_point_and_leaves_no_process(folder, tmp_path):
    command = [
        sys.executable, "-c", TELLING, "solve", str(folder), "--problem", "logistic",
        "--cluster", "local", "--workers", "2", "--memory-limit", "2GB",
        "--method", "gd", "--tol", "1e-15", "--out", str(tmp_path / "x.npz"),
    ]  # fmt: skip
    err = interrupted(command)
    assert "Interrupted; this is the best point so far" in err
    assert err.startswith("Dask's dashboard: http://127.0.0.1:")
    assert np.isfinite(np.load(tmp_path / "x.npz")["x"]).all()


KEEPING = """
from ode2opt.cli import main
from ode2opt.cli.fitted import KeptPoint
KeptPoint.seconds = 0.0
keep = KeptPoint.keep
KeptPoint.keep = lambda *given: (keep(*given), print("kept", flush=True))
main()
"""


def test_a_client_that_is_killed_is_started_again(run_cli, client, cluster, folder, data, tmp_path):
    """On a cluster that goes on: the point is taken up, and nothing of the first client stays."""
    command = [
        "solve", str(folder), "--problem", "logistic", "--label", "y", "--l2", "1e-3",
        "--cluster", cluster.scheduler_address, "--out", str(tmp_path / "x.npz"), "--json", "-",
    ]  # fmt: skip
    slow = ["--method", "gd", "--tol", "1e-15"]
    run = subprocess.Popen(
        [sys.executable, "-c", KEEPING, *command, *slow], stdout=subprocess.PIPE, text=True
    )
    try:
        assert [run.stdout.readline() for _ in range(5)] == ["kept\n"] * 5
    finally:
        run.kill()
        run.communicate()
    kept = np.load(tmp_path / "x.npz.partial")["grad_norm"]
    code, out, _ = run_cli(*command, "--resume", "--max-iter", 0)
    assert (code, json.loads(out)["grad_norm"]) == (1, pytest.approx(kept, rel=1e-9))
    code, _, _ = run_cli(*command, "--resume", "--tol", 1e-10)
    A, _, b = data
    due = solve(Logistic(A, b, l2=1e-3), tol=1e-10).x
    np.testing.assert_allclose(np.load(tmp_path / "x.npz")["x"], due, rtol=1e-7)
    assert (code, (tmp_path / "x.npz.partial").exists()) == (0, False)

    def clients(own, dask_scheduler):
        known = dask_scheduler.clients.items()
        return [name for name, one in known if one.wants_what and name != own]

    ended = time.monotonic() + 20
    while (left := client.run_on_scheduler(clients, client.id)) and time.monotonic() < ended:
        time.sleep(0.2)
    assert left == []


def test_solving_does_not_import_dask():
    code = (
        "import sys, numpy as np, ode2opt\n"
        "ode2opt.solve(ode2opt.Logistic(np.eye(3), [0, 1, 1], l2=1.0))\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_package_is_told():
    assert "pip install 'ode2opt[dask]'" in said_without("dask", "import ode2opt.integrations.dask")


def test_a_worker_that_nobody_replaces_and_then_the_scheduler_are_gone(folder, tmp_path, data):
    """The other worker finds the point alone; then the best one is left within 30 seconds."""
    file, own = tmp_path / "scheduler.json", [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", ":0"]
    scheduler = subprocess.Popen([*own, "scheduler", "--scheduler-file", file, *options], **quiet)
    command = [*own, "worker", "--scheduler-file", file, "--no-dashboard", "--no-nanny"]
    one, other = (subprocess.Popen(command, **quiet) for _ in range(2))

    def killing(process, progress):
        if progress.iteration == 2:
            process.kill()

    A, _, b = data
    due = solve(Logistic(A, b, l2=0.01), method="lbfgs", tol=1e-10).x
    try:
        while not file.exists():
            time.sleep(0.2)
        with open_executor(json.loads(file.read_text())["address"]) as executor:
            executor.client.wait_for_workers(2, timeout=60)
            mine = Parts(Logistic, files_in_parts(folder), executor=executor, labels=True, l2=0.01)
            found = solve(mine, method="lbfgs", tol=1e-10, callback=partial(killing, one))
            assert np.linalg.norm(found.x - due) <= 1e-8 * np.linalg.norm(due)
            began = time.monotonic()
            found = solve(mine, method="lbfgs", tol=1e-10, callback=partial(killing, scheduler))
            assert time.monotonic() - began < 30
        assert found.status is Status.WORKERS_LOST
        assert np.isfinite(found.x).all()
    finally:
        for process in (scheduler, one, other):
            process.kill()
            process.wait()


def test_workers_that_are_gone_leave_the_best_point(client, cluster, data, monkeypatch):
    """The workers are sent away, and called back for other tests."""
    monkeypatch.setattr("ode2opt.integrations.dask.workers.PATIENCE", 1.0)
    A, _, b = data
    mine = Parts(Logistic, pieces(A, b), executor=DaskExecutor(client), l2=0.01)

    def dismiss(progress):
        if progress.iteration == 2:
            cluster.scale(0)

    found = solve(mine, method="lbfgs", tol=1e-10, callback=dismiss)
    assert found.status is Status.WORKERS_LOST
    assert found.grad_norm < np.linalg.norm(Logistic(A, b, l2=0.01).gradient(np.zeros(n)))
    with pytest.raises(WorkersLostError, match="no worker for 1 seconds"):
        mine.gradient(np.zeros(n))
    cluster.scale(2)
    client.wait_for_workers(2, timeout=60)
