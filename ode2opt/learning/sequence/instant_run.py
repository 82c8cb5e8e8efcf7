"""A run of no steps: the family's instant method, in seconds."""

from __future__ import annotations

from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.protocol import TEST
from ode2opt.learning.run import TEST_PROBLEMS, LearningRun, TrainingCallback
from ode2opt.learning.run_directory import Position
from ode2opt.learning.sequence.background import READ
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import no_table
from ode2opt.learning.sequence.instant import instant
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.restarts import background_of
from ode2opt.learning.validation import statistics
from ode2opt.solvers import Memory, Method


class InstantRun(LearningRun[SequenceOptions]):
    """Makes the instant method of a family, and measures it as training measures a table."""

    kind = "an instant method (steps=0), which trains nothing"
    reads = READ | {"steps"}

    def _set_up(self, memory: Memory | None) -> None:
        self.position = Position()
        self.background = background_of(self.family, self.options, memory, self.log, self.executor)

    def _run(self, callback: TrainingCallback | None) -> Method:
        """Make the method; there are no steps, so the callback is not called."""
        background, held_out = self.background, HeldOut(self.background)
        found = instant(background, held_out)
        seen = {
            "validation": statistics(found.results),
            "held_out": held_out.compared({"method": found.results}),
        }
        problems = [background.problem(TEST, i) for i in range(TEST_PROBLEMS)]
        starts = [background.start(problem, background.folds) for problem in problems]
        method = self._with_test_results(
            found.method.replace(statistics=seen), BASELINES, problems, starts
        )
        certificate = no_table(method)
        return self._finished(method, certificate.summary() | {"verdict": certificate.words()})
