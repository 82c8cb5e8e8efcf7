"""How training of a sequence begins: one restart for each preconditioner, then the best of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.protocol import VALIDATION, Restart, TrainingPlan
from ode2opt.learning.sequence.background import OVERHEAD, Background
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.objective import Learned, SequenceInstance
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.remembered import Remembered
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.learning.sequence.target import SequenceTarget
from ode2opt.learning.stage import StopmStage
from ode2opt.paper.stopm import TrainingState
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory

WARM_UP = 1 / 2  # the share of the steps after which restarts are compared


def background_of(
    family: Family,
    options: SequenceOptions,
    memory: Memory | None,
    log: Callable[[str], None],
    executor: Executor = THIS_PROCESS,
) -> Background:
    """Return what is known of a family before training."""
    if memory is not None:
        return Remembered(family, options, memory, executor)
    log("solving problems to learn from")
    return SolvedBeforehand(family, options, executor=executor)


def sequence_plan(
    family: Family,
    options: SequenceOptions,
    memory: Memory | None,
    log: Callable[[str], None],
    executor: Executor = THIS_PROCESS,
) -> TrainingPlan:
    """Return how training of a sequence begins: a restart for each recipe of a preconditioner."""
    background = background_of(family, options, memory, log, executor)
    recipes = background.recipes()

    @cache
    def target(number: int) -> SequenceTarget:
        return SequenceTarget(family, options, recipes[number], background)

    def price(stage: StopmStage[Learned, SequenceInstance], state: TrainingState) -> float:
        """Return the calls of a held-out solve, an iteration in a metric being dearer."""
        learned = stage.stopm.learned(state)
        metric = stage.target.method(learned, 1).metric
        flops = OVERHEAD + background.problem(VALIDATION, 0).gradient_flops()
        dearer = 1 + (0 if metric is None else metric.flops / flops)
        return mean_calls(stage.validator.solved(learned)) * dearer

    return TrainingPlan(
        lambda number, steps: StopmStage(target(number), options, steps, executor),
        [Restart(recipe._asdict(), price) for recipe in recipes],
        max(1, round(WARM_UP * options.steps)),
    )
