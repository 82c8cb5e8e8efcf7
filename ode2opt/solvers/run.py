"""One solve under way: it counts, keeps the best point, and says when to stop.

A method asks ``run.at(x)`` for the gradient at its next iterate and goes on for ever; the run
raises :class:`Stop` when the solve is over and :class:`HandOver` when the guard or the relay
wants another method to take over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import array_api_compat
import numpy as np

from ode2opt.problems._arrays import Array, copy
from ode2opt.problems.base import Problem
from ode2opt.solvers.result import Handover, History, Milestone, Status

PROGRESS = 0.9  # the factor by which a norm must have fallen to count as progress


class Stop(Exception):  # noqa: N818  (not an error: the way every solve ends)
    """The solve is over."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class HandOver(Exception):  # noqa: N818
    """Another method should take over."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration; returning True stops the solve."""

    iteration: int
    grad_norm: float
    oracle_calls: int
    seconds: float
    x: Array


Callback = Callable[[Progress], object]
Evaluation = tuple[float, np.ndarray]
"""A value and a gradient, as scipy takes them."""


class Run:
    """The state that all methods share.

    Attributes:
        k: the current iteration, 0 at the start point.
        norm: the gradient norm there; ``first_norm`` and ``best_norm`` those of start and best.
        best_x: the point with the smallest gradient norm.
        progress_k: the last iteration at which the norm had fallen by a tenth since the one before.
        watch: returns a reason to hand over, or None; no watch means none.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        tol: float,
        max_iter: int,
        max_seconds: float = math.inf,
        stop_at_tol: bool = True,
        history: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.problem = problem
        self.tol, self.max_iter, self.max_seconds = tol, max_iter, max_seconds
        self.stop_at_tol, self.callback = stop_at_tol, callback
        self.history = History() if history else None
        self.watch: Callable[[Run], str | None] | None = None
        self.accept_non_finite = False
        self.handovers: list[Handover] = []
        self.reached: Milestone | None = None
        self.calls = 0
        self.k = -1
        self.norm = self.first_norm = self.best_norm = self.previous_norm = math.inf
        self.progress_norm, self.progress_k = math.inf, 0
        self.best_x: Array = None
        self._immutable = array_api_compat.is_jax_namespace(problem.xp)
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the start, set-up included."""
        return time.perf_counter() - self._began

    def charge(self, oracle_calls: int, seconds: float) -> None:
        """Add a set-up cost that was paid before the clock started."""
        self.calls += oracle_calls
        self._began -= seconds

    def gradient(self, x: Array) -> Array:
        """Return the gradient at a point that is no iterate; counted, not observed."""
        self.calls += 1
        return self.problem.gradient(x)

    def value(self, x: Array) -> float:
        """Return f at a point; counted."""
        self.calls += 1
        return float(self.problem.value(x))

    def at(self, x: Array) -> Array:
        """Return the gradient at the next iterate ``x``; may raise Stop or HandOver."""
        g = self.gradient(x)
        self.observe(x, g)
        return g

    def evaluate(self, x: Array) -> Evaluation:
        """Return value and gradient at the next iterate ``x``; may raise Stop or HandOver."""
        value, g = self.problem.value_and_gradient(x)
        self.calls += 1
        self.observe(x, g)
        return float(value), np.asarray(g, dtype=np.float64)

    def observe(self, x: Array, g: Array) -> None:
        """Take note of iterate ``x`` with gradient ``g``; may raise Stop or HandOver."""
        self.k += 1
        self.previous_norm, self.norm = self.norm, self._norm(g)
        if self.norm < self.best_norm:
            self._keep(x)
        elif self.k == 0:
            raise Stop(Status.NON_FINITE)
        if self.history is not None:
            self.history.grad_norm.append(self.norm)
            self.history.oracle_calls.append(self.calls)
            self.history.seconds.append(self.seconds)
        if self.norm <= self.tol and self.reached is None:
            self.reached = Milestone(self.k, self.calls, self.seconds)
        self._stop_if_over(x)
        if self.watch is not None and (reason := self.watch(self)) is not None:
            raise HandOver(reason)
        if not math.isfinite(self.norm) and not self.accept_non_finite:
            raise Stop(Status.NON_FINITE)

    def _keep(self, x: Array) -> None:
        if self.best_x is None:
            self.best_x, self.first_norm = copy(x), self.norm
        elif self._immutable:
            self.best_x = x
        else:
            self.best_x[...] = x
        self.best_norm = self.norm
        if self.norm < PROGRESS * self.progress_norm:
            self.progress_norm, self.progress_k = self.norm, self.k

    def _norm(self, g: Array) -> float:
        norm = math.sqrt(float(g @ g))
        if norm < math.inf:
            return norm
        xp = self.problem.xp
        largest = float(xp.max(xp.abs(g)))  # the squares may overflow where the norm does not
        if not 0 < largest < math.inf:
            return math.nan if math.isnan(norm) else math.inf
        scaled = g / largest
        return largest * math.sqrt(float(scaled @ scaled))

    def _stop_if_over(self, x: Array) -> None:
        stop = self.callback is not None and self.callback(
            Progress(self.k, self.norm, self.calls, self.seconds, copy(x))
        )
        if self.reached is not None and self.stop_at_tol:
            raise Stop(Status.CONVERGED)
        if stop:
            raise Stop(Status.CALLBACK)
        if self.k >= self.max_iter:
            raise Stop(Status.MAX_ITER)
        if self.max_seconds < math.inf and self.seconds > self.max_seconds:
            raise Stop(Status.MAX_SECONDS)

    def hand_over(self, reason: str, to: str) -> None:
        """Record that method ``to`` takes over from here; nothing is watched any more."""
        self.handovers.append(Handover(self.k, reason, to, self.norm))
        self.watch = None
