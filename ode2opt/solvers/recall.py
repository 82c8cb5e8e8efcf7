"""One solve with a memory: what it takes from there, and what it leaves behind.

What is learned must be earned back: where solves with the memory have cost more than those without,
it is left aside (and tried again after 8, 16, 32, ... solves). A Hessian is formed at solves 1, 2,
4, 8, ... and when solves get slower, and only where as many solves as were made already would save
its price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import Any

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.auto import planned
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.known import FEW_TO_JUDGE, LOOKS, MEANS, RECENT, TRIES, Known
from ode2opt.solvers.lbfgs import Product, lbfgs
from ode2opt.solvers.lowrank import EXTRA, RANK, lowrank_metric
from ode2opt.solvers.memory import Memory
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.supervisor import first_alone, supervise
from ode2opt.solvers.watches import Slow, Stage
from ode2opt.solvers.whitening import AFTER

LARGEST_MATRIX = 1_000  # variables up to which the whole Hessian is kept
FEW = 14  # calls of a solve that no metric is expected to go below
RETRY = 8  # solves after which, at powers of two, a memory that did not help is tried again
CLEARLY = 0.75  # of the cost without it: then its earlier failures are forgotten
SURPRISE, MORE = 1.5, 5  # in usual costs, and calls more: a solve that went worse than it should
FLOOR = 1e-3  # of the largest curvature, for problems that are no sums over rows
FORGOTTEN: dict[str, Any] = {
    "looks": 0, "hessian": None, "floor": None, "metric": None, "inverse": None,
    "starts": (), "alone": (),
}  # fmt: skip
Look = Callable[[Known], Known]
"""What a look at the curvature makes of what is known."""


class Recall:
    """A solve that begins with what a memory knows, and ends with what it has learned.

    Args:
        memory: what is known.
        run: the solve.
        first_only: whether nobody goes on where the first stage gives up.
        from_mean: whether the solve may start at the memory's mean solution. Not where problems
            share rows: a solution must not know rows of another problem.
    """

    def __init__(
        self, memory: Memory, run: Run, first_only: bool = False, from_mean: bool = True
    ) -> None:
        self.memory, self.run = memory, run
        self.first_only, self.from_mean = first_only, from_mean
        with memory.lock:
            self.known = memory.about(run.problem)
        known = self.known
        retry = known.solves >= RETRY and _power_of_two(known.solves)
        self.alone = not known.solves or not (known.helps or retry)
        self.better: bool | None = None

    def minimise(self, x: Array, given: bool) -> None:
        """Minimise; leaves by Stop. A start that was given is always looked at."""
        here = self._start(np.asarray(x).astype(np.float64), given)
        go = first_alone if self.first_only else supervise
        go(self.run, here, self._stages())

    def _start(self, x: np.ndarray, given: bool) -> Here:
        """Return the better of two starts, evaluated; one of them alone where that is known."""
        run, known = self.run, self.known
        wins, tries = sum(known.starts), len(known.starts)
        if not self.from_mean or known.mean is None or self.alone or (tries >= TRIES and not wins):
            return run.begin(x)
        other = run.begin(x) if given else None
        run.tell(f"from the mean of {known.solved} solution{'s' * (known.solved > 1)}")
        here = run.attempt(known.mean.copy())
        trusted = other is None and tries >= TRIES and wins == tries
        if here is not None and trusted and not self._above_zero(here, x):
            return here
        other = other or run.begin(x)
        self.better = here is not None and here.norm < other.norm and here.value <= other.value
        if here is not None and self.better:
            return here
        run.words.pop()
        return other

    def _above_zero(self, here: Here, x: np.ndarray) -> bool:
        """Whether a linear model's value at zero, which takes no product with its rows, is lower.

        Then problems have changed so much that the mean solution is no longer to be trusted.
        """
        problem = self.run.problem
        if not isinstance(problem, RowModel) or np.any(x):
            return False
        return here.value > problem.value_at_zero()

    def _stages(self) -> Iterator[Stage]:
        run, known, product = self.run, self.known, self._product()
        if product is not None:
            worth = min(median(costs) for costs in (known.recent, known.alone) if costs)
            price = max(Costs(run.problem, frugal=True).price(), worth)
            yield Stage(
                "metric-lbfgs",
                partial(self._in_metric, product),
                Slow(price + AFTER, math.ceil(worth)),
            )
        yield from planned(run, warm=product is not None, frugal=True)

    def _product(self) -> Product | None:
        """Return the product with the memory's metric, if it has one and it is to be used."""
        known, run = self.known, self.run
        if self.alone:
            return None
        if known.inverse is not None:
            return partial(np.matmul, known.inverse)
        return None if known.metric is None else run.hosted(known.metric.on(run.problem))

    def _in_metric(self, product: Product, run: Run, here: Here) -> None:
        looks = self.known.looks
        run.tell(f"L-BFGS in the metric of {looks} solved problem{'s' * (looks > 1)}")
        lbfgs(run, here, product)

    def learn(self) -> None:
        """Give the memory what this solve has found; what that costs is on the run's account."""
        run = self.run
        if run.reached is None:
            return
        calls, x = run.reached.oracle_calls, np.asarray(run.best_x).astype(np.float64)
        found = self._counted(calls, x)
        look = self._look(x) if self._due(found, calls) else None
        with self.memory.lock:
            # Another thread may have learned in between: what it knows now is what is added to.
            self.known = self.memory.about(run.problem)
            found = self._counted(calls, x)
            self.memory.known = found if look is None else look(found).with_inverse()

    def _counted(self, calls: float, x: np.ndarray) -> Known:
        """Return what is known with this solve counted and its solution in the mean."""
        known = self.known
        slow = bool(known.recent) and not self.alone and calls > SURPRISE * known.usual + MORE
        surprises = known.surprises + 1 if slow else 0
        changed = surprises > 1
        solved = 0 if changed else known.solved
        mean = x if not solved else known.mean + (x - known.mean) / min(solved + 1, MEANS)
        starts = known.starts if self.better is None else (*known.starts, self.better)
        found = replace(
            known,
            tol=self.run.tol,
            solves=known.solves + 1,
            surprises=surprises,
            solved=solved + 1,
            mean=mean,
            starts=starts[-TRIES:],
        )
        found = replace(found, **FORGOTTEN) if changed else found
        if self.alone:
            return replace(found, alone=(*found.alone, calls)[-RECENT:])
        if not known.helps and calls <= CLEARLY * fmean(known.alone):  # what failed knew less
            return replace(found, recent=(calls,) * FEW_TO_JUDGE)
        return replace(found, recent=(*found.recent, calls)[-RECENT:])

    def _due(self, found: Known, calls: float) -> bool:
        """Whether to look at the curvature: at powers of two, or when problems have changed."""
        if not self.run.problem.has_hvp:
            return False
        missing = found.looks == 0
        if not (missing or found.helps):
            return False
        saved = found.solves * (max(calls, found.usual) - FEW)
        most = min(saved, (SURPRISE - 1) * calls + MORE)  # no solve may cost far more than others
        return (_power_of_two(found.solves) or missing) and self._price() <= most

    def _price(self) -> float:
        """Return what a look at the curvature costs, in calls."""
        problem = self.run.problem
        if problem.n > LARGEST_MATRIX:
            return RANK + EXTRA + 1
        return problem.hessian_flops() / problem.gradient_flops()

    def _look(self, x: np.ndarray) -> Look | None:
        """Look at the curvature at a solution; returns how what is known changes by it."""
        run = self.run
        if run.problem.n > LARGEST_MATRIX:
            diagonal = run.hessian_diagonal(x)
            metric = lowrank_metric(diagonal, self._open(x, diagonal), run.products(x))
            return lambda known: replace(known, metric=metric, looks=1)
        H = run.hessian(x)
        if not np.all(np.isfinite(H)):
            return None
        return partial(_with_hessian, H, self._open(x, H.diagonal()))

    def _open(self, x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return the curvature that a problem's rows leave open, by variable."""
        problem = self.run.problem
        if isinstance(problem, RowModel):
            return problem.unseen_curvature(problem.xp.asarray(x, dtype=problem.dtype))
        return np.full(problem.n, FLOOR * (float(diagonal.max()) or 1.0))


def _power_of_two(count: int) -> bool:
    return count & (count - 1) == 0


def _with_hessian(H: np.ndarray, floor: np.ndarray, known: Known) -> Known:
    """Return what is known with a Hessian in the mean; all of it where problems have changed."""
    weight = 1 / min(known.looks + 1, LOOKS)
    if known.hessian is not None and known.floor is not None:
        H = known.hessian + weight * (H - known.hessian)
        floor = known.floor + weight * (floor - known.floor)
    return replace(known, hessian=H, floor=floor, looks=known.looks + 1)
