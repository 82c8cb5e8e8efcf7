"""What a memory of solved problems holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from ode2opt.solvers.factor import Factor
from ode2opt.solvers.metric import Metric
from ode2opt.threads import one_blas_thread

RECENT = 8  # solves that tell the usual cost
FEW_TO_JUDGE = 3  # solves with a memory, before they are compared with those without
TRIES = 4  # solves in which two starts are compared before one is trusted
MEANS = 32  # solutions that the mean is of, about
LOOKS = 8  # Hessians that their mean is of, about
OPEN = 1.0  # of one row's curvature: what the rows of a new problem leave open
OPEN_FIRST = 2.0  # the same for the first solved problem, less with each that follows


@dataclass(frozen=True, eq=False)
class Known:
    """What a memory holds; replaced as a whole, so that threads see the old or the new one.

    Attributes:
        kind, n: the class of the problems and their number of variables.
        tol: the last tolerance that was reached.
        solves: how many there were; ``recent`` what the last ones that used the memory cost, in
            calls, and ``alone`` what the last ones cost that did not.
        surprises: how many of the last solves in a row cost far more than usual.
        solved: how many solutions are behind ``mean``.
        looks: how many Hessians at solutions are behind ``hessian``, and behind ``floor``, what
            their rows left open, by variable.
        metric: takes the place of the Hessian where there are too many variables.
        starts: the last comparisons of starts: whether the mean solution was the better one.
        inverse: the metric of the mean Hessian, made of it.
    """

    kind: str
    n: int
    tol: float = 1.0
    solves: int = 0
    recent: tuple[float, ...] = ()
    alone: tuple[float, ...] = ()
    surprises: int = 0
    solved: int = 0
    mean: np.ndarray | None = None
    looks: int = 0
    hessian: np.ndarray | None = None
    floor: np.ndarray | None = None
    metric: Metric | None = None
    starts: tuple[bool, ...] = ()
    inverse: np.ndarray | None = None

    @property
    def usual(self) -> float:
        """What a solve costs, in calls."""
        known = self.recent or self.alone
        return median(known) if known else math.inf

    @property
    def helps(self) -> bool:
        """Whether solves have not become dearer by what is known."""
        few = len(self.recent) < FEW_TO_JUDGE or not self.alone
        return few or fmean(self.recent) <= fmean(self.alone)

    def damped(self) -> np.ndarray:
        """Return the mean Hessian with what is open about it: the better known, the less."""
        assert self.hessian is not None
        assert self.floor is not None
        return self.hessian + np.diag((OPEN + OPEN_FIRST / self.looks) * self.floor)

    def with_inverse(self) -> Known:
        """Return the same with the preconditioner made.

        It is made on one thread: a memory that was read from a file then has the same bits as the
        one that a solve has left.
        """
        if self.hessian is None:
            return replace(self, inverse=None)
        with one_blas_thread():
            return replace(self, inverse=Factor(self.damped()).inverse())
