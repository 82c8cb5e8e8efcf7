"""What training and instant methods share: options, folder, clock, and the final measurements."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.threads import one_thread
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning import comparison
from ode2opt.learning.options import Options, check_read
from ode2opt.learning.run_directory import LAYOUT, Position, RunDirectory
from ode2opt.learning.validation import Validation, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

TEST_PROBLEMS = 20  # fresh ones, for the statistics in the method file
REPEATS = 3  # solves of each of them; the fastest counts
NO_VIOLATIONS = {"P": None, "Q": None}

OptionsT = TypeVar("OptionsT", bound=Options)
Log = Callable[[str], None]


@dataclass(frozen=True)
class TrainingStep:
    """What a callback sees after each step; a true return value ends training.

    Attributes:
        line: the step's line of metrics.jsonl; during a restart it has the restart's number.
        validation: what was found on held-out problems, None where this step had no validation.
        best: the best complexity so far, None before the first validation.
        done: the steps so far, those of restarts included.
        steps: how many steps there will be at most.
    """

    line: dict[str, Any]
    validation: Validation | None
    best: float | None
    done: int
    steps: int


TrainingCallback = Callable[[TrainingStep], object]


class LearningRun(ABC, Generic[OptionsT]):
    """A run in a folder of its own, from its start or from its last checkpoint.

    Attributes:
        kind: what it makes, in words.
        reads: the options that it reads; None for all of its target.
        position: how far it is.
        steps: how many steps it has at most, those of restarts included.
    """

    kind: ClassVar[str] = "a run of all options"
    reads: ClassVar[Collection[str] | None] = None
    position: Position
    steps = 0

    def __init__(
        self,
        family: Family,
        options: OptionsT,
        out: str | Path | None,
        resume: bool,
        log: Log = lambda text: None,
        memory: Memory | None = None,
        executor: Executor = THIS_PROCESS,
    ) -> None:
        if resume and out is None:
            raise InputError("To resume, name the run's folder: out.")
        check_read(options, self.reads, self.kind)
        self._began = time.perf_counter()  # earlier, for a run that is resumed
        self.family, self.options, self.log = family, options, log
        self.executor = executor
        self.directory = None if out is None else RunDirectory(out)
        self.config = configuration(family, options, memory)
        self.resuming = False  # from a checkpoint
        if self.directory is not None and resume:
            self.resuming = self.directory.reopen(self.config)
        elif self.directory is not None:
            self.directory.create(self.config)
        with one_thread(), self._setting_up(resume):
            self._set_up(memory)

    @abstractmethod
    def _set_up(self, memory: Memory | None) -> None:
        """Prepare what the run needs; what takes long is told to ``self.log``."""

    def run(self, callback: TrainingCallback | None = None) -> Method:
        """Run to the end, to Ctrl-C, or until the callback returns true.

        The folder is locked meanwhile. Linear algebra has one thread, so that what is learned does
        not depend on the number of processors, here or on a cluster.
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
    def _run(self, callback: TrainingCallback | None) -> Method:
        """Run to the end, and return the method."""

    @contextmanager
    def _setting_up(self, resume: bool) -> Iterator[None]:
        """Release the folder if the set-up fails; of a new run, remove it."""
        try:
            yield
        except BaseException:
            if self.directory is not None and not resume:
                self.directory.abandon()
            elif self.directory is not None:
                self.directory.release()
            raise

    def _with_test_results(
        self,
        method: Method,
        baselines: Mapping[str, str | Method],
        problems: Sequence[Problem],
        starts: Sequence[np.ndarray],
        violations: Mapping[str, Any] = NO_VIOLATIONS,
    ) -> Method:
        """Return the method with what it and its baselines need on fresh test problems."""
        every = {"method": method, **baselines}
        methods = {name: [each] * len(problems) for name, each in every.items()}
        penalty: Any = self.family.penalty
        subjects = comparison.ProblemSet(problems, starts, self.options.tol, REPEATS, penalty)
        found = comparison.solve_all_by(methods, subjects, self.executor)
        tested = statistics(found["method"]) | dict(violations)
        return method.replace(
            statistics=dict(method.statistics)
            | {
                "test": tested,
                "statistical": comparison.expected(found["method"], self.options.tol),
                "fresh": comparison.summary(found),
                comparison.CURVES: comparison.gradient_curves(found),
            }
        )

    def _finished(self, method: Method, certificate: Mapping[str, Any]) -> Method:
        """Return the method with its certificate, and write it to the folder."""
        method = method.replace(
            certificate=dict(certificate) | {"statistical": method.statistics.get("statistical")},
            provenance=self.config | {"finished": True},
            statistics=dict(method.statistics) | {"seconds": time.perf_counter() - self._began},
        )
        if self.directory is not None:
            self.directory.save_method(method)
        return method


def configuration(family: Family, options: Options, memory: Memory | None = None) -> dict[str, Any]:
    """Return the content of ``config.json``: what the result of a run depends on."""
    packages = ("ode2opt", "jax", "equinox", "optax", "numpy")
    remembered = {} if memory is None else {"memory": _memory_identity(memory)}
    return remembered | {
        "layout": LAYOUT,
        "options": options.as_dict(),
        "family": {
            "name": family.name, "split": family.split, "size": family.size,
            "hash": _family_hash(family),
        },
        "versions": {name: version(name) for name in packages},
    }  # fmt: skip


def _family_hash(family: Family) -> str | None:
    """Return the hash of a family's data, and of its penalty where it has one."""
    data = family.fingerprint()
    if family.penalty is None:
        return data
    return hashlib.sha256(f"{data} {family.penalty!r}".encode()).hexdigest()


def _memory_identity(memory: Memory) -> dict[str, Any]:
    """Return the counts of a memory and a hash of what it has learned."""
    method = memory.method()
    metric = method.metric
    parts = [] if metric is None else [metric.scale, metric.V, metric.stretch]
    digest = hashlib.sha256()
    for array in (method.start, *parts):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return dict(method.provenance["memory"]) | {"hash": digest.hexdigest()}
