"""What a memory of solved problems holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import fmean, median

import numpy as np

from ode2opt.base.threads import one_blas_thread
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.options import MemoryOptions
from ode2opt.solvers.stages.linear_systems import CholeskyFactor


@dataclass(frozen=True, eq=False)
class MemoryState:
    """What a memory holds; replaced as a whole, so that threads see the old or the new one.

    Attributes:
        kind, n: the class of the problems and their number of variables.
        tol: the last tolerance that was reached.
        solves: how many there were.
        calls_with_memory: what the last solves that used the memory cost, in oracle calls.
        calls_without_memory: what the last solves cost that did not.
        slow_in_a_row: how many of the last solves in a row cost far more than usual.
        solutions: how many are behind ``mean``, their mean.
        hessians: how many Hessians at solutions are behind ``hessian``, their mean.
        floor: the curvature that one more row could have added to them, by variable.
        metric: takes the place of the Hessian where there are too many variables.
        mean_was_better: the last comparisons of starts: whether the mean solution won.
        inverse: the preconditioner, made of the mean Hessian.
        options: how it learns; not part of a file.
    """

    kind: str
    n: int
    tol: float = 1.0
    solves: int = 0
    calls_with_memory: tuple[float, ...] = ()
    calls_without_memory: tuple[float, ...] = ()
    slow_in_a_row: int = 0
    solutions: int = 0
    mean: np.ndarray | None = None
    hessians: int = 0
    hessian: np.ndarray | None = None
    floor: np.ndarray | None = None
    metric: Metric | None = None
    mean_was_better: tuple[bool, ...] = ()
    inverse: np.ndarray | None = None
    options: MemoryOptions = field(default_factory=MemoryOptions)

    @property
    def usual_calls(self) -> float:
        """What a solve costs, in calls."""
        known = self.calls_with_memory or self.calls_without_memory
        return median(known) if known else math.inf

    @property
    def helps(self) -> bool:
        """Whether solves have not become dearer by what is known."""
        few = len(self.calls_with_memory) < self.options.judged_after
        if few or not self.calls_without_memory:
            return True
        return fmean(self.calls_with_memory) <= fmean(self.calls_without_memory)

    def forgotten(self) -> MemoryState:
        """Return the same without what belongs to problems as they were before they changed."""
        return replace(
            self,
            hessians=0,
            hessian=None,
            floor=None,
            metric=None,
            inverse=None,
            mean_was_better=(),
            calls_without_memory=(),
        )

    def damped_hessian(self) -> np.ndarray:
        """Return the mean Hessian and what rows may have missed: the more are known, the less."""
        assert self.hessian is not None
        assert self.floor is not None
        options = self.options
        rows = options.damping_rows + options.damping_rows_first / self.hessians
        return self.hessian + np.diag(rows * self.floor)

    def with_inverse(self) -> MemoryState:
        """Return the same with the preconditioner made.

        It is made on one thread: a memory that was read from a file then has the same bits as the
        one that a solve has left.
        """
        if self.hessian is None:
            return replace(self, inverse=None)
        with one_blas_thread():
            return replace(self, inverse=CholeskyFactor(self.damped_hessian()).inverse())
