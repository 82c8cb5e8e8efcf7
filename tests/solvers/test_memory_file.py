"""One file of a memory, several processes: no solve is lost, and the file is always valid."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from ode2opt import InputError, Logistic, Memory, Ode2OptError, solve
from ode2opt.base.storage import FileLock
from ode2opt.solvers.memory.file import appended, merged
from ode2opt.solvers.memory.state import MemoryState
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.options import MemoryOptions

N, ROWS = 6, 200


def problem(seed, n=N):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((ROWS, n)) * np.geomspace(1, 0.1, n)
    b = (A @ np.ones(n) + rng.standard_normal(ROWS) > 0).astype(float)
    return Logistic(A, b, l2=1e-2)


PROGRAM = """
import json, sys
import numpy as np
from ode2opt import Memory, solve
sys.path.insert(0, sys.argv[4])
from solvers.test_memory_file import problem
file, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
memory, found = Memory(), []
print("ready", flush=True)
sys.stdin.readline()
for seed in range(first, first + count):
    found.append(solve(problem(seed), memory=memory, tol=1e-10).x.tolist())
    memory.update_file(file)
print(json.dumps(found))
"""


def test_processes_at_once_lose_no_solve(tmp_path):
    """The mean is that of all solutions, which are fewer than it forgets."""
    file, count = tmp_path / "memory.safetensors", 5
    tests = str(__file__).rsplit("solvers", 1)[0]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(file), str(first), str(count), tests],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for first in (0, 100)
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    solutions = []
    for child in children:
        out, err = child.communicate(timeout=120)
        assert (child.returncode, err) == (0, "")
        solutions += json.loads(out)
    memory = Memory.load(file)
    assert memory.solves == memory.known.solutions == len(solutions) == 2 * count
    np.testing.assert_allclose(memory.known.mean, np.mean(solutions, axis=0), rtol=1e-9, atol=1e-12)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_what_others_have_learned_is_used(tmp_path):
    file = tmp_path / "memory.safetensors"
    first, second = Memory(), Memory()
    xs = [solve(problem(k), memory=one, tol=1e-10).x for k, one in enumerate([first, second])]
    first.update_file(file)
    assert second.update_file(file) == file
    assert second.solves == 2
    np.testing.assert_allclose(second.known.mean, np.mean(xs, axis=0), rtol=1e-12)
    first.update_file(file)  # nothing is new
    assert Memory.load(file).solves == 2
    solve(problem(2), memory=second, tol=1e-10)
    second.update_file(file)
    first.update_file(file)
    assert Memory.load(file).solves == first.solves == 3
    assert "from the mean of 3 solutions" in solve(problem(3), memory=first, tol=1e-6).method


def test_alone_the_file_is_what_save_writes(tmp_path):
    memory, saved, updated = Memory(), tmp_path / "saved", tmp_path / "updated"
    for k in range(5):
        solve(problem(k), memory=memory)
        memory.save(saved)
        memory.update_file(updated)
        assert saved.read_bytes() == updated.read_bytes()


def test_a_memory_moved_to_another_file_is_whole_there(tmp_path):
    memory = Memory()
    for k in range(2):
        solve(problem(k), memory=memory)
    memory.save(tmp_path / "one")
    other = Memory()
    solve(problem(9), memory=other)
    other.save(tmp_path / "two")
    Memory.load(tmp_path / "one").update_file(tmp_path / "two")
    assert Memory.load(tmp_path / "two").solves == 3
    assert Memory.load(tmp_path / "one").solves == 2


@pytest.mark.parametrize("there", ["another size", "another kind", "no memory"])
def test_a_file_of_something_else_is_left_alone_and_nothing_is_lost(tmp_path, there):
    file, beside = tmp_path / "m.safetensors", tmp_path / "m-logistic-6.safetensors"
    if there == "no memory":
        file.write_text("not a memory")
    else:
        other = Memory()
        size = problem(0, N + 1)
        solve(size if there == "another size" else size.__class__(size.A, size.b), memory=other)
        if there == "another kind":
            other.known = replace(other.known, kind="Huber")
        other.save(file)
    kept = file.read_bytes()
    for k in range(2):
        memory = Memory()
        solve(problem(k), memory=memory)
        with pytest.warns(UserWarning, match=r"what was learned is in .*m-logistic-6.safetensors"):
            assert memory.update_file(file) == beside
    assert file.read_bytes() == kept
    assert Memory.load(beside).solves == 2
    beside.write_text("no memory either")
    for _ in range(2):  # the second time nothing is new
        with pytest.warns(UserWarning, match="m-logistic-6-2.safetensors"):
            memory.update_file(file)
    assert beside.read_text() == "no memory either"
    assert Memory.load(tmp_path / "m-logistic-6-2.safetensors").solves == 2


def test_a_file_that_is_held_is_waited_for(tmp_path):
    file, memory = tmp_path / "m.safetensors", Memory()
    solve(problem(0), memory=memory)
    lock = FileLock(tmp_path / ".m.safetensors.lock", "held")
    with pytest.raises(Ode2OptError, match=r"in use by another process for 0.1 seconds now"):
        memory.update_file(file, wait=0.1)
    assert not file.exists()
    threading.Timer(0.2, lock.release).start()
    memory.update_file(file)
    assert Memory.load(file).solves == 1


def test_links_have_one_lock(tmp_path):
    file, link = tmp_path / "m.safetensors", tmp_path / "link"
    memory = Memory()
    solve(problem(0), memory=memory)
    memory.save(file)
    link.symlink_to(file)
    other = Memory.load(link)
    solve(problem(1), memory=other)
    with (
        FileLock(tmp_path / ".m.safetensors.lock", "held"),
        pytest.raises(Ode2OptError, match="in use by another process"),
    ):
        other.update_file(link, wait=0)
    other.update_file(link)
    assert Memory.load(file).solves == 2
    assert link.is_symlink()


OPTIONS = MemoryOptions()


def counts(one):
    return one.solves, one.solutions, one.hessians


def known(values, looks=()):
    """What a memory knows after solutions and Hessians that are multiples of one."""
    mean = H = None
    for k, value in enumerate(values):
        weight = 1 / min(k + 1, OPTIONS.mean_of)
        mean = np.full(2, value) if mean is None else mean + weight * (value - mean)
    for k, value in enumerate(looks):
        weight = 1 / min(k + 1, OPTIONS.hessians_of)
        H = value * np.eye(2) if H is None else H + weight * (value * np.eye(2) - H)
    floor = None if H is None else H.diagonal().copy()
    return MemoryState(
        "Logistic", 2, solves=len(values), solutions=len(values), mean=mean, hessians=len(looks),
        hessian=H, floor=floor, calls_without_memory=tuple(map(float, values))[-8:],
    ).with_inverse()  # fmt: skip


@pytest.mark.parametrize("own", [1, 3, 40])
@pytest.mark.parametrize("others", [1, 5, 60])
@pytest.mark.parametrize("before", [0, 2, 50])
def test_the_merged_is_what_one_after_the_other_would_have_learned(before, others, own):
    """Solutions that a process found are all alike here, so that their order does not matter."""
    first, theirs, ours = [1.0] * before, [2.0] * others, [5.0] * own
    base = known(first, first[:3])
    found = known([*first, *theirs], [*first[:3], *theirs[:4]])
    mine = known([*first, *ours], [*first[:3], *ours[:2]])
    due = known([*first, *theirs, *ours], [*first[:3], *theirs[:4], *ours[:2]])
    one = merged(found, mine, base if before else None)
    assert counts(one) == counts(due)
    assert one.calls_without_memory == due.calls_without_memory
    for name in ("mean", "hessian", "floor", "inverse"):
        np.testing.assert_allclose(getattr(one, name), getattr(due, name), rtol=1e-12)


def test_what_was_forgotten_here_is_forgotten_in_the_file():
    base, found = known([1.0, 1.0], [1.0]), known([1.0, 1.0, 2.0], [1.0])
    mine = replace(known([9.0, 9.0]), solves=5)  # two after a change, of three new solves
    one = merged(found, mine, base)
    assert counts(one) == (6, 2, 0)
    np.testing.assert_array_equal(one.mean, [9.0, 9.0])


def test_the_newest_metric_is_kept():
    metrics = [Metric("diagonal", np.full(2, value)) for value in (1.0, 2.0, 3.0)]
    base, found, mine = (
        replace(known([1.0] * k), metric=metric, hessians=1)
        for k, metric in zip((1, 2, 2), metrics, strict=True)
    )
    found = replace(found, mean=np.zeros(2))
    assert merged(found, mine, base).metric is metrics[2]
    assert merged(found, replace(mine, metric=base.metric), base).metric is metrics[1]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [((), (1,), (1,)), ((1, 2), (1, 2, 3), (3,)), ((1, 2, 3), (3, 4, 5), (4, 5)),
     ((1, 2, 3), (7, 8, 9), (7, 8, 9)), ((1, 2), (1, 2), ())],
)  # fmt: skip
def test_what_was_appended(before, after, new):
    assert appended(before, after) == new


def test_the_command_adds_to_the_file(run_cli, tmp_path):
    file, rows = tmp_path / "m.safetensors", problem(0)
    np.savez(tmp_path / "rows.npz", A=rows.A, b=rows.b)
    command = ("solve", tmp_path / "rows.npz", "--problem", "logistic", "--l2", "0.01",
               "--memory", file, "--json", "-")  # fmt: skip
    assert run_cli(*command)[0] == 0
    mine = Memory.load(file)
    assert run_cli(*command)[0] == 0
    solve(problem(1), memory=mine)
    mine.update_file(file)
    assert Memory.load(file).solves == 3
    file.write_text("something else")
    code, _, err = run_cli(*command)
    assert (code, "is damaged or no memory file" in " ".join(err.split())) == (2, True)
    with pytest.raises(InputError):
        Memory.load(file)


WRITER = """
import sys, time
from pathlib import Path
from ode2opt.base.storage import write_atomically

def write(stream):
    stream.write(b"half")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()

write_atomically(Path(sys.argv[1]), write)
"""


def writer(file):
    """A process in the middle of a file, and the unfinished file."""
    before = set(file.parent.glob(".ode2opt-*"))
    command = [sys.executable, "-c", WRITER, str(file)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    (unfinished,) = set(file.parent.glob(".ode2opt-*")) - before
    return process, unfinished


def test_what_a_killed_writer_left_is_removed_and_nothing_of_a_living_one(tmp_path):
    """A memory that is saved looks after its folder; who writes for hours keeps his file."""
    killed, abandoned = writer(tmp_path / "a.safetensors")
    other, recent = writer(tmp_path / "b.safetensors")
    living, in_use = writer(tmp_path / "c.safetensors")
    for process in (killed, other):
        process.kill()
        process.communicate()
    kept = tmp_path / ".ode2opt-notes.txt"
    kept.write_text("mine")
    for file in (abandoned, in_use, kept):
        os.utime(file, (1e9, 1e9))
    Memory().save(tmp_path / "k.safetensors")
    assert {file.name for file in tmp_path.glob(".ode2opt-*")} == {
        recent.name,
        in_use.name,
        kept.name,
    }
    os.utime(recent, (1e9, 1e9))
    Memory().update_file(tmp_path / "k.safetensors")
    assert not recent.exists()
    living.communicate("")
    assert living.returncode == 0
    assert (tmp_path / "c.safetensors").read_bytes() == b"half"
