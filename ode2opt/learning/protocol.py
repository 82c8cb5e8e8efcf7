"""What training knows of a target: a base class, two protocols, and what a stopping time is.

StoPM, the training loop, validation and the run directory are written in these terms alone; the
packages ``flow`` and ``sequence`` fill them in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result

TRAINING, VALIDATION, TEST = 0, 1, 2
"""Streams of seeds: problems of one are not those of another; only TEST sees test rows."""

Tree = TypeVar("Tree")
"""What is learned: the coefficients of a flow, or a sequence's table and filter."""


class Instance(Protocol):
    """A problem on JAX arrays with what a target needs beside it: at least a start point."""

    @property
    def problem(self) -> Problem:
        """The problem."""

    @property
    def x0(self) -> Array:
        """The start point."""


InstanceT = TypeVar("InstanceT", bound=Instance)
Tree_contra = TypeVar("Tree_contra", contravariant=True)
InstanceT_contra = TypeVar("InstanceT_contra", bound=Instance, contravariant=True)


class StoppingTime(NamedTuple):
    """The stopping time of one instance and how far it violates the constraints.

    Attributes:
        T: the time at which the tolerance is met (of a sequence, the iterations), or at which the
            instance was given up.
        P: the stability violation until then, dimensionless: that of docs/mathematics.md, section
            6, times h sqrt(scale).
        Q: the convergence violation until then, times h^2 scale; zero for a sequence.
        penalty: what rho multiplies: P + Q, or both with their units as the paper prints them.
        reached: whether the gradient norm came down to the tolerance.
        failed: whether flow or sequence blew up.
        min_cosine: the smallest cosine between a step and its change of gradient. It is not
            negative for a convex function, up to rounding.
    """

    T: Array
    P: Array
    Q: Array
    penalty: Array
    reached: Array
    failed: Array
    min_cosine: Array


class StoppingRules(Protocol[Tree_contra, InstanceT_contra]):
    """How the stopping time of an instance is measured, and what is minimised of it."""

    def stopping_time(self, learned: Tree_contra, instance: InstanceT_contra, /) -> StoppingTime:
        """Return T, P and Q of an instance, differentiable by what is learned.

        Args:
            learned: the learned tree.
            instance: the problem with its start.
        """

    def objective(self, found: StoppingTime, /) -> Array:
        """Return what is minimised, before the penalty.

        Args:
            found: what :meth:`stopping_time` returned.
        """

    def with_safety(self, safety: float, /) -> StoppingRules[Tree_contra, InstanceT_contra]:
        """Return the same rules with another factor on the curvature that P is measured with.

        Args:
            safety: the factor; 1 is the curvature as it is estimated.
        """


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

    @abstractmethod
    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem.

        Args:
            stream: ``TRAINING``, ``VALIDATION`` or ``TEST``; only the last sees test rows.
            i: its number in the stream, from 0.
        """

    @abstractmethod
    def instance(self, problem: Problem, stream: int, i: int) -> InstanceT:
        """Return a problem as an instance on JAX arrays.

        Args:
            problem: what :meth:`problem` returned.
            stream: its stream.
            i: its number in the stream.
        """

    @abstractmethod
    def solve(self, learned: Tree, problem: Problem, instance: InstanceT) -> Result:
        """Solve a problem by the guarded sequence of what was learned.

        Args:
            learned: the learned tree.
            problem: the problem.
            instance: the same problem as an instance, for its start and scale.
        """

    @abstractmethod
    def method(self, learned: Tree, worst: int) -> Method:
        """Return what was learned as a method.

        Args:
            learned: the learned tree.
            worst: the largest number of iterations on held-out problems; it decides about the
                length of the table.
        """

    @abstractmethod
    def finalized(self, learned: Tree, method: Method) -> Method:
        """Return the method with what is chosen once, at the end, on held-out problems.

        Args:
            learned: the learned tree.
            method: what :meth:`method` made of it.
        """

    @abstractmethod
    def baselines(self, method: Method) -> dict[str, str | Method]:
        """Return the methods that a finished method is compared with, by name.

        Args:
            method: the finished method.
        """

    @abstractmethod
    def certificate(
        self,
        learned: Tree,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[InstanceT],
    ) -> dict[str, Any]:
        """Return what can be promised about a method, measured on held-out problems.

        Args:
            learned: the learned tree.
            method: the finished method.
            problems: held-out problems.
            instances: the same problems as instances.

        Returns:
            The certificate's summary, and its sentences under ``verdict``.
        """


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
