"""One supervisor for every solve: stages follow each other, and the last ones need no trust.

A stage returns an outcome when its watch ends it or when it finds no step; the solve itself is
over where the oracle raises Stop. The next stage starts at the lowest point so far. After all of
them come rounds of turns: Nesterov's method with backtracking, which converges for every convex
function with a locally Lipschitz gradient, Newton's method, and L-BFGS, each with twice as many
calls from round to round (docs/mathematics.md, section 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn

from ode2opt.base.ended import Ended
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import PROGRESS, Oracle, Outcome, Stop
from ode2opt.solvers.stages.lbfgs import Lbfgs
from ode2opt.solvers.stages.nesterov import Nesterov
from ode2opt.solvers.stages.newton import Newton
from ode2opt.solvers.stages.stage import Stage, not_stuck, turn


def supervise(oracle: Oracle, start: Evaluated, stages: Sequence[Stage]) -> NoReturn:
    """Run stages one after the other, then turns of the methods that need no trust.

    With a penalty the last stage is FISTA, which ends where rounding allows no step.
    """
    relay = Supervisor(oracle, start)
    for stage in stages:
        relay.run(stage)
    if not oracle.objective.smooth:
        raise Stop(Ended.STALLED)
    budget = Supervisor.first_turn
    while True:
        relay.round_of_turns(budget)
        budget *= 2


class Supervisor:
    """Who runs, from where, and how the last stage ended.

    Attributes:
        start: where the solve began.
        point: the lowest evaluated point that a stage has ended at.
        last: how the last stage ended; None before the first.
        plain_from_start: whether plain L-BFGS has begun at the start. The stages before may have
            led into a corner that it would not have come to.
    """

    first_turn: ClassVar[float] = 150
    """Calls of a method's turn in the first round."""
    patience: ClassVar[float] = 300
    """Calls before a stage without a watch of its own is asked for progress."""

    def __init__(self, oracle: Oracle, start: Evaluated) -> None:
        self.oracle, self.start, self.point = oracle, start, start
        self.last: Outcome | None = None
        self.plain_from_start = False
        self._nesterov_at: Evaluated | None = None

    def run(self, stage: Stage, begin: Evaluated | None = None) -> Outcome:
        """Run a stage from the lowest point, or from ``begin``, and keep its point if lower."""
        oracle = self.oracle
        if self.last is not None:
            oracle.hand_over(self.last, stage.name)
        oracle.watch, oracle.accept_non_finite = stage.watch or not_stuck(self.patience), True
        if begin is None and self.point is self.start:
            self.plain_from_start |= isinstance(stage, Lbfgs)
        self.last = outcome = stage.run(oracle, begin or self.point)
        if outcome.point is not None and outcome.point.value <= self.point.value:
            self.point = outcome.point
        return outcome

    def round_of_turns(self, calls: float) -> None:
        """Give each method a turn; a round in which none finds a step that helps ends the solve.

        Nesterov's method goes on where its last turn ended.
        """
        oracle, norm = self.oracle, self.oracle.best_norm
        outcomes = [self.run(Nesterov(turn(calls)), self._nesterov_at)]
        self._nesterov_at = outcomes[0].point
        if Newton.needs <= oracle.objective.provides:
            outcomes.append(self.run(Newton(oracle.costs, turn(calls))))
        if not self.plain_from_start and not all(one.exhausted for one in outcomes):
            outcomes.append(self.run(Lbfgs(turn(2 * calls)), self.start))
        outcomes.append(self.run(Lbfgs(turn(calls))))
        if all(one.exhausted for one in outcomes) and oracle.best_norm >= PROGRESS * norm:
            raise Stop(Ended.STALLED)


def first_alone(oracle: Oracle, start: Evaluated, stages: Sequence[Stage]) -> NoReturn:
    """Run the first stage only, unwatched; where it gives up the solve is over."""
    oracle.watch, oracle.accept_non_finite = None, True
    outcome = stages[0].run(oracle, start)
    raise Stop(Ended.LINE_SEARCH if outcome.ended is Ended.LINE_SEARCH else Ended.GAVE_UP)
