"""When a learned sequence hands over, and to whom: chosen on held-out problems.

A horizon of 0 is an instant method: the one that takes over does so at the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.learning.comparison import calls_of
from ode2opt.learning.sequence.background import OVERHEAD
from ode2opt.problems.base import Problem
from ode2opt.solvers import Guard, Method, Result

POWERS = (1.0, 0.5, 0.25)  # of the metric that L-BFGS may run in
SHORT_HORIZONS = (0, 2, 4, 8)  # where the fallback is the better method, it should begin early
BEYOND = 1.5  # a horizon, in iterations of the problem that decides about it
VALUE = 0.25  # of an evaluation by L-BFGS beside the gradient: the value, in gradients
LBFGS = 500_000  # and its own work beyond that of a table's iteration, in operations, about
EARNED = 0.95  # in costs of the instant method: a table that has more is not worth having
ENVELOPE = 3.0  # in the largest gradient norms of held-out problems


class Choice(NamedTuple):
    """The horizon, who takes over after it, and in which power of the metric."""

    horizon: int
    fallback: str
    power: float = 1.0

    def of(self, method: Method) -> Method:
        """Return a method that hands over so."""
        schedule = method.schedule
        if schedule is not None:
            schedule = schedule.first(self.horizon) if self.horizon else None
        guard = Guard(fallback=self.fallback, power=self.power)
        return method.replace(schedule=schedule, guard=guard)


def instant_choices() -> list[Choice]:
    """Return all ways of handing over at the start."""
    return [Choice(0, "metric-lbfgs", power) for power in POWERS] + [Choice(0, "lbfgs")]


def choices(alone: Iterable[Result], most: int) -> list[Choice]:
    """Return what to try, the longest first, given what a sequence did on its own."""
    ends = sorted(beyond(one.iterations) for one in alone if not one.handovers)
    middle_and_last = ends and [ends[(len(ends) - 1) // 2], ends[-1]]
    horizons = sorted({min(h, most) for h in (*middle_and_last, *SHORT_HORIZONS)}, reverse=True)
    return [one._replace(horizon=horizon) for horizon in horizons for one in instant_choices()]


def beyond(iterations: int) -> int:
    """Return a horizon with room beyond a number of iterations."""
    return math.ceil(BEYOND * iterations)


def overhead_of(problem: Problem) -> float:
    """Return what an evaluation by L-BFGS costs more than an iteration of a table, in those.

    On problems of the paper's sizes (training rows; 1,024 x 123, 1,024 x 68, 2,048 x 54 and sparse
    1,024 x 300) an iteration in the metric took 60 us by a table and 164, 142, 115 and 125 us by
    L-BFGS; the longer a gradient takes, the less that matters.
    """
    return VALUE + LBFGS / (OVERHEAD + problem.gradient_flops())


def best_choice(
    tried: Sequence[Choice],
    solved: Callable[[Choice], list[Result]],
    rival: Sequence[Result],
    overhead: float,
) -> tuple[Choice, list[Result]]:
    """Return the choice that costs least, and its solves.

    An evaluation of the fallback counts ``overhead`` more than an iteration of the table.
    Nothing that needs more calls than the rival is taken where there is a choice.
    Fallbacks that nobody needed are told apart by the next horizon, at which they were needed.
    """
    found = {choice: solved(choice) for choice in tried}
    calls = {choice: mean_calls(results) for choice, results in found.items()}
    costs = {choice: _mean_cost(choice, results, overhead) for choice, results in found.items()}
    able = [choice for choice in tried if calls[choice] <= mean_calls(rival)]
    needed = max((c.horizon for c in tried if _needed(c, found[c])), default=0)

    def price(choice: Choice) -> tuple[float, float]:
        mine = costs if able else calls
        return mine[choice], costs.get(choice._replace(horizon=needed), 0.0)

    best = min(able or tried, key=price)
    return best, found[best]


def earned(
    choice: Choice, mine: Sequence[Result], instant: Sequence[Result], overhead: float
) -> bool:
    """Whether a table is worth having: it costs clearly less than the instant method's solves.

    It must not need more calls either: on larger problems of the kind they are all that counts.
    """
    spent = _mean_cost(Choice(0, choice.fallback), instant, overhead)
    cheaper = _mean_cost(choice, mine, overhead) <= EARNED * spent
    return cheaper and mean_calls(mine) <= mean_calls(instant)


def envelope(results: Iterable[Result]) -> tuple[float, ...]:
    """Return by iteration how far above held-out problems a gradient norm may be."""
    runs = [one.history.grad_norm for one in results if one.history and not one.handovers]
    longest = max(map(len, runs), default=0)
    highest = (max(run[k] / run[0] for run in runs if k < len(run)) for k in range(longest))
    return tuple(ENVELOPE * value for value in highest)


def mean_calls(results: Sequence[Result]) -> float:
    """Return the mean number of oracle calls to the tolerance."""
    return float(np.mean([calls_of(result) for result in results]))


def _needed(choice: Choice, results: Sequence[Result]) -> bool:
    return not choice.horizon or any(one.handovers for one in results)


def _mean_cost(choice: Choice, results: Sequence[Result], overhead: float) -> float:
    return float(np.mean([_cost(choice, one, overhead) for one in results]))


def _cost(choice: Choice, result: Result, overhead: float) -> float:
    ours = result.iterations
    if not choice.horizon:
        ours = 0
    elif result.handovers:
        ours = result.handovers[0].iteration
    return calls_of(result) + overhead * (result.iterations - ours)
