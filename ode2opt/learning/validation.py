"""What training does with single problems, and validation: held-out ones, solved as a user would.

A problem is known by its stream and its number in it. It is drawn where the work is done, so that
only the target, once, and a few numbers a problem go to other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.protocol import TRAINING, InstanceT, Target, Tree
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result, solve

if TYPE_CHECKING:  # which needs JAX: a report does not
    from ode2opt.paper.stopm import StoPM, TrainingState
    from ode2opt.paper.stopping_time import StoppingTime

FEASIBILITY_TOL = 1e-3
"""The largest P and Q, dimensionless, that count as no violation."""
MAX_ITERATIONS = 2_000

Number = tuple[int, int]
"""A stream, and the number of a problem in it."""


class ProblemTasks(Generic[Tree, InstanceT]):
    """The work on single problems of a target, for :meth:`ode2opt.executor.Executor.map`."""

    def __init__(self, target: Target[Tree, InstanceT], stopm: StoPM[Tree, InstanceT]) -> None:
        self.target, self.stopm = target, stopm
        self._drawn: dict[Number, tuple[Problem, InstanceT]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_drawn": {}}  # problems are drawn again elsewhere

    def drawn(self, number: Number) -> tuple[Problem, InstanceT]:
        """Return a problem and its instance; all but those of training are kept."""
        if number in self._drawn:
            return self._drawn[number]
        problem = self.target.problem(*number)
        found = problem, self.target.instance(problem, *number)
        if number[0] != TRAINING:
            self._drawn[number] = found
        return found

    def slope(self, asked: tuple[TrainingState, Number]) -> tuple[StoppingTime, Any]:
        """Return the stopping time of a problem and its slope by the parameters."""
        state, number = asked
        return self.stopm.slope(state, self.drawn(number)[1])

    def solve(self, asked: tuple[Tree, Number]) -> Result:
        """Solve a problem by the guarded sequence of what was learned."""
        learned, number = asked
        return self.target.solve(learned, *self.drawn(number))

    def measure(self, asked: tuple[TrainingState, float, Number]) -> StoppingTime:
        """Return the stopping time of a problem."""
        state, safety, number = asked
        return self.stopm.measure(state, self.drawn(number)[1], safety)


@dataclass(frozen=True)
class Validation:
    """What the guarded sequence needed on held-out problems, and how far the flow violates.

    Attributes:
        complexity: the mean number of iterations to the tolerance.
        worst: the largest number of iterations.
        reached: how many problems reached the tolerance.
        handovers: on how many problems the guard stepped in.
        flows: how many flows reached the tolerance (of a sequence: differentiated iterations).
        P: the largest stability violation.
        Q: the largest convergence violation.
        total: how many problems there are.
        strict: whether P, Q and handovers count against a point; True by default.
    """

    complexity: float
    worst: int
    reached: int
    handovers: int
    flows: int
    P: float
    Q: float
    total: int
    strict: bool = True

    @property
    def feasible(self) -> bool:
        """Whether all problems reached the tolerance and, if strict, no constraint is violated."""
        if self.reached < self.total:
            return False
        return not self.strict or (not self.handovers and max(self.P, self.Q) <= FEASIBILITY_TOL)

    def statistics(self) -> dict[str, Any]:
        """Return the fields that a method file stores."""
        names = ("complexity", "worst", "reached", "handovers", "total", "feasible")
        return {name: getattr(self, name) for name in names}


class Validator(Generic[Tree, InstanceT]):
    """Solves the held-out problems of a stream, and measures the violations on them."""

    def __init__(
        self,
        tasks: ProblemTasks[Tree, InstanceT],
        stream: int,
        count: int,
        safety: float = 1.0,
        executor: Executor = THIS_PROCESS,
    ) -> None:
        self.tasks, self.safety, self.executor = tasks, safety, executor
        self.numbers: list[Number] = [(stream, i) for i in range(count)]
        self.drawn()

    def drawn(self, count: int | None = None) -> tuple[list[Problem], list[InstanceT]]:
        """Return problems and their instances."""
        found = [self.tasks.drawn(number) for number in self.numbers[:count]]
        return [problem for problem, _ in found], [one for _, one in found]

    def __call__(self, state: TrainingState) -> Validation:
        """Return what the sequence of a state needs, and its violations."""
        results = self.solved(self.tasks.stopm.learned(state))
        strict = self.tasks.target.strict
        return Validation(**counts_of(results), **self.follow(state), strict=strict)

    def solved(self, learned: Tree) -> list[Result]:
        """Solve each problem by the guarded sequence of what was learned."""
        asked = [(learned, number) for number in self.numbers]
        return list(self.executor.map(ProblemTasks.solve, self.tasks, asked))

    def follow(self, state: TrainingState) -> dict[str, Any]:
        """Measure the stopping time of each problem."""
        asked = [(state, self.safety, number) for number in self.numbers]
        flows = list(self.executor.map(ProblemTasks.measure, self.tasks, asked))
        return {
            "flows": sum(bool(flow.reached) for flow in flows),
            "P": _largest(flows, "P"),
            "Q": _largest(flows, "Q"),
        }


def solve_one(
    method: str | Method, problem: Problem, x0: Array, tol: float, penalty: Penalty | None = None
) -> Result:
    """Solve one problem as training does: with a history, and 2,000 iterations at most."""
    limits: dict[str, Any] = {"tol": tol, "max_iter": MAX_ITERATIONS, "history": True}
    return solve(problem, x0, method=method, penalty=penalty, **limits)


def counts_of(results: Sequence[Result]) -> dict[str, Any]:
    """Return what solves needed, by the names of :class:`Validation`."""
    iterations = [result.iterations for result in results]
    return {
        "complexity": float(np.mean(iterations)),
        "worst": max(iterations),
        "reached": sum(result.success for result in results),
        "handovers": sum(bool(result.handovers) for result in results),
        "total": len(results),
    }


def statistics(results: Sequence[Result]) -> dict[str, Any]:
    """Return what a method file stores of solves by the method, the guard included."""
    found = counts_of(results)
    return found | {"feasible": found["reached"] == found["total"]}


def _largest(flows: Sequence[StoppingTime], name: str) -> float:
    values: list[Any] = [float(getattr(flow, name)) for flow in flows]
    return max((value if np.isfinite(value) else np.inf for value in values), default=0.0)
