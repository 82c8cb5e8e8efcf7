"""One solve under way: it counts, keeps the best point, and says when to stop.

A method asks ``oracle.at(x)`` or ``oracle.evaluate(x)`` for its next iterate and goes on for
ever: the oracle raises :class:`Stop` when the solve is over. After each step a method asks
``oracle.judge()`` whether another one should go on, and returns the outcome if so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, copy, namespace
from ode2opt.base.ended import Ended
from ode2opt.solvers.bound import LowerBound
from ode2opt.solvers.concavity import Concave
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated, Objective, SmoothPart
from ode2opt.solvers.options import DEFAULTS, AutoOptions
from ode2opt.solvers.result import Handover, History, Milestone
from ode2opt.solvers.start_point import unfit_start

PROGRESS = 0.9  # the factor by which a norm must have fallen to count as progress


class Stop(Exception):  # noqa: N818  (not an error: the way every solve ends)
    """The solve is over."""

    def __init__(self, status: Ended) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration; returning True stops the solve.

    Attributes:
        iteration: 0 at the start point.
        grad_norm: the gradient norm there.
        oracle_calls: calls made so far.
        seconds: wall time so far.
        x: a copy of the iterate.
    """

    iteration: int
    grad_norm: float
    oracle_calls: float
    seconds: float
    x: Array


class Outcome(NamedTuple):
    """The end of a stage: why, at which lowest point, and the number that the clause may tell.

    The point is None where only gradients were asked for.
    """

    ended: Ended
    point: Evaluated | None = None
    number: float = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether no step of this method helps any more, at this precision."""
        return self.ended in (Ended.LINE_SEARCH, Ended.STALLED)

    def __str__(self) -> str:
        return self.ended.clause.format(self.number)


Callback = Callable[[Progress], object]


Watch = Callable[["Oracle"], "Outcome | None"]
"""Says why another method should go on now, or None."""


class Oracle:
    """The state that all methods share; norms are those of the residual, without a penalty g.

    Attributes:
        k: the current iteration, 0 at the start point.
        norm: the norm there; ``first_norm`` and ``best_norm`` those of start and best.
        best_x: the point with the smallest gradient norm. It is kept by reference: as long as a
            vector is ``oracle.best_x``, nobody may overwrite it.
        progress_k: the last iteration at which the norm had fallen by a tenth since the one before.
        best_value: f there, where it is known.
        description: what was done, step by step, for the result.
        watch: returns the outcome of a stage that should end now, or None; no watch means none.
        unfit: a start point without a gradient.
        concave: why the function is not convex, where that was found.
        lower_bounds: what the method itself has proved of f, from below; empty, unless it says so.
        known: a point with f and its gradient, which need not be asked for again. Where one is
            given to begin with, that of the best point takes its place.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        tol: float,
        max_iter: int,
        max_seconds: float = math.inf,
        stop_at_tol: bool = True,
        history: bool = False,
        callback: Callback | None = None,
        options: AutoOptions | None = None,
        known: SmoothPart | None = None,
    ) -> None:
        self.objective, self.penalty = objective, objective.penalty
        self.problem: Any = objective.problem  # ``provides`` says what it has beyond a Problem
        self.to_problem, self.to_numpy = objective.to_problem, objective.to_numpy
        self.rounding, self.known = objective.rounding, known
        self.options = options or DEFAULTS
        self._costs: Costs | None = None
        self.tol, self.max_iter, self.max_seconds = tol, max_iter, max_seconds
        self.stop_at_tol, self.callback = stop_at_tol, callback
        self.history = History() if history else None
        self.watch: Watch | None = None
        self.accept_non_finite = False
        self.handovers: list[Handover] = []
        self.description: list[str] = []
        self.reached: Milestone | None = None
        self.concave: Concave | None = None
        self.lower_bounds: list[LowerBound] = []
        self.calls: float = 0
        self.k = -1
        self.norm = self.first_norm = self.best_norm = self.previous_norm = math.inf
        self.progress_norm, self.progress_k = math.inf, 0
        self.best_x: Array = None
        self.unfit: Array = None
        self.best_value: float | None = None
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the start, set-up included."""
        return time.perf_counter() - self._began

    def charge(self, oracle_calls: float, seconds: float = 0.0) -> None:
        """Add a cost: calls that are no iterates, seconds paid before the clock started."""
        self.calls += oracle_calls
        self._began -= seconds

    def spend(self, oracle_calls: float) -> None:
        """Add the cost of work between iterates; stops where the time is over."""
        self.calls += oracle_calls
        if self.max_seconds < math.inf:
            self.check_time()

    @property
    def costs(self) -> Costs:
        """What work on the problem costs, made once."""
        if self._costs is None:
            self._costs = Costs(self.problem)
        return self._costs

    def log(self, text: str) -> None:
        """Take note of what is done next, for the result's description."""
        self.description.append(text)

    def value(self, x: Array) -> float:
        """Return f + h at a point; counted."""
        self.calls += 1
        return self.objective.value(x)

    def gradient(self, x: Array) -> Array:
        """Return the gradient at a point that is to be observed; counted."""
        self.calls += 1
        return self.problem.gradient(x)

    def at(self, x: Array, iterate: bool = True) -> Array:
        """Return the gradient at the next iterate; may raise Stop."""
        g = self.gradient(x)
        if iterate:
            self.observe(x, g)
            self.judge()
        else:
            self._consider(x, self.objective.size(x, g), None, g)
        return g

    def begin(self, x: np.ndarray) -> Evaluated:
        """Evaluate the start point; from here on trials may lead to what is no number."""
        self.accept_non_finite = True
        start = self.evaluate(x)
        if not math.isfinite(start.value):
            raise unfit_start(self.problem, self.to_problem(x), "function", start.value)
        return start

    def begin_if_finite(self, x: np.ndarray) -> Evaluated | None:
        """Evaluate a start that may be unfit; None where it is, and then it is no iterate."""
        start = self._evaluated(x)
        if not (math.isfinite(start.value) and math.isfinite(start.norm)):
            return None
        self.accept_non_finite = True
        self._observe(self.to_problem(x), start.norm, start.value, start.g)
        return start

    def evaluate(self, x: np.ndarray, iterate: bool = True) -> Evaluated:
        """Return value and gradient at a point; may raise Stop."""
        here = self._evaluated(x)
        point = x if self.objective.host else self.to_problem(x)
        if not iterate:
            self._consider(point, here.norm, here.value, here.g)
            return here
        self._observe(point, here.norm, here.value, here.g)
        return here if here.norm == self.norm else here._replace(norm=self.norm)

    def _evaluated(self, x: np.ndarray) -> Evaluated:
        """Evaluate a point; counted, if it is not known."""
        objective, known = self.objective, self.known
        if known is not None and np.array_equal(known.x, x):
            h = objective.penalty_at(x)
            return Evaluated(x, known.value + h, known.g, objective.size(x, known.g), h)
        here = objective.evaluate(x)
        self.calls += 1
        return here

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return both at a point that is to be observed; counted."""
        found = self.objective.value_and_gradient(x)
        self.calls += 1
        return found

    def smooth_part(self, x: np.ndarray) -> SmoothPart:
        """Return f and its gradient, outside of h's domain, too; counted, if not known."""
        if self.known is not None and np.array_equal(self.known.x, x):
            return self.known
        value, g = self.problem.value_and_gradient(self.to_problem(x))
        self.calls += 1
        return SmoothPart(x, float(value), self.to_numpy(g))

    def best(self) -> SmoothPart:
        """Return the best point with f and its gradient; counted, if not known."""
        return self.smooth_part(self.to_numpy(self.best_x))

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian at ``x``; counted as gradients of as many operations."""
        self.calls += self.costs.hessian_calls
        return np.asarray(self.problem.hessian(self.to_problem(x)), dtype=np.float64)

    def hessian_diagonal(self, x: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Hessian at ``x``; counted as one gradient."""
        self.calls += 1
        return np.asarray(self.problem.hessian_diagonal(self.to_problem(x)), dtype=np.float64)

    def products(self, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return v -> H(x) v; each product is counted."""
        point = self.to_problem(x)

        def product(v: np.ndarray) -> np.ndarray:
            self.calls += 1
            return self.to_numpy(self.problem.hvp(point, self.to_problem(v)))

        return product

    def observe(self, x: Array, g: Array, value: float | None = None) -> None:
        """Take note of an iterate, its gradient and its value, if known; may raise Stop."""
        self._observe(x, self.objective.size(x, g), value, g)

    def _observe(self, x: Array, found: float, value: float | None, g: Array) -> None:
        self.k += 1
        self.previous_norm, self.norm = self.norm, self._keep_if_best(x, found, value, g)
        if self.k == 0 and self.best_x is None:
            self.unfit = x
            raise Stop(Ended.NON_FINITE)
        if self.history is not None:
            self.history.grad_norm.append(self.norm)
            self.history.oracle_calls.append(self.calls)
            self.history.seconds.append(self.seconds)
        self._stop_if_over(x)

    def _consider(self, x: Array, found: float, value: float | None, g: Array) -> None:
        """Take note of a point that is no iterate; one that ends the solve is the last iterate."""
        if found <= self.tol and self.stop_at_tol and not self.undefined(value):
            self._observe(x, found, value, g)
        self._keep_if_best(x, found, value, g)

    def _keep_if_best(self, x: Array, found: float, value: float | None, g: Array) -> float:
        """Keep a point that is better than all before; returns its norm.

        That is infinity where x or its value is not finite: a gradient may well be zero at
        infinity, or small where the function is not defined.
        """
        if self.undefined(value) or (found < self.best_norm and not _is_finite(x)):
            found = math.inf
        if found < self.best_norm:
            self._keep(x, found, value, g)
        if found <= self.tol and self.reached is None:
            calls = self.calls + (value is None)  # a solve that ends here asks for its value
            self.reached = Milestone(max(self.k, 0), calls, self.seconds)
        return found

    def undefined(self, value: float | None) -> bool:
        """Whether a point after the start is outside the function's domain, by its value."""
        if value is None or math.isfinite(value) or self.best_x is None:
            return False
        return self.objective.values_tell

    def judge(self, point: Evaluated | None = None) -> Outcome | None:
        """Ask the watch about the step just made, which led to ``point``."""
        outcome = None if self.watch is None else self.watch(self)
        if outcome is not None:
            return outcome._replace(point=point)
        if not (math.isfinite(self.norm) or self.accept_non_finite):
            raise Stop(Ended.NON_FINITE)
        return None

    def _keep(self, x: Array, found: float, value: float | None, g: Array) -> None:
        if self.best_x is None:
            self.first_norm = found
        if self.known is not None and value is not None:
            at = self.to_numpy(x)
            self.known = SmoothPart(at, value - self.objective.penalty_at(at), self.to_numpy(g))
        self.best_x, self.best_norm, self.best_value = x, found, value
        if found < PROGRESS * self.progress_norm:
            self.progress_norm, self.progress_k = found, self.k

    def check_time(self) -> None:
        """Stop where the time is over; for work between iterates."""
        if self.seconds > self.max_seconds:
            raise Stop(Ended.MAX_SECONDS)

    def _stop_if_over(self, x: Array) -> None:
        stop = self.callback is not None and self.callback(
            Progress(self.k, self.norm, self.calls, self.seconds, copy(x))
        )
        self._stop_if_reached()
        if stop:
            raise Stop(Ended.CALLBACK)
        if self.k >= self.max_iter:
            raise Stop(Ended.MAX_ITER)
        if self.max_seconds < math.inf:
            self.check_time()

    def _stop_if_reached(self) -> None:
        if self.reached is not None and self.stop_at_tol:
            raise Stop(Ended.CONVERGED)

    def hand_over(self, outcome: Outcome, to: str) -> None:
        """Record that method ``to`` goes on after a stage with this outcome."""
        self.handovers.append(Handover(self.k, str(outcome), to, self.norm))


def _is_finite(x: Array) -> bool:
    """Whether all numbers of a vector are finite; the sum of squares tells it at once, mostly."""
    if math.isfinite(float(x @ x)):
        return True
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))
