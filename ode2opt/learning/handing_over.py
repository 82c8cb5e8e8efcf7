"""When a learned sequence hands over, and to whom: chosen on held-out problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.solvers import Result

POWERS = (1.0, 0.5, 0.25)  # of the metric that L-BFGS may run in
SHORT_HORIZONS = (1, 2, 4, 8)  # where the fallback is the better method, it should begin early
BEYOND = 1.5  # a horizon, in iterations of the problem that decides about it
OVERHEAD = 0.25  # of an evaluation by L-BFGS beside the gradient, in oracle calls
ENVELOPE = 3.0  # in the largest gradient norms of held-out problems


class Choice(NamedTuple):
    """The horizon, who takes over after it, and in which power of the metric."""

    horizon: int
    fallback: str
    power: float = 1.0


def choices(alone: Iterable[Result], most: int) -> list[Choice]:
    """Return what to try, the longest first, given what a sequence did on its own."""
    ends = sorted(beyond(one.iterations) for one in alone if not one.handovers)
    middle_and_last = ends and [ends[(len(ends) - 1) // 2], ends[-1]]
    horizons = sorted({min(h, most) for h in (*middle_and_last, *SHORT_HORIZONS)}, reverse=True)
    fallbacks = [*(("metric-lbfgs", power) for power in POWERS), ("lbfgs", 1.0)]
    return [Choice(horizon, *fallback) for horizon in horizons for fallback in fallbacks]


def beyond(iterations: int) -> int:
    """Return a horizon with room beyond a number of iterations."""
    return math.ceil(BEYOND * iterations)


def best_choice(
    tried: Sequence[Choice], solved: Callable[[Choice], list[Result]], rival: Sequence[Result]
) -> tuple[Choice, list[Result]]:
    """Return the choice with the fewest oracle calls, and its solves.

    An evaluation of the fallback counts a quarter more, because it costs more beside the gradient.
    Nothing that needs more calls than the rival, plain L-BFGS, is taken where there is a choice.
    Fallbacks that nobody needed are told apart by the next horizon, at which they were needed.
    """
    found = {choice: solved(choice) for choice in tried}
    calls = {choice: _calls(results) for choice, results in found.items()}
    costs = {choice: _mean_cost(results) for choice, results in found.items()}
    able = [choice for choice in tried if calls[choice] <= _calls(rival)]
    needed = max((c.horizon for c in tried if any(one.handovers for one in found[c])), default=0)

    def price(choice: Choice) -> tuple[float, float]:
        mine = costs if able else calls
        return mine[choice], costs.get(choice._replace(horizon=needed), 0.0)

    best = min(able or tried, key=price)
    return best, found[best]


def envelope(results: Iterable[Result]) -> tuple[float, ...]:
    """Return by iteration how far above held-out problems a gradient norm may be."""
    runs = [one.history.grad_norm for one in results if one.history and not one.handovers]
    longest = max(map(len, runs), default=0)
    highest = (max(run[k] / run[0] for run in runs if k < len(run)) for k in range(longest))
    return tuple(ENVELOPE * value for value in highest)


def _calls(results: Sequence[Result]) -> float:
    return float(np.mean([result.oracle_calls for result in results]))


def _mean_cost(results: Sequence[Result]) -> float:
    return float(np.mean([_cost(one) for one in results]))


def _cost(result: Result) -> float:
    ours = result.handovers[0].iteration if result.handovers else result.iterations
    return result.oracle_calls + OVERHEAD * (result.iterations - ours)
