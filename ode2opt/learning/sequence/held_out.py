"""Training problems that no step and no validation has seen, for what is chosen last.

A problem of a fold is solved by the method that was made from the other folds. Where there are such
problems, no others are taken: a preconditioner that knows a problem's rows flatters every table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ode2opt.learning.comparison import BASELINES, ProblemSet, solve_all_by, summary
from ode2opt.learning.protocol import VALIDATION
from ode2opt.learning.sequence.background import Background
from ode2opt.learning.sequence.handing_over import overhead_of
from ode2opt.solvers import Method, Result

FRESH_FACTOR = 3  # times as many as a validation has

Folded = Sequence[Method]
"""A method for each fold, and last that for all rows."""


class HeldOut:
    """The problems, their start points and folds, and how the baselines solve them."""

    def __init__(self, background: Background, numbers: Sequence[int] | None = None) -> None:
        numbers = _numbers(background) if numbers is None else numbers
        self.folds = [background.fold(VALIDATION, i) for i in numbers]
        self.problems = [background.problem(VALIDATION, i) for i in numbers]
        pairs = zip(self.problems, self.folds, strict=True)
        self.starts = [background.start(problem, fold) for problem, fold in pairs]
        self._subjects = ProblemSet(self.problems, self.starts, background.options.tol)
        self._executor = background.executor

    @cached_property
    def baselines(self) -> dict[str, list[Result]]:
        """How the baselines solve the problems."""
        return self._solved(
            {name: [baseline] * len(self.problems) for name, baseline in BASELINES.items()}
        )

    def solved(self, method: Folded) -> list[Result]:
        """Solve each problem by the method of its fold."""
        return self._solved({"": [method[fold] for fold in self.folds]})[""]

    def _solved(self, methods: Mapping[str, Sequence[str | Method]]) -> dict[str, list[Result]]:
        return solve_all_by(methods, self._subjects, self._executor)

    def compared(self, found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
        """Return what solves needed, beside the baselines, as a method file stores it."""
        return summary(dict(found) | self.baselines)

    @property
    def overhead(self) -> float:
        """What an evaluation by L-BFGS costs more than an iteration of a table, in the latter."""
        return overhead_of(self.problems[0])


def _numbers(background: Background) -> list[int]:
    """Return the numbers of the problems in their stream: those of folds, unless there are none."""
    seen, blocks = background.options.validation, background.options.blocks
    first, step = (seen + 1 - seen % 2, 2) if blocks else (seen, 1)
    return [first + step * i for i in range(FRESH_FACTOR * seen)]
