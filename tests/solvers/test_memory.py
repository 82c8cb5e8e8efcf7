"""A memory: later solves are cheaper, never wrong, and its files are safe."""

import copy
import json
import pickle
import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support import counting, random_sparse

from ode2opt import (
    L1,
    Box,
    Family,
    GroupL1,
    InputError,
    L1Ball,
    LeastSquares,
    Logistic,
    Lpp,
    Memory,
    MemoryOptions,
    Method,
    NonNegative,
    Problem,
    Quadratic,
    Status,
    solve,
)
from ode2opt.problems.linear_model import LinearModel

COLUMNS = 30


def family(seed, rows=600, columns=COLUMNS, kind=Logistic, stretch=1.0, **options):
    """Problems of one population: ill-conditioned columns, one truth."""
    fixed, rng = np.random.default_rng(1), np.random.default_rng([2, seed])
    mix = fixed.standard_normal((columns, columns)) * np.logspace(0, -2, columns)
    truth = fixed.standard_normal(columns)
    A = rng.standard_normal((rows, columns)) @ mix
    likely = 1 / (1 + np.exp(-A @ truth))
    b = (rng.random(rows) < likely).astype(float)
    return kind(stretch * A, b, **({"l2": 1e-4} | options))


def taught(solves=4, **options):
    memory = Memory()
    for seed in range(solves):
        assert solve(family(seed, **options), memory=memory).success
    return memory


def stream(problems, **options):
    """Calls of a memory and of plain L-BFGS over the same problems."""
    memory, pairs = Memory(), []
    for problem in problems:
        ours = solve(problem, memory=memory, **options)
        plain = solve(problem, method="lbfgs", **options)
        assert ours.success
        assert np.linalg.norm(problem.gradient(ours.x)) <= options["tol"]
        pairs.append((ours.oracle_calls, plain.oracle_calls))
    return memory, np.array(pairs)


@pytest.mark.parametrize(("kind", "share"), [(Logistic, 0.7), (Lpp, 1.1)])
def test_later_solves_of_a_family_are_cheaper_or_no_dearer(kind, share):
    """The Hessians of Lpp at solutions differ so much that auto alone does as well there."""
    memory, problems = Memory(), [family(s, rows=2000, kind=kind) for s in range(8)]
    calls = [solve(problem, memory=memory).oracle_calls for problem in problems]
    assert np.median(calls[2:]) < share * calls[0]
    assert np.mean(calls) < 0.25 * solve(problems[0], method="lbfgs").oracle_calls
    assert memory.solves == 8


@pytest.mark.parametrize("dataset", ["a5a", "digits"])
@pytest.mark.parametrize("kind", ["logistic", "lpp"])
def test_a_stream_of_real_problems_costs_at_most_half_of_lbfgs(dataset, kind, request):
    if dataset == "a5a":
        request.getfixturevalue("real_data")
    source = Family.from_dataset(kind, dataset, l2=1e-4)
    _, calls = stream([source.sample(seed) for seed in range(10)], tol=1e-5)
    assert calls[:, 0].sum() <= 0.5 * calls[:, 1].sum()
    assert np.all(calls[:, 0] <= 1.5 * calls[:, 1] + 5)


@pytest.mark.parametrize("kind", ["logistic", "lpp"])
def test_a_change_of_scale_half_way_costs_no_solve_much_more_than_lbfgs(kind):
    source = Family.from_dataset(kind, "digits", l2=1e-4)
    before = [source.sample(seed) for seed in range(8)]
    after = [
        type(p)(10 * p.A, p.b, l2=p.l2) for p in (source.sample(seed) for seed in range(8, 16))
    ]
    _, calls = stream(before + after, tol=1e-5)
    assert np.all(calls[:, 0] <= 1.5 * calls[:, 1] + 5)


CHANGES = {
    "signs": np.negative,
    "units": lambda A: A * np.where(np.arange(A.shape[1]) % 2, 1.0, 10.0),
    "order": lambda A: A[:, np.random.default_rng(1).permutation(A.shape[1])],
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_problems_half_way_cost_no_solve_much_more_than_lbfgs(change):
    source = Family.from_dataset("logistic", "digits")
    problems = [source.sample(seed) for seed in range(8)]
    drawn = (source.sample(seed) for seed in range(8, 14))
    problems += [Logistic(CHANGES[change](p.A), p.b) for p in drawn]
    _, calls = stream(problems, tol=3e-4)
    assert np.all(calls[:, 0] <= 1.5 * calls[:, 1] + 5)


def test_a_memory_that_does_not_help_is_left_aside():
    def unrelated(seed):  # no two have their solution or their curvature in common
        rng = np.random.default_rng([3, seed])
        A = rng.standard_normal((300, 20)) * np.exp(rng.standard_normal(20))
        scores = A @ rng.standard_normal(20)
        likely = 1 / (1 + np.exp(-2 * scores / scores.std()))
        return Logistic(A, (rng.random(300) < likely).astype(float), l2=1e-6)

    problems = [unrelated(seed) for seed in range(24)]
    memory = Memory()
    calls = [solve(problem, memory=memory).oracle_calls for problem in problems]
    alone = [solve(problem, memory=Memory()).oracle_calls for problem in problems]
    assert not memory.known.helps
    assert np.sum(calls) <= 1.25 * np.sum(alone)
    assert np.sum(calls[8:]) <= 1.1 * np.sum(alone[8:])


def test_what_failed_is_forgotten_when_a_later_try_is_clearly_better():
    memory = taught()
    memory.known = replace(
        memory.known, solves=8, calls_with_memory=(90.0,) * 6, calls_without_memory=(60.0,) * 3
    )
    assert not memory.known.helps
    solve(family(9), memory=memory)
    assert memory.known.helps
    assert max(memory.known.calls_with_memory) < 0.75 * 60
    memory.known = replace(
        memory.known, solves=16, calls_with_memory=(90.0,) * 6, calls_without_memory=(1.0,) * 3
    )
    solve(family(10), memory=memory)  # no better than without
    assert not memory.known.helps
    assert memory.known.calls_with_memory[0] == 90


def test_the_first_solve_is_that_of_auto():
    problem = family(0)
    first, auto = solve(problem, memory=Memory(), tol=1e-9), solve(problem, tol=1e-9)
    np.testing.assert_allclose(first.x, auto.x, atol=1e-5)
    assert first.success


def test_a_start_that_is_given_is_looked_at():
    memory = taught()
    problem = family(9)
    solution = solve(problem, tol=1e-9).x
    result = solve(problem, solution, memory=memory)
    assert result.success
    assert result.oracle_calls <= 3 or result.handovers == ()
    np.testing.assert_allclose(result.x, solution, atol=1e-6)


@pytest.mark.parametrize("kind", [Logistic, Lpp, LeastSquares])
def test_a_file_gives_back_the_memory(kind, tmp_path):
    memory = taught(5, kind=kind)
    memory.save(tmp_path / "memory.safetensors")
    again = Memory.load(tmp_path / "memory.safetensors")
    assert repr(again) == repr(memory)
    for seed in range(10, 14):  # what it learns from here on is the same, too
        ours, theirs = (solve(family(seed, kind=kind), memory=m) for m in (memory, again))
        np.testing.assert_array_equal(ours.x, theirs.x)
        assert ours.oracle_calls == theirs.oracle_calls


def test_an_empty_memory_can_be_kept_too(tmp_path):
    Memory().save(tmp_path / "memory.safetensors")
    again = Memory.load(tmp_path / "memory.safetensors")
    assert repr(again) == "Memory(empty)"
    assert solve(family(0), memory=again).success


def rewritten(path, change):
    """A valid file with its contents changed."""
    taught(3).save(path)
    arrays = load_file(path)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt-memory"])
    change(about, arrays)
    save_file(arrays, path, metadata={"ode2opt-memory": json.dumps(about)})


def in_another_metric(about, arrays):
    about["metric"], arrays["metric.scale"] = "diagonal", np.ones(COLUMNS)
    without(arrays, "hessian", "floor")


def without(arrays, *names):
    for name in names:
        del arrays[name]


HOSTILE = {
    "another version": lambda about, arrays: about.update(version=2),
    "no kind": lambda about, arrays: about.pop("kind"),
    "a kind that is no name": lambda about, arrays: about.update(kind=3),
    "no size": lambda about, arrays: about.update(n=0),
    "another size": lambda about, arrays: about.update(n=7),
    "a size that is no number": lambda about, arrays: about.update(n="30"),
    "negative solves": lambda about, arrays: about.update(solves=-1),
    "looks without a metric": lambda about, arrays: without(arrays, "hessian", "floor"),
    "a metric without looks": lambda about, arrays: about.update(looks=0),
    "a Hessian without floor": lambda about, arrays: without(arrays, "floor"),
    "a floor of zero": lambda about, arrays: arrays.update(floor=np.zeros(COLUMNS)),
    "a mean that is NaN": lambda about, arrays: arrays.update(mean=np.full(COLUMNS, np.nan)),
    "a mean of another shape": lambda about, arrays: arrays.update(mean=np.ones((COLUMNS, 1))),
    "a mean in float32": lambda about, arrays: arrays.update(mean=np.ones(COLUMNS, np.float32)),
    "no mean": lambda about, arrays: without(arrays, "mean"),
    "an infinite Hessian": lambda about, arrays: arrays.update(
        hessian=np.full((COLUMNS, COLUMNS), np.inf)
    ),
    "a tolerance of zero": lambda about, arrays: about.update(tol=0.0),
    "no costs": lambda about, arrays: about.update(recent=[], alone=[]),
    "negative costs": lambda about, arrays: about.update(recent=[3.0, -1.0]),
    "costs that are no numbers": lambda about, arrays: about.update(recent=["x"]),
    "costs that are no list": lambda about, arrays: about.update(recent="12"),
    "starts that are no truth values": lambda about, arrays: about.update(starts=[1, 0]),
    "a metric of another kind": lambda about, arrays: about.update(metric="round"),
    "a metric that is no name": lambda about, arrays: about.update(metric=[1]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_file_is_refused_in_one_sentence(name, tmp_path):
    path = tmp_path / "memory.safetensors"
    rewritten(path, HOSTILE[name])
    with pytest.raises(InputError) as caught:
        Memory.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "change",
    [
        lambda about, arrays: arrays.update(hessian=-np.eye(COLUMNS)),
        lambda about, arrays: arrays.update(hessian=np.zeros((COLUMNS, COLUMNS))),
        lambda about, arrays: arrays.update(hessian=1e300 * arrays["hessian"]),
        lambda about, arrays: arrays.update(floor=np.full(COLUMNS, 1e-300)),
        lambda about, arrays: arrays.update(mean=np.full(COLUMNS, 1e200)),
        lambda about, arrays: about.update(recent=[1e-300]),
        lambda about, arrays: about.update(recent=[1e300] * 8),
        lambda about, arrays: about.update(surprises=10**9, solves=10**9, solved=10**9),
        lambda about, arrays: about.update(starts=[True] * 1000),
        in_another_metric,
    ],
)
def test_a_file_that_says_untrue_things_costs_time_but_no_right_answer(change, tmp_path):
    path = tmp_path / "memory.safetensors"
    rewritten(path, change)
    memory = Memory.load(path)
    for seed in range(20, 23):
        problem = family(seed)
        result = solve(problem, memory=memory)
        assert result.success
        assert np.linalg.norm(problem.gradient(result.x)) <= 1e-6


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "memory.safetensors"
    taught(2).save(path)
    whole = path.read_bytes()
    for damage in (whole[:-9], whole[:40], b"", b"\xff" * 64, b"\x00" * 4096):
        path.write_bytes(damage)
        with pytest.raises(InputError, match="damaged or no memory file"):
            Memory.load(path)
    taught(2).method().save(path)
    with pytest.raises(InputError, match="not one of a memory"):
        Memory.load(path)
    save_file({}, path, metadata={"ode2opt-memory": "[" * 10_000})
    with pytest.raises(InputError, match="nested too deeply"):
        Memory.load(path)
    with pytest.raises(InputError, match="There is no memory file"):
        Memory.load(tmp_path / "none")
    with pytest.raises(InputError, match="is not a file"):
        Memory.load(tmp_path)


def test_problems_of_another_size_or_kind_are_refused():
    memory = taught(1)
    for other in (family(0, columns=7), family(0, kind=Lpp), Quadratic(np.eye(30), np.ones(30))):
        with pytest.raises(InputError, match="of Logistic problems with 30 variables, not of"):
            solve(other, memory=memory)
    assert memory.solves == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": {}}, r"memory must be an ode2opt\.Memory, not dict"),
        ({"memory": "nightly.safetensors"}, r"not str: Memory\.load\(path\) reads its file"),
        ({"memory": Memory(), "method": "lbfgs"}, "'auto' only, not with 'lbfgs'"),
    ],
)
def test_what_goes_with_a_memory_is_said(options, said):
    with pytest.raises(InputError, match=said):
        solve(family(0), **options)


def test_a_method_is_made_of_what_was_learned(tmp_path):
    memory = taught(4)
    method = memory.method()
    assert method.instant
    assert method.family == "logistic"
    method.save(tmp_path / "method.safetensors")
    again = Method.load(tmp_path / "method.safetensors")
    problem = family(30)
    with_method, with_file = (solve(problem, method=m) for m in (method, again))
    assert with_method.success
    assert with_method.oracle_calls < 0.5 * solve(problem, method="lbfgs").oracle_calls
    np.testing.assert_array_equal(with_method.x, with_file.x)
    with pytest.raises(InputError, match="has learned nothing yet"):
        Memory().method()


def test_it_says_what_it_is():
    memory = Memory()
    assert repr(memory) == "Memory(empty)"
    solve(family(0), memory=memory)
    assert repr(memory).startswith("Memory(Logistic of 30 variables, 1 solve, ")
    solve(family(1), memory=memory)
    assert "2 solves, " in repr(memory)
    assert "calls a solve" in repr(memory)


def test_threads_may_share_one():
    memory, results = Memory(), {}

    def work(first):
        for seed in range(first, first + 6):
            problem = counting(family(seed))
            results[seed] = problem, solve(problem, memory=memory)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == memory.solves == 24
    for problem, result in results.values():
        assert result.success
        assert result.oracle_calls == pytest.approx(problem.tally.calls, abs=1e-9)
        assert np.linalg.norm(problem.gradient(result.x)) <= 1e-6
    assert solve(family(999), memory=memory).oracle_calls < 60


def state(memory):
    return {key: np.copy(value) for key, value in vars(memory.known).items() if value is not None}


def assert_untouched(memory, before):
    after = state(memory)
    assert after.keys() == before.keys()
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)


def test_a_solve_that_did_not_arrive_leaves_nothing_behind():
    memory = taught(3)
    before = state(memory)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    problem = family(50)
    cases = [
        ({"callback": interrupt}, Status.INTERRUPTED),
        ({"max_iter": 2}, Status.MAX_ITER),
        ({"callback": lambda progress: True}, Status.CALLBACK),
    ]
    for options, status in cases:
        assert solve(problem, memory=memory, tol=1e-9, **options).status is status
        assert_untouched(memory, before)

    class Broken(Logistic):
        def value_and_gradient(self, x):
            raise RuntimeError("the disk is on fire")

    Broken.__name__ = "Logistic"
    with pytest.raises(RuntimeError, match="on fire"):
        solve(Broken(problem.A, problem.b), memory=memory)
    assert_untouched(memory, before)
    assert solve(problem, memory=memory).success


def test_ctrl_c_while_it_learns_keeps_the_solution():
    class Interrupted(Logistic):
        def unseen_curvature(self, x):
            if self.N == 600:  # not in a subsample of the solve itself
                raise KeyboardInterrupt
            return super().unseen_curvature(x)

    memory, problem = Memory(), family(0)
    problem = Interrupted(problem.A, problem.b, l2=problem.l2)
    for seed in range(4):
        result = solve(problem, np.full(COLUMNS, float(seed)), memory=memory, tol=1e-9)
        assert result.success


def test_a_point_where_new_problems_have_no_value_is_no_start():
    """Larger columns make the mean of the old solutions overflow; zero is still fine."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((100, 4)).astype(np.float32), rng.standard_normal(100)
    memory = Memory()
    for _ in range(6):
        assert solve(Lpp(A, b, p=10), memory=memory, tol=1e-2).success
    larger = Lpp(3e4 * A, b, p=10)
    with np.errstate(over="ignore"):
        assert not np.isfinite(larger.value(memory.known.mean.astype(np.float32)))
    assert np.isfinite(larger.value(np.zeros(4, np.float32)))
    assert solve(larger, memory=memory, tol=1.0, max_iter=500).grad_norm < np.inf


def test_loose_solves_do_not_spoil_exact_ones():
    """After solves that end at their start nothing is known of the usual cost of exact ones."""
    memory = taught(4)
    for seed in range(12):
        solve(family(seed), memory=memory, tol=0.5)
    for seed in range(60, 63):
        assert solve(family(seed), memory=memory, tol=1e-8).success


def test_the_usual_cost_is_that_of_reaching_the_tolerance():
    memory = Memory()
    result = solve(family(0), memory=memory, tol=1e-2, stop_at_tol=False, max_iter=200)
    assert memory.known.usual_calls == result.reached.oracle_calls


def wide(seed, N=500, n=3000):
    rng = np.random.default_rng(seed)
    size = np.random.default_rng(0).permutation(np.logspace(0, 1.5, n))
    A = random_sparse(rng, (N, n), 0.01)
    A = (A @ scipy.sparse.diags_array(size)).tocsr()
    return Logistic(A, (rng.random(N) < 0.5).astype(float), l2=1e-6)


def test_a_wide_problem_is_remembered_without_a_dense_matrix(monkeypatch, tmp_path):
    def forbidden(self, x):
        raise AssertionError("a dense Hessian of a wide problem")

    monkeypatch.setattr(LinearModel, "hessian", forbidden)
    memory, calls = Memory(), []
    tracemalloc.start()
    for seed in range(4):
        problem = wide(seed)
        result = solve(problem, memory=memory, tol=1e-6)
        assert result.success
        assert np.linalg.norm(problem.gradient(result.x)) <= 1e-6
        calls.append(result.oracle_calls)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 4
    assert memory.known.metric.kind == "lowrank"
    assert memory.known.hessian is None
    assert max(calls[1:]) < calls[0]
    memory.save(tmp_path / "memory.safetensors")
    again = Memory.load(tmp_path / "memory.safetensors")
    ours, theirs = (solve(wide(9), memory=m) for m in (memory, again))
    np.testing.assert_array_equal(ours.x, theirs.x)
    assert solve(wide(10), method=memory.method()).success


@pytest.mark.parametrize("hvp", [False, True])
def test_functions_can_be_remembered(hvp):
    def function(seed):
        inner = family(seed, columns=8)
        return Problem.from_function(
            inner.value, inner.gradient, n=8, hvp=inner.hvp if hvp else None
        )

    memory, calls = stream([function(seed) for seed in range(6)], tol=1e-6)
    assert np.all(calls[:, 0] <= 1.5 * calls[:, 1] + 5)
    assert memory.solves == 6
    assert solve(function(9), method=memory.method()).success


@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_problems_whose_columns_are_all_zero_are_remembered(l2, tmp_path):
    memory = Memory()
    for _ in range(3):
        result = solve(Logistic(np.zeros((50, 4)), np.arange(50) % 2, l2=l2), memory=memory)
        assert result.success
    memory.save(tmp_path / "memory.safetensors")
    assert Memory.load(tmp_path / "memory.safetensors").solves == 3


@pytest.mark.parametrize("library", [np.asarray, scipy.sparse.csr_array, torch.asarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [1000, 10])
def test_every_kind_of_array_is_remembered(library, dtype, most, monkeypatch):
    """With the whole Hessian, or a few directions of it."""
    for module in ("memory.use", "lowrank"):
        monkeypatch.setattr(f"ode2opt.solvers.{module}.RANK", 6)
        monkeypatch.setattr(f"ode2opt.solvers.{module}.EXTRA", 2)
    memory = Memory(MemoryOptions(largest_matrix=most, fewest_calls=5))
    for seed in range(5):
        plain = family(seed)
        problem = Logistic(library(plain.A.astype(dtype)), plain.b.astype(dtype), l2=plain.l2)
        result = solve(counted := counting(problem), memory=memory, tol=1e-5)
        assert result.success
        assert result.oracle_calls == pytest.approx(counted.tally.calls, abs=1e-9)
        assert np.asarray(result.x).dtype == dtype
        x = np.asarray(result.x).astype(float)
        assert np.linalg.norm(plain.gradient(x)) <= 1e-5 + 20 * np.finfo(dtype).eps
    assert memory.known.hessians
    assert (memory.known.metric is None) == (most == 1000)


PENALTIES = {
    "box": Box(-0.1, 0.2),
    "l1": L1(0.01),
    "both": L1(0.005) + NonNegative(),
    "ball": L1Ball(0.5),
    "groups": GroupL1(0.02, [[k, k + 1] for k in range(0, COLUMNS, 2)]),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_a_stream_of_penalised_problems_needs_fewer_calls_and_has_the_same_solutions(name):
    memory, ours, alone = Memory(), [], []
    for seed in range(8):
        problem = family(seed, rows=2_000, l2=1e-2)
        result = solve(problem, penalty=PENALTIES[name], memory=memory)
        plain = solve(problem, penalty=PENALTIES[name], tol=1e-9)
        assert result.success
        np.testing.assert_allclose(result.x, plain.x, atol=1e-4)
        ours.append(result.oracle_calls)
        alone.append(solve(problem, penalty=PENALTIES[name]).oracle_calls)
    assert memory.solves == 8
    assert sum(ours[2:]) < 0.9 * sum(alone[2:])


def test_the_mean_solution_is_brought_into_the_box_of_the_next_problem():
    memory = Memory()
    for seed, upper in enumerate([1.0, 0.5, 0.02]):
        points = []
        result = solve(
            family(seed), penalty=Box(-upper, upper), memory=memory,
            callback=lambda progress: points.append(progress.x) and None,  # noqa: B023
        )  # fmt: skip
        assert result.success
        assert max(np.abs(x).max() for x in points) <= upper
    assert result.method.startswith("from the mean of 2 solutions")


def test_with_a_penalty_a_known_hessian_takes_the_place_of_samples():
    """On squares f is its own model, on functions there is none: no Hessian is paid for there."""
    memory = Memory(MemoryOptions(fewest_calls=1))
    for seed in range(6):
        solve(family(seed, rows=2_000), penalty=L1(0.003), memory=memory, tol=1e-8)
    assert memory.known.hessians
    without = copy.deepcopy(memory)
    without.known = replace(memory.known, hessian=None, floor=None, hessians=0, inverse=None)
    new = [family(seed, rows=2_000) for seed in (7, 8)]
    calls = [
        sum(
            solve(one, penalty=L1(0.003), memory=known, tol=1e-8).reached.oracle_calls
            for one in new
        )
        for known in (memory, without)
    ]
    assert calls[0] < calls[1]
    for penalty, kind in ((L1(0.01), LeastSquares), (GroupL1(0.1, [[0, 1, 2, 3]]), Logistic)):
        other = Memory(MemoryOptions(fewest_calls=1))
        for seed in range(4):
            solve(family(seed, kind=kind, columns=4), penalty=penalty, memory=other)
        assert not other.known.hessians


def test_it_can_be_sent_to_another_process():
    memory, problem = Memory(), family(0)
    solve(problem, memory=memory)
    for twin in (pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory)):
        assert repr(twin) == repr(memory)
        assert solve(problem, memory=twin).oracle_calls == 1
    assert memory.solves == 1
    assert repr(pickle.loads(pickle.dumps(Memory()))) == "Memory(empty)"


def test_options_of_a_memory_are_kept_and_checked(tmp_path):
    memory = Memory(MemoryOptions(start_trials=2))
    for seed in range(4):
        solve(family(seed), memory=memory)
    assert len(memory.known.mean_was_better) <= 2
    assert pickle.loads(pickle.dumps(memory)).options.start_trials == 2
    memory.save(tmp_path / "memory.safetensors")
    loaded = Memory.load(tmp_path / "memory.safetensors", MemoryOptions(mean_of=5))
    assert loaded.known.options.mean_of == 5
    for wrong in ({"recent": 0}, {"recent": 1.5}, {"clearly": float("nan")}):
        with pytest.raises(InputError, match=r"must be|no number|finite"):
            MemoryOptions(**wrong)
    with pytest.raises(InputError, match="must be MemoryOptions, not dict"):
        Memory({})
