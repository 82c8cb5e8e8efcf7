"""A run of no steps: the family's instant method, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ode2opt.executor import Executor
from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.protocol import Finished, Planner, TrainingPlan, TrainingStage
from ode2opt.learning.sequence.background import READ, Background
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import no_table
from ode2opt.learning.sequence.instant import instant
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.restarts import background_of
from ode2opt.learning.validation import statistics
from ode2opt.paper.stopm import TrainingState
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory


class InstantStage(TrainingStage):
    """Takes no step: all is chosen at the end, and measured as training measures a table."""

    start = TrainingState(None, None, 0.0)

    def __init__(self, background: Background) -> None:
        self.background = background

    def finished(self, state: TrainingState, found: Mapping[str, Any] | None) -> Finished:
        background, held_out = self.background, HeldOut(self.background)
        made = instant(background, held_out)
        seen = {
            "validation": statistics(made.results),
            "held_out": held_out.compared({"method": made.results}),
        }
        method = made.method.replace(statistics=seen)
        certificate = no_table(method)
        promise = certificate.summary() | {"verdict": certificate.words()}
        return Finished(method, BASELINES, *background.test_problems(), promise)


def _plan(
    family: Family,
    options: SequenceOptions,
    memory: Memory | None,
    log: Callable[[str], None],
    executor: Executor,
) -> TrainingPlan:
    background = background_of(family, options, memory, log, executor)
    return TrainingPlan(lambda *_: InstantStage(background))


INSTANT = Planner(_plan, "an instant method (steps=0), which trains nothing", READ | {"steps"})
