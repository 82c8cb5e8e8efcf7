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
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.run import PROGRESS, HandOver, Here, Run

Watch = Callable[[Run], str | None]
"""Says why to hand over now, or None."""


@dataclass(frozen=True)
class Stage:
    """A method by its name in a handover, how it goes on from a point, and what watches it."""

    name: str
    go: Callable[[Run, Here], None]
    watch: Watch | None = None


def plain(run: Run, here: Here) -> None:
    """L-BFGS in no metric."""
    run.tell("L-BFGS")
    lbfgs(run, here)


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


class Patience:
    """Watches one stage: the gradient norm must fall by a tenth every so many iterations."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._norm, self._k = math.inf, 0

    def __call__(self, run: Run) -> str | None:
        if self._norm == math.inf or run.norm < PROGRESS * self._norm:
            self._norm, self._k = run.norm, run.k
        if run.k - self._k >= self.most:
            return f"no progress for {self.most} iterations"
        return None


class Slow:
    """Watches one stage: is what is left dearer than ``price`` evaluations in another metric?

    What is left is judged by the lowest gradient norms, by the rate of the later half of the steps.
    """

    def __init__(self, price: float, soonest: int) -> None:
        self.price, self.soonest = price, max(2, soonest)  # a rate takes two steps
        self._steps: list[int] = []
        self._lowest: list[float] = []

    def __call__(self, run: Run) -> str | None:
        self._steps.append(run.k)
        self._lowest.append(min(run.norm, self._lowest[-1] if self._lowest else math.inf))
        half, now = len(self._steps) // 2, self._lowest[-1]
        if len(self._steps) <= self.soonest or not now > run.tol:
            return None
        rate = math.log(self._lowest[half] / now) / (self._steps[-1] - self._steps[half])
        if math.log(now / run.tol) > self.price * rate:
            return "another metric costs less than what is left"
        return None
