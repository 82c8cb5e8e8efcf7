"""How one solver is judged: by its time to a Euclidean gradient norm of one f.

Our methods stop at that norm by themselves. A peer with a tolerance of its own is fitted with
tolerances of a ladder; what counts is the time of the fit alone with the loosest one whose solution
has the norm. Norms are computed here, in double precision, for everybody.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from alone import clock  # isort: skip - before numpy
import numpy as np

from ode2opt import solve
from ode2opt.problems import LinearModel

SWITCH = "ODE2OPT_KERNELS"
NO_KERNELS = "-no-kernels"  # after a method's name: with the switch at 0
LADDER = tuple(10.0**-k for k in range(-1, 13))
FIRST_RUNG = 2  # of the ladder: where the search begins
FIRST_BOUND = 10  # iterations; more once it is known what one costs
BRIEF = 0.03  # seconds: what is quicker is run several times for one timing
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """One f: mean loss on (A, b) plus l2/2 |x|^2."""

    make: type[LinearModel]
    A: Any
    b: np.ndarray
    l2: float

    def problem(self) -> LinearModel:
        """Return a new problem, as a user would make it."""
        return self.make(self.A, self.b, l2=self.l2)

    @cached_property
    def judge(self) -> LinearModel:
        """The problem that solutions are judged on, in double precision."""
        return self.make(self.A.astype(np.float64, copy=False), self.b, l2=self.l2)

    @property
    def start(self) -> np.ndarray:
        """Zero, where everyone starts."""
        return np.zeros(self.A.shape[1])

    def norm(self, x: np.ndarray) -> float:
        """Return the Euclidean norm of the gradient at ``x``."""
        return float(np.linalg.norm(self.judge.gradient(np.asarray(x, dtype=np.float64))))

    def read(self) -> float:
        """Read all numbers of the matrix once: what a pass over the data costs at least."""
        return float(self.A.sum() if isinstance(self.A, np.ndarray) else self.A.data.sum())


Solve = Callable[[Task, float, float], np.ndarray]
"""Task, gradient norm, seconds at most: a solver that stops at the norm. Returns x."""
Fit = Callable[[Task, float, int], tuple[np.ndarray, int]]
"""Task, tolerance of its own, iterations at most. Returns x and the iterations made."""
Both = Callable[[np.ndarray], tuple[Any, np.ndarray]]
"""A function that returns its value and its gradient."""


@dataclass(frozen=True)
class Peer:
    """A package's solver that knows only a tolerance of its own."""

    fit: Fit
    most_columns: float = math.inf


@dataclass(frozen=True)
class Measured:
    """What came out: seconds where the norm was reached, and what it took or why not.

    ``own`` and ``bound`` are a peer's tolerance and its iterations at most. ``again`` runs the same
    once more.
    """

    seconds: float | None
    norm: float | None
    setting: str
    own: float | None = None
    bound: int | None = None
    again: Callable[[], object] | None = None

    @classmethod
    def missed(cls, norms: Iterable[float], why: str) -> Measured:
        """Return a failure with the best norm seen."""
        return cls(None, min(filter(math.isfinite, norms), default=None), why)

    def kept(self) -> dict[str, Any]:
        """Return what is written down."""
        return {key: value for key, value in vars(self).items() if key != "again"}


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long one call takes, and its answer."""
    began = clock()
    answer = work()
    return clock() - began, answer


def timing(work: Callable[[], object]) -> float:
    """Return the seconds of a call; of a quick one the mean of several."""
    count = 1
    while True:
        began = clock()
        for _ in range(count):
            work()
        seconds = clock() - began
        if seconds >= BRIEF:
            return seconds / count
        count = math.ceil(count * min(10.0, 1.2 * BRIEF / max(seconds, 1e-9)))


def ours(name: str) -> Solve:
    """Return one of our methods; making the problem is part of its time."""
    method, off = name.removesuffix(NO_KERNELS), name.endswith(NO_KERNELS)

    def work(task: Task, tol: float, seconds: float) -> np.ndarray:
        return solve(task.problem(), task.start, method=method, tol=tol, max_seconds=seconds).x

    def without(task: Task, tol: float, seconds: float) -> np.ndarray:
        before = os.environ.get(SWITCH)
        os.environ[SWITCH] = "0"
        try:
            return work(task, tol, seconds)
        finally:
            if before is None:
                del os.environ[SWITCH]
            else:
                os.environ[SWITCH] = before

    return without if off else work


class Reached(Exception):  # noqa: N818 - no error
    """The gradient is small enough, or the time is up."""


class Watch:
    """A function with its gradient that sees when the norm is first reached, and can stop there."""

    def __init__(
        self,
        both: Callable[[np.ndarray], Any],
        tol: float,
        *,
        stop: bool,
        seconds: float = math.inf,
    ) -> None:
        self.both, self.tol, self.stop = both, tol, stop
        self.until = clock() + seconds
        self.calls, self.reached, self.norm = 0, math.inf, math.inf
        self.x: np.ndarray | None = None

    def __call__(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        value, g = self.both(x)
        self.calls += 1
        norm = math.sqrt(float(g @ g))
        if norm < self.norm:
            self.norm, self.x = norm, x.copy()
        if norm <= self.tol:
            self.reached = min(self.reached, self.calls)
        if self.stop and (norm <= self.tol or clock() > self.until):
            raise Reached
        return value, g


def judge_solve(work: Solve, task: Task, tol: float, limit: float) -> Measured:
    """Measure a solver that stops at the norm by itself."""
    seconds, x = timed(lambda: work(task, tol, limit))
    norm = task.norm(x)
    if not norm <= tol:
        return Measured.missed([norm], "cut" if seconds > limit else "missed")
    return Measured(seconds, norm, "norm", again=lambda: work(task, tol, limit))


@dataclass(frozen=True)
class Rung:
    """One fit of a ladder."""

    seconds: float
    norm: float
    bound: int
    cut: bool


@dataclass
class Ladder:
    """A peer's fits on one task, each tolerance tried once, in about ``limit`` seconds each."""

    peer: Peer
    task: Task
    limit: float
    bound: int = FIRST_BOUND
    rungs: dict[float, Rung] = field(default_factory=dict)

    def judge(self, tol: float) -> Measured:
        """Measure the loosest fit that reaches the norm."""
        if self.task.A.shape[1] > self.peer.most_columns:
            return Measured.missed([], "skipped")
        own = self._loosest(tol)
        if own is None:
            cut = any(rung.cut for rung in self.rungs.values())
            return Measured.missed(
                (r.norm for r in self.rungs.values()), "cut" if cut else "missed"
            )
        rung = self.rungs[own]
        return Measured(
            rung.seconds, rung.norm, "tolerance", own, rung.bound, self._again(own, rung.bound)
        )

    def repeat(self, tol: float, own: float, bound: int) -> Measured | None:
        """Measure one fit whose settings are known; None where it does not reach the norm."""
        seconds, (x, _) = self._fit(own, bound)
        norm = self.task.norm(x)
        if not norm <= tol:
            return None
        return Measured(seconds, norm, "tolerance", own, bound, self._again(own, bound))

    def _again(self, own: float, bound: int) -> Callable[[], object]:
        return lambda: self.peer.fit(self.task, own, bound)

    def _loosest(self, tol: float) -> float | None:
        """Return the loosest tolerance that reaches the norm, to half a power of ten.

        The norm falls about as the tolerance does, which says how far to go down at once.
        """
        place = FIRST_RUNG
        while not self._reaches(LADDER[place], tol):
            rung = self.rungs[LADDER[place]]
            if rung.cut or place == len(LADDER) - 1:
                return None
            steps = int(math.log10(rung.norm / tol)) if math.isfinite(rung.norm) else 1
            place = min(place + max(1, steps), len(LADDER) - 1)
        while place and self._reaches(LADDER[place - 1], tol):
            place -= 1
        between = LADDER[place] * math.sqrt(10)
        return between if self._reaches(between, tol) else LADDER[place]

    def _reaches(self, own: float, tol: float) -> bool:
        return self._rung(own).norm <= tol

    def _rung(self, own: float) -> Rung:
        if own not in self.rungs:
            self.rungs[own] = self._climb(own)
        return self.rungs[own]

    def _climb(self, own: float) -> Rung:
        """Fit with more and more iterations until the peer stops by itself or the time is up."""
        while True:
            seconds, (x, iterations) = self._fit(own, self.bound)
            used_up = iterations >= self.bound
            if not used_up or seconds > self.limit / 2:
                cut = used_up or seconds > self.limit
                return Rung(seconds, self.task.norm(x), self.bound, cut)
            self.bound = min(10 * self.bound, math.ceil(self.bound * self.limit / seconds))

    def _fit(self, own: float, bound: int) -> tuple[float, tuple[np.ndarray, int]]:
        return timed(lambda: self.peer.fit(self.task, own, bound))
