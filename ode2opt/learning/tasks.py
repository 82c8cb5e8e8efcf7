"""What training does with single problems: differentiate, solve, measure.

A problem is known by its stream and its number in it. It is drawn where the work is done, so that
only the target, once, and a few numbers a problem go to other processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from ode2opt.learning.protocol import TRAINING, InstanceT, Target, Tree
from ode2opt.problems.base import Problem
from ode2opt.solvers import Result

if TYPE_CHECKING:  # which needs JAX: a report does not
    from ode2opt.paper.stopm import StoPM, TrainingState
    from ode2opt.paper.stopping_time import StoppingTime

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
