"""How a sequence is begun: several times, and by the best on held-out training problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from ode2opt.learning.helpers import ALONE, Helpers
from ode2opt.learning.protocol import VALIDATION, Restart, TrainingPlan
from ode2opt.learning.sequence.background import OVERHEAD, Background
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.objective import Learned, MetricInstance
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.remembered import Remembered
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.learning.sequence.target import SequenceTarget
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Result

WARM_UP = 1 / 2  # the share of the steps after which restarts are compared


def known_of(
    family: Family,
    options: SequenceOptions,
    memory: Memory | None,
    note: Callable[[str], None],
    helpers: Helpers = ALONE,
) -> Background:
    """Return what is known of a family; ``note`` is told where that takes a while."""
    if memory is not None:
        return Remembered(family, options, memory, helpers)
    note("solving problems to learn from")
    return SolvedBeforehand(family, options, helpers=helpers)


def sequence_plan(
    family: Family,
    options: SequenceOptions,
    memory: Memory | None,
    note: Callable[[str], None],
    helpers: Helpers = ALONE,
) -> TrainingPlan[Learned, MetricInstance]:
    """Return how a sequence is begun; ``note`` is told what goes on."""
    known = known_of(family, options, memory, note, helpers)
    ways = known.ways()

    @cache
    def target(number: int) -> SequenceTarget:
        return SequenceTarget(family, options, ways[number], known)

    def price(number: int, learned: Learned, results: Sequence[Result]) -> float:
        """Return the calls of a held-out solve, an iteration in a metric being dearer."""
        metric = target(number).method(learned, 1).metric
        flops = OVERHEAD + known.problem(VALIDATION, 0).gradient_flops()
        return mean_calls(results) * (1 + (0 if metric is None else metric.flops / flops))

    return TrainingPlan(
        lambda number: target(number),
        [Restart(way._asdict(), partial(price, number)) for number, way in enumerate(ways)],
        max(1, round(WARM_UP * options.steps)),
    )
