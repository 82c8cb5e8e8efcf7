"""The training loop: restarts where there are some, then StoPM's steps, validated and kept."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic

import numpy as np

from ode2opt.dynamics.jaxed import double
from ode2opt.errors import InputError, Ode2OptError, WorkersLostError
from ode2opt.learning.ahead import Ahead
from ode2opt.learning.helpers import Helpers
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import TEST, One, TrainingPlan, Tree
from ode2opt.learning.run import NOTHING_FOLLOWED, TESTED, Callback, LearningRun, Note, TrainingStep
from ode2opt.learning.run_directory import Position
from ode2opt.learning.stage import TrainingStage
from ode2opt.learning.stopm import Batch, TrainingState
from ode2opt.learning.tensorboard import TensorBoard
from ode2opt.learning.validation import Validation, Validator
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

CERTIFIED = 5  # held-out problems for the certificate
REJECTED = 1.2  # in best complexities: from there training goes back to the best point
NOT_CONVEX = -1e-4
LARGEST_PENALTY = 1e6

Planner = Callable[[Family, Any, Memory | None, Note, Helpers], TrainingPlan[Tree, One]]


class Training(LearningRun[Options], Generic[Tree, One]):
    """A run of StoPM, from its start or from its last checkpoint.

    It has stages: one for each restart, with a share of the steps, and the one that goes on with
    the best of them to the end. A stage has its target, its StoPM and its validator; all of them
    are logged, shown, checkpointed and resumed alike.
    """

    def __init__(
        self,
        family: Family,
        options: Options,
        out: str | Path | None,
        resume: bool,
        note: Note,
        memory: Memory | None,
        helpers: Helpers,
        planner: Planner[Tree, One],
    ) -> None:
        self._planner = planner
        self._ahead: dict[int, Ahead] = {}
        self.warned = False
        super().__init__(family, options, out, resume, note, memory, helpers)

    @double
    def _set_up(self, memory: Memory | None) -> None:
        self.plan = self._planner(self.family, self.options, memory, self.note, self.helpers)
        self.steps = self.plan.beginning + self.options.steps
        if self.going_on:
            assert self.directory is not None
            self.position, (parameters, moments, self.best) = self.directory.load(self._like)
            self.state = TrainingState(parameters, moments, self.position.penalty)
        else:
            self.position = Position(penalty=self.options.penalty)
            self._enter(self.position)
            self.state = self.stopm.start
            self.best = self.state.parameters
        self._began -= self.position.seconds
        self._settle()

    def _like(self, position: Position) -> tuple[Any, Any, Any]:
        """Return a tree like that of a position, whose stage is entered."""
        self._enter(position)
        start = self.stopm.start
        return start.parameters, start.memory, start.parameters

    def _enter(self, position: Position) -> None:
        """Make ready the stage of a position."""
        prices, restarts = position.prices, self.plan.restarts
        if len(prices) > len(restarts):
            raise InputError("it has more restarts than there are")
        number = len(prices)
        if number < len(restarts):
            self.note(f"beginning {number + 1} of {len(restarts)}: {restarts[number].words}")
            ahead = self._ahead.get(number)
            self.stage = ahead.next() if ahead else self._stage(number, self.plan.warm_up)
        else:
            self.stage = self._stage(int(np.argmin(prices)) if prices else 0, self.options.steps)
        self.target, self.stopm = self.stage.target, self.stage.stopm
        self.validator = self.stage.validator

    @double
    def _stage(self, number: int, steps: int) -> TrainingStage[Tree, One]:
        options = replace(self.options, steps=steps)
        return TrainingStage(self.plan.target(number), options, self.helpers)

    def _look_ahead(self, number: int) -> None:
        """Where others do the work, begin the restarts after this one too."""
        later = range(number + 1, len(self.plan.restarts)) if self.helpers.elsewhere else ()
        for one in later:
            if one not in self._ahead:
                self._ahead[one] = Ahead(self._restarted(one))

    def _restarted(self, number: int) -> Iterator[Any]:
        """Yield the stage of a restart, then what its steps find."""
        stage = self._stage(number, self.plan.warm_up)
        yield stage
        state = stage.stopm.start
        for k in range(self.plan.warm_up):
            state, batch = stage.step(state, k)
            yield state, batch

    @property
    def _restart(self) -> int | None:
        """The number of the restart that is under way, None in the last stage."""
        number = len(self.position.prices)
        return number if number < len(self.plan.restarts) else None

    def _run(self, callback: Callback | None) -> Method:
        """Train to the end, Ctrl-C, or the callback's word; returns the best method."""
        board = TensorBoard(self.directory, self.position.done)
        try:
            for step in self._all_steps():
                board.add(step.line, step.done)
                if callback is not None and callback(step):
                    break
            else:
                method = self._finish()
                board.add_method(method, self.position.done)
                return method
            self._checkpoint()
            return self._so_far()
        except (KeyboardInterrupt, WorkersLostError):
            self._checkpoint()
            raise
        finally:
            for ahead in self._ahead.values():
                ahead.close()
            board.close()

    def _all_steps(self) -> Iterator[TrainingStep]:
        """Take step after step of all stages that are left."""
        while self._restart is not None:
            self._look_ahead(self._restart)
            while self.position.step < self.plan.warm_up:
                yield self._step()
            self._next_stage(self._restart)
        if self.position.best is None:
            self._first_validation()
        while self.position.step < self.options.steps and not self.position.over:
            yield self._step()

    @double
    def _next_stage(self, number: int) -> None:
        """Judge a restart on held-out problems; after the last go on from the best of them."""
        learned, prices = self.stopm.learned(self.state), self.position.prices
        price = self.plan.restarts[number].price(learned, self.validator.solved(learned))
        if not prices or price < min(prices):
            self.best = self.state.parameters
        position = replace(self.position, step=0, prices=(*prices, price))
        self._enter(position)
        self.position = position
        self.state = self.stopm.start
        if self._restart is None:
            self.state = self.stopm.start_from(self.best)
            self._keep_choice()
        self._settle()
        self._checkpoint()

    def _keep_choice(self) -> None:
        """Tell which restart was chosen, and what each of them cost."""
        about, prices = [one.about for one in self.plan.restarts], self.position.prices
        tried = [{**one, "price": price} for one, price in zip(about, prices, strict=True)]
        if self.directory is not None:
            chosen = about[int(np.argmin(prices))]
            self.directory.save_choice({"chosen": list(chosen.values()), "tried": tried})

    def _first_validation(self) -> None:
        """Judge the coefficients at the start; a family that cannot be learned is told here."""
        validation = self.validator(self.state)
        if not (validation.flows if self.target.strict else validation.reached):
            raise Ode2OptError(
                f"No {self.options.target} of {validation.total} held-out problems of "
                f"{self.family.name} reaches the gradient norm {self.options.tol:g} within "
                f"{self.options.horizon} iterations: "
                f"raise the tolerance or the horizon, or add l2 to the problem."
            )
        self._judge(validation)
        self._settle()
        self._checkpoint()

    def _step(self) -> TrainingStep:
        """Update the parameters once; validate and checkpoint where it is time."""
        options, k = self.options, self.position.step
        penalty, restart, validation = self.state.penalty, self._restart, None
        ahead = None if restart is None else self._ahead.get(restart)
        self.state, batch = ahead.next() if ahead else self.stage.step(self.state, k)
        self._warn_once(batch, self.stage.numbers(k))
        last = options.steps if restart is None else self.plan.warm_up
        due = (k + 1) % options.validate_every == 0 or k + 1 == last
        if due and restart is None:
            validation = self.validator(self.state)
            self._judge(validation)
        seconds = time.perf_counter() - self._began
        line = {
            "step": k, "stopping_time": batch.stopping_time, "P": batch.P, "Q": batch.Q,
            "loss": batch.loss, "validation": validation and validation.complexity,
            "feasible": validation and validation.feasible, "reached": batch.reached,
            "failed": batch.failed, "penalty": penalty, "seconds": round(seconds, 3),
        } | ({} if restart is None else {"restart": restart + 1})  # fmt: skip
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        done = self.position.done + 1
        self.position = replace(
            self.position, step=k + 1, done=done, seconds=seconds, metrics_bytes=length
        )
        self._settle()
        if due:
            self._checkpoint()
        return TrainingStep(line, validation, self._best_complexity, done, self.steps)

    def _judge(self, validation: Validation) -> None:
        """Keep the best point: feasible before infeasible, then the least complexity."""
        old, new = self.position, validation
        before = (False, -math.inf)
        if old.best is not None:
            before = (old.best["feasible"], -old.best["complexity"])
        better = (new.feasible, -new.complexity) > before
        growth = 1.0 if new.feasible else self.options.penalty_growth
        penalty = min(self.state.penalty * growth, LARGEST_PENALTY)
        self.state = self.state._replace(penalty=penalty)
        stale = 0 if better else old.stale + 1
        self.position = replace(
            old, penalty=penalty, stale=stale, over=stale >= self.options.patience
        )
        if not self.target.strict and new.complexity > REJECTED * (
            self._best_complexity or math.inf
        ):
            self.state = self.state._replace(parameters=self.best)
        if better:
            self.best = self.state.parameters
            self.position = replace(self.position, best=new.statistics())
            if self.directory is not None:
                self.directory.keep(self._so_far())

    def _warn_once(self, batch: Batch, numbers: range) -> None:
        for number, turn in zip(numbers, batch.turns, strict=True):
            if turn < NOT_CONVEX and not self.warned:
                self.warned = True
                warnings.warn(
                    f"Training problem {number} of {self.family.name}, seed {self.options.seed}, "
                    f"is not convex: its gradient turns against a step (cosine {turn:.2g}); "
                    f"what is learned may not hold.",
                    stacklevel=2,
                )

    @property
    def _best_complexity(self) -> float | None:
        return None if self.position.best is None else self.position.best["complexity"]

    def _settle(self) -> None:
        """Note that a step is whole: an interruption inside the next one goes back to here."""
        self.settled = (self.position, (self.state.parameters, self.state.memory, self.best))

    def _checkpoint(self) -> None:
        if self.directory is not None:
            self.directory.save(*self.settled)

    def _so_far(self) -> Method:
        """Return the best point as a method, without certificate and test statistics.

        Among restarts nothing is validated yet: it is where training is.
        """
        found, state = self.position.best, self.state._replace(parameters=self.best)
        if found is None:
            state = self.state
            found = self.validator(state).statistics()
        return self.target.method(self.stopm.learned(state), found["worst"]).replace(
            provenance=self.config | {"finished": False}, statistics={"validation": found}
        )

    def _finish(self) -> Method:
        """Certify the best point and measure it on fresh test problems."""
        held_out, best = self.validator, self.state._replace(parameters=self.best)
        learned = self.stopm.learned(best)
        method = self.target.polished(learned, self._so_far())
        certificate = self.target.certificate(learned, method, *held_out.drawn(CERTIFIED))
        fresh = Validator(self.stage.pieces, TEST, TESTED, helpers=self.helpers)
        problems, instances = fresh.drawn()
        starts = [np.asarray(one.x0) for one in instances]
        violations = NOTHING_FOLLOWED if method.instant else fresh.followed(best)
        method = self._measured(method, self.target.rivals(method), problems, starts, violations)
        return self._finished(method, certificate)
