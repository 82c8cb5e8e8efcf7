"""The folder of a run: one process at a time, no dead end, nothing half-written."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from ode2opt import Family, InputError, Ode2OptError
from ode2opt.base.storage import FolderLock
from ode2opt.learning import FlowOptions
from ode2opt.learning.begin import start_run
from ode2opt.learning.config import configuration
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.learning.validation import Validation

OPTIONS = FlowOptions(coefficients="spline", steps=2, validation=1, horizon=20, tol=1e-1)


@pytest.fixture(scope="module")
def family():
    A = np.random.default_rng(0).standard_normal((80, 3))
    return Family.from_arrays("logistic", A, (A[:, 0] > 0).astype(float), size=20, l2=0.1)


def killed_in_its_set_up(family, folder):
    """Leave what a run leaves that is killed before its first checkpoint."""
    training = start_run(family, OPTIONS, folder, False)
    (folder / "choice.json").write_text('{"chosen": ["none", "start"]}')
    del training  # the system takes the lock back


@pytest.mark.parametrize("resume", [True, False])
def test_a_run_killed_before_its_first_checkpoint_begins_anew(family, tmp_path, resume):
    killed_in_its_set_up(family, tmp_path / "run")
    (tmp_path / "run" / ".ode2opt-1234.tmp").write_text("half a fi")
    again = start_run(family, OPTIONS, tmp_path / "run", resume)
    assert again.position.step == 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"config.json", "metrics.jsonl", "checkpoints", ".lock"}


def test_a_second_process_is_refused_in_one_sentence(family, tmp_path):
    first = start_run(family, OPTIONS, tmp_path / "run", False)
    for resume in (False, True):
        with pytest.raises(Ode2OptError, match=r"run is in use by another process: wait"):
            start_run(family, OPTIONS, tmp_path / "run", resume)
    first.directory.release()
    assert start_run(family, OPTIONS, tmp_path / "run", True).position.step == 0


def test_a_lock_ends_with_its_process(tmp_path):
    code = (
        "import pathlib, sys; from ode2opt.base.storage import FolderLock\n"
        "lock = FolderLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"held\n"
            with pytest.raises(Ode2OptError, match="in use by another process"):
                FolderLock(tmp_path)
        finally:
            child.send_signal(signal.SIGKILL)
    assert (tmp_path / ".lock").exists()
    FolderLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_a_warning_says_so(tmp_path, monkeypatch, code):
    fcntl = pytest.importorskip("fcntl")

    def cannot(handle, how):
        raise OSError(code, "No locks available")

    monkeypatch.setattr(fcntl, "flock", cannot)
    with pytest.warns(UserWarning, match="cannot be locked here .No locks available"):
        FolderLock(tmp_path).release()


def test_a_lock_that_is_forgotten_is_given_back(tmp_path):
    lock = FolderLock(tmp_path)
    del lock
    gc.collect()
    FolderLock(tmp_path).release()


def test_waiting_processes_have_a_lock_one_after_the_other(tmp_path):
    """Each holder takes the lock's file away: one who waited for that file must not have it, too.

    Each process reads a number and writes the next one, many times: two at once would lose some.
    """
    code = (
        "import pathlib, sys; from ode2opt.base.storage import FileLock\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "for _ in range(40):\n"
        "    with FileLock(folder / 'lock', 'held', wait=100):\n"
        "        number = int((folder / 'number').read_text())\n"
        "        (folder / 'number').write_text(str(number + 1))\n"
    )
    (tmp_path / "number").write_text("0")
    command = [sys.executable, "-c", code, str(tmp_path)]
    children = [subprocess.Popen(command) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert (tmp_path / "number").read_text() == "80"
    assert not (tmp_path / "lock").exists()


def full(*args, **kwargs):
    raise OSError(28, "No space left on device")


def test_a_full_disk_in_the_set_up_is_named_and_no_dead_end(family, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    training = start_run(family, OPTIONS, folder, False)
    found = Validation(9.0, 9, 1, 0, 1, 0.0, 0.0, 1)
    training.stage.validated = lambda state: found
    with monkeypatch.context() as patched:
        patched.setattr("ode2opt.base.storage.tempfile.mkstemp", full)
        with pytest.raises(Ode2OptError, match=rf"{folder}.*No space left on device"):
            training.run()
    assert start_run(family, OPTIONS, folder, False).position.step == 0


def test_a_disk_that_is_full_from_the_start_is_named(family, tmp_path, monkeypatch):
    monkeypatch.setattr("ode2opt.base.storage.tempfile.mkstemp", full)
    with pytest.raises(Ode2OptError, match=rf"{tmp_path / 'run'}.*No space left.*start again"):
        start_run(family, OPTIONS, tmp_path / "run", False)


def test_a_full_disk_does_not_hang_the_board(family, tmp_path, monkeypatch):
    from ode2opt.learning.tensorboard import TensorBoard

    run = RunDirectory(tmp_path)
    board = TensorBoard(run)
    line = dict.fromkeys(("stopping_time", "P", "Q", "loss", "validation", "penalty"), 1.0)
    monkeypatch.setattr(board._records, "flush", full)
    with pytest.raises(Ode2OptError, match=r"cannot be written .No space left"):
        board.add(line | {"step": 0}, 1)
    board.close()


def test_a_folder_of_something_else_is_told_from_a_run(family, tmp_path):
    foreign, method, old = tmp_path / "foreign", tmp_path / "method", tmp_path / "old"
    for folder in (foreign, method, old):
        folder.mkdir()
    (foreign / "config.json").write_text('{"model_type": "llama"}')
    (method / "method.safetensors").write_bytes(b"precious")
    config = configuration(family, OPTIONS)
    config["versions"]["ode2opt"] = "0.0.1"
    (old / "config.json").write_text(json.dumps(config))
    for folder, resume, said in (
        (foreign, False, "is not of a run of ode2opt"),
        (foreign, True, "is not of a run of ode2opt"),
        (method, False, r"holds method.safetensors but no config.json"),
        (method, True, "nothing to resume.*start without --resume"),
        (old, True, "is a run of ode2opt 0.0.1, and this is"),
    ):
        with pytest.raises(InputError, match=said):
            start_run(family, OPTIONS, folder, resume)
    assert (method / "method.safetensors").read_bytes() == b"precious"
    assert not any((folder / ".lock").exists() for folder in (foreign, method, old))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(family, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(Ode2OptError, match=rf"{tmp_path / 'run'} cannot be written"):
        start_run(family, OPTIONS, tmp_path / "run", False)
