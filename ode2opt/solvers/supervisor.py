"""One supervisor for every solve: stages follow each other, and the last ones need no trust.

A stage goes on until the solve is over (Stop) or it gives up (HandOver): because its watch saw
something, or because it found no step. The next stage starts where the last one was lowest. After
all of them come rounds of turns: Nesterov's method with backtracking, which converges for every
convex function with a locally Lipschitz gradient, Newton's method, and L-BFGS, each with twice as
many calls from round to round (docs/mathematics.md, section 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NoReturn

from ode2opt.solvers.fallback import nesterov_backtracking
from ode2opt.solvers.lbfgs import NO_DECREASE, Corrections, lbfgs
from ode2opt.solvers.newton import newton
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import PROGRESS, Exhausted, HandOver, Here, Run, Stop
from ode2opt.solvers.watches import Stage, Stuck, Turn

PATIENCE = 300  # evaluations without progress that a stage without a watch of its own may make
FIRST_TURN = 150  # calls of a method's turn in the first round


def plain(run: Run, here: Here, memory: Corrections | None = None) -> None:
    """L-BFGS in no metric, with the corrections of an earlier run to ``here``, if any."""
    run.tell("L-BFGS")
    lbfgs(run, here, memory=memory)


def last(run: Run, here: Here) -> None:
    """Nesterov's method with backtracking."""
    run.tell("Nesterov's method with backtracking")
    nesterov_backtracking(run, here)


PLAIN, LAST = Stage("lbfgs", plain), Stage("nesterov", last)


def supervise(run: Run, here: Here, stages: Iterable[Stage]) -> NoReturn:
    """Run the stages from an evaluated point; leaves by Stop."""
    rounds = Rounds(run, here)
    following = chain(stages, rounds)
    stage = next(following)
    while True:
        run.watch, run.accept_non_finite = stage.watch or Stuck(PATIENCE), True
        rounds.anew &= not (stage is PLAIN and here is rounds.start)
        try:
            stage.go(run, here)
        except HandOver as end:
            rounds.moved |= not isinstance(end, Exhausted)
            if end.here is not None and not end.here.value > here.value:
                here = end.here
            stage = next(following)
            run.hand_over(end.reason, stage.name)


class Resumed:
    """A method whose turns go on where its last one ended."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.here: Here | None = None

    def __call__(self, run: Run, here: Here) -> None:
        """Go on from there, or begin at ``here``."""
        try:
            self.stage.go(run, self.here or here)
        except HandOver as end:
            self.here = end.here or self.here
            raise


class Rounds:
    """The stages after all others: each method has a turn, and turns get longer.

    A round in which no method finds a step that helps ends the solve.

    Attributes:
        moved: whether a method of this round could have gone on.
        anew: whether L-BFGS has not yet begun at the start: stages before may have led into a
            corner that it would not have come to.
    """

    def __init__(self, run: Run, start: Here) -> None:
        self.run, self.start = run, start
        self.moved, self.anew = False, True

    def __iter__(self) -> Iterator[Stage]:
        run, last, budget = self.run, Resumed(LAST), FIRST_TURN
        while True:
            began, self.moved = run.best_norm, False
            yield Stage(LAST.name, last, Turn(budget))
            if run.problem.has_hvp:
                yield Stage("newton", newton, Turn(budget))
            if self.moved and self.anew:
                yield Stage(PLAIN.name, self._from_start, Turn(2 * budget))
            yield Stage(PLAIN.name, plain, Turn(budget))
            if not (self.moved or run.best_norm < PROGRESS * began):
                raise Stop(Status.STALLED)
            budget *= 2

    def _from_start(self, run: Run, here: Here) -> None:
        plain(run, self.start)


def first_alone(run: Run, here: Here, stages: Iterable[Stage]) -> NoReturn:
    """Run the first stage only, unwatched; leaves by Stop, also where the stage gives up."""
    run.watch, run.accept_non_finite = None, True
    try:
        next(iter(stages)).go(run, here)
    except HandOver as end:
        no_step = end.reason == NO_DECREASE
        raise Stop(Status.LINE_SEARCH if no_step else Status.GAVE_UP) from None
    raise AssertionError("a stage returned without a status")
