"""One run: its options, its folder, its clock, and what every finished method is measured by."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ode2opt.errors import InputError
from ode2opt.learning import comparison
from ode2opt.learning.helpers import ALONE, Helpers
from ode2opt.learning.options import Options
from ode2opt.learning.run_directory import LAYOUT, Position, RunDirectory
from ode2opt.learning.validation import Validation, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method
from ode2opt.threads import one_thread

TESTED = 20  # fresh test problems for the statistics in the file
TIMES = 3  # each is solved, the fastest counts
NOTHING_FOLLOWED = {"P": None, "Q": None}

Own = TypeVar("Own", bound=Options)
Note = Callable[[str], None]


@dataclass(frozen=True)
class TrainingStep:
    """What a callback sees after each step; a true answer ends training.

    Attributes:
        line: the step's line of metrics.jsonl; that of a restart has its number.
        validation: what was found on held-out problems, if it was their turn.
        best: the best complexity so far.
        done: the steps so far, those of restarts included.
        steps: how many there will be at most.
    """

    line: dict[str, Any]
    validation: Validation | None
    best: float | None
    done: int
    steps: int


Callback = Callable[[TrainingStep], object]


class LearningRun(ABC, Generic[Own]):
    """A run, from its start or from where it was broken off.

    Attributes:
        position: how far it is.
        steps: how many steps it has, restarts included.
    """

    position: Position
    steps = 0

    def __init__(
        self,
        family: Family,
        options: Own,
        out: str | Path | None,
        resume: bool,
        note: Note = lambda text: None,
        memory: Memory | None = None,
        helpers: Helpers = ALONE,
    ) -> None:
        if resume and out is None:
            raise InputError("To resume, name the run's folder: out.")
        self._began = time.perf_counter()  # earlier, for a run that is resumed
        self.family, self.options, self.note = family, options, note
        self.helpers = helpers
        self.directory = None if out is None else RunDirectory(out)
        self.config = configuration(family, options, memory)
        self.going_on = False  # from a checkpoint
        if self.directory is not None and resume:
            self.going_on = self.directory.go_on(self.config)
        elif self.directory is not None:
            self.directory.begin(self.config)
        with one_thread(), self._setting_up(resume):
            self._set_up(memory)

    @abstractmethod
    def _set_up(self, memory: Memory | None) -> None:
        """Make ready what the run needs; ``note`` is told what takes long."""

    def run(self, callback: Callback | None = None) -> Method:
        """Go on to the end, Ctrl-C, or the callback's word; returns the best method.

        Its folder is locked until then. Linear algebra has one thread, so that what is learned
        does not depend on how many processors there are, here or where others help.
        """
        if self.directory is not None:
            self.directory.lock()
        try:
            with one_thread():
                return self._run(callback)
        finally:
            if self.directory is not None:
                self.directory.release()

    @abstractmethod
    def _run(self, callback: Callback | None) -> Method:
        """Go on to the end, and return the method."""

    @contextmanager
    def _setting_up(self, resume: bool) -> Iterator[None]:
        """A run that is broken off here leaves its folder free, and a new one none at all."""
        try:
            yield
        except BaseException:
            if self.directory is not None and not resume:
                self.directory.abandon()
            elif self.directory is not None:
                self.directory.release()
            raise

    def _measured(
        self,
        method: Method,
        rivals: Mapping[str, str | Method],
        problems: Sequence[Problem],
        starts: Sequence[np.ndarray],
        violations: Mapping[str, Any] = NOTHING_FOLLOWED,
    ) -> Method:
        """Return the method with what it and its rivals need on fresh test problems."""
        every = {"method": method, **rivals}
        methods = {name: [each] * len(problems) for name, each in every.items()}
        subjects = comparison.ProblemSet(problems, starts, self.options.tol, TIMES)
        found = comparison.solved(methods, subjects, self.helpers)
        tested = statistics(found["method"]) | dict(violations)
        return method.replace(
            statistics=dict(method.statistics)
            | {
                "test": tested,
                "fresh": comparison.summary(found),
                "courses": comparison.courses(found),
            }
        )

    def _finished(self, method: Method, certificate: Mapping[str, Any]) -> Method:
        """Return the method with its certificate, and keep it."""
        method = method.replace(
            certificate=certificate,
            provenance=self.config | {"finished": True},
            statistics=dict(method.statistics) | {"seconds": time.perf_counter() - self._began},
        )
        if self.directory is not None:
            self.directory.keep(method)
        return method


def configuration(family: Family, options: Options, memory: Memory | None = None) -> dict[str, Any]:
    """Return what a run is made with: options, data, memory, the versions of the packages."""
    packages = ("ode2opt", "jax", "equinox", "optax", "numpy")
    remembered = {} if memory is None else {"memory": _about_memory(memory)}
    return remembered | {
        "layout": LAYOUT,
        "options": options.as_dict(),
        "family": {
            "name": family.name, "split": family.split, "size": family.size,
            "hash": family.fingerprint(),
        },
        "versions": {name: version(name) for name in packages},
    }  # fmt: skip


def _about_memory(memory: Memory) -> dict[str, Any]:
    """Return what tells a memory from others."""
    method = memory.method()
    metric = method.metric
    parts = [] if metric is None else [metric.scale, metric.V, metric.stretch]
    digest = hashlib.sha256()
    for array in (method.start, *parts):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return dict(method.provenance["memory"]) | {"hash": digest.hexdigest()}
