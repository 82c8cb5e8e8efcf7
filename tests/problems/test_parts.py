"""Problems in parts are those of one matrix with all rows, in this process."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from written_losses import LOSSES

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Memory,
    Softmax,
    solve,
)
from ode2opt.executor import LocalExecutor
from ode2opt.problems import ScaledHuber
from ode2opt.problems.parts import Block, Parts, files_in_parts
from ode2opt.problems.parts.blocks import FirstPass, RowsInMemory
from ode2opt.solvers.result import Status

N, n = 331, 6
KINDS = {name: LOSSES[name] for name in LOSSES if name != "lpp6"}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.5)
    z = A @ rng.standard_normal(n)
    weights, offset = rng.random(N) * (rng.random(N) < 0.9), 0.1 * rng.standard_normal(N)
    return A, {name: KINDS[name].targets(z, rng) for name in KINDS}, weights, offset


def cut(count):
    """Uneven parts, one of them without rows where there are several."""
    ends = np.sort(np.random.default_rng(count).choice(np.arange(1, N), count - 1, replace=False))
    if count > 2:
        ends[1] = ends[0]
    return [slice(*pair) for pair in zip([0, *ends], [*ends, N], strict=True)]


def both(data, name, count, *, sparse=False, weighted=False, shifted=False, **options):
    """The problem of one matrix, and the same in parts."""
    A, targets, weights, offset = data
    kind, own, *_ = KINDS[name]
    b = np.asarray(targets[name], dtype=float)
    form = sp.csr_array if sparse else np.asarray
    extra = ({"weights": weights} if weighted else {}) | ({"offset": offset} if shifted else {})
    whole = kind(form(A), b, **own, **extra, **options)
    blocks = [
        Block(form(A[rows]), b[rows], **{key: values[rows] for key, values in extra.items()})
        for rows in cut(count)
    ]
    return whole, Parts(kind, blocks, executor=LocalExecutor(threads=3), **own, **options)


CASES = [
    (name, count, how)
    for name in KINDS
    for count, how in [
        (1, {}),
        (2, {"shifted": name != "softmax", "weighted": True}),
        (7, {"sparse": True, "l2": 0.01}),
        (64, {"weighted": True, "intercept": True, "l2": 0.01}),
    ]
]


@pytest.mark.parametrize(("name", "count", "how"), CASES)
def test_every_derivative_is_that_of_one_matrix(data, name, count, how, rng):
    whole, parts = both(data, name, count, **how)
    x, v = 0.3 * rng.standard_normal((2, whole.n))
    assert (parts.n, parts.N, parts.kind) == (whole.n, N, whole.kind)
    close = {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(parts.value(x), whole.value(x), **close)
    np.testing.assert_allclose(parts.gradient(x), whole.gradient(x), **close)
    for mine, theirs in zip(parts.value_and_gradient(x), whole.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(mine, theirs, **close)
    np.testing.assert_allclose(parts.hvp(x, v), whole.hvp(x, v), **close)
    np.testing.assert_allclose(parts.hessian(x), whole.hessian(x), **close)
    np.testing.assert_allclose(parts.hessian_diagonal(x), whole.hessian_diagonal(x), **close)
    np.testing.assert_allclose(parts.value_at_zero(), whole.value_at_zero(), **close)
    np.testing.assert_allclose(parts.gradient_error(x), whole.gradient_error(x), **close)
    np.testing.assert_allclose(parts.unseen_curvature(x), whole.unseen_curvature(x), **close)
    here, there = parts.at(x), parts.at(v)
    due = whole.mean_hvp(whole.at(x), whole.at(v), v)
    np.testing.assert_allclose(parts.mean_hvp(here, there, v), due, **close)
    if whole.slope_bound is not None:
        np.testing.assert_allclose(parts.smoothness(), whole.smoothness(), rtol=1e-6)
    if name == "softmax":
        for each in (True, False):
            mine, due = (problem.class_hessians(x, each) for problem in (parts, whole))
            np.testing.assert_allclose(mine, due, **close)


@pytest.mark.parametrize("how", [{}, {"sparse": True, "weighted": True}])
def test_costs_and_so_plans_are_those_of_one_matrix(data, how):
    whole, parts = both(data, "logistic", 7, **how)
    for name in ("gradient_flops", "hessian_flops", "entries", "extent", "largest_sample", "grams"):
        assert getattr(parts, name)() == getattr(whole, name)(), name


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_a_sample_has_the_rows_that_were_asked_for(data, order):
    whole, parts = both(data, "poisson", 7, sparse=True, weighted=True, shifted=True, l2=0.1)
    index = np.random.default_rng(0).choice(N, 40, replace=False)
    index = np.sort(index) if order == "sorted" else index
    mine, due = parts.subset(index), whole.subset(index)
    np.testing.assert_array_equal(mine.A.toarray(), due.A.toarray())
    for name in ("b", "weights", "offset"):
        np.testing.assert_allclose(getattr(mine, name), getattr(due, name), rtol=1e-14)
    x = np.full(n, 0.1)
    np.testing.assert_allclose(mine.gradient(x), due.gradient(x), rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "newton", "lbfgs", "nag", "eigac-c1"])
def test_solvers_find_the_same_point(data, method):
    whole, parts = both(data, "logistic", 7, weighted=True, intercept=True, l2=0.01)
    due, found = (solve(problem, method=method, tol=1e-11) for problem in (whole, parts))
    assert found.success
    assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("name", KINDS)
def test_auto_plans_alike_and_finds_the_same_point_for_every_kind(data, name, count):
    border = {"intercept": name != "softmax"}  # its intercepts are free up to one number
    how = {1: {}, 2: {"sparse": True}, 7: {"weighted": True}, 64: border}[count]
    whole, parts = both(data, name, count, l2=0.01, **how)
    due, found = (solve(problem, tol=1e-10) for problem in (whole, parts))
    assert found.success
    if name != "squaredhinge":  # whose rows with curvature are picked where all are at hand
        assert found.method == due.method
        assert found.oracle_calls == pytest.approx(due.oracle_calls, abs=2)
    assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)


def test_a_problem_that_whitens_itself_samples_across_parts():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40_000, 50)) @ rng.standard_normal((50, 50))
    b = (A @ rng.standard_normal(50) + 40 * rng.standard_normal(40_000) > 0).astype(float)
    whole, cuts = Logistic(A, b, l2=1e-4), [0, 100, 101, 1_500, 40_000]
    blocks = [(A[i:j], b[i:j]) for i, j in pairwise(cuts)]
    due, found = solve(whole, tol=1e-9), solve(Parts(Logistic, blocks, l2=1e-4), tol=1e-9)
    assert "rows solved" in found.method
    assert (found.method, found.iterations) == (due.method, due.iterations)
    assert np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x)


def test_a_memory_of_whole_problems_knows_those_in_parts(data):
    whole, parts = both(data, "logistic", 2, l2=0.01)
    memory = Memory()
    for problem in (whole, parts, parts, parts):
        assert solve(problem, memory=memory, tol=1e-8).success
    assert memory.solves == 4


def test_sums_depend_on_nothing_but_the_parts(data):
    A, targets, _, _ = data
    b = targets["leastsquares"]
    blocks = [(A[rows], b[rows]) for rows in cut(11)]
    x = np.full(n, 0.7)
    options = [{"threads": 1}, {"threads": 4}, {"memory": 0, "threads": 2}]
    executors = [LocalExecutor(**some) for some in options]
    first, *others = (Parts(LeastSquares, blocks, executor=one).gradient(x) for one in executors)
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_parts_that_do_not_fit_are_read_in_each_pass(data):
    A, targets, _, _ = data
    reads = []

    class Counted:
        def __init__(self, name, rows):
            self.name, self.rows, self.bytes = name, rows, A[rows].nbytes

        def read(self):
            reads.append(self.name)
            return Block(A[self.rows], targets["leastsquares"][self.rows])

    sources = [Counted(str(i), rows) for i, rows in enumerate(np.split(np.arange(N), [100, 200]))]
    problem = Parts(LeastSquares, sources, executor=LocalExecutor(memory=A[:150].nbytes))
    assert sorted(reads) == ["0", "1", "2"]
    problem.gradient(np.zeros(n))
    assert sorted(reads) == ["0", "1", "1", "2", "2"]
    assert problem.held.description() == "2 of 3 parts read in each pass"


def test_memory_mapped_parts_stay_in_their_files(tmp_path, data):
    A, targets, _, _ = data
    blocks = []
    for i, rows in enumerate(cut(4)):
        np.save(tmp_path / f"{i}.npy", A[rows])
        if len(A[rows]):
            blocks.append((np.load(tmp_path / f"{i}.npy", mmap_mode="r"), targets["huber"][rows]))
    problem = Parts(Huber, blocks, l2=0.01, executor=LocalExecutor(memory=0))
    assert problem.bytes == 0
    assert problem.held.description() == ""  # held: they take no memory
    due = solve(Huber(A, targets["huber"], l2=0.01), tol=1e-10)
    np.testing.assert_allclose(solve(problem, tol=1e-10).x, due.x, rtol=1e-7)


A0, B0 = np.eye(3), np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "no parts"),
        ([(A0[:0], B0[:0])], "None of the 1 parts has a row"),
        ([(A0, B0), (A0[:, :2], B0)], "Part 2 of 2 has 2 columns, but Part 1 of 2 has 3"),
        ([(A0, B0), (A0.astype(np.float32), B0)], "Part 2 of 2 has numbers of float32"),
        ([(A0, B0), (sp.csr_array(A0), B0)], "Part 2 of 2 has a sparse matrix"),
        ([(A0, B0), Block(A0, B0, weights=B0)], "Part 2 of 2 has weights"),
        ([(A0, B0), Block(A0, B0, offset=B0)], "Part 2 of 2 has offsets"),
        ([Block(A0, B0, weights=0 * B0)], "weights sum to 0"),
        ([(A0, B0), Block(A0, B0, weights=-B0)], "Part 2 of 2: weights must not be negative"),
        ([(A0, B0), (np.diag([1, np.nan, 1]), B0)], r"Part 2 of 2: A\[1, 1\] is nan"),
        ([(A0, B0), (A0, np.array([0, np.inf, 1]))], r"Part 2 of 2: b\[1\] is inf"),
        ([(A0, B0), (A0, B0[:2])], r"Part 2 of 2: b has shape \(2,\)"),
        ([(A0, B0), (A0, 2 * B0)], "Part 2 of 2: Logistic labels must be 0 or 1"),
        ([A0], "Part 1 of 1 must be"),
    ],
)
def test_a_part_that_does_not_fit_is_named(parts, words):
    with pytest.raises(InputError, match=words):
        Parts(Logistic, parts)


def test_a_loss_that_is_no_sum_is_refused(data):
    with pytest.raises(InputError, match="no sum over parts"):
        Parts(ScaledHuber, [(A0, B0)])


def written(folder, kind, data, count=3, label="y"):
    """The rows of logistic regression in files of one kind."""
    A, targets, _, _ = data
    b = np.where(targets["logistic"], 3, -1)
    for i, rows in enumerate(np.array_split(np.arange(N), count)):
        path = folder / f"part-{i}.{kind}"
        if kind == "npz":
            np.savez(path, A=A[rows], b=b[rows])
        elif kind == "svm":
            from sklearn.datasets import dump_svmlight_file

            dump_svmlight_file(A[rows], b[rows], str(path), zero_based=False)
        else:
            import pandas as pd

            frame = pd.DataFrame(A[rows], columns=list("abcdef")).assign(**{label: b[rows]})
            write = frame.to_csv if kind == "csv" else frame.to_parquet
            write(path, index=False)
    return folder


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "svm"])
def test_files_are_parts(tmp_path, data, kind):
    folder = written(tmp_path, kind, data)
    A, targets, _, _ = data
    due = solve(Logistic(A, targets["logistic"], l2=0.01), tol=1e-10).x
    for where in (folder, f"{folder}/part-*.{kind}"):
        problem = Parts(Logistic, files_in_parts(where), labels=True, l2=0.01)
        np.testing.assert_allclose(solve(problem, tol=1e-10).x, due, rtol=1e-7, atol=1e-9)


def test_large_parquet_files_are_read_by_row_groups(tmp_path, data, monkeypatch):
    monkeypatch.setattr("ode2opt.problems.parts.files.LARGE", 0)
    import pandas as pd

    A, targets, _, _ = data
    frame = pd.DataFrame(A).rename(columns=str).assign(y=targets["huber"])
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=100, index=False)
    parts = files_in_parts(tmp_path, label="y")
    assert [part.name[-13:] for part in parts] == [f"(row group {i})" for i in range(4)]
    problem = Parts(Huber, parts)
    x = np.full(n, 0.2)
    due = Huber(A, targets["huber"]).gradient(x)
    np.testing.assert_allclose(problem.gradient(x), due, rtol=1e-12)


def test_columns_are_scaled_over_all_parts(tmp_path, data):
    A, targets, _, _ = data
    folder = written(tmp_path, "csv", data)
    problem = Parts(Logistic, files_in_parts(folder), labels=True, scale=True)
    np.testing.assert_allclose(problem.sizes, abs(A).max(axis=0))
    x = np.full(n, 0.2)
    due = Logistic(A / abs(A).max(axis=0), targets["logistic"]).gradient(x)
    np.testing.assert_allclose(problem.gradient(x), due, rtol=1e-10)


def test_classes_and_weights_of_files(tmp_path, data):
    import pandas as pd

    A, targets, weights, _ = data
    words = np.array(["oak", "ash", "elm", "fir"])[targets["softmax"]]
    for i, rows in enumerate(cut(3)):
        frame = pd.DataFrame(A[rows], columns=list("abcdef"))
        frame.assign(tree=words[rows], w=weights[rows]).to_parquet(tmp_path / f"{i}.parquet")
    files = files_in_parts(tmp_path, label="tree", weights="w")
    problem = Parts(Softmax, files, labels=True, l2=0.01)
    assert problem.label_values == ("ash", "elm", "fir", "oak")
    b = np.unique(words, return_inverse=True)[1]
    x = np.random.default_rng(0).standard_normal(problem.n)
    due = Softmax(A, b, weights=weights, l2=0.01).gradient(x)
    np.testing.assert_allclose(problem.gradient(x), due, rtol=1e-10)


def test_libsvm_files_may_end_at_different_columns(tmp_path):
    (tmp_path / "a").write_text("0 1:1\n1 2:5\n")
    (tmp_path / "b").write_text("1 1:1 3:2\n0 2:1\n")
    (tmp_path / "c").write_text("2 1:3\n")
    problem = Parts(LeastSquares, files_in_parts(tmp_path))
    A = np.array([[1, 0, 0], [0, 5, 0], [1, 0, 2], [0, 1, 0], [3, 0, 0]])
    x = np.array([1.0, -2, 3])
    due = LeastSquares(A, [0, 1, 1, 0, 2]).gradient(x)
    np.testing.assert_allclose(problem.gradient(x), due)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "There is no file in"),
        ({"a.csv": "p,y\n1,2\n", "b.npz": "x"}, "a.csv and b.npz are of different kinds"),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "p,q\n1,2\n"}, "b.csv has no column 'y'"),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "q,y\n1,0\n"}, "b.csv: column 0 is 'q'"),
        (
            {"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "p,y\nnan,0\n"},
            "b.csv: line 2, column 'p' is missing",
        ),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "p,y\n1,0\ntwo,0\n"}, "b.csv: line 3, column 'p'"),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "p,y\n1,0\n2,7\n3,1\n"}, "b.csv: a binary problem"),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": "p,y\n1,no\n2,yes\n"}, "words in some parts"),
        ({"a.csv": "p,y\n1,1\n2,1\n"}, "two label values"),
        ({"a.csv": "p,y\n1,0\n2,1\n", "b.csv": ""}, "b.csv is empty"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        Parts(Logistic, files_in_parts(tmp_path, label="y"), labels=True)


def test_a_pattern_without_a_match_is_told():
    with pytest.raises(InputError, match="No file matches"):
        files_in_parts("/nowhere/part-*.csv")


def test_an_interrupted_solve_has_its_best_point(data):
    _, parts = both(data, "logistic", 7, l2=0.01)

    def stop(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    result = solve(parts, method="lbfgs", tol=1e-12, callback=stop)
    assert result.status is Status.INTERRUPTED
    assert result.grad_norm < np.linalg.norm(parts.gradient(np.zeros(n)))


def test_rows_that_have_travelled_are_put_where_products_round_alike(data):
    A = data[0]
    travelled = np.frombuffer(b"." + A.tobytes(), np.float64, A.size, offset=1).reshape(A.shape)
    assert not travelled.flags.aligned
    block = FirstPass().read(RowsInMemory("it", Block(travelled, data[1]["huber"]))).block
    assert block.A.flags.aligned
    np.testing.assert_array_equal(block.A, A)
