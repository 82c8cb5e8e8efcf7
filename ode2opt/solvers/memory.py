"""A memory of solved problems: every solve makes the next ones of its kind cheaper.

It keeps the mean solution and the mean Hessian at solutions; ``recall`` says how a solve uses them
and what it leaves behind (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from statistics import fmean
from typing import Any

from ode2opt.display import Displayed, Listing, vector_words
from ode2opt.errors import InputError, many, printable
from ode2opt.problems.base import Problem
from ode2opt.solvers import memory_file
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.known import Known
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import Metric


class Memory(Displayed):
    """Learns from every solve it is given to: ``solve(problem, memory=memory)``.

    The first solve is that of "auto"; later ones use what was learned. It is for problems of one
    kind and size, and may be shared between threads.

    Examples:
        >>> memory = Memory()
        >>> results = [solve(problem, memory=memory) for problem in problems]
        >>> memory.save("memory.safetensors")
    """

    def __init__(self) -> None:
        self.known: Known | None = None
        self.lock = threading.Lock()
        self._in_files: dict[str, Known | None] = {}  # what of it files hold that it knows

    def __getstate__(self) -> dict[str, Any]:
        return {"known": self.known, "in_files": self._in_files}  # a lock stays where it is

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known, self._in_files = state["known"], dict(state["in_files"])
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        known = self.known
        if known is None:
            return "Memory(empty)"
        words = [f"{known.kind} of {known.n} variables", many(known.solves, "solve")]
        if known.solves:
            words.append(f"{known.usual:.3g} calls a solve")
        if known.looks:
            words.append(f"a metric of {many(known.looks, 'solution')}")
        return printable(f"Memory({', '.join(words)})")

    def _listing(self) -> Listing:
        known = self.known
        if known is None:
            return Listing("Memory", [("learned from", "nothing yet")])
        rows = [
            ("problems", f"{known.kind} of {many(known.n, 'variable')}"),
            ("learned from", many(known.solves, "solve")),
        ]
        for label, costs in (("with it", known.recent), ("without", known.alone)):
            if costs:
                rows.append((f"calls a solve {label}", f"{fmean(costs):.4g} (last {len(costs)})"))
        if known.looks:
            rows.append(("metric", f"of {many(known.looks, 'solution')}"))
        if known.mean is not None:
            rows.append(("mean solution", vector_words(known.mean)))
        return Listing("Memory", rows)

    @property
    def solves(self) -> int:
        """How many solves it has learned from."""
        return 0 if self.known is None else self.known.solves

    def about(self, problem: Problem) -> Known:
        """Return what is known for a problem; one of another size or kind is refused."""
        kind, n, known = problem.kind, problem.n, self.known
        if known is None:
            return Known(kind, n)
        if (kind, n) != (known.kind, known.n):
            raise InputError(
                f"This memory is of {known.kind} problems with {known.n} variables, not of {kind} "
                f"with {n}: use another one."
            )
        return known

    def method(self) -> Method:
        """Return what was learned as a method: L-BFGS in the metric, from the mean solution."""
        known = self.known
        if known is None or known.mean is None:
            raise InputError("This memory has learned nothing yet: solve something with it first.")
        metric = known.metric if known.hessian is None else Metric.inverse_of(known.damped())
        return Method(
            schedule=None,
            family=known.kind.lower(),
            tol=known.tol,
            scale="family",
            family_scale=1.0,
            metric=metric,
            start=known.mean,
            guard=Guard(fallback="lbfgs" if metric is None else "metric-lbfgs"),
            provenance={"memory": {"solves": known.solves, "looks": known.looks}},
        )

    def save(self, path: str | Path) -> None:
        """Write the memory to a file; what was there is replaced, or stays after a crash.

        Where other processes learn into the same file, use :meth:`update_file`.
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
    def load(cls, path: str | Path) -> Memory:
        """Read a file of a memory; every field is checked, nothing is executed."""
        memory = cls()
        memory.known = memory_file.read(path)
        memory._in_files[os.path.realpath(path)] = memory.known
        return memory
