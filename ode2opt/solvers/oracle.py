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

import numpy as np

from ode2opt.base.arrays import Array, copy, epsilon, namespace, norm, numpy_namespace
from ode2opt.base.ended import Ended
from ode2opt.problems.base import Problem
from ode2opt.solvers.bound import LowerBound
from ode2opt.solvers.concavity import Concave
from ode2opt.solvers.options import DEFAULTS, AutoOptions
from ode2opt.solvers.outcome import Evaluated, Outcome
from ode2opt.solvers.result import Handover, History, Milestone
from ode2opt.solvers.start_point import unfit_start

ROUNDING = 1000  # units in the last place: values that differ by less may be equal
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


Callback = Callable[[Progress], object]


Watch = Callable[["Oracle"], "Outcome | None"]
"""Says why another method should go on now, or None."""


class Oracle:
    """The state that all methods share.

    Attributes:
        k: the current iteration, 0 at the start point.
        norm: the gradient norm there; ``first_norm`` and ``best_norm`` those of start and best.
        best_x: the point with the smallest gradient norm. It is kept by reference: as long as a
            vector is ``oracle.best_x``, nobody may overwrite it.
        progress_k: the last iteration at which the norm had fallen by a tenth since the one before.
        best_value: f there, where it is known.
        description: what was done, step by step, for the result.
        rounding: the relative difference below which values may be equal.
        watch: returns the outcome of a stage that should end now, or None; no watch means none.
        unfit: a start point without a gradient.
        concave: why the function is not convex, where that was found.
        lower_bounds: what the method itself has proved of f, from below; empty, unless it says so.
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
        options: AutoOptions | None = None,
    ) -> None:
        self.problem, self.options = problem, options or DEFAULTS
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
        self._host = problem.xp is numpy_namespace() and problem.dtype == np.float64
        self._double = epsilon(problem.xp, problem.dtype) == np.finfo(np.float64).eps
        self.rounding = ROUNDING * epsilon(problem.xp, problem.dtype)
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the start, set-up included."""
        return time.perf_counter() - self._began

    def charge(self, oracle_calls: float, seconds: float = 0.0) -> None:
        """Add a cost: calls that are no iterates, seconds paid before the clock started."""
        self.calls += oracle_calls
        self._began -= seconds

    def log(self, text: str) -> None:
        """Take note of what is done next, for the result's description."""
        self.description.append(text)

    def value(self, x: Array) -> float:
        """Return f at a point; counted."""
        self.calls += 1
        return float(self.problem.value(x))

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
            self._consider(x, g, self.size(x, g), None)
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
        value, g = self.value_and_gradient(self.to_problem(x))
        size = self.size(self.to_problem(x), g)
        if not (math.isfinite(value) and math.isfinite(size)):
            return None
        self.accept_non_finite = True
        self.observe(self.to_problem(x), g, value)
        return Evaluated(x, value, self.to_numpy(g), size)

    def evaluate(self, x: Array, iterate: bool = True) -> Evaluated:
        """Return value and gradient at a point; may raise Stop."""
        point = self.to_problem(x)
        value, g = self.value_and_gradient(point)
        if iterate:
            self.observe(point, g, value)
            size = self.norm
        else:
            size = self.size(point, g)
            self._consider(point, g, size, value)
        return Evaluated(self.to_numpy(x), value, self.to_numpy(g), size)

    def size(self, x: Array, g: Array) -> float:
        """Return what is to become small: the gradient norm."""
        return norm(g)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Return both at a point that is to be observed; counted."""
        value, g = self.problem.value_and_gradient(point)
        self.calls += 1
        return float(value), g

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian at ``x``; counted as gradients of as many operations."""
        problem = self.problem
        self.calls += problem.hessian_flops() / problem.gradient_flops()
        return np.asarray(problem.hessian(self.to_problem(x)), dtype=np.float64)

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

    def to_problem(self, x: np.ndarray) -> Array:
        """Return a vector on the problem's kind of arrays."""
        return x if self._host else self.problem.xp.asarray(x, dtype=self.problem.dtype)

    def to_numpy(self, x: Array) -> np.ndarray:
        """Return a vector of the problem's as one of NumPy's, in double precision."""
        return x if self._host else np.asarray(x, dtype=np.float64)

    def on_numpy(self, product: Callable[[Array], Array]) -> Callable[[np.ndarray], np.ndarray]:
        """Return a product on the problem's kind of arrays as one on NumPy's."""
        if self._host:
            return product
        return lambda g: self.to_numpy(product(self.to_problem(g)))

    def observe(self, x: Array, g: Array, value: float | None = None) -> None:
        """Take note of an iterate, its gradient and its value, if known; may raise Stop."""
        self.k += 1
        self.previous_norm, self.norm = self.norm, self._keep_if_best(x, self.size(x, g), value)
        if self.k == 0 and self.best_x is None:
            self.unfit = x
            raise Stop(Ended.NON_FINITE)
        if self.history is not None:
            self.history.grad_norm.append(self.norm)
            self.history.oracle_calls.append(self.calls)
            self.history.seconds.append(self.seconds)
        self._stop_if_over(x)

    def _consider(self, x: Array, g: Array, found: float, value: float | None) -> None:
        """Take note of a point that is no iterate; one that ends the solve is the last iterate."""
        if found <= self.tol and self.stop_at_tol and not self.undefined(value):
            self.observe(x, g, value)
        self._keep_if_best(x, found, value)

    def _keep_if_best(self, x: Array, found: float, value: float | None) -> float:
        """Keep a point that is better than all before; returns its norm.

        That is infinity where x or its value is not finite: a gradient may well be zero at
        infinity, or small where the function is not defined.
        """
        if self.undefined(value) or (found < self.best_norm and not _is_finite(x)):
            found = math.inf
        if found < self.best_norm:
            self._keep(x, found, value)
        if found <= self.tol and self.reached is None:
            calls = self.calls + (value is None)  # a solve that ends here asks for its value
            self.reached = Milestone(max(self.k, 0), calls, self.seconds)
        return found

    def undefined(self, value: float | None) -> bool:
        """Whether a point after the start is outside the function's domain, by its value.

        In single precision values overflow long before gradients do: there they do not tell.
        """
        if value is None or math.isfinite(value) or self.best_x is None:
            return False
        return self._double

    def judge(self, point: Evaluated | None = None) -> Outcome | None:
        """Ask the watch about the step just made, which led to ``point``."""
        outcome = None if self.watch is None else self.watch(self)
        if outcome is not None:
            return outcome._replace(point=point)
        if not (math.isfinite(self.norm) or self.accept_non_finite):
            raise Stop(Ended.NON_FINITE)
        return None

    def _keep(self, x: Array, found: float, value: float | None) -> None:
        if self.best_x is None:
            self.first_norm = found
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
