"""What a stage of a solve is, and when it should end: where another method would cost less.

All costs are in oracle calls. What is left of a solve is estimated from the gradient norms of the
stage itself: the rate at which they fell in the later half of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from ode2opt.base.ended import Ended
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome, Watch


class Stage(ABC):
    """One method in the plan of a solve.

    A new one is a subclass with a ``name`` and a method ``run``, and a line in
    :func:`ode2opt.solvers.plan.plan`.

    Attributes:
        name: in a handover, such as "lbfgs".
        needs: what it asks of a problem beyond value and gradient, as ``Problem.provides`` says.
        watch: ends the stage before the solve is over; None for one that only has to progress.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, watch: Watch | None = None) -> None:
        self.watch = watch

    @abstractmethod
    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Go on from an evaluated point."""


class RateEstimate:
    """The lowest gradient norms of a stage, and what is left at the rate of its later half."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._lowest: list[float] = []

    def __len__(self) -> int:
        return len(self._at)

    @property
    def began(self) -> float:
        """The calls made before the first norm."""
        return self._at[0]

    def left(self, calls: float, norm: float, tol: float) -> float:
        """Return how many more calls it takes to reach the tolerance."""
        before = self._lowest[-1] if self._lowest else math.inf
        self._at.append(calls)
        self._lowest.append(norm if norm < before else before)
        half, now = len(self._at) // 2, self._lowest[-1]
        if not now > tol:
            return 0.0
        if not now < self._lowest[half] < math.inf:
            return math.inf
        rate = math.log(self._lowest[half] / now) / (self._at[-1] - self._at[half])
        return math.log(now / tol) / rate


class SwitchIfCheaper:
    """Ends a stage when what is left costs more than the price of another method."""

    first_look: ClassVar[float] = 3
    """Calls of a preconditioned stage before it is judged."""
    after: ClassVar[float] = 2.0
    """Calls that another preconditioner takes, about."""

    def __init__(
        self,
        price: float | Callable[[float], float],
        soonest: float = 0,
        steps: int = 2,
        reason: Ended = Ended.CHEAPER,
    ) -> None:
        self.price = price
        self.soonest, self.steps, self.reason = max(2, soonest), max(2, steps), reason  # for a rate
        self._rate = RateEstimate()

    @classmethod
    def than(cls, price: float, after: float | None = None) -> SwitchIfCheaper:
        """Return a watch for a preconditioned stage beside another preconditioner."""
        after = cls.after if after is None else after
        return cls(price + after, max(cls.first_look, math.ceil(price / 2)))

    def __call__(self, oracle: Oracle) -> Outcome | None:
        if oracle.reached is not None:
            return None
        left = self._rate.left(oracle.calls, oracle.norm, oracle.tol)
        made = oracle.calls - self._rate.began
        if len(self._rate) < self.steps or made < self.soonest:
            return None
        price = self.price(made) if callable(self.price) else self.price
        if left > price:
            return Outcome(self.reason, number=made)
        return None


def within(calls: float, steps: int) -> SwitchIfCheaper:
    """Return a watch for a stage that must promise to arrive within so many calls of its own."""
    return SwitchIfCheaper(lambda made: calls - made, steps=steps, reason=Ended.FAR)


def turn(calls: float) -> SwitchIfCheaper:
    """Return a watch for one turn: after so many calls more must not be left than were made."""
    return SwitchIfCheaper(lambda made: made, calls, reason=Ended.TURN)


def for_ever(oracle: Oracle) -> Outcome | None:
    """Let a stage go on: the watch of one that always converges."""
    return None


def not_stuck(calls: float) -> SwitchIfCheaper:
    """Return a watch for a stage that nothing competes with: it must come nearer at all."""
    return SwitchIfCheaper(lambda made: 100 * made, calls, reason=Ended.STUCK)
