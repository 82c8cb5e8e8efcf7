"""When a learned sequence hands over, and to which method: chosen on held-out problems.

A method with horizon 0 is an instant method: the fallback starts at once.
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

POWERS = (1.0, 0.5, 0.25)  # of the preconditioner that L-BFGS may run in
SHORT_HORIZONS = (0, 2, 4, 8)  # tried as well: a better fallback should begin early
TABLE_HORIZON_FACTOR = 1.5  # times the iterations of the problem that decides about it
VALUE_COST = 0.25  # of a function value, in gradients
LBFGS_OVERHEAD = 500_000  # of L-BFGS beyond an iteration of a table, in operations, about
WORTH_HAVING = 0.95  # of the instant method's cost: what a table may cost at most
ENVELOPE = 3.0  # times the largest gradient norm of held-out problems


class Choice(NamedTuple):
    """When a table ends, and what follows it.

    Attributes:
        horizon: iterations of the table; 0 is no table.
        fallback: the method that follows: "metric-lbfgs" (in the preconditioner) or "lbfgs".
        power: of the preconditioner that the fallback runs in, 1 by default.
    """

    horizon: int
    fallback: str
    power: float = 1.0

    def of(self, method: Method) -> Method:
        """Return a method that hands over in this way."""
        schedule = method.schedule
        if schedule is not None:
            schedule = schedule.first(self.horizon) if self.horizon else None
        guard = Guard(fallback=self.fallback, power=self.power)
        return method.replace(schedule=schedule, guard=guard)


def instant_choices() -> list[Choice]:
    """Return the choices without a table: L-BFGS in each power of the preconditioner, and plain."""
    return [Choice(0, "metric-lbfgs", power) for power in POWERS] + [Choice(0, "lbfgs")]


def candidates(results: Iterable[Result], most: int) -> list[Choice]:
    """Return the choices to try, the longest table first."""
    ends = sorted(horizon_for(one.iterations) for one in results if not one.handovers)
    middle_and_last = ends and [ends[(len(ends) - 1) // 2], ends[-1]]
    horizons = sorted({min(h, most) for h in (*middle_and_last, *SHORT_HORIZONS)}, reverse=True)
    return [one._replace(horizon=horizon) for horizon in horizons for one in instant_choices()]


def horizon_for(iterations: int) -> int:
    """Return 1.5 times a number of iterations: a horizon with room to spare."""
    return math.ceil(TABLE_HORIZON_FACTOR * iterations)


def overhead_of(problem: Problem) -> float:
    """Return what an evaluation by L-BFGS costs more than an iteration of a table, in the latter.

    On problems of the paper's sizes (training rows; 1,024 x 123, 1,024 x 68, 2,048 x 54 and sparse
    1,024 x 300) an iteration in the metric took 60 us by a table and 164, 142, 115 and 125 us by
    L-BFGS. The longer a gradient takes, the less that matters.
    """
    return VALUE_COST + LBFGS_OVERHEAD / (OVERHEAD + problem.gradient_flops())


def best_choice(
    tried: Sequence[Choice],
    solved: Callable[[Choice], list[Result]],
    baseline: Sequence[Result],
    overhead: float,
) -> tuple[Choice, list[Result]]:
    """Return the choice that costs least on held-out problems, and its solves.

    An evaluation of the fallback counts ``overhead`` more than an iteration of the table. A choice
    that needs more calls than the baseline is taken only if all do. Fallbacks that no solve
    needed are compared at the longest horizon at which they were needed.
    """
    found = {choice: solved(choice) for choice in tried}
    calls = {choice: mean_calls(results) for choice, results in found.items()}
    costs = {choice: _mean_cost(choice, results, overhead) for choice, results in found.items()}
    able = [choice for choice in tried if calls[choice] <= mean_calls(baseline)]
    needed = max((c.horizon for c in tried if _needed(c, found[c])), default=0)

    def price(choice: Choice) -> tuple[float, float]:
        mine = costs if able else calls
        return mine[choice], costs.get(choice._replace(horizon=needed), 0.0)

    best = min(able or tried, key=price)
    return best, found[best]


def beats_instant(
    choice: Choice, mine: Sequence[Result], instant: Sequence[Result], overhead: float
) -> bool:
    """Whether a table is worth having: its solves cost at most 0.95 of the instant method's.

    It must not need more calls either: on larger problems calls are all that counts.
    """
    spent = _mean_cost(Choice(0, choice.fallback), instant, overhead)
    cheaper = _mean_cost(choice, mine, overhead) <= WORTH_HAVING * spent
    return cheaper and mean_calls(mine) <= mean_calls(instant)


def envelope(results: Iterable[Result]) -> tuple[float, ...]:
    """Return for each iteration the gradient norm, relative to the first, at which the guard acts.

    It is three times the largest one seen on held-out problems.
    """
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
