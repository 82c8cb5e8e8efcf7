"""Stages of a solve and who watches them: a watch says when another method should go on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ode2opt.solvers.run import PROGRESS, Here, Run, Watch

NEAR = 0.5  # of the evaluations made: a stage that needs no more to arrive goes on


@dataclass(frozen=True)
class Stage:
    """A method by its name in a handover, how it goes on from a point, and what watches it."""

    name: str
    go: Callable[[Run, Here], None]
    watch: Watch | None = None


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


class Stuck:
    """Watches one stage: has its gradient norm not fallen by a tenth for most of its evaluations?

    That is so after at least ``patience`` evaluations without such a fall, and as many as it took
    to come there.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self._norm, self._began, self._progress = math.inf, -1, 0

    def __call__(self, run: Run) -> str | None:
        if self._began < 0:
            self._began = run.k
        if run.norm < PROGRESS * self._norm:
            self._norm, self._progress = run.norm, run.k
        without = run.k - self._progress
        if run.reached is None and without > max(self.patience, self._progress - self._began):
            return f"no progress for {without} evaluations"
        return None


class Turn:
    """Watches one stage: after ``budget`` calls, will it need more to arrive than it has made?"""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._falling = Falling()

    def __call__(self, run: Run) -> str | None:
        if run.reached is not None:
            return None
        left = self._falling.left(run.calls, run.norm, run.tol)
        made = run.calls - self._falling.began
        if made > self.budget and left > made:
            return "the others have a turn"
        return None
