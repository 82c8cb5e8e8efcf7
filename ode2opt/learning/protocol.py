"""What training knows of a target: a base class, two protocols, and what a stopping time is.

StoPM, the training loop, validation and the run directory are written in these terms alone; the
packages ``flow`` and ``sequence`` fill them in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ode2opt.base.arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result

if TYPE_CHECKING:  # which needs JAX: a report does not
    from ode2opt.paper.stopm import StoppingRules

TRAINING, VALIDATION, TEST = 0, 1, 2
"""Streams of seeds: problems of one are not those of another; only TEST sees test rows."""
Tree = TypeVar("Tree")
"""What is learned: the coefficients of a flow, or a sequence's table and filter."""


class Instance(Protocol):
    """A problem on JAX arrays with what a target needs: at least a start point."""

    @property
    def problem(self) -> Problem:
        """The problem."""

    @property
    def x0(self) -> Array:
        """The start point."""


InstanceT = TypeVar("InstanceT", bound=Instance)


class Target(ABC, Generic[Tree, InstanceT]):
    """What is learned for a family, a flow or a sequence, and on which problems.

    Attributes:
        strict: whether a point counts as feasible only with P = Q = 0 and the guard idle.
        start: the tree to learn, where training starts.
        learnable: the same tree with True at each array that is learned.
        rules: how the stopping time of an instance is measured.
    """

    strict: ClassVar[bool]
    start: Tree
    learnable: Any
    rules: StoppingRules[Tree, InstanceT]

    def mesh(self, learned: Tree) -> dict[str, Any]:
        """Return how exact T is, for the metrics; nothing where time has no mesh."""
        return {}

    @abstractmethod
    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem."""

    @abstractmethod
    def instance(self, problem: Problem, stream: int, i: int) -> InstanceT:
        """Return a problem as an instance on JAX arrays."""

    @abstractmethod
    def solve(self, learned: Tree, problem: Problem, instance: InstanceT) -> Result:
        """Solve a problem by the guarded sequence of what was learned."""

    @abstractmethod
    def method(self, learned: Tree, worst: int) -> Method:
        """Return what was learned as a method."""

    @abstractmethod
    def finalized(self, learned: Tree, method: Method) -> Method:
        """Return the method with what is chosen once, at the end, on held-out problems."""

    @abstractmethod
    def baselines(self, method: Method) -> dict[str, str | Method]:
        """Return the methods that a finished method is compared with, by name."""

    @abstractmethod
    def certificate(
        self,
        learned: Tree,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[InstanceT],
    ) -> dict[str, Any]:
        """Return what can be promised about a method, measured on held-out problems."""


@dataclass(frozen=True)
class Restart(Generic[Tree]):
    """One of several ways to begin training; all are tried for a share of the steps.

    Attributes:
        about: what tells it from the others, by name, such as its preconditioner.
        price: gives the cost of a held-out solve, from what was learned and the results; the
            restart with the lowest cost is trained to the end.
    """

    about: Mapping[str, str]
    price: Callable[[Tree, Sequence[Result]], float]

    @property
    def words(self) -> str:
        """What tells it from the others, in one line for the terminal."""
        return ", ".join(f"{name} {value}" for name, value in self.about.items())


@dataclass(frozen=True)
class TrainingPlan(Generic[Tree, InstanceT]):
    """How training begins: at once, or with the best of several restarts.

    Attributes:
        target: makes the target of a restart, by its number; 0 where there are no restarts.
        restarts: the ways to begin that are tried first; none by default.
        warm_up: how many steps each of them gets; 0 by default.
    """

    target: Callable[[int], Target[Tree, InstanceT]]
    restarts: Sequence[Restart[Tree]] = ()
    warm_up: int = 0

    @property
    def beginning(self) -> int:
        """The steps of all restarts together."""
        return self.warm_up * len(self.restarts)
