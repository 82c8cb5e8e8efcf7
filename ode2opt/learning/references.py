"""What is known of a family before training: problems solved beforehand, fold by fold.

Cross-fitted: the training rows are cut into folds in the file's order, and what is known to a
problem of a fold comes from the other folds only. So training sees a metric as a new problem will
see it: without the optimism of a spectrum that knows the problem's own rows and, where the file is
ordered, on sub-populations that the spectrum does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.errors import InputError
from ode2opt.learning.beside import solve_one
from ode2opt.learning.options import Options
from ode2opt.learning.spectrum import METRICS, Look, Spectrum
from ode2opt.learning.target import TEST
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers import Method
from ode2opt.solvers.metric import Metric

MOST_FOLDS = 4
PROBLEMS = 8  # behind one fold's spectrum
STREAM, START_STREAM = 3, 4  # of seeds, beside those of training, validation and test
SHRINKAGES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Solved(NamedTuple):
    """A problem, where a solve begins, and where the tolerance is met."""

    problem: Problem
    x0: np.ndarray
    end: np.ndarray

    def at_start(self) -> Look:
        """Look at the curvature where a solve begins."""
        return Look(self.problem, [self.x0], [1.0])

    def along_path(self) -> Look:
        """Look where a solve begins and where it ends, both with the same trace."""
        points = [self.x0, self.end]
        traces = [float(np.sum(np.asarray(self.problem.hessian_diagonal(x)))) for x in points]
        return Look(self.problem, points, [1 / trace if trace > 0 else 0.0 for trace in traces])

    def curvature(self, metric: Metric | None) -> float:
        """Return the curvature along M g, its mean over both ends."""
        problem, product = self.problem, None if metric is None else metric.on(self.problem)
        points = [problem.xp.asarray(x, dtype=problem.dtype) for x in (self.x0, self.end)]
        found = [Method.curvature(problem, x, problem.gradient(x), product) for x in points]
        return float(np.mean(found))


LOOKS: dict[str, Callable[[Solved], Look]] = {"start": Solved.at_start, "path": Solved.along_path}
"""Where the curvature is looked at, by the name of the option ``reference``."""


class References:
    """Solved problems for each fold, drawn from the rows outside it, and last for all rows.

    Attributes:
        folds: how many there are; the number after the last stands for all rows.
        solved: the problems of each.
        starts: the start point of each, where it is learned.
    """

    def __init__(self, family: Family, options: Options, problems: int = PROBLEMS) -> None:
        self.family, self.options = family, options
        self.folds = _folds(family)
        self.solved = [self._solved(fold, problems) for fold in range(self.folds + 1)]
        self._check()
        self.starts: list[np.ndarray] | None = None
        if options.start == "learned":
            self.starts = self._starts()
            pairs = zip(self.solved, self.starts, strict=True)
            self.solved = [[one._replace(x0=start) for one in fold] for fold, start in pairs]

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.solved[-1][0].problem.n

    def spectra(self, metric: str, reference: str) -> list[Spectrum]:
        """Return the spectrum that each fold is given, and last that of all rows."""
        looks = [[LOOKS[reference](one) for one in fold] for fold in self.solved]
        return [METRICS[metric](fold, self.options.seed) for fold in looks]

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

    def _starts(self) -> list[np.ndarray]:
        """Return the mean solution for each fold, shrunk as suits problems of the folds."""
        means = [np.mean([one.end for one in fold], axis=0) for fold in self.solved]
        seeds = ([self.options.seed, START_STREAM, fold] for fold in range(self.folds))
        problems = [
            self.family.sample(seed, fold=Fold(i, self.folds)) for i, seed in enumerate(seeds)
        ]
        best = min(SHRINKAGES, key=lambda share: _distance(problems, means, share))
        return [best * mean for mean in means]

    def _solved(self, fold: int, problems: int) -> list[Solved]:
        rows = None if fold == self.folds else Fold(fold, self.folds, others=True)
        found = []
        for i in range(problems):
            problem = self.family.sample([self.options.seed, STREAM, fold, i], fold=rows)
            start = problem.start().x0
            result = solve_one("lbfgs", problem, start, self.options.tol)
            points = (np.asarray(x, dtype=np.float64) for x in (start, result.x))
            found.append(Solved(problem, *points))
        return found

    def _check(self) -> None:
        """Refuse problems of several sizes, and those with nothing to do."""
        sizes = sorted({one.problem.n for fold in self.solved for one in fold})
        if len(sizes) > 1:
            raise InputError(f"The problems of a family must have one size; these have {sizes}.")
        if all(np.array_equal(one.x0, one.end) for one in self.solved[-1]):
            raise InputError(
                f"Problems of {self.family.name} meet the gradient norm {self.options.tol:g} where "
                f"they start: lower the tolerance."
            )


def _distance(problems: Sequence[Problem], means: Sequence[np.ndarray], share: float) -> float:
    """Return the mean log of the gradient norm, at each fold's start on a problem of it."""
    pairs = zip(problems, means, strict=False)  # the last mean is that of all rows
    norms = [np.linalg.norm(np.asarray(problem.gradient(share * mean))) for problem, mean in pairs]
    return float(np.mean(np.log(np.maximum(norms, 1e-300))))


def _folds(family: Family) -> int:
    """Return how many folds there are: few enough that each has the rows of a problem."""
    rows = family.train_rows
    return MOST_FOLDS if rows is None else max(2, min(MOST_FOLDS, rows // (family.size or rows)))
