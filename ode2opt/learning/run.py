"""One run: its options, its folder, its clock, and what every finished method is measured by."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.errors import InputError
from ode2opt.learning import beside
from ode2opt.learning.options import Options
from ode2opt.learning.remembered import summary
from ode2opt.learning.run_directory import Progress, RunDirectory
from ode2opt.learning.validation import Validation, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

TESTED = 20  # fresh test problems for the statistics in the file
TIMES = 3  # each is solved, the fastest counts
NOTHING_FOLLOWED = {"P": None, "Q": None}


@dataclass(frozen=True)
class Step:
    """What a callback sees after each step; a true answer ends training.

    ``line`` is the step's line of metrics.jsonl; ``best`` the best complexity so far.
    """

    line: dict[str, Any]
    validation: Validation | None
    best: float | None
    steps: int


Callback = Callable[[Step], object]


class Run(ABC):
    """A run, from its start or from where it was broken off."""

    progress: Progress

    def __init__(
        self,
        family: Family,
        options: Options,
        out: str | Path | None,
        resume: bool,
        note: Callable[[str], None] = lambda text: None,
        memory: Memory | None = None,
    ) -> None:
        if resume and out is None:
            raise InputError("To resume, name the run's folder: out.")
        self._began, self._earlier = time.perf_counter(), 0.0
        self.family, self.options = family, options
        self.directory = None if out is None else RunDirectory(out)
        self.config = configuration(family, options, memory)
        self.going_on = False  # from a checkpoint
        if self.directory is not None and resume:
            self.going_on = self.directory.go_on(self.config)
        elif self.directory is not None:
            self.directory.begin(self.config)
        with self._setting_up(resume):
            self._set_up(note, memory)

    @abstractmethod
    def _set_up(self, note: Callable[[str], None], memory: Memory | None) -> None:
        """Make ready what the run needs; ``note`` is told what takes long."""

    def run(self, callback: Callback | None = None) -> Method:
        """Go on to the end, Ctrl-C, or the callback's word; returns the best method.

        Its folder is locked until then.
        """
        if self.directory is None:
            return self._run(callback)
        self.directory.lock()
        try:
            return self._run(callback)
        finally:
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

    @property
    def _seconds(self) -> float:
        """Seconds so far, set-up and earlier parts of a run that is resumed included."""
        return self._earlier + time.perf_counter() - self._began

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
        found = beside.solved(methods, problems, starts, self.options.tol, TIMES)
        tested = statistics(found["method"]) | dict(violations)
        return method.replace(
            statistics=dict(method.statistics) | {"test": tested, "fresh": beside.summary(found)}
        )

    def _finished(self, method: Method, certificate: Mapping[str, Any]) -> Method:
        """Return the method with its certificate, and keep it."""
        method = method.replace(
            certificate=certificate,
            provenance=self.config | {"finished": True},
            statistics=dict(method.statistics) | {"seconds": self._seconds},
        )
        self._keep(method)
        return method

    def _keep(self, method: Method) -> None:
        if self.directory is not None:
            with self.directory.writing():
                method.save(self.directory.method)


def configuration(family: Family, options: Options, memory: Memory | None = None) -> dict[str, Any]:
    """Return what a run is made with: options, data, memory, the versions of the packages."""
    packages = ("ode2opt", "jax", "equinox", "optax", "numpy")
    remembered = {} if memory is None else {"memory": summary(memory)}
    return remembered | {
        "options": options.as_dict(),
        "family": {
            "name": family.name, "split": family.split, "size": family.size,
            "hash": family.fingerprint(),
        },
        "versions": {name: version(name) for name in packages},
    }  # fmt: skip
