"""What is known of a family before training: problems solved beforehand, fold by fold.

Cross-fitted: the training rows are cut into folds in the file's order, and what is known to a
problem of a fold comes from the other folds only. So training sees a preconditioner as a new
problem will: it does not know the problem's own rows and, where the file is ordered, not its
sub-population either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.sequence.background import (
    OVERHEAD,
    STREAM,
    Background,
    MetricRecipe,
    SolvedProblem,
)
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.spectrum import (
    SPECTRUM_KINDS,
    CurvaturePoints,
    Spectrum,
    basis_for,
    metric_of,
    whitened,
)
from ode2opt.learning.validation import solve_one
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers.metric import Metric

PROBLEMS_PER_FOLD = 6  # behind one fold's spectrum
START_STREAM = 4  # of seeds, beside STREAM
SHRINKAGES = (0.0, 0.25, 0.5, 0.75, 1.0)

POINTS: dict[str, Callable[[SolvedProblem], CurvaturePoints]] = {
    "start": SolvedProblem.at_start,
    "path": SolvedProblem.along_path,
}
"""Where curvature is measured, by the option ``reference``."""


class SolvedBeforehand(Background):
    """Solved problems for each fold, drawn from the rows outside it, and last for all rows."""

    def __init__(
        self,
        family: Family,
        options: SequenceOptions,
        problems: int = PROBLEMS_PER_FOLD,
        executor: Executor = THIS_PROCESS,
    ) -> None:
        super().__init__(family, options, executor)
        self.solved = self._solved(problems)
        self._check()
        if options.start == "learned":
            self.starts = starts = self._starts()
            pairs = zip(self.solved, starts, strict=True)
            self.solved = [[one._replace(x0=start) for one in fold] for fold, start in pairs]

    def recipes(self) -> list[MetricRecipe]:
        options, problem = self.options, self.solved[-1][0].problem
        references = list(POINTS) if options.reference == "auto" else [options.reference]
        kinds = [options.metric]
        if options.metric == "auto":
            kinds = [basis_for(problem.n)]
            if 2 * problem.n**2 > OVERHEAD + problem.gradient_flops():  # a basis may cost too much
                kinds.append("diagonal")
        return [
            MetricRecipe(kind, reference)
            for kind in kinds
            for reference in (references[:1] if kind in ("none", "diagonal") else references)
        ]

    def metrics(self) -> list[Metric | None]:
        options = self.options
        kind = basis_for(self.n) if options.metric == "auto" else options.metric
        reference = "path" if options.reference == "auto" else options.reference
        spectra = self.spectra(kind, reference)
        return [metric_of(kind, spectrum, whitened(spectrum)) for spectrum in spectra]

    def spectra(self, metric: str, reference: str) -> list[Spectrum]:
        points = [[POINTS[reference](one) for one in fold] for fold in self.solved]
        return [SPECTRUM_KINDS[metric](fold, self.options.seed) for fold in points]

    def _starts(self) -> list[np.ndarray]:
        """Return the mean solution for each fold, shrunk as suits problems of the folds best."""
        means = [np.mean([one.end for one in fold], axis=0) for fold in self.solved]
        seeds = ([self.options.seed, START_STREAM, fold] for fold in range(self.folds))
        problems = [
            self.family.sample(seed, fold=Fold(i, self.folds)) for i, seed in enumerate(seeds)
        ]
        best = min(SHRINKAGES, key=lambda share: _distance(problems, means, share))
        return [best * mean for mean in means]

    def _solved(self, problems: int) -> list[list[SolvedProblem]]:
        outside = _Outside(self.family, self.options, self.folds)
        numbers = [[(fold, i) for i in range(problems)] for fold in range(self.folds + 1)]
        asked = [number for fold in numbers for number in fold]
        ends = dict(zip(asked, self.executor.map(_Outside.ends, outside, asked), strict=True))
        return [
            [SolvedProblem(outside.problem(*one), *ends[one]) for one in fold] for fold in numbers
        ]

    def _check(self) -> None:
        """Refuse problems of several sizes, and those that meet the tolerance at their start."""
        sizes = sorted({one.problem.n for fold in self.solved for one in fold})
        if len(sizes) > 1:
            raise InputError(f"The problems of a family must have one size; these have {sizes}.")
        if all(np.array_equal(one.x0, one.end) for one in self.solved[-1]):
            raise InputError(
                f"Problems of {self.family.name} meet the gradient norm {self.options.tol:g} where "
                f"they start: lower the tolerance."
            )


class _Outside(NamedTuple):
    """Problems of the rows outside a fold, or of all rows."""

    family: Family
    options: SequenceOptions
    folds: int

    def problem(self, fold: int, i: int) -> Problem:
        rows = None if fold == self.folds else Fold(fold, self.folds, others=True)
        return self.family.sample([self.options.seed, STREAM, fold, i], fold=rows)

    def ends(self, number: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return where a solve of a problem begins and where it ends."""
        problem = self.problem(*number)
        start = problem.start().x0
        result = solve_one("lbfgs", problem, start, self.options.tol)
        return np.asarray(start, dtype=np.float64), np.asarray(result.x, dtype=np.float64)


def _distance(problems: Sequence[Problem], means: Sequence[np.ndarray], share: float) -> float:
    """Return the mean log of the gradient norm, at each fold's start on a problem of it."""
    pairs = zip(problems, means, strict=False)  # the last mean is that of all rows
    norms = [np.linalg.norm(np.asarray(problem.gradient(share * mean))) for problem, mean in pairs]
    return float(np.mean(np.log(np.maximum(norms, 1e-300))))
