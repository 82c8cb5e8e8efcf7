"""Validation: held-out problems of the training split, run as the discrete guarded sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from ode2opt.learning.helpers import ALONE, Helpers
from ode2opt.learning.pieces import Number, Pieces
from ode2opt.learning.protocol import One, StoppingTime, Tree
from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result, solve

if TYPE_CHECKING:  # which needs JAX: a report does not
    from ode2opt.learning.stopm import TrainingState

FEASIBLE = 1e-3
"""The largest P and Q, dimensionless, that count as none."""
MOST_ITERATIONS = 2_000


@dataclass(frozen=True)
class Validation:
    """What the sequence needed, and what the flow violated.

    Attributes:
        complexity, worst: mean and largest number of iterations to the tolerance.
        reached, handovers: how many problems got there, on how many the guard stepped in.
        flows: how many flows (or sequences that are followed for their derivatives) got there.
        P, Q: the largest violations.
        total: how many problems there are.
        strict: whether P, Q and handovers count against a point.
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
        """Whether all got there and, if strict, the conditions hold and the guard was idle."""
        if self.reached < self.total:
            return False
        return not self.strict or (not self.handovers and max(self.P, self.Q) <= FEASIBLE)

    def statistics(self) -> dict[str, Any]:
        """Return what a method file tells of the sequence."""
        names = ("complexity", "worst", "reached", "handovers", "total", "feasible")
        return {name: getattr(self, name) for name in names}


class Validator(Generic[Tree, One]):
    """Problems of a stream.

    ``safety`` is the factor by which P takes the curvature to be larger than it is.
    """

    def __init__(
        self,
        pieces: Pieces[Tree, One],
        stream: int,
        count: int,
        safety: float = 1.0,
        helpers: Helpers = ALONE,
    ) -> None:
        self.pieces, self.safety, self.helpers = pieces, safety, helpers
        self.numbers: list[Number] = [(stream, i) for i in range(count)]
        self.drawn()

    def drawn(self, count: int | None = None) -> tuple[list[Problem], list[One]]:
        """Return the first problems, or all, and their instances."""
        found = [self.pieces.drawn(number) for number in self.numbers[:count]]
        return [problem for problem, _ in found], [one for _, one in found]

    def __call__(self, state: TrainingState) -> Validation:
        """Solve by what a state has learned, and follow it."""
        results = self.solved(self.pieces.stopm.learned(state))
        strict = self.pieces.target.strict
        return Validation(**counted(results), **self.followed(state), strict=strict)

    def solved(self, learned: Tree) -> list[Result]:
        """Solve each problem by the guarded sequence of what was learned."""
        return self.helpers.map(
            Pieces.solve, self.pieces, [(learned, number) for number in self.numbers]
        )

    def followed(self, state: TrainingState) -> dict[str, Any]:
        """Return how many flows got there, and the largest violations on the way."""
        asked = [(state, self.safety, number) for number in self.numbers]
        flows = self.helpers.map(Pieces.measure, self.pieces, asked)
        return {
            "flows": sum(bool(flow.reached) for flow in flows),
            "P": _largest(flows, "P"),
            "Q": _largest(flows, "Q"),
        }


def solve_one(method: str | Method, problem: Problem, x0: Array, tol: float) -> Result:
    """Solve one problem as training and its comparisons do."""
    return solve(problem, x0, method=method, tol=tol, max_iter=MOST_ITERATIONS, history=True)


def counted(results: Sequence[Result]) -> dict[str, Any]:
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
    """Return what a method file tells of solves by the method; the guard may have stepped in."""
    found = counted(results)
    return found | {"feasible": found["reached"] == found["total"]}


def _largest(flows: Sequence[StoppingTime], name: str) -> float:
    values: list[Any] = [float(getattr(flow, name)) for flow in flows]
    return max((value if np.isfinite(value) else np.inf for value in values), default=0.0)
