"""One supervisor for every solve: stages follow each other, and the last one needs no trust.

A stage goes on until the solve is over (Stop) or it gives up (HandOver): because its watch saw
something, or because it found no step. The next stage starts where the last one was lowest. After
all of them comes Nesterov's method with backtracking, which converges for every convex function
with a locally Lipschitz gradient (docs/mathematics.md, section 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn

from ode2opt.solvers.fallback import nesterov_backtracking
from ode2opt.solvers.lbfgs import NO_DECREASE, Corrections, lbfgs
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import HandOver, Here, Run, Stop, Watch


@dataclass(frozen=True)
class Stage:
    """A method by its name in a handover, how it goes on from a point, and what watches it."""

    name: str
    go: Callable[[Run, Here], None]
    watch: Watch | None = None


def plain(run: Run, here: Here, memory: Corrections | None = None) -> None:
    """L-BFGS in no metric, with the corrections of an earlier run to ``here``, if any."""
    run.tell("L-BFGS")
    lbfgs(run, here, memory=memory)


def last(run: Run, here: Here) -> None:
    """Nesterov's method with backtracking."""
    run.tell("Nesterov's method with backtracking")
    nesterov_backtracking(run, here)


PLAIN, LAST = Stage("lbfgs", plain), Stage("nesterov", last)


def supervise(run: Run, here: Here, stages: Iterable[Stage]) -> NoReturn:
    """Run the stages from an evaluated point; leaves by Stop."""
    following = chain(stages, [LAST])
    stage = next(following)
    while True:
        run.watch, run.accept_non_finite = stage.watch, True
        try:
            stage.go(run, here)
        except HandOver as end:
            here = here if end.here is None else end.here
            stage = next(following)
            run.hand_over(end.reason, stage.name)


def first_alone(run: Run, here: Here, stages: Iterable[Stage]) -> NoReturn:
    """Run the first stage only, unwatched; leaves by Stop, also where the stage gives up."""
    run.watch, run.accept_non_finite = None, True
    try:
        next(iter(stages)).go(run, here)
    except HandOver as end:
        no_step = end.reason == NO_DECREASE
        raise Stop(Status.LINE_SEARCH if no_step else Status.GAVE_UP) from None
    raise AssertionError("a stage returned without a status")


NEAR = 0.5  # of the evaluations made: a stage that needs no more to arrive goes on


class Falling:
    """The lowest gradient norms of a stage, and what is left at the rate of its later half."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._lowest: list[float] = []

    def __len__(self) -> int:
        return len(self._at)

    @property
    def began(self) -> float:
        """The time of the first norm."""
        return self._at[0]

    def left(self, at: float, norm: float, tol: float) -> float:
        """Take note of a norm ``at`` a time; return the time from there to the tolerance."""
        before = self._lowest[-1] if self._lowest else math.inf
        self._at.append(at)
        self._lowest.append(norm if norm < before else before)
        half, now = len(self._at) // 2, self._lowest[-1]
        if not now > tol:
            return 0.0
        if not now < self._lowest[half] < math.inf:
            return math.inf
        rate = math.log(self._lowest[half] / now) / (self._at[-1] - self._at[half])
        return math.log(now / tol) / rate


class Pace:
    """Watches one stage: will the solve, at the rate of late, have arrived by ``most`` calls?"""

    def __init__(self, most: float, soonest: int) -> None:
        self.most, self.soonest = most, soonest
        self._falling = Falling()

    def __call__(self, run: Run) -> str | None:
        if run.reached is not None:
            return None
        left = self._falling.left(run.calls, run.norm, run.tol)
        if len(self._falling) > self.soonest and run.calls + left > self.most:
            return "the tolerance is too far away at this pace"
        return None


class Slow:
    """Watches one stage: is what is left dearer than ``price`` evaluations in another metric?

    ``left`` is how many evaluations it would still take; with a ``rival`` that would have taken so
    many from the beginning, the stage has ``lost`` when it has made as many and is not near.
    """

    def __init__(self, price: float, soonest: int, rival: float = math.inf) -> None:
        self.price, self.soonest = price, max(2, soonest)  # a rate takes two steps
        self.rival, self.left, self.lost = rival, math.inf, False
        self._falling = Falling()

    def __call__(self, run: Run) -> str | None:
        self.left = self._falling.left(run.k, run.norm, run.tol)
        made = run.k - self._falling.began  # a step may take several
        if made > self.rival and self.left > NEAR * made:
            self.lost = True
            return "L-BFGS without a metric would be done by now"
        if made >= self.soonest and self.left > self.price:
            return "another metric costs less than what is left"
        return None
