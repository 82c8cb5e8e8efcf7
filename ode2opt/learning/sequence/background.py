"""What is known of a family before training: solved problems, spectra, start points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.protocol import TEST, TEST_PROBLEMS
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.spectrum import CurvaturePoints, Spectrum
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers import Method
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.start_point import PAPER, first_point

MOST_FOLDS = 4
STREAM = 3  # of seeds, beside those of training, validation and test
READ = frozenset(("tol", "seed", "blocks", "validation", "metric", "reference", "start"))
"""The options that are read where problems are solved beforehand."""
OVERHEAD = 100_000  # of Python for an iteration, in operations, about


class MetricRecipe(NamedTuple):
    """How a preconditioner is made.

    Attributes:
        metric: its kind: "none", "diagonal", "spectral" or "lowrank".
        reference: where curvature is measured: at the "start", along the "path", or by a "memory".
    """

    metric: str
    reference: str


class SolvedProblem(NamedTuple):
    """A problem with its solution.

    Attributes:
        problem: the problem.
        x0: where the solve started.
        end: where the tolerance was met.
    """

    problem: Problem
    x0: np.ndarray
    end: np.ndarray

    def at_start(self) -> CurvaturePoints:
        """Return the start point, to measure curvature there."""
        return CurvaturePoints(self.problem, [self.x0], [1.0])

    def along_path(self) -> CurvaturePoints:
        """Return start and end, weighted so that the Hessians of both have the same trace."""
        points = [self.x0, self.end]
        traces = [float(np.sum(np.asarray(self.problem.hessian_diagonal(x)))) for x in points]
        return CurvaturePoints(
            self.problem, points, [1 / trace if trace > 0 else 0.0 for trace in traces]
        )

    def curvature(self, metric: Metric | None) -> float:
        """Return <p, H p> / <p, g> with p = M g, its mean over start and end."""
        problem, product = self.problem, None if metric is None else metric.on(self.problem)
        points = [problem.xp.asarray(x, dtype=problem.dtype) for x in (self.x0, self.end)]
        found = [Method.curvature(problem, x, problem.gradient(x), product) for x in points]
        return float(np.mean(found))


class Background(ABC):
    """Problems of each fold of the training rows, and last of all rows, and what is known there.

    What a problem of a fold is solved with comes from the rows outside the fold.

    Attributes:
        folds: how many folds there are; the number after the last stands for all rows.
        solved: for each fold, solved problems from the rows outside it; last those of all rows.
        starts: the start point for each fold, where it is learned; None where it is the paper's.
        fixed_metric: whether the preconditioner is taken as it is, without learning a filter.
    """

    solved: Sequence[Sequence[SolvedProblem]]
    starts: Sequence[np.ndarray] | None = None
    fixed_metric = False

    def __init__(
        self, family: Family, options: SequenceOptions, executor: Executor = THIS_PROCESS
    ) -> None:
        self.family, self.options, self.executor = family, options, executor
        self.folds = _folds(family)

    @abstractmethod
    def recipes(self) -> list[MetricRecipe]:
        """Return the preconditioners that training may begin with."""

    @abstractmethod
    def spectra(self, metric: str, reference: str) -> list[Spectrum]:
        """Return the spectrum for each fold, and last that of all rows."""

    @abstractmethod
    def metrics(self) -> list[Metric | None]:
        """Return the preconditioner of the instant method for each fold, and last for all rows."""

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.solved[-1][0].problem.n

    def scale(self, metric: Metric | None) -> float:
        """Return the family's curvature along a preconditioned gradient."""
        return float(np.mean([one.curvature(metric) for one in self.solved[-1]]))

    def fold(self, stream: int, i: int) -> int:
        """Return the fold that a problem is drawn from; ``folds`` stands for all rows.

        With ``options.blocks`` every second problem of training and validation is of one fold.
        """
        if stream == TEST or not self.options.blocks or i % 2 == 0:
            return self.folds
        return i // 2 % self.folds

    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem of a stream; only the test stream sees test rows."""
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        fold = self.fold(stream, i)
        return self.family.sample(seed, fold=None if fold == self.folds else Fold(fold, self.folds))

    def test_problems(self) -> tuple[list[Problem], list[np.ndarray]]:
        """Return fresh problems of the test rows, and where their solves start."""
        problems = [self.problem(TEST, i) for i in range(TEST_PROBLEMS)]
        return problems, [self.start(problem, self.folds) for problem in problems]

    def rule(self, fold: int) -> np.ndarray | str:
        """Return the start of methods for problems of a fold: a learned point, or "paper"."""
        return PAPER if self.starts is None else self.starts[fold]

    def start(self, problem: Problem, fold: int) -> np.ndarray:
        """Return where a solve of a problem starts."""
        return np.asarray(first_point(self.rule(fold), problem), dtype=np.float64)


def _folds(family: Family) -> int:
    """Return the number of folds: at most 4, each with the rows of at least one problem."""
    rows = family.train_rows
    return MOST_FOLDS if rows is None else max(2, min(MOST_FOLDS, rows // (family.size or rows)))
