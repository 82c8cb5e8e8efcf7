"""A memory of solved problems: every solve makes the next ones of its kind cheaper.

It keeps the mean solution and the mean Hessian at solutions; ``solvers.memory.use`` says how a
solve uses them and what it leaves behind (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ode2opt.base.display import Displayed, Listing, vector_words
from ode2opt.base.errors import InputError, many, printable
from ode2opt.problems.base import Problem
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.memory import file as memory_file
from ode2opt.solvers.memory.state import MemoryState
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.options import MemoryOptions


class Memory(Displayed):
    """Learns from every solve it is given to: ``solve(problem, memory=memory)``.

    The first solve is that of "auto"; later ones use what was learned. It is for problems of one
    kind and size, and may be shared between threads.

    Examples:
        >>> memory = Memory()
        >>> results = [solve(problem, memory=memory) for problem in problems]
        >>> memory.save("memory.safetensors")

    Args:
        options: how it learns; :class:`MemoryOptions` by default.
    """

    def __init__(self, options: MemoryOptions | None = None) -> None:
        if options is not None and not isinstance(options, MemoryOptions):
            raise InputError(f"options must be MemoryOptions, not {type(options).__name__}.")
        self.options = options or MemoryOptions()
        self.known: MemoryState | None = None
        self.lock = threading.Lock()
        self._in_files: dict[str, MemoryState | None] = {}  # what of it files hold that it knows

    def __getstate__(self) -> dict[str, Any]:
        # A lock stays where it is.
        return {"known": self.known, "in_files": self._in_files, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known, self._in_files = state["known"], dict(state["in_files"])
        self.options = state["options"]
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        known = self.known
        if known is None:
            return "Memory(empty)"
        words = [f"{known.kind} of {known.n} variables", many(known.solves, "solve")]
        if known.solves:
            words.append(f"{known.usual_calls:.3g} calls a solve")
        if known.hessians:
            words.append(f"a metric of {many(known.hessians, 'solution')}")
        return printable(f"Memory({', '.join(words)})")

    def _listing(self) -> Listing:
        known = self.known
        if known is None:
            return Listing("Memory", [("learned from", "nothing yet")])
        rows = [
            ("problems", f"{known.kind} of {many(known.n, 'variable')}"),
            ("learned from", many(known.solves, "solve")),
        ]
        for label, costs in (
            ("with it", known.calls_with_memory),
            ("without", known.calls_without_memory),
        ):
            if costs:
                rows.append((f"calls a solve {label}", f"{fmean(costs):.4g} (last {len(costs)})"))
        if known.hessians:
            rows.append(("metric", f"of {many(known.hessians, 'solution')}"))
        if known.mean is not None:
            rows.append(("mean solution", vector_words(known.mean)))
        return Listing("Memory", rows)

    @property
    def solves(self) -> int:
        """How many solves it has learned from."""
        return 0 if self.known is None else self.known.solves

    def about(self, problem: Problem) -> MemoryState:
        """Return what is known for a problem; one of another size or kind is refused.

        Args:
            problem: the problem to be solved.
        """
        kind, n, known = problem.kind, problem.n, self.known
        if known is None:
            return MemoryState(kind, n, options=self.options)
        if (kind, n) != (known.kind, known.n):
            raise InputError(
                f"This memory is of {known.kind} problems with {known.n} variables, not of {kind} "
                f"with {n}: use another one."
            )
        return replace(known, options=self.options)

    def method(self) -> Method:
        """Return what was learned as a method: L-BFGS in the metric, from the mean solution."""
        known = self.known
        if known is None or known.mean is None:
            raise InputError("This memory has learned nothing yet: solve something with it first.")
        metric = (
            known.metric if known.hessian is None else Metric.inverse_of(known.damped_hessian())
        )
        return Method(
            schedule=None,
            family=known.kind.lower(),
            tol=known.tol,
            scale="family",
            family_scale=1.0,
            metric=metric,
            start=known.mean,
            guard=Guard(fallback="lbfgs" if metric is None else "metric-lbfgs"),
            provenance={"memory": {"solves": known.solves, "looks": known.hessians}},
        )

    def save(self, path: str | Path) -> None:
        """Write the memory to a file; what was there is replaced, or stays after a crash.

        Where other processes learn into the same file, use :meth:`update_file`.

        Args:
            path: the file, which ends in .safetensors.
        """
        with self.lock:
            known = self.known
        memory_file.write(path, known)
        with self.lock:
            self._in_files[os.path.realpath(path)] = known

    def update_file(self, path: str | Path, wait: float = memory_file.WAIT) -> Path:
        """Add what was learned since the file was read to what the file holds now.

        Several processes may do so: the file is locked meanwhile, and no solve is lost. The memory
        then knows what the others have learned, too. Where the file holds a memory of another kind
        or size, or something else, it is left alone: a warning names the file beside it that is
        written.

        Args:
            path: the file; it need not exist yet.
            wait: seconds to wait for another process that has the file.

        Returns:
            The file that was written.

        Raises:
            Ode2OptError: another process has had the file for too long.

        Examples:
            >>> memory = Memory.load("memory.safetensors")
            >>> result = solve(problem, memory=memory)
            >>> memory.update_file("memory.safetensors")
        """
        with self.lock:
            mine, bases = self.known, dict(self._in_files)
        written, known = memory_file.update(Path(path), mine, bases, wait)
        with self.lock:
            if self.known is mine:  # else another thread has learned more: that is kept for later
                self.known = mine = known
            self._in_files[os.path.realpath(written)] = mine
        return written

    @classmethod
    def load(cls, path: str | Path, options: MemoryOptions | None = None) -> Memory:
        """Read a file of a memory; every field is checked, nothing is executed.

        Args:
            path: the file.
            options: how it goes on learning; a file does not hold them.
        """
        memory = cls(options)
        known = memory_file.read(path)
        memory.known = None if known is None else replace(known, options=memory.options)
        memory._in_files[os.path.realpath(path)] = memory.known
        return memory
