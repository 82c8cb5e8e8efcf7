"""Whose stopping time is minimised: what training needs to know of a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ode2opt.learning.beside import RIVALS
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result

TRAINING, VALIDATION, TEST = 0, 1, 2
"""Streams of seeds: problems of one are not those of another; only TEST sees test rows."""


class Target(ABC):
    """A family with its options, as the flow or the sequence sees them.

    Attributes:
        start: the tree to learn, where it starts.
        learnable: the same tree with True at each array that is learned.
        rules: what one instance's stopping time is.
        strict: whether a point counts as feasible only with P = Q = 0 and the guard idle.
    """

    start: Any
    learnable: Any
    rules: Any
    strict: bool

    @abstractmethod
    def problem(self, stream: int, i: int) -> Problem:
        """Return the i-th problem of a stream."""

    @abstractmethod
    def of(self, problem: Problem, stream: int, i: int) -> Any:
        """Return a stream's i-th problem as an instance on JAX arrays."""

    @abstractmethod
    def solve(self, learned: Any, problem: Problem, one: Any) -> Result:
        """Solve a problem by the guarded sequence of what was learned."""

    @abstractmethod
    def method(self, learned: Any, worst: int) -> Method:
        """Return what was learned as a method, given the worst of the held-out problems."""

    @abstractmethod
    def certificate(
        self, learned: Any, method: Method, problems: Sequence[Problem], instances: Sequence[Any]
    ) -> dict[str, Any]:
        """Return what can be promised, measured along held-out problems."""

    def polished(self, learned: Any, method: Method) -> Method:
        """Return the method after what is chosen once, at the end, on held-out problems."""
        return method

    def rivals(self, method: Method) -> dict[str, str | Method]:
        """Return what a finished method is compared with, by name."""
        return RIVALS

    def instance(self, stream: int, i: int) -> Any:
        """Return the i-th instance of a stream."""
        return self.of(self.problem(stream, i), stream, i)

    def batch(self, step: int, size: int) -> list[Any]:
        """Return the training instances of a step."""
        return [self.instance(TRAINING, i) for i in batch_numbers(step, size)]


def batch_numbers(step: int, size: int) -> range:
    """Return which problems of the training stream a step sees."""
    return range(step * size, (step + 1) * size)
