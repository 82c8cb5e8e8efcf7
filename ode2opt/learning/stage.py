"""A stage of training: a target, the StoPM that learns it, and the problems that judge it."""

from __future__ import annotations

from typing import Generic

from ode2opt.executor import Executor
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import TRAINING, VALIDATION, InstanceT, Target, Tree
from ode2opt.learning.step_sizes import optimizer_of
from ode2opt.learning.tasks import ProblemTasks
from ode2opt.learning.validation import Validator
from ode2opt.paper.stopm import Batch, StoPM, TrainingState

CAUTION = 1.02  # the factor by which validation takes the curvature to be larger


def stopm_of(target: Target[Tree, InstanceT], options: Options) -> StoPM[Tree, InstanceT]:
    """Return the training step of a target with the options' optimiser."""
    return StoPM(
        target.start, target.learnable, target.rules, optimizer_of(options),
        penalty=options.penalty, clip=options.clip,
    )  # fmt: skip


class TrainingStage(Generic[Tree, InstanceT]):
    """Makes steps on the problems of a target."""

    def __init__(
        self, target: Target[Tree, InstanceT], options: Options, executor: Executor
    ) -> None:
        self.target, self.options, self.executor = target, options, executor
        self.stopm = stopm_of(target, options)
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
