"""What a stage of a solve is: one method that goes on from a point until it is done or gives up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Watch
from ode2opt.solvers.outcome import Outcome


class Stage(ABC):
    """One method in the plan of a solve.

    A new one is a subclass with a ``name`` and a method ``run``, and a line in
    :func:`ode2opt.solvers.plan.plan`.

    Attributes:
        name: in a handover, such as "lbfgs".
        needs: what it asks of a problem beyond value and gradient, as ``Problem.provides`` says.
        watch: ends the stage before the solve is over; None for one that only has to progress.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, watch: Watch | None = None) -> None:
        self.watch = watch

    @abstractmethod
    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Go on from an evaluated point."""
