"""Training problems that neither a step nor a validation has seen: what is chosen last, on these.

A problem of a fold is solved by the method that was made from the other folds; where there are such
problems, no others are taken, because a metric that knows a problem's rows flatters every table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ode2opt.learning.comparison import RIVALS, ProblemSet, solved, summary
from ode2opt.learning.protocol import VALIDATION
from ode2opt.learning.sequence.background import Background
from ode2opt.learning.sequence.handing_over import overhead_of
from ode2opt.solvers import Method, Result

FRESH = 3  # times the problems of a validation

Folded = Sequence[Method]
"""A method for each fold, and last that for all rows."""


class HeldOut:
    """The problems, their start points and folds, and how plain L-BFGS solves them."""

    def __init__(self, known: Background) -> None:
        numbers = _numbers(known)
        self.folds = [known.fold(VALIDATION, i) for i in numbers]
        self.problems = [known.problem(VALIDATION, i) for i in numbers]
        pairs = zip(self.problems, self.folds, strict=True)
        self.starts = [known.start(problem, fold) for problem, fold in pairs]
        self._subjects = ProblemSet(self.problems, self.starts, known.options.tol)
        self._helpers = known.helpers
        self.rivals = self._solved({name: [rival] * len(numbers) for name, rival in RIVALS.items()})

    def solved(self, method: Folded) -> list[Result]:
        """Solve each problem by the method of its fold."""
        return self._solved({"": [method[fold] for fold in self.folds]})[""]

    def _solved(self, methods: Mapping[str, Sequence[str | Method]]) -> dict[str, list[Result]]:
        return solved(methods, self._subjects, self._helpers)

    def beside(self, found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
        """Return what solves took, beside the rivals."""
        return summary(dict(found) | self.rivals)

    @property
    def overhead(self) -> float:
        """What an evaluation by L-BFGS costs here beside an iteration of a table."""
        return overhead_of(self.problems[0])


def _numbers(known: Background) -> list[int]:
    """Return the numbers of the problems: those of folds, unless there are none."""
    seen, blocks = known.options.validation, known.options.blocks
    first, step = (seen + 1 - seen % 2, 2) if blocks else (seen, 1)
    return [first + step * i for i in range(FRESH * seen)]
