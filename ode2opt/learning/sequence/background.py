"""What is known of a family before training, wherever it comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.learning.helpers import ALONE, Helpers
from ode2opt.learning.protocol import TEST
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.spectrum import CurvaturePoints, Spectrum
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers import Method
from ode2opt.solvers.metric import Metric

MOST_FOLDS = 4
STREAM = 3  # of seeds, beside those of training, validation and test
OVERHEAD = 100_000  # what Python costs an iteration, in operations, about


class MetricRecipe(NamedTuple):
    """One way to begin a sequence: a metric, and where it looks at curvature."""

    metric: str
    reference: str


class Solved(NamedTuple):
    """A problem, where a solve begins, and where the tolerance is met."""

    problem: Problem
    x0: np.ndarray
    end: np.ndarray

    def at_start(self) -> CurvaturePoints:
        """CurvaturePoints at the curvature where a solve begins."""
        return CurvaturePoints(self.problem, [self.x0], [1.0])

    def along_path(self) -> CurvaturePoints:
        """CurvaturePoints where a solve begins and where it ends, both with the same trace."""
        points = [self.x0, self.end]
        traces = [float(np.sum(np.asarray(self.problem.hessian_diagonal(x)))) for x in points]
        return CurvaturePoints(
            self.problem, points, [1 / trace if trace > 0 else 0.0 for trace in traces]
        )

    def curvature(self, metric: Metric | None) -> float:
        """Return the curvature along M g, its mean over both ends."""
        problem, product = self.problem, None if metric is None else metric.on(self.problem)
        points = [problem.xp.asarray(x, dtype=problem.dtype) for x in (self.x0, self.end)]
        found = [Method.curvature(problem, x, problem.gradient(x), product) for x in points]
        return float(np.mean(found))


class Background(ABC):
    """Problems of each fold of the training rows, and last of all rows, and what is known there.

    Attributes:
        folds: how many there are; the number after the last stands for all rows.
        solved: problems for each, from the rows outside the fold, with their solutions.
        starts: the start point of each, where it is learned.
        settled: whether a sequence runs in the spectra's own metric, and learns no filter of it.
    """

    solved: Sequence[Sequence[Solved]]
    starts: Sequence[np.ndarray] | None = None
    settled = False

    def __init__(self, family: Family, options: SequenceOptions, helpers: Helpers = ALONE) -> None:
        self.family, self.options, self.helpers = family, options, helpers
        self.folds = _folds(family)

    @abstractmethod
    def ways(self) -> list[MetricRecipe]:
        """Return all ways to begin a sequence."""

    @abstractmethod
    def spectra(self, metric: str, reference: str) -> list[Spectrum]:
        """Return the spectrum that each fold is given, and last that of all rows."""

    @abstractmethod
    def metrics(self) -> list[Metric | None]:
        """Return the metric of the instant method, for each fold and last for all rows."""

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.solved[-1][0].problem.n

    def scale(self, metric: Metric | None) -> float:
        """Return the family's curvature along a gradient in a metric."""
        return float(np.mean([one.curvature(metric) for one in self.solved[-1]]))

    def fold(self, stream: int, i: int) -> int:
        """Return the fold that the i-th problem of a stream is drawn from; even ones from all."""
        if stream == TEST or not self.options.blocks or i % 2 == 0:
            return self.folds
        return i // 2 % self.folds

    def problem(self, stream: int, i: int) -> Problem:
        """Return the i-th problem of a stream; only the test stream sees test rows."""
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        fold = self.fold(stream, i)
        return self.family.sample(seed, fold=None if fold == self.folds else Fold(fold, self.folds))

    def start(self, problem: Problem, fold: int) -> np.ndarray:
        """Return where a solve of a fold's problem begins."""
        x0 = problem.start().x0 if self.starts is None else self.starts[fold]
        return np.asarray(x0, dtype=np.float64)


def _folds(family: Family) -> int:
    """Return how many folds there are: few enough that each has the rows of a problem."""
    rows = family.train_rows
    return MOST_FOLDS if rows is None else max(2, min(MOST_FOLDS, rows // (family.size or rows)))
