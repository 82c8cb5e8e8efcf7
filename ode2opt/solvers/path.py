"""Paths: one linear model for many penalties, on several near-equal sets of rows.

The first path leads: for each penalty it leaves its solution and the metric it was found in. Those
that follow share the metrics, and start where the leader's step from penalty to penalty takes them
(docs/mathematics.md, section 14).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.auto import planned
from ode2opt.solvers.by_class import ClassMetric
from ode2opt.solvers.costs import Costs, plans
from ode2opt.solvers.lbfgs import Product, lbfgs
from ode2opt.solvers.result import Result
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.solve import minimised
from ode2opt.solvers.supervisor import Stage, supervise
from ode2opt.solvers.whitening import AFTER, Whitening, slower_than

FEW_NUMBERS = 1 << 22  # that metrics may be kept of, or as many as the matrix has


class Step(NamedTuple):
    """What the leader leaves at a penalty: its solution, its first gradient norm, a metric."""

    x: np.ndarray
    norm: float
    metric: Product | None


class Guide:
    """What a leading path has found; ``paths`` is how many there are with it."""

    def __init__(self, paths: int) -> None:
        self.paths = paths
        self.steps: list[Step] = []
        self._kept = 0

    def __getstate__(self) -> dict[str, Any]:
        """Go to another process without the metrics, which may be large."""
        return vars(self) | {"steps": [step._replace(metric=None) for step in self.steps]}

    def solve(
        self, problem: LinearModel, k: int, x0: Array, *, tol: float, max_iter: int
    ) -> tuple[Result, float]:
        """Solve for the k-th penalty from ``x0``; returns the gradient norm there as well.

        Who comes first leaves what it finds.
        """
        run = Run(problem, tol=tol, max_iter=max_iter)
        leads = k == len(self.steps)
        way = _Way(run, self.paths if leads else 0, None if leads else self.steps[k].metric)
        result = minimised(run, x0, way)
        if leads:
            self._leave(run, problem, way.metric)
        return result, run.first_norm

    def _leave(self, run: Run, problem: LinearModel, metric: Product | None) -> None:
        """Keep what the leader has found; a metric only where there is room for it."""
        last = self.steps[-1].metric if self.steps else None
        size = problem.n**2 // (problem.width if isinstance(metric, ClassMetric) else 1)
        if metric is not None and self._kept + size <= max(FEW_NUMBERS, problem.entries()):
            self._kept, last = self._kept + size, metric
        self.steps.append(Step(np.asarray(run.best_x), run.first_norm, last))


class Path:
    """Solves for one penalty after the other, from strong to weak, on one set of rows."""

    def __init__(self, guide: Guide) -> None:
        self.guide, self.k = guide, 0
        self.x: np.ndarray | None = None
        self._beside = True  # whether the leader's steps lead nearer than none

    def solve(self, problem: LinearModel, *, tol: float, max_iter: int) -> Result:
        """Solve for the next penalty."""
        k, follows = self.k, self.k < len(self.guide.steps)
        start = self._start(follows)
        result, norm = self.guide.solve(problem, k, start, tol=tol, max_iter=max_iter)
        if follows and norm > self.guide.steps[k].norm:  # what the leader had from its last one
            self._beside = False
        self.k, self.x = k + 1, np.asarray(result.x)
        return result

    def _start(self, follows: bool) -> np.ndarray | None:
        steps, k = self.guide.steps, self.k
        if not follows or not self._beside:
            return self.x
        return steps[k].x if self.x is None else self.x + (steps[k].x - steps[k - 1].x)


class _Way:
    """How one solve goes: in a metric that is given, or made for ``solves`` of them."""

    def __init__(self, run: Run, solves: int, metric: Product | None) -> None:
        self.run, self.solves, self.metric = run, solves, metric
        self.costs = Costs(run.problem)

    def minimise(self, x: Array, given: bool) -> None:
        """Minimise; leaves by Stop."""
        here = self.run.begin(np.asarray(x).astype(np.float64))
        if self.solves:
            self.metric = self._made(here)
        supervise(self.run, here, self._stages())

    def _stages(self) -> Iterator[Stage]:
        if self.metric is not None:
            watch = slower_than(self.costs.price(), AFTER)
            yield Stage("metric-lbfgs", partial(self._in_metric, self.metric), watch)
        yield from planned(self.run, warm=True)

    def _in_metric(self, metric: Product, run: Run, here: Here) -> None:
        run.tell("L-BFGS in the metric of its path")
        lbfgs(run, here, metric)

    def _made(self, here: Here) -> Product | None:
        """Return a metric that is worth its price to all solves that share it."""
        run, problem = self.run, self.run.problem
        assert isinstance(problem, LinearModel)
        if problem.columns >= LARGEST_DENSE_HESSIAN:
            return None
        if problem.width > 1:
            return ClassMetric(run, here.x, self.costs, self.solves)
        if problem.N <= problem.n:
            return None
        _, single = plans(self.costs, problem, here.norm, run.tol, self.solves)
        return Whitening(run, problem, self.costs).metric(single.rows, here.x)
