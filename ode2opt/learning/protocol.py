"""What a run knows of what it trains: stages, and the targets whose stopping time StoPM minimises.

The one run, validation and the run directory are written in these terms alone; the packages
``flow`` and ``sequence`` fill them in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ode2opt.base.arrays import Array
from ode2opt.executor import Executor
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method, Result

if TYPE_CHECKING:  # which needs JAX: a report does not
    from ode2opt.learning.validation import Validation
    from ode2opt.paper.stopm import Batch, StoppingRules, TrainingState

TRAINING, VALIDATION, TEST = 0, 1, 2
"""Streams of seeds: problems of one are not those of another; only TEST sees test rows."""
TEST_PROBLEMS = 20  # fresh ones, for the statistics in the method file
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
    family: Family
    start: Tree
    learnable: Any
    rules: StoppingRules[Tree, InstanceT]

    def mesh(self, learned: Tree) -> dict[str, Any]:
        """Return how exact T is, for the metrics; nothing where time has no mesh."""
        return {}

    def shown(self, learned: Tree) -> Any:
        """Return what was learned as its user knows it."""
        return learned

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


class Finished(NamedTuple):
    """A method as its stage leaves it, and how the run is to measure it.

    Attributes:
        method: the method, with its statistics on held-out problems.
        baselines: the methods that it is compared with, by name.
        problems: fresh test problems.
        starts: the start point of each.
        certificate: what can be promised about it.
        violations: the largest P and Q on the test problems, None where none are measured.
    """

    method: Method
    baselines: Mapping[str, str | Method]
    problems: Sequence[Problem]
    starts: Sequence[Array]
    certificate: Mapping[str, Any]
    violations: Mapping[str, Any] = {"P": None, "Q": None}


class TrainingStage(ABC):
    """What a run trains: a start, steps, validations, and the method that a point makes.

    Attributes:
        start: where training starts.
        worse: how many times the best complexity a point may need; beyond, the run goes back.
    """

    start: TrainingState
    worse: float = math.inf

    def begin(self, parameters: Any) -> TrainingState:
        """Return the state that begins with parameters."""
        return self.start._replace(parameters=parameters)

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch] | None:
        """Update the parameters once, or return None where no step is left."""
        return None

    def due(self, k: int) -> bool:
        """Whether a validation and a checkpoint follow after step k."""
        return False

    def whole(self, k: int) -> bool:
        """Whether the state after step k is all that is needed to go on from there."""
        return True

    def numbers(self, k: int) -> range:
        """Return the numbers of the training problems of a step whose convexity is watched."""
        return range(0)

    def told(self, k: int, before: TrainingState, after: TrainingState) -> dict[str, Any]:
        """Return what the line of a step says beside what all lines say."""
        return {}

    def validated(self, state: TrainingState) -> Validation:
        """Return how a state does on held-out problems; a stage without steps has no answer."""
        raise NotImplementedError

    def check_start(self, found: Validation) -> None:  # noqa: B027
        """Refuse a start from which nothing can be learned."""

    def better(self, new: Validation, best: Mapping[str, Any] | None) -> bool:
        """Whether the state validated last is the best: feasible first, then by complexity."""
        before = (False, -math.inf) if best is None else (best["feasible"], -best["complexity"])
        return (new.feasible, -new.complexity) > before

    def back(self, state: TrainingState, best: Any) -> TrainingState:
        """Return the state after a step that led astray: at the best parameters."""
        return state._replace(parameters=best)

    def resumed(self, best: TrainingState) -> None:  # noqa: B027
        """Prepare to go on from a checkpoint, with the best point so far."""

    def method(self, state: TrainingState, found: Mapping[str, Any]) -> Method:
        """Return a state as a method; ``found`` are the statistics of its validation."""
        raise NotImplementedError

    def learned(self, state: TrainingState) -> Any:
        """Return what was learned, for its user; None where a table says all."""
        return None

    @abstractmethod
    def finished(self, state: TrainingState, found: Mapping[str, Any] | None) -> Finished:
        """Return the method of the best state; what is chosen once, at the end, is chosen here."""


@dataclass(frozen=True)
class Restart:
    """One of several ways to begin training; all are tried for a share of the steps.

    Attributes:
        about: what tells it from the others, by name, such as its preconditioner.
        price: gives the cost of a held-out solve; the restart with the lowest is trained to the
            end.
    """

    about: Mapping[str, str]
    price: Callable[[Any, TrainingState], float]

    @property
    def words(self) -> str:
        """What tells it from the others, in one line for the terminal."""
        return ", ".join(f"{name} {value}" for name, value in self.about.items())


@dataclass(frozen=True)
class TrainingPlan:
    """How training begins: at once, or with the best of several restarts.

    Attributes:
        stage: makes the stage of a restart, by its number (0 where there are none) and its steps.
        restarts: the ways to begin that are tried first; none by default.
        warm_up: how many steps each of them gets; 0 by default.
    """

    stage: Callable[[int, int], TrainingStage]
    restarts: Sequence[Restart] = ()
    warm_up: int = 0

    @property
    def beginning(self) -> int:
        """The steps of all restarts together."""
        return self.warm_up * len(self.restarts)


class Planner(NamedTuple):
    """What begins a kind of run.

    Attributes:
        plan: makes the plan; what takes long is told to the log.
        kind: what the run makes, in words.
        reads: the options that it reads; None for all of its target.
        own: the identity of what is no plain option, for the configuration; None for nothing.
    """

    plan: Callable[[Family, Any, Memory | None, Callable[[str], None], Executor], TrainingPlan]
    kind: str = "a run of all options"
    reads: Collection[str] | None = None
    own: Mapping[str, Any] | None = None
