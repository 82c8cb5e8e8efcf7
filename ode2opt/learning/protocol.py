"""What the shared core of training knows of a target: two protocols, and what a stopping time is.

StoPM, the training loop, validation and the run directory are written in these terms alone; the
packages ``flow`` and ``sequence`` fulfil them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result

TRAINING, VALIDATION, TEST = 0, 1, 2
"""Streams of seeds: problems of one are not those of another; only TEST sees test rows."""

Tree = TypeVar("Tree")
"""What is learned: the coefficients of a flow, or a sequence's table and filter."""


class Instance(Protocol):
    """A problem on JAX arrays, with what a target needs to follow it."""

    @property
    def problem(self) -> Problem:
        """The problem."""

    @property
    def x0(self) -> Array:
        """Where it starts."""


One = TypeVar("One", bound=Instance)
Tree_contra = TypeVar("Tree_contra", contravariant=True)
One_contra = TypeVar("One_contra", bound=Instance, contravariant=True)


class StoppingTime(NamedTuple):
    """The stopping time of an instance.

    Attributes:
        T: the time (of a sequence, the iterations), or that at which it was given up.
        P, Q: the violations until then, dimensionless: those of docs/mathematics.md,
            section 6, times h sqrt(scale) and h^2 scale; a sequence has P alone.
        reached: whether the gradient norm came down to the tolerance.
        failed: whether flow or sequence blew up.
        turn: the smallest cosine between a step and its change of gradient: never below zero for
            a convex function, up to rounding.
    """

    T: Array
    P: Array
    Q: Array
    reached: Array
    failed: Array
    turn: Array


class StoppingRules(Protocol[Tree_contra, One_contra]):
    """What one instance's stopping time is, and what is minimised of it."""

    def stopping_time(self, learned: Tree_contra, one: One_contra, /) -> StoppingTime:
        """Return T, P and Q of an instance."""

    def objective(self, found: StoppingTime, /) -> Array:
        """Return what is minimised, before the penalty."""

    def cautious(self, safety: float, /) -> StoppingRules[Tree_contra, One_contra]:
        """Return the same rules with another factor on the curvature."""


class Target(Protocol[Tree, One]):
    """A family with its options, as the flow or the sequence sees them."""

    @property
    def start(self) -> Tree:
        """The tree to learn, where it starts."""

    @property
    def learnable(self) -> Any:
        """The same tree with True at each array that is learned."""

    @property
    def rules(self) -> StoppingRules[Tree, One]:
        """What one instance's stopping time is."""

    @property
    def strict(self) -> bool:
        """Whether a point counts as feasible only with P = Q = 0 and the guard idle."""

    def problem(self, stream: int, i: int, /) -> Problem:
        """Return the i-th problem of a stream."""

    def of(self, problem: Problem, stream: int, i: int, /) -> One:
        """Return a stream's i-th problem as an instance on JAX arrays."""

    def solve(self, learned: Tree, problem: Problem, one: One, /) -> Result:
        """Solve a problem by the guarded sequence of what was learned."""

    def method(self, learned: Tree, worst: int, /) -> Method:
        """Return what was learned as a method, given the worst of the held-out problems."""

    def polished(self, learned: Tree, method: Method, /) -> Method:
        """Return the method after what is chosen once, at the end, on held-out problems."""

    def rivals(self, method: Method, /) -> dict[str, str | Method]:
        """Return what a finished method is compared with, by name."""

    def certificate(
        self,
        learned: Tree,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[One],
        /,
    ) -> dict[str, Any]:
        """Return what can be promised, measured along held-out problems."""


@dataclass(frozen=True)
class Restart(Generic[Tree]):
    """One of several ways to begin.

    Attributes:
        about: what tells it from the others.
        price: what a held-out solve costs by what it has learned; the least is gone on with.
    """

    about: Mapping[str, str]
    price: Callable[[Tree, Sequence[Result]], float]

    @property
    def words(self) -> str:
        """What tells it from the others, for the eye."""
        return ", ".join(f"{name} {value}" for name, value in self.about.items())


@dataclass(frozen=True)
class TrainingPlan(Generic[Tree, One]):
    """How a target is begun: at once, or by the best of several restarts.

    Attributes:
        target: makes the target of a restart, by its number; 0 where there is one way alone.
        restarts: the ways to begin that are tried first.
        warm_up: how many steps each of them gets.
    """

    target: Callable[[int], Target[Tree, One]]
    restarts: Sequence[Restart[Tree]] = ()
    warm_up: int = 0

    @property
    def beginning(self) -> int:
        """The steps of all restarts together."""
        return self.warm_up * len(self.restarts)
