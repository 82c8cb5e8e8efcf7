"""The training loop: restarts where there are some, then the steps of StoPM with validation."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic

import numpy as np

from ode2opt.base.errors import InputError, Ode2OptError, WorkersLostError
from ode2opt.base.precision import double
from ode2opt.executor import Executor
from ode2opt.learning.options import Options
from ode2opt.learning.prefetch import Prefetch
from ode2opt.learning.protocol import TEST, InstanceT, TrainingPlan, Tree
from ode2opt.learning.run import (
    NO_VIOLATIONS,
    TEST_PROBLEMS,
    LearningRun,
    Log,
    TrainingCallback,
    TrainingStep,
)
from ode2opt.learning.run_directory import Position
from ode2opt.learning.stage import TrainingStage
from ode2opt.learning.tensorboard import TensorBoard
from ode2opt.learning.validation import Validation, Validator
from ode2opt.paper.stopm import Batch, TrainingState
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

CERTIFIED_PROBLEMS = 5  # held-out ones
REJECT_RATIO = 1.2  # times the best complexity: beyond it training goes back to the best point
NOT_CONVEX = -1e-4  # a cosine below this cannot be rounding
LARGEST_PENALTY = 1e6

Planner = Callable[[Family, Any, Memory | None, Log, Executor], TrainingPlan[Tree, InstanceT]]


class Training(LearningRun[Options], Generic[Tree, InstanceT]):
    """A run of StoPM, from its start or from its last checkpoint.

    It has stages: one for each restart, with a share of the steps, and a last one that continues
    the best of them to the end. Each stage has a target, a StoPM and a validator; all stages are
    logged, shown, checkpointed and resumed alike.
    """

    def __init__(
        self,
        family: Family,
        options: Options,
        out: str | Path | None,
        resume: bool,
        log: Log,
        memory: Memory | None,
        executor: Executor,
        planner: Planner[Tree, InstanceT],
    ) -> None:
        self._planner = planner
        self._prefetched: dict[int, Prefetch] = {}
        self.warned = False
        super().__init__(family, options, out, resume, log, memory, executor)

    @double
    def _set_up(self, memory: Memory | None) -> None:
        self.plan = self._planner(self.family, self.options, memory, self.log, self.executor)
        self.steps = self.plan.beginning + self.options.steps
        if self.resuming:
            assert self.directory is not None
            self.position, (parameters, moments, self.best) = self.directory.load(
                self._checkpoint_template
            )
            self.state = TrainingState(parameters, moments, self.position.penalty)
        else:
            self.position = Position(penalty=self.options.penalty)
            self._enter(self.position)
            self.state = self.stopm.start
            self.best = self.state.parameters
        self._began -= self.position.seconds
        self._commit_step()

    def _checkpoint_template(self, position: Position) -> tuple[Any, Any, Any]:
        """Enter the stage of a position; return a tree like the one that its checkpoint holds."""
        self._enter(position)
        start = self.stopm.start
        return start.parameters, start.memory, start.parameters

    def _enter(self, position: Position) -> None:
        """Prepare the stage of a position."""
        prices, restarts = position.prices, self.plan.restarts
        if len(prices) > len(restarts):
            raise InputError("it has more restarts than there are")
        number = len(prices)
        if number < len(restarts):
            self.log(f"beginning {number + 1} of {len(restarts)}: {restarts[number].words}")
            prefetched = self._prefetched.get(number)
            self.stage = prefetched.next() if prefetched else self._stage(number, self.plan.warm_up)
        else:
            self.stage = self._stage(int(np.argmin(prices)) if prices else 0, self.options.steps)
        self.target, self.stopm = self.stage.target, self.stage.stopm
        self.validator = self.stage.validator

    @double
    def _stage(self, number: int, steps: int) -> TrainingStage[Tree, InstanceT]:
        options = replace(self.options, steps=steps)
        return TrainingStage(self.plan.target(number), options, self.executor)

    def _prefetch_restarts(self, number: int) -> None:
        """On a cluster, start the restarts after this one in the background."""
        later = range(number + 1, len(self.plan.restarts)) if self.executor.remote else ()
        for one in later:
            if one not in self._prefetched:
                self._prefetched[one] = Prefetch(self._restarted(one))

    def _restarted(self, number: int) -> Iterator[Any]:
        """Yield the stage of a restart, then the state and the batch of each of its steps."""
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

    def _run(self, callback: TrainingCallback | None) -> Method:
        """Train to the end, or until the callback returns true; return the best method."""
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
            return self._best_method()
        except (KeyboardInterrupt, WorkersLostError):
            self._checkpoint()
            raise
        finally:
            for prefetched in self._prefetched.values():
                prefetched.close()
            board.close()

    def _all_steps(self) -> Iterator[TrainingStep]:
        """Take the steps of all stages that are left."""
        while self._restart is not None:
            self._prefetch_restarts(self._restart)
            while self.position.step < self.plan.warm_up:
                yield self._step()
            self._next_stage(self._restart)
        if self.position.best is None:
            self._first_validation()
        while self.position.step < self.options.steps and not self.position.over:
            yield self._step()

    @double
    def _next_stage(self, number: int) -> None:
        """Judge a restart on held-out problems, then enter the next stage."""
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
            self._save_choice()
        self._commit_step()
        self._checkpoint()

    def _save_choice(self) -> None:
        """Write which restart was chosen, and the cost of each."""
        about, prices = [one.about for one in self.plan.restarts], self.position.prices
        tried = [{**one, "price": price} for one, price in zip(about, prices, strict=True)]
        if self.directory is not None:
            chosen = about[int(np.argmin(prices))]
            self.directory.save_choice({"chosen": list(chosen.values()), "tried": tried})

    def _first_validation(self) -> None:
        """Validate the start; refuse a family on which not one problem reaches the tolerance."""
        validation = self.validator(self.state)
        if not (validation.flows if self.target.strict else validation.reached):
            raise Ode2OptError(
                f"No {self.options.target} of {validation.total} held-out problems of "
                f"{self.family.name} reaches the gradient norm {self.options.tol:g} within "
                f"{self.options.horizon} iterations: "
                f"raise the tolerance or the horizon, or add l2 to the problem, and train anew "
                f"(there is nothing to resume)."
            )
        self._judge(validation)
        self._commit_step()
        self._checkpoint()

    def _step(self) -> TrainingStep:
        """Update the parameters once; validate and write a checkpoint where these are due."""
        options, k = self.options, self.position.step
        penalty, restart, validation = self.state.penalty, self._restart, None
        last = options.steps if restart is None else self.plan.warm_up
        due = (k + 1) % options.validate_every == 0 or k + 1 == last
        mesh = self.target.mesh(self.stopm.learned(self.state)) if due or k == 0 else {}
        prefetched = None if restart is None else self._prefetched.get(restart)
        self.state, batch = prefetched.next() if prefetched else self.stage.step(self.state, k)
        self._warn_once(batch, self.stage.numbers(k))
        if due and restart is None:
            validation = self.validator(self.state)
            self._judge(validation)
        seconds = time.perf_counter() - self._began
        line = {
            "step": k, "stopping_time": batch.stopping_time, "P": batch.P, "Q": batch.Q,
            "loss": batch.loss, "validation": validation and validation.complexity,
            "feasible": validation and validation.feasible, "reached": batch.reached,
            "failed": batch.failed, "penalty": penalty, "seconds": round(seconds, 3),
        } | mesh | ({} if restart is None else {"restart": restart + 1})  # fmt: skip
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        done = self.position.done + 1
        self.position = replace(
            self.position, step=k + 1, done=done, seconds=seconds, metrics_bytes=length
        )
        self._commit_step()
        if due:
            self._checkpoint()
        return TrainingStep(line, validation, self._best_complexity, done, self.steps)

    def _judge(self, validation: Validation) -> None:
        """Keep the best point: feasible before infeasible, then the lowest complexity."""
        old, new = self.position, validation
        before = (False, -math.inf)
        if old.best is not None:
            before = (old.best["feasible"], -old.best["complexity"])
        better = self.options.keep == "last" or (new.feasible, -new.complexity) > before
        growth = 1.0 if new.feasible else self.options.penalty_growth
        penalty = min(self.state.penalty * growth, LARGEST_PENALTY)
        self.state = self.state._replace(penalty=penalty)
        stale = 0 if better else old.stale + 1
        self.position = replace(
            old, penalty=penalty, stale=stale, over=stale >= self.options.patience
        )
        if not self.target.strict and new.complexity > REJECT_RATIO * (
            self._best_complexity or math.inf
        ):
            self.state = self.state._replace(parameters=self.best)
        if better:
            self.best = self.state.parameters
            self.position = replace(self.position, best=new.statistics())
            if self.directory is not None:
                self.directory.save_method(self._best_method())

    def _warn_once(self, batch: Batch, numbers: range) -> None:
        for number, cosine in zip(numbers, batch.min_cosines, strict=True):
            if cosine < NOT_CONVEX and not self.warned:
                self.warned = True
                warnings.warn(
                    f"Training problem {number} of {self.family.name}, seed {self.options.seed}, "
                    f"is not convex: its gradient turns against a step (cosine {cosine:.2g}); "
                    f"what is learned may not hold.",
                    stacklevel=2,
                )

    @property
    def _best_complexity(self) -> float | None:
        return None if self.position.best is None else self.position.best["complexity"]

    def _commit_step(self) -> None:
        """Mark a step as complete: an interruption inside the next one goes back to here."""
        self.committed = (self.position, (self.state.parameters, self.state.memory, self.best))

    def _checkpoint(self) -> None:
        if self.directory is not None:
            self.directory.save(*self.committed)

    def _best_method(self) -> Method:
        """Return the best point as a method, without certificate and test statistics.

        During restarts nothing is validated yet: the present point is taken.
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
        method = self.target.finalized(learned, self._best_method())
        certificate = self.target.certificate(learned, method, *held_out.drawn(CERTIFIED_PROBLEMS))
        fresh = Validator(self.stage.tasks, TEST, TEST_PROBLEMS, executor=self.executor)
        problems, instances = fresh.drawn()
        starts = [np.asarray(one.x0) for one in instances]
        violations = NO_VIOLATIONS if method.instant else fresh.follow(best)
        method = self._with_test_results(
            method, self.target.baselines(method), problems, starts, violations
        )
        return self._finished(method, certificate)
