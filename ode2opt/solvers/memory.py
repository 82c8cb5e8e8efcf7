"""A memory of solved problems: every solve makes the next ones of its kind cheaper.

It keeps the mean solution and the mean Hessian at solutions; ``recall`` says how a solve uses them
and what it leaves behind (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from ode2opt.display import Displayed, Listing, vector_words
from ode2opt.errors import InputError, many, printable
from ode2opt.problems._arrays import as_count, as_positive
from ode2opt.problems.base import Problem
from ode2opt.schema import read
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.method_file import Method, load_metric, metric_names, save_metric
from ode2opt.solvers.metric import Metric
from ode2opt.storage import expect, finite, load_tensors, save_tensors

VERSION, KEY = 1, "ode2opt-memory"
RECENT = 8  # solves that tell the usual cost
FEW_TO_JUDGE = 3  # solves with a memory, before they are compared with those without
OPEN = 1.0  # of one row's curvature: what the rows of a new problem leave open
OPEN_FIRST = 2.0  # the same for the first solved problem, less with each that follows
ARRAYS = ("mean", "hessian", "floor")
ASYMMETRY = 1e-8  # of the largest entry of a Hessian: more is no rounding


@dataclass(frozen=True, eq=False)
class Known:
    """What a memory holds; replaced as a whole, so that threads see the old or the new one.

    Attributes:
        kind, n: the class of the problems and their number of variables.
        tol: the last tolerance that was reached.
        solves: how many there were; ``recent`` what the last ones that used the memory cost, in
            calls, and ``alone`` what the last ones cost that did not.
        surprises: how many of the last solves in a row cost far more than usual.
        solved: how many solutions are behind ``mean``.
        looks: how many Hessians at solutions are behind ``hessian``, and behind ``floor``, what
            their rows left open, by variable.
        metric: takes the place of the Hessian where there are too many variables.
        starts: the last comparisons of starts: whether the mean solution was the better one.
        inverse: the metric of the mean Hessian, made of it.
    """

    kind: str
    n: int
    tol: float = 1.0
    solves: int = 0
    recent: tuple[float, ...] = ()
    alone: tuple[float, ...] = ()
    surprises: int = 0
    solved: int = 0
    mean: np.ndarray | None = None
    looks: int = 0
    hessian: np.ndarray | None = None
    floor: np.ndarray | None = None
    metric: Metric | None = None
    starts: tuple[bool, ...] = ()
    inverse: np.ndarray | None = None

    @property
    def usual(self) -> float:
        """What a solve costs, in calls."""
        known = self.recent or self.alone
        return median(known) if known else math.inf

    @property
    def helps(self) -> bool:
        """Whether solves have not become dearer by what is known."""
        few = len(self.recent) < FEW_TO_JUDGE or not self.alone
        return few or fmean(self.recent) <= fmean(self.alone)

    def damped(self) -> np.ndarray:
        """Return the mean Hessian with what is open about it: the better known, the less."""
        assert self.hessian is not None
        assert self.floor is not None
        return self.hessian + np.diag((OPEN + OPEN_FIRST / self.looks) * self.floor)

    def with_inverse(self) -> Known:
        """Return the same with the metric made."""
        if self.hessian is None:
            return replace(self, inverse=None)
        return replace(self, inverse=Factor(self.damped()).inverse())


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

    def __getstate__(self) -> dict[str, Known | None]:
        return {"known": self.known}  # a lock stays where it is

    def __setstate__(self, state: dict[str, Known | None]) -> None:
        self.known, self.lock = state["known"], threading.Lock()

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
        """Write the memory to a file; a crash or a full disk leaves what was there."""
        known, arrays = self.known, {}
        header: _Empty | _Header = _Empty(VERSION, known is None)
        if known is not None:
            arrays = {k: getattr(known, k) for k in ARRAYS if getattr(known, k) is not None}
            header = _Header(
                **vars(header),
                metric=save_metric(known.metric, arrays),
                **{name: getattr(known, name) for name in _PLAIN},
            )
        save_tensors(path, KEY, arrays, asdict(header))

    @classmethod
    def load(cls, path: str | Path) -> Memory:
        """Read a file written by :meth:`save`; every field is checked, nothing is executed."""
        arrays, about = load_tensors(path, KEY, VERSION, "memory")
        memory = cls()
        try:
            if about.get("empty") is True:
                read(_Empty, about)
                expect(arrays, lambda name: False)
            else:
                memory.known = _known(arrays, read(_Header, about))
        except InputError as error:
            raise InputError(f"{path} is no valid memory: {error}") from None
        return memory


_PLAIN = ("kind", "n", "tol", "solves", "recent", "alone", "surprises", "solved", "looks", "starts")


@dataclass(frozen=True)
class _Empty:
    """The description in the file of a memory, and all there is in that of an empty one."""

    version: int
    empty: bool


@dataclass(frozen=True)
class _Header(_Empty):
    """The description in the file of a memory that has learned; its arrays are beside it."""

    kind: str
    n: int
    tol: float
    solves: int
    recent: tuple[float, ...]
    alone: tuple[float, ...]
    surprises: int
    solved: int
    looks: int
    starts: tuple[bool, ...]
    metric: str | None = None

    def __post_init__(self) -> None:
        as_count(self.n, "n")
        for name in ("solves", "surprises", "solved", "looks"):
            as_count(getattr(self, name), name, least=0)
        for number in (self.tol, *self.recent, *self.alone):
            as_positive(number, "one of its numbers")


def _known(arrays: dict[str, np.ndarray], header: _Header) -> Known:
    n, parts = header.n, metric_names(header.metric)
    expect(arrays, lambda name: name in (*ARRAYS, *parts))
    shapes = {"mean": (n,), "hessian": (n, n), "floor": (n,)}
    found = {name: finite(arrays, name, shapes[name]) for name in ARRAYS if name in arrays}
    metric = load_metric(header.metric, arrays)
    if metric is not None and metric.n != n:
        raise InputError(f"its metric has {metric.n} variables, not {n}.")
    _check_whole(header, found, metric)
    rest: dict[str, Any] = {name: getattr(header, name) for name in _PLAIN} | found
    with np.errstate(all="ignore"):  # what overflows is refused
        known = Known(metric=metric, **rest).with_inverse()
    if known.inverse is not None and not np.all(np.isfinite(known.inverse)):
        raise InputError("its Hessian has no finite inverse.")
    return known


def _check_whole(header: _Header, found: dict[str, np.ndarray], metric: Metric | None) -> None:
    """Refuse parts that do not belong together."""
    if header.solves and not (
        "mean" in found and header.solved and (header.recent or header.alone)
    ):
        raise InputError(f"it has {header.solves} solves, but no solution or no costs of them.")
    if ("hessian" in found) != ("floor" in found):
        raise InputError("it has a Hessian without floor, or a floor without Hessian.")
    if ("hessian" in found or metric is not None) != (header.looks > 0):
        raise InputError(f"it has {header.looks} looks, which does not fit its metric.")
    if "floor" in found and not np.all(found["floor"] > 0):
        raise InputError("its floor is not positive.")
    if "hessian" in found and not _symmetric(found["hessian"]):
        raise InputError("its Hessian is not symmetric.")


def _symmetric(H: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        difference = np.abs(H - H.T)
    return bool(np.max(difference) <= ASYMMETRY * np.max(np.abs(H)))
