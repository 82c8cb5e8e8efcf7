"""A run of no steps: the family's instant method, in seconds."""

from __future__ import annotations

from ode2opt.learning.comparison import RIVALS
from ode2opt.learning.protocol import TEST
from ode2opt.learning.run import TESTED, Callback, LearningRun
from ode2opt.learning.run_directory import Position
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import no_table
from ode2opt.learning.sequence.instant import instant
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.restarts import known_of
from ode2opt.learning.validation import statistics
from ode2opt.solvers import Memory, Method


class InstantRun(LearningRun[SequenceOptions]):
    """Makes the instant method, and measures it as training would."""

    def _set_up(self, memory: Memory | None) -> None:
        self.position = Position()
        self.known = known_of(self.family, self.options, memory, self.note, self.helpers)

    def _run(self, callback: Callback | None) -> Method:
        """Make the method; there is no step, so nothing is called."""
        known, held_out = self.known, HeldOut(self.known)
        found = instant(known, held_out)
        seen = {
            "validation": statistics(found.results),
            "held_out": held_out.beside({"method": found.results}),
        }
        problems = [known.problem(TEST, i) for i in range(TESTED)]
        starts = [known.start(problem, known.folds) for problem in problems]
        method = self._measured(found.method.replace(statistics=seen), RIVALS, problems, starts)
        certificate = no_table(method)
        return self._finished(method, certificate.summary() | {"verdict": certificate.words()})
