"""A problem that whitens itself: L-BFGS in the metric of the Hessian of some of its own rows.

The problem is solved on a few rows by L-BFGS, then on more, each time from the last solution and
in its metric; the Hessian there is the metric in which L-BFGS goes on with all rows.
Where progress is slow, a Hessian of more rows, at the point reached, becomes the metric, down to
Newton's method on all of them; where none has helped by the time that plain L-BFGS would have been
done, it goes on where it was (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import NEWTON_STEPS, Costs, more, plans, sizes
from ode2opt.solvers.factor import Factor
from ode2opt.solvers.lbfgs import Corrections, lbfgs
from ode2opt.solvers.newton import paced_newton
from ode2opt.solvers.run import Exhausted, HandOver, Here, Run, Stop
from ode2opt.solvers.supervisor import plain
from ode2opt.solvers.watches import Slow, Stage

NOISE = 0.3  # of the sampling error of a level's gradient: more exact is wasted
UNSEEN = 1.0  # rows that a sample is taken not to have seen: the metric's floor
MOST_STEPS = 40  # on a level
DRAWS = 5  # until a level has labels of both kinds
SEED = 0
AFTER = 2.0  # evaluations in a new metric, about; doubled each time that this was wrong
SOONEST = 3  # steps before a stage is judged
SMALL = 2.5  # evaluations: where a Hessian costs no more, Newton's method may be best
CHEAP = 8.0  # evaluations: levels that cost less need no trial without them
CLEARLY = 2.0  # times as dear as another metric: then plain L-BFGS is left
MOST_METRICS = 12  # then plain L-BFGS goes on
RENEWED = "L-BFGS in metrics"


def whitening(run: Run, costs: Costs, warm: bool) -> Iterator[Stage]:
    """Yield the stages: the levels, or L-BFGS where these are dear; then larger metrics."""
    problem = run.problem
    assert isinstance(problem, RowModel)
    levels, single = plans(costs, problem, run.norm, run.tol)
    steps, most = (1, levels.total) if problem.quadratic else (NEWTON_STEPS, SMALL)
    if costs.price() <= most and steps * (1 + costs.price()) <= levels.total:
        yield paced_newton(problem)
        return
    work, unaided, rival = Whitening(run, problem, costs), _Plain(problem.n), math.inf
    m = single.rows
    if not warm and levels.price <= CHEAP:
        m = levels.rows
        yield Stage("metric-lbfgs", partial(work.begin, m), work.slow(m))
        m = more(m, problem)
    elif not warm:
        watch = Slow(CLEARLY * single.total, max(SOONEST, math.ceil(single.price)))
        yield Stage("lbfgs", unaided.go, watch)
        rival = watch.left
    left = rival
    for _ in range(MOST_METRICS):
        if work.failed:
            return
        watch, before = work.slow(m, left), run.k
        yield Stage("metric-lbfgs", partial(work.renew, m), watch)
        left -= run.k - before
        m = more(m, problem)
        if run.reached is None and (watch.lost or left <= 0):
            watch = Slow(costs.price(m) + work.after, math.ceil(2 * rival))
            yield Stage("lbfgs", unaided.go, watch)
            left = rival = max(2 * rival, watch.left)


class _Plain:
    """L-BFGS without a metric; where metrics have not helped it goes on where it was."""

    def __init__(self, n: int) -> None:
        self.memory = Corrections(n)
        self.here: Here | None = None

    def go(self, run: Run, here: Here) -> None:
        """Go on from there, or begin at ``here``."""
        try:
            plain(run, self.here or here, self.memory)
        except HandOver as end:
            self.here = end.here
            raise


class Whitening:
    """The work of the stages; ``failed`` where a metric's directions led nowhere."""

    def __init__(self, run: Run, problem: RowModel, costs: Costs) -> None:
        self.run, self.problem, self.costs = run, problem, costs
        self.failed, self.after = False, AFTER
        self.rng = np.random.default_rng(SEED)

    def slow(self, m: int, rival: float = math.inf) -> Slow:
        """Watch L-BFGS in the metric of m rows, beside a rival; the next one has more."""
        price = self.costs.price(more(m, self.problem))
        self.after *= 2
        return slower_than(price, self.after, rival)

    def begin(self, m: int, run: Run, here: Here) -> None:
        """Solve on up to m rows, then go on with all rows in the metric found."""
        x, factor = here.x, None
        for part in self.levels(sizes(self.problem, m)):
            x = self._solved(part, x, factor)
            run.check_time()
            factor = self._metric(part, x)
        assert factor is not None
        run.tell(f"{_rows(m, self.problem.N)} solved")
        run.tell("L-BFGS in their metric")
        found = run.evaluate(x)
        self._lbfgs(found if found.value <= here.value else here, factor)

    def renew(self, m: int, run: Run, here: Here) -> None:
        """Go on in the metric of m rows at the point reached."""
        if run.words and run.words[-1].startswith(RENEWED):
            run.words.pop()
        run.tell(f"{RENEWED} of up to {_rows(m, self.problem.N)}")
        self._lbfgs(here, self.metric(m, here.x))

    def metric(self, m: int, x: np.ndarray) -> Factor:
        """Return the metric of m rows at a point."""
        if m == self.problem.N:
            return Factor(self.run.hessian(x))
        return self._metric(self.levels([m])[0], x)

    def _lbfgs(self, here: Here, factor: Factor) -> None:
        try:
            lbfgs(self.run, here, factor)
        except HandOver as end:
            self.failed = isinstance(end, Exhausted)
            raise

    def _metric(self, part: RowModel, x: np.ndarray) -> Factor:
        """Return the metric of a sample: its Hessian and what one more row could add to it."""
        self.run.charge(part.hessian_flops() / part.gradient_flops() * part.N / self.problem.N)
        point = _as(part, x)
        H = np.asarray(part.hessian(point), dtype=np.float64)
        if part.N < self.problem.N:
            H[np.diag_indices(part.n)] += UNSEEN * part.unseen_curvature(point)
        return Factor(H)

    def levels(self, sizes: list[int]) -> list[RowModel]:
        """Return problems of so many rows, each with those of the one before.

        A smaller one is taken from the next larger, so that the problem is asked once.
        """
        index, last = self._draw(sizes[-1])
        levels: list[RowModel] = [last]
        for size in reversed(sizes[:-1]):
            rows = np.sort(index[: levels[-1].N])
            levels.append(levels[-1].subset(np.searchsorted(rows, np.sort(index[:size]))))
        return levels[::-1]

    def _draw(self, m: int) -> tuple[np.ndarray, RowModel]:
        """Return m rows at random; with labels of more than one kind, if these can be had."""
        for _ in range(DRAWS):
            index = self.rng.choice(self.problem.N, m, replace=False)
            if m == self.problem.N:
                return index, self.problem
            found = self.problem.subset(np.sort(index))
            if np.any(found.b != found.b[0]):
                break
        return index, found

    def _solved(self, part: RowModel, x: np.ndarray, factor: Factor | None) -> np.ndarray:
        """Return the solution on some rows, as exact as they are worth."""
        self.run.charge(part.N / self.problem.N)
        error = NOISE * part.gradient_error(_as(part, x))
        left = self.run.max_seconds - self.run.seconds
        inner = Run(part, tol=error, max_iter=MOST_STEPS, max_seconds=left)
        with suppress(Stop, HandOver):
            here = inner.attempt(x)
            if here is not None:  # what fits fewer rows may overflow on these
                lbfgs(inner, here, factor)
        self.run.charge(inner.calls * part.N / self.problem.N)
        return x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)


def slower_than(price: float, after: float = 0.0, rival: float = math.inf) -> Slow:
    """Watch a stage in a metric: another costs ``price`` evaluations, and ``after`` in it."""
    return Slow(price + after, max(SOONEST, math.ceil(price / 2)), rival)


def _as(part: RowModel, x: np.ndarray) -> np.ndarray:
    return part.xp.asarray(x, dtype=part.dtype)


def _rows(m: int, N: int) -> str:
    return f"all {N:,} rows" if m == N else f"{m:,} of {N:,} rows"
