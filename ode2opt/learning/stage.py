"""A stage of training: a target, the StoPM that learns it, and the problems that judge it."""

from __future__ import annotations

from typing import Generic

from ode2opt.executor import Executor
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import TRAINING, VALIDATION, Target
from ode2opt.learning.tasks import ProblemTasks
from ode2opt.learning.validation import Validator
from ode2opt.paper.instance import InstanceT, Tree
from ode2opt.paper.stopm import Batch, StoPM, TrainingState

CAUTION = 1.02  # the factor by which validation takes the curvature to be larger


class TrainingStage(Generic[Tree, InstanceT]):
    """Makes steps on the problems of a target."""

    def __init__(
        self, target: Target[Tree, InstanceT], options: Options, executor: Executor
    ) -> None:
        self.target, self.options, self.executor = target, options, executor
        self.stopm = StoPM(target.start, target.learnable, options, target.rules)
        self.tasks = ProblemTasks(target, self.stopm)
        self.validator = Validator(self.tasks, VALIDATION, options.validation, CAUTION, executor)

    def numbers(self, k: int) -> range:
        """Return the numbers of the training problems of a step, counted from 0."""
        return range(k * self.options.batch, (k + 1) * self.options.batch)

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch]:
        """Update the parameters once, by the slopes of step k's problems."""
        asked = [(state._replace(memory=None), (TRAINING, i)) for i in self.numbers(k)]
        slopes = list(self.executor.map(ProblemTasks.slope, self.tasks, asked, threads=True))
        return self.stopm.updated(state, slopes)
