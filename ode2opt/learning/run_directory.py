"""The run directory: configuration, metrics, checkpoints and the method of one training run.

    config.json  metrics.jsonl  checkpoints/step-000010.safetensors  method.safetensors

A checkpoint holds all that training needs to go on, bit for bit on the same machine, and the
length of the metrics file, which is cut back on resuming. Files are written beside their place,
flushed and renamed. A lock keeps other processes out. A run that ended before its first checkpoint
starts again from the beginning, resumed or not. Reading a run needs no JAX; checkpoints do.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.record import CHECKPOINT
from ode2opt.base.schema import read
from ode2opt.base.storage import FolderLock, sweep, write_atomically
from ode2opt.learning.config import CONFIG, read_config
from ode2opt.solvers import Method

Tree = TypeVar("Tree")
CHECKPOINTS_KEPT = 3


@dataclass(frozen=True)
class StoredValidation:
    """The statistics of a validation as a checkpoint stores them (:meth:`Validation.statistics`).

    Attributes:
        complexity: the mean number of iterations to the tolerance.
        worst: the largest number of iterations.
        reached: how many problems reached the tolerance.
        handovers: on how many problems the guard stepped in.
        total: how many problems there were.
        feasible: whether the point counts as feasible.
    """

    complexity: float
    worst: int
    reached: int
    handovers: int
    total: int
    feasible: bool

    def __post_init__(self) -> None:
        for name in ("worst", "reached", "handovers", "total"):
            as_count(getattr(self, name), name, least=0)


@dataclass(frozen=True)
class Position:
    """How far training is, beside its arrays.

    Attributes:
        step: steps of the present stage.
        done: steps of all stages.
        prices: the costs of the restarts that are over; their number tells the stage.
        penalty: the coefficient rho of P + Q.
        best: the statistics of the best point so far (:class:`StoredValidation`), None before the
            first validation.
        stale: validations since the last progress.
        over: whether training has stopped for want of progress.
        seconds: the time spent.
        metrics_bytes: the length of metrics.jsonl at this point.
    """

    step: int = 0
    done: int = 0
    prices: tuple[float, ...] = ()
    penalty: float = 0.0
    best: dict[str, Any] | None = None
    stale: int = 0
    over: bool = False
    seconds: float = 0.0
    metrics_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("step", "done", "stale", "metrics_bytes"):
            as_count(getattr(self, name), name, least=0)
        if self.best is not None:
            read(StoredValidation, self.best)


class RunDirectory:
    """The folder of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock: FolderLock | None = None

    @property
    def method(self) -> Path:
        """The file of the best method so far."""
        return self.path / "method.safetensors"

    @property
    def metrics(self) -> Path:
        """The file with one JSON line for each step."""
        return self.path / "metrics.jsonl"

    @property
    def config(self) -> Path:
        """The file that says what the run is made with."""
        return self.path / CONFIG

    @property
    def choice(self) -> Path:
        """The file that says which restart was chosen, and among what."""
        return self.path / "choice.json"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    def lock(self) -> None:
        """Lock the folder for this process, until it is released or the process ends."""
        if self._lock is None:
            with self.writing():
                self._lock = FolderLock(self.path)

    def release(self) -> None:
        """Release the lock, if this object holds it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def create(self, config: dict[str, Any]) -> None:
        """Make and lock the folder of a new run, and write its configuration."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; --out names a folder.")
        with self.writing():
            self.path.mkdir(parents=True, exist_ok=True)
        self.lock()
        try:
            self._refuse_used_folder()
            text = json.dumps(config, indent=1) + "\n"
            with self.writing():
                write_atomically(self.config, lambda stream: stream.write(text.encode()))
            self.clear()
        except BaseException:
            self.release()
            raise

    def reopen(self, config: dict[str, Any]) -> bool:
        """Lock the folder of a run that was interrupted."""
        self.check(config)
        self.lock()
        try:
            if self.finished:
                raise InputError(f"There is nothing to resume in {self.path}: it is finished.")
            resuming = bool(self._saved())
            if not resuming:
                self.clear()
            self._sweep()
            return resuming
        except BaseException:
            self.release()
            raise

    def _refuse_used_folder(self) -> None:
        """Refuse a folder that holds a run with checkpoints, or files of something else."""
        held = (self.method, self.choice, self.metrics, *self._saved())
        if self.config.exists():
            read_config(self.path)
            if self._saved() or self.finished:
                raise InputError(
                    f"{self.path} holds a run already: go on with it (--resume), or name another "
                    f"--out."
                )
        elif found := [file.name for file in held if file.exists() and file.stat().st_size]:
            raise InputError(
                f"{self.path} holds {found[0]} but no config.json, so it is not a run that can go "
                f"on: name another --out."
            )

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        return self.method.exists() and bool(Method.load(self.method).provenance.get("finished"))

    def clear(self) -> None:
        """Remove everything but the configuration, so that the run starts again."""
        with self.writing():
            self.checkpoints.mkdir(exist_ok=True)
            self._sweep()
            for file in (self.method, self.choice):
                file.unlink(missing_ok=True)
            self.metrics.write_bytes(b"")

    def save_method(self, method: Method) -> None:
        """Write the best method so far."""
        with self.writing():
            method.save(self.method)

    def _sweep(self) -> None:
        for folder in (self.path, self.checkpoints):
            sweep(folder)

    def abandon(self) -> None:
        """Remove what ``create`` has made, and the folder if nothing else is in it."""
        for file in (self.config, self.metrics, self.choice):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # what else there is stays
            self.checkpoints.rmdir()
        self.release()
        with suppress(OSError):
            self.path.rmdir()

    def check(self, config: dict[str, Any]) -> None:
        """Refuse to resume a run that was begun with another configuration."""
        old = read_config(self.path)
        was, now = (each["versions"].get("ode2opt") for each in (old, config))
        if was != now:
            raise InputError(
                f"{self.path} is a run of ode2opt {was}, and this is {now}: go on with that "
                f"version, or name another --out."
            )
        for section in config.keys() | old.keys():
            was, now = old.get(section), config.get(section)
            if was == now:
                continue
            if isinstance(was, dict) and isinstance(now, dict):
                key = next(k for k in {**was, **now} if was.get(k) != now.get(k))
                section, was, now = key, was.get(key), now.get(key)
            raise InputError(
                f"{self.path} belongs to another configuration: {section} is {was!r} there and "
                f"{now!r} here."
            )

    def save_choice(self, choice: dict[str, Any]) -> None:
        """Write which restart was chosen on training problems, and the cost of each."""
        text = json.dumps(choice, indent=1) + "\n"
        with self.writing():
            write_atomically(self.choice, lambda stream: stream.write(text.encode()))

    def add_metrics(self, line: dict[str, Any]) -> int:
        """Append one line to the metrics."""
        with self.writing(), self.metrics.open("ab") as stream:
            stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            stream.flush()
            return stream.tell()

    def lines(self) -> list[dict[str, Any]]:
        """Return the metrics so far."""
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]

    def save(self, position: Position, tree: Any) -> None:
        """Write a checkpoint, then delete all but the newest three."""
        from ode2opt.learning.checkpoints import packed

        arrays = packed(tree)
        with self.writing():
            with self.metrics.open("rb") as stream:
                os.fsync(stream.fileno())
            blob = CHECKPOINT.packed(arrays, asdict(position))
            path = self.checkpoints / f"step-{position.done:06}.safetensors"
            write_atomically(path, lambda stream: stream.write(blob))
        for old in self._saved()[:-CHECKPOINTS_KEPT]:
            old.unlink(missing_ok=True)

    def load(self, like: Callable[[Position], Tree]) -> tuple[Position, Tree]:
        """Read the newest checkpoint, and cut the metrics back to where it was written."""
        from ode2opt.learning.checkpoints import unpacked

        path = self._saved()[-1]
        try:
            found, about = CHECKPOINT.opened(path)
            position = read(Position, about)
            tree = unpacked(found, lambda: like(position))
        except InputError as error:
            raise Ode2OptError(
                f"The checkpoint {path} cannot be read ({error}): delete it to go on from the one "
                f"before."
            ) from None
        self._cut_metrics(position.metrics_bytes)
        return position, tree

    def _cut_metrics(self, length: int) -> None:
        if not self.metrics.is_file() or self.metrics.stat().st_size < length:
            raise Ode2OptError(f"{self.metrics} is shorter than its checkpoint says.")
        with self.metrics.open("r+b") as stream:
            stream.truncate(length)

    def _saved(self) -> list[Path]:
        pattern = re.compile(r"step-\d+\.safetensors")
        return sorted(p for p in self.checkpoints.glob("step-*") if pattern.fullmatch(p.name))

    def writing(self) -> _Writing:
        """Return a context that turns a failed write into an ``Ode2OptError`` naming the folder."""
        return _Writing(self)


class _Writing:
    """Turns a failed write into a sentence that says what is left."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not isinstance(error, OSError):
            return
        saved = self.run._saved()
        kept = f"{saved[-1].name} stays; go on with --resume" if saved else "start again"
        raise Ode2OptError(
            f"{self.run.path} cannot be written ({error.strerror or error}): {kept}."
        ) from None
