"""Kills training runs at random moments, takes them up again, and compares with an unbroken run.

    python tests/fuzz/soak_kills.py --count 200 --seed 0

Half of the kills come between two file operations of the run, the others at a moment of the clock;
a run that was taken up may be killed again. Then: two processes at once, a full disk, a folder that
cannot be written. Every run is the command itself, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np

COMMON = (
    "--steps", "6", "--batch", "2", "--validation", "2", "--validate-every", "2", "--tol", "1e-2",
)  # fmt: skip
KINDS = {
    "flow": (*COMMON, "--coefficients", "spline", "--horizon", "80"),
    "sequence": (*COMMON, "--target", "sequence", "--metric", "spectral", "--horizon", "40"),
}
OPERATIONS = {
    "open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "fcntl.flock",
}  # fmt: skip
AGAIN = 0.75  # how often a run that was taken up is killed again
ROOM = (0, 4096, 12288, 32768)  # bytes left on a disk that is nearly full
LIMIT = 600  # seconds for one command


def write_data(file: Path) -> None:
    """Write a small logistic problem, columns of different sizes."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 5)) * [1, 0.8, 0.6, 0.4, 0.2]
    b = (A @ np.arange(5) + rng.standard_normal(400) > 0).astype(float)
    np.savez(file, A=A, b=b)


def quick_compiling(folder: Path) -> None:
    """Let all runs share what JAX compiles; what a run computes does not depend on it."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def command(data: Path, kind: str, folder: Path, *more: str) -> list[str]:
    """Return the arguments of a training."""
    where = ("--out", str(folder), "--json", os.devnull, "--quiet")
    return ["train", "logistic", str(data), "--l2", "0.02", "--size", "100", *KINDS[kind], *where,
            *more]  # fmt: skip


def start(arguments: list[str], said: Path, *, operation: int = 0, counted: Path | None = None):
    """Fork a process that runs the command; returns its number.

    Args:
        said: a file for what it prints.
        operation: kill it before this file operation in its folder, counted from 1.
        counted: a file that gets how many there were.
    """
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        _watch(arguments[arguments.index("--out") + 1], operation, counted)
        sys.argv = ["ode2opt", *arguments]
        from ode2opt.cli import main

        main()
    except SystemExit as end:
        os._exit(int(end.code or 0))
    finally:
        os._exit(70)


def _watch(folder: str, operation: int, counted: Path | None) -> None:
    """Count file operations in the folder, and end at one of them."""
    seen = 0

    def look(event: str, args: tuple) -> None:
        nonlocal seen
        if event not in OPERATIONS:
            return
        path = os.fsdecode(args[0]) if args and isinstance(args[0], str | bytes) else ""
        writes = event != "open" or (len(args) > 2 and args[2] & (os.O_WRONLY | os.O_RDWR))
        if not writes or (event != "fcntl.flock" and not path.startswith(folder)):
            return
        seen += 1
        if seen == operation:
            os.kill(os.getpid(), signal.SIGKILL)
        if counted is not None:
            counted.write_text(str(seen))  # outside the folder, so not counted

    sys.addaudithook(look)


def ended(pid: int, moment: float | None = None) -> int:
    """Wait for a process, or kill it at a moment from now; returns its exit code, -9 if killed."""
    limit = time.monotonic() + (LIMIT if moment is None else moment)
    while time.monotonic() < limit:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if moment is None:
        raise AssertionError(f"a command took more than {LIMIT} seconds")
    return -signal.SIGKILL


def outcome(folder: Path) -> tuple[list, dict, dict]:
    """Return the metrics and the method of a run, but for the time they took."""
    from safetensors import safe_open

    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    with safe_open(folder / "method.safetensors", framework="numpy") as file:
        arrays = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
        about = {key: json.loads(text) for key, text in file.metadata().items()}
    return _timeless(lines), arrays, _timeless(about)


def _timeless(value):
    if isinstance(value, dict):
        timed = ("seconds", "milliseconds", "earned_back")
        return {k: _timeless(v) for k, v in value.items() if k not in timed}
    if isinstance(value, list):
        return [_timeless(v) for v in value]
    return value


class Soak:
    """Runs of one kind, broken and unbroken."""

    def __init__(self, kind: str, work: Path, rng: np.random.Generator) -> None:
        self.kind, self.work, self.rng = kind, work, rng
        self.data, self.said, self.counted = work / "data.npz", work / "said", work / "counted"
        write_data(self.data)
        for name in ("first", "unbroken"):  # the first one compiles
            began = time.monotonic()
            pid = start(self._command(work / name), self.said, counted=self.counted)
            assert ended(pid) == 0, self.said.read_text()
            self.seconds = time.monotonic() - began
        self.operations = int(self.counted.read_text())
        self.expected = outcome(work / "unbroken")
        assert outcome(work / "first") == self.expected
        self.counts: Counter[str] = Counter()

    def _command(self, folder: Path, *more: str) -> list[str]:
        return command(self.data, self.kind, folder, *more)

    def broken(self, most: int) -> int:
        """Break a run off once or more, end it, compare; returns the number of kills."""
        folder, kills = self.work / "broken", 0
        shutil.rmtree(folder, ignore_errors=True)
        more: tuple[str, ...] = ()
        while kills < most and (not kills or self.rng.random() < AGAIN):
            if not self._killed(folder, *more):
                break  # it came to its end before
            kills += 1
            more = ("--resume",) if (folder / "config.json").exists() else ()
            self.counts[self._where(folder)] += 1
        self._end(folder)
        return kills

    def _killed(self, folder: Path, *more: str) -> bool:
        arguments = self._command(folder, *more)
        if self.rng.random() < 0.5:
            at = int(self.rng.integers(1, self.operations // (2 if more else 1) + 1))
            return ended(start(arguments, self.said, operation=at)) < 0
        moment = float(self.rng.random()) * self.seconds
        return ended(start(arguments, self.said), moment) < 0

    @staticmethod
    def _where(folder: Path) -> str:
        """Say how far a run was that has been killed."""
        saved = list((folder / "checkpoints").glob("step-*.safetensors"))
        temporary = list(folder.rglob(".ode2opt-*"))
        lines = (folder / "metrics.jsonl").read_bytes().count(b"\n") if saved else 0
        if temporary:
            return "killed while a file was written"
        if not (folder / "config.json").exists():
            return "killed before there was a configuration"
        if not saved:
            return "killed in the set-up"
        return "killed at the end" if lines == 6 else "killed between checkpoints"

    def _end(self, folder: Path) -> None:
        """Take a run up with one command, and compare it with the unbroken one."""
        saved = any((folder / "checkpoints").glob("step-*.safetensors"))
        resume = (folder / "config.json").exists() and (saved or self.rng.random() < 0.5)
        code = ended(start(self._command(folder, *["--resume"] * resume), self.said))
        said = self.said.read_text()
        if code == 2 and "it is finished" in said:
            self.counts["was finished"] += 1
        else:
            assert code == 0, f"exit code {code}: {said}"
            self.counts["resumed" if saved else "restarted"] += 1
        assert outcome(folder) == self.expected, "the run does not end like the unbroken one"
        left = [path.name for path in folder.rglob(".*")]
        assert left == [], f"{left} is left behind"
        self.counts["ended bit for bit alike"] += 1

    def two_at_once(self) -> None:
        """A second process is refused in one sentence, and changes nothing."""
        folder = self.work / "both"
        arguments = self._command(folder)
        first = start(arguments, self.work / "first.said")
        while not (folder / ".lock").exists():
            time.sleep(0.005)
        for more in ((), ("--resume",)):
            while more and not (folder / "config.json").exists():
                time.sleep(0.005)
            code = ended(start([*arguments, *more], self.said))
            said = self.said.read_text()
            assert code == 1, said
            assert "is in use by another process" in said
            assert said.count("\n") == 1
            self.counts["second process refused"] += 1
        assert ended(first) == 0, (self.work / "first.said").read_text()
        assert outcome(folder) == self.expected

    def full_disk(self, left: int) -> None:
        """A disk with so many bytes left is named, and with more room the run ends as ever."""
        with small_disk(self.work / "disk") as (disk, room):
            folder = disk / "run"
            room(left)
            code = ended(start(self._command(folder), self.said))
            said = self.said.read_text()
            if code:
                assert code in (1, 2), said  # 2: before the work
                assert str(folder) in said, said
                assert said.startswith("Error: "), said
                assert said.count("\n") == 1, said
                self.counts["full disk named"] += 1
            else:
                self.counts["disk was large enough"] += 1
            room(None)
            self._end(folder)

    def unwritable(self) -> None:
        """A folder that cannot be written is named at once."""
        with small_disk(self.work / "disk") as (disk, _):
            remounted = subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False)
            folder = disk / "run" if remounted.returncode == 0 else Path("/proc/run")
            assert ended(start(self._command(folder), self.said)) == 2
            said = self.said.read_text()
            assert str(folder) in said
            assert said.count("\n") == 1
            self.counts["read-only folder named"] += 1


@contextmanager
def small_disk(folder: Path):
    """Mount 16 MB in memory; yields it and a way to leave only so many bytes of it.

    Where mounting is not allowed no file may be larger than what is to be left.
    """
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    filler = folder / "filler"

    def room(left: int | None) -> None:
        if not mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft if left is None else left, hard))
        elif left is None:
            filler.unlink()
        else:
            space = os.statvfs(folder)
            filler.write_bytes(bytes(space.f_bavail * space.f_frsize - left))

    try:
        yield folder, room
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def import_all() -> None:
    """Import what a training needs, so that a fork has it; nothing is computed here."""
    import matplotlib.figure  # noqa: F401
    import tensorboardX  # noqa: F401

    import ode2opt.cli
    import ode2opt.learning.run  # noqa: F401


def soak(count: int, seed: int, work: Path) -> Counter[str]:
    """Do ``count`` kills and the rest; returns how often each thing happened."""
    quick_compiling(work / "compiled")
    import_all()
    runs = []
    for k, kind in enumerate(KINDS):
        (work / kind).mkdir()
        runs.append(Soak(kind, work / kind, np.random.default_rng([seed, k])))
        words = f"{runs[-1].seconds:.1f} s and {runs[-1].operations} file operations"
        print(f"{kind}: an unbroken run has {words}", flush=True)
    kills = 0
    for one in cycle(runs):
        if kills >= count:
            break
        kills += one.broken(count - kills)
        print(f"{kills} kills; {one.kind}: {dict(one.counts)}", flush=True)
    for one in runs:
        one.two_at_once()
        one.unwritable()
        for left in ROOM:
            one.full_disk(left)
        print(f"{one.kind}: {dict(one.counts)}", flush=True)
    return sum((one.counts for one in runs), Counter())


def main() -> None:
    """Run the soak and print its counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for what, times in sorted(soak(options.count, options.seed, Path(work)).items()):
            print(f"{times:6} {what}")


if __name__ == "__main__":
    main()
