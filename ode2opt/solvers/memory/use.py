"""One solve with a memory: what it takes from there, and what it leaves behind.

What is learned must be earned back: where solves with the memory have cost more than those without,
it is left aside (and tried again after 8, 16, 32, ... solves). A Hessian is formed at solves 1, 2,
4, 8, ... and when solves get slower, and only where as many solves as were made already would save
its price.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean, median

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import many
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.lowrank import EXTRA, RANK, lowrank_metric
from ode2opt.solvers.memory.memory import Memory
from ode2opt.solvers.memory.state import MemoryState
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.plan import plan, proximal_stages
from ode2opt.solvers.stages.lbfgs import PreconditionedLbfgs, Product
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper
from ode2opt.solvers.supervisor import first_alone, supervise

Update = Callable[[MemoryState], MemoryState]
"""How a Hessian changes what is known."""


class MemorySession:
    """A solve that begins with what a memory knows, and ends with what it has learned."""

    def __init__(
        self, memory: Memory, oracle: Oracle, first_only: bool = False, from_mean: bool = True
    ) -> None:
        self.memory, self.oracle = memory, oracle
        self.first_only, self.from_mean = first_only, from_mean
        with memory.lock:
            self.known = memory.about(oracle.problem)
        known = self.known
        retry = known.solves >= known.options.retry_after and _power_of_two(known.solves)
        self.without_memory = not known.solves or not (known.helps or retry)
        self.mean_was_better: bool | None = None
        self.began_at_mean = False

    def minimise(self, x: Array, given: bool) -> None:
        """Minimise from a start, or from the mean solution; leaves by Stop."""
        start = self._start(self.oracle.objective.first_point(x), given)
        go = first_alone if self.first_only else supervise
        go(self.oracle, start, self._stages())

    def _start(self, x: np.ndarray, given: bool) -> Evaluated:
        """Return the better of two starts, evaluated; one of them alone where that is known."""
        oracle, known, most = self.oracle, self.known, self.known.options.start_trials
        wins, trials = sum(known.mean_was_better), len(known.mean_was_better)
        hopeless = trials >= most and not wins
        if not self.from_mean or known.mean is None or self.without_memory or hopeless:
            return oracle.begin(x)
        other = oracle.begin(x) if given else None
        mean = oracle.begin_if_finite(oracle.objective.project(known.mean.copy()))
        trusted = other is None and trials >= most and wins == trials
        if mean is None or not trusted or self._above_zero(mean, x):
            other = other or oracle.begin(x)
            self.mean_was_better = (
                mean is not None and mean.norm < other.norm and mean.value <= other.value
            )
            if mean is None or not self.mean_was_better:
                return other
        self.began_at_mean = True
        oracle.log(f"from the mean of {many(known.solutions, 'solution')}")
        return mean

    def _above_zero(self, mean: Evaluated, x: np.ndarray) -> bool:
        """Whether a linear model's value at zero, which takes no product with its rows, is lower.

        Then problems have changed so much that the mean solution is no longer to be trusted.
        """
        problem = self.oracle.problem
        if "rows" not in self.oracle.objective.provides or np.any(x):
            return False
        return bool(mean.value > problem.value_at_zero() + self.oracle.objective.penalty_at(x))

    def _stages(self) -> list[Stage]:
        oracle, known = self.oracle, self.known
        costs = Costs(oracle.problem, count_calls=True)
        if not oracle.objective.smooth:
            usable = known.hessian is not None and not self.without_memory
            H = known.damped_hessian() if usable and self._takes_hessian() else None
            return plan(oracle.objective, costs, oracle.options, self.began_at_mean, H)
        product = self._preconditioner()
        stages = plan(oracle.objective, costs, oracle.options, product is not None)
        if product is None:
            return stages
        usual = min(
            median(calls)
            for calls in (known.calls_with_memory, known.calls_without_memory)
            if calls
        )
        watch = SwitchIfCheaper(
            max(costs.hessian(), usual) + SwitchIfCheaper.after, math.ceil(usual)
        )
        description = f"L-BFGS in the metric of {many(known.hessians, 'solved problem')}"
        return [PreconditionedLbfgs(description, product, watch), *stages]

    def _takes_hessian(self) -> bool:
        """Whether a Hessian of earlier problems is of use: with a penalty, to proximal Newton."""
        objective = self.oracle.objective
        if objective.smooth:
            return True
        own = "quadratic" in objective.provides  # which is that of all points
        return not own and not self._is_wide and bool(proximal_stages(objective))

    def _preconditioner(self) -> Product | None:
        """Return the product with the memory's preconditioner, if there is one to be used."""
        known, oracle = self.known, self.oracle
        if self.without_memory:
            return None
        if known.inverse is not None:
            return partial(np.matmul, known.inverse)
        return (
            None
            if known.metric is None
            else oracle.objective.on_numpy(known.metric.on(oracle.problem))
        )

    def learn(self) -> None:
        """Give the memory what this solve has found; what that costs is on the solve's account."""
        oracle = self.oracle
        if oracle.reached is None:
            return
        calls = oracle.reached.oracle_calls
        x = np.asarray(oracle.best_x).astype(np.float64)
        found = self._counted(calls, x)
        update = self._curvature(x) if self._worth_a_hessian(found, calls) else None
        with self.memory.lock:
            # Another thread may have learned in between: what it knows now is what is added to.
            self.known = self.memory.about(oracle.problem)
            found = self._counted(calls, x)
            self.memory.known = found if update is None else update(found).with_inverse()

    def _counted(self, calls: float, x: np.ndarray) -> MemoryState:
        """Return what is known with this solve counted and its solution in the mean."""
        known, options = self.known, self.known.options
        usual = options.slow_factor * known.usual_calls + options.slow_calls
        slow = bool(known.calls_with_memory) and not self.without_memory and calls > usual
        slow_in_a_row = known.slow_in_a_row + 1 if slow else 0
        changed = slow_in_a_row > 1
        solutions = 0 if changed else known.solutions
        weight = 1 / min(solutions + 1, options.mean_of)
        mean = x if not solutions else known.mean + weight * (x - known.mean)
        better = known.mean_was_better
        if self.mean_was_better is not None:
            better = (*better, self.mean_was_better)[-options.start_trials :]
        found = replace(
            known,
            tol=self.oracle.tol,
            solves=known.solves + 1,
            slow_in_a_row=slow_in_a_row,
            solutions=solutions + 1,
            mean=mean,
            mean_was_better=better,
        )
        return self._with_calls(found.forgotten() if changed else found, calls)

    def _with_calls(self, found: MemoryState, calls: float) -> MemoryState:
        """Return what is known with the cost of this solve."""
        options, before = self.known.options, self.known.calls_without_memory
        if self.without_memory:
            without = (*found.calls_without_memory, calls)[-options.recent :]
            return replace(found, calls_without_memory=without)
        if not self.known.helps and calls <= options.clearly * fmean(before):
            return replace(found, calls_with_memory=(calls,) * options.judged_after)
        with_memory = (*found.calls_with_memory, calls)[-options.recent :]
        return replace(found, calls_with_memory=with_memory)

    def _worth_a_hessian(self, found: MemoryState, calls: float) -> bool:
        """Whether to form a Hessian: at powers of two, or when problems have changed."""
        if not (self.oracle.problem.has_hvp and self._takes_hessian()):
            return False
        missing = found.hessians == 0
        if not (missing or found.helps):
            return False
        options = found.options
        saved = found.solves * (max(calls, found.usual_calls) - options.fewest_calls)
        # No solve may cost far more than others.
        most = min(saved, (options.slow_factor - 1) * calls + options.slow_calls)
        return (_power_of_two(found.solves) or missing) and self._hessian_calls() <= most

    @property
    def _is_wide(self) -> bool:
        return self.oracle.problem.n > self.known.options.largest_matrix

    def _hessian_calls(self) -> float:
        """Return what the Hessian, or a low rank of it, costs in calls."""
        problem = self.oracle.problem
        if self._is_wide:
            return RANK + EXTRA + 1
        return float(problem.hessian_flops() / problem.gradient_flops())

    def _curvature(self, x: np.ndarray) -> Update | None:
        """Form the Hessian at a solution; returns how what is known changes by it."""
        oracle = self.oracle
        if self._is_wide:
            diagonal = oracle.hessian_diagonal(x)
            metric = lowrank_metric(diagonal, self._floor(x, diagonal), oracle.products(x))
            return lambda known: replace(known, metric=metric, hessians=1)
        H = oracle.hessian(x)
        if not np.all(np.isfinite(H)):
            return None
        return partial(_with_hessian, H, self._floor(x, H.diagonal()))

    def _floor(self, x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return the curvature that one more row could add, by variable."""
        problem = self.oracle.problem
        if "rows" in self.oracle.objective.provides:
            return problem.unseen_curvature(self.oracle.to_problem(x))
        return np.full(problem.n, self.known.options.floor * (float(diagonal.max()) or 1.0))


def _power_of_two(count: int) -> bool:
    return count & (count - 1) == 0


def _with_hessian(H: np.ndarray, floor: np.ndarray, known: MemoryState) -> MemoryState:
    """Return what is known with a Hessian in the mean; all of it where problems have changed."""
    weight = 1 / min(known.hessians + 1, known.options.hessians_of)
    if known.hessian is not None and known.floor is not None:
        H = known.hessian + weight * (H - known.hessian)
        floor = known.floor + weight * (floor - known.floor)
    return replace(known, hessian=H, floor=floor, hessians=known.hessians + 1)
