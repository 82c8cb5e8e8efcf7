"""What a memory knows of a family: its preconditioner and its mean solution; nothing is solved.

A memory has one preconditioner, made of all it has seen, so every fold is given the same one. The
memory may have seen the rows of this family. What it is worth is judged on held-out training
problems, as always.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.sequence.background import STREAM, Background, MetricRecipe, SolvedProblem
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.spectrum import Spectrum, spectrum_of
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory
from ode2opt.solvers.metric import Metric

SCALE_PROBLEMS = 6  # on which the metric's scale is taken


class Remembered(Background):
    """A memory in the place of solved problems; its mean solution stands for every solution."""

    fixed_metric = True

    def __init__(
        self,
        family: Family,
        options: SequenceOptions,
        memory: Memory,
        executor: Executor = THIS_PROCESS,
    ) -> None:
        super().__init__(family, options, executor)
        problems = [family.sample([options.seed, STREAM, i]) for i in range(SCALE_PROBLEMS)]
        *_, about = (memory.about(problem) for problem in problems)  # or one of them is refused
        method = memory.method()
        assert isinstance(method.start, np.ndarray)
        self._metric = method.metric
        if options.start == "learned" or 2 * sum(about.mean_was_better) > len(
            about.mean_was_better
        ):
            self.starts = [method.start] * (self.folds + 1)
        self.solved = [
            [SolvedProblem(one, self.start(one, self.folds), method.start) for one in problems]
        ] * (self.folds + 1)

    def recipes(self) -> list[MetricRecipe]:
        return [MetricRecipe("none" if self._metric is None else self._metric.kind, "memory")]

    def spectra(self, metric: str, reference: str) -> list[Spectrum]:
        return [spectrum_of(self._metric, self.n)] * (self.folds + 1)

    def metrics(self) -> list[Metric | None]:
        return [self._metric] * (self.folds + 1)


def snapshot(memory: Memory, options: SequenceOptions) -> Memory:
    """Return a copy of a memory as it is now."""
    if options.metric != "auto" or options.reference != "auto":
        raise InputError("The metric is the memory's: leave metric and reference out.")
    memory = copy(memory)
    memory.method()  # refused where nothing was learned
    return memory
