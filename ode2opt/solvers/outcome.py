"""How a stage of a solve ends: why it stopped, and at which point the next one goes on."""

from __future__ import annotations

from typing import NamedTuple

from ode2opt.base.ended import Ended
from ode2opt.solvers.objective import Evaluated


class Outcome(NamedTuple):
    """The end of a stage: why, at which lowest point, and the number that the clause may tell.

    The point is None where only gradients were asked for.
    """

    ended: Ended
    point: Evaluated | None = None
    number: float = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether no step of this method helps any more, at this precision."""
        return self.ended in (Ended.LINE_SEARCH, Ended.STALLED)

    def __str__(self) -> str:
        return self.ended.clause.format(self.number)
