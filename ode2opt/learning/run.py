"""The one run: restarts where there are some, then steps with validation; what it keeps and writes.

What it trains is a ``TrainingStage``: StoPM, a certified table, one with a prox, or nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, WorkersLostError
from ode2opt.base.precision import double
from ode2opt.base.threads import one_thread
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning import comparison
from ode2opt.learning.config import configuration
from ode2opt.learning.history import TrainingHistory
from ode2opt.learning.options import Options, check_read
from ode2opt.learning.prefetch import Prefetch
from ode2opt.learning.protocol import Finished, Planner, TrainingStage
from ode2opt.learning.run_directory import Position, RunDirectory
from ode2opt.learning.tensorboard import TensorBoard
from ode2opt.learning.validation import Validation, statistics
from ode2opt.paper.stopm import Batch, TrainingState
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method

REPEATS = 3  # solves of each test problem; the fastest counts
NOT_CONVEX = -1e-4  # a cosine below this cannot be rounding
LARGEST_PENALTY = 1e6

Log = Callable[[str], None]


@dataclass(frozen=True)
class TrainingStep:
    """What a callback sees after each step; a true return value ends training.

    Attributes:
        line: the step's line of metrics.jsonl; during a restart it has the restart's number.
        validation: what was found on held-out problems, None where this step had no validation.
        best: the best complexity so far, None before the first validation.
        done: the steps so far, those of restarts included.
        steps: how many steps there will be at most.
    """

    line: dict[str, Any]
    validation: Validation | None
    best: float | None
    done: int
    steps: int


TrainingCallback = Callable[[TrainingStep], object]


class Training:
    """One run, from its start or from its last checkpoint, in a folder of its own or in none.

    It has stages: one for each restart, with a share of the steps, and a last one that continues
    the best of them to the end. All are logged, shown, checkpointed and resumed alike.

    Attributes:
        position: how far it is.
        steps: how many steps it has at most, those of restarts included.
        stage: what is trained now.
        state: its parameters and the memory of its optimiser.
        best: the best parameters so far.
    """

    def __init__(
        self,
        family: Family,
        options: Options,
        out: str | Path | None,
        resume: bool,
        log: Log,
        memory: Memory | None = None,
        executor: Executor = THIS_PROCESS,
        *,
        planner: Planner,
    ) -> None:
        if resume and out is None:
            raise InputError("To resume, name the run's folder: out.")
        check_read(options, planner.reads, planner.kind)
        self._began = time.perf_counter()  # earlier, for a run that is resumed
        self.family, self.options, self.log = family, options, log
        self.executor, self._planner = executor, planner
        self._prefetched: dict[int, Prefetch] = {}
        self.warned = False
        self.lines: list[dict[str, Any]] = []
        self.directory = None if out is None else RunDirectory(out)
        self.config = configuration(family, options, memory, planner.own)
        self.resuming = False  # from a checkpoint
        if self.directory is not None and resume:
            self.resuming = self.directory.reopen(self.config)
        elif self.directory is not None:
            self.directory.create(self.config)
        with one_thread(), self._setting_up(resume):
            self._set_up(memory)

    @contextmanager
    def _setting_up(self, resume: bool) -> Iterator[None]:
        """Release the folder if the set-up fails; of a new run, remove it."""
        try:
            yield
        except BaseException:
            if self.directory is not None and not resume:
                self.directory.abandon()
            elif self.directory is not None:
                self.directory.release()
            raise

    @double
    def _set_up(self, memory: Memory | None) -> None:
        begin = self._planner.plan
        self.plan = begin(self.family, self.options, memory, self.log, self.executor)
        self.steps = self.plan.beginning + self.options.steps
        if self.resuming:
            assert self.directory is not None
            loaded = self.directory.load(self._checkpoint_template)
            self.position, (parameters, moments, self.best) = loaded
            self.state = TrainingState(parameters, moments, self.position.penalty)
            self.lines = self.directory.lines()
            self.stage.resumed(self._best_state)
        else:
            self._enter(Position())
            self.state = self.stage.start
            self.position = Position(penalty=self.state.penalty)
            self.best = self.state.parameters
        self._began -= self.position.seconds
        self._commit_step()

    def _checkpoint_template(self, position: Position) -> tuple[Any, Any, Any]:
        """Enter the stage of a position; return a tree like the one that its checkpoint holds."""
        self._enter(position)
        start = self.stage.start
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
            self.stage: TrainingStage = (
                prefetched.next() if prefetched else self._stage(number, self.plan.warm_up)
            )
        else:
            self.stage = self._stage(int(np.argmin(prices)) if prices else 0, self.options.steps)

    @double
    def _stage(self, number: int, steps: int) -> TrainingStage:
        """Return a stage, made in double precision in a background thread, too."""
        return self.plan.stage(number, steps)

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
        state = stage.start
        for k in range(self.plan.warm_up):
            made = stage.step(state, k)
            assert made is not None
            state = made[0]
            yield made

    @property
    def _restart(self) -> int | None:
        """The number of the restart that is under way, None in the last stage."""
        number = len(self.position.prices)
        return number if number < len(self.plan.restarts) else None

    def run(self, callback: TrainingCallback | None = None) -> Method:
        """Run to the end, to Ctrl-C, or until the callback returns true; return the best method.

        The folder is locked meanwhile. Linear algebra has one thread, so that what is learned does
        not depend on the number of processors, here or on a cluster.
        """
        if self.directory is not None:
            self.directory.lock()
        try:
            with one_thread():
                return self._run(callback)
        finally:
            if self.directory is not None:
                self.directory.release()

    def _run(self, callback: TrainingCallback | None) -> Method:
        board = TensorBoard(self.directory if self.steps else None, self.position.done)
        try:
            for step in self._all_steps():
                board.add(step.line, step.done)
                if callback is not None and callback(step):
                    break
            else:
                method = self._finish()
                board.add_method(method, self.position.done)
                return self._with_history(method)
            self._checkpoint()
            return self._with_history(self._save_best())
        except (KeyboardInterrupt, WorkersLostError):
            self._checkpoint()
            raise
        finally:
            for prefetched in self._prefetched.values():
                prefetched.close()
            board.close()

    def _with_history(self, method: Method) -> Method:
        learned = self.stage.learned(self._best_state)
        return method.replace(training=TrainingHistory(self.lines, learned))

    def _all_steps(self) -> Iterator[TrainingStep]:
        """Take the steps of all stages that are left."""
        while self._restart is not None:
            self._prefetch_restarts(self._restart)
            while self.position.step < self.plan.warm_up and (step := self._step()) is not None:
                yield step
            self._next_stage(self._restart)
        if self.position.best is None and self.steps:
            self._first_validation()
        while self.position.step < self.options.steps and not self.position.over:
            if (step := self._step()) is None:
                return
            yield step

    @double
    def _next_stage(self, number: int) -> None:
        """Judge a restart on held-out problems, then enter the next stage."""
        prices = self.position.prices
        price = self.plan.restarts[number].price(self.stage, self.state)
        if not prices or price < min(prices):
            self.best = self.state.parameters
        position = replace(self.position, step=0, prices=(*prices, price))
        self._enter(position)
        self.position = position
        self.state = self.stage.start
        if self._restart is None:
            self.state = self.stage.begin(self.best)
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

    @double
    def _first_validation(self) -> None:
        """Validate the start; refuse one from which nothing can be learned."""
        validation = self.stage.validated(self.state)
        self.stage.check_start(validation)
        self._judge(validation)
        self._commit_step()
        self._checkpoint()

    @double
    def _step(self) -> TrainingStep | None:
        """Update the parameters once; validate and write a checkpoint where these are due."""
        k, restart, before, validation = self.position.step, self._restart, self.state, None
        prefetched = None if restart is None else self._prefetched.get(restart)
        made = prefetched.next() if prefetched else self.stage.step(self.state, k)
        if made is None:
            return None
        self.state, batch = made
        self._warn_once(batch, self.stage.numbers(k))
        due = self.stage.due(k)
        if due and restart is None:
            validation = self.stage.validated(self.state)
            self._judge(validation)
        told = self.stage.told(k, before, self.state)
        seconds = time.perf_counter() - self._began
        line = {
            "step": k, "stopping_time": batch.stopping_time, "P": batch.P, "Q": batch.Q,
            "loss": batch.loss, "validation": validation and validation.complexity,
            "feasible": validation and validation.feasible, "reached": batch.reached,
            "failed": batch.failed, "penalty": before.penalty, "seconds": round(seconds, 3),
        } | told | ({} if restart is None else {"restart": restart + 1})  # fmt: skip
        self.lines.append(line)
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        done = self.position.done + 1
        self.position = replace(
            self.position, step=k + 1, done=done, seconds=seconds, metrics_bytes=length
        )
        if self.stage.whole(k):
            self._commit_step()
        if due:
            self._checkpoint()
        best = None if self.position.best is None else self.position.best["complexity"]
        return TrainingStep(line, validation, best, done, self.steps)

    def _judge(self, new: Validation) -> None:
        """Keep the point that was validated if it is the best; leave it if it is far worse."""
        old, options = self.position, self.options
        better = options.keep == "last" or self.stage.better(new, old.best)
        growth = 1.0 if new.feasible else options.penalty_growth
        penalty = min(self.state.penalty * growth, LARGEST_PENALTY)
        self.state = self.state._replace(penalty=penalty)
        stale = 0 if better else old.stale + 1
        self.position = replace(old, penalty=penalty, stale=stale, over=stale >= options.patience)
        if better:
            self.best = self.state.parameters
            self.position = replace(self.position, best=new.statistics())
            if self.directory is not None:
                self._save_best()
        elif old.best is not None and new.complexity > self.stage.worse * old.best["complexity"]:
            self.state = self.stage.back(self.state, self.best)

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

    def _commit_step(self) -> None:
        """Mark a step as complete: an interruption inside the next one goes back to here."""
        self.committed = (self.position, (self.state.parameters, self.state.memory, self.best))

    def _checkpoint(self) -> None:
        if self.directory is not None:
            self.directory.save(*self.committed)

    @property
    def _best_state(self) -> TrainingState:
        return self.state._replace(parameters=self.best)

    def _save_best(self) -> Method:
        """Return the best point as a method, without certificate and test statistics; write it.

        During restarts nothing is validated yet: the present point is taken, and not written.
        """
        found, state = self.position.best, self._best_state
        validated = found is not None
        if found is None:
            state = self.state
            found = self.stage.validated(state).statistics()
        method = self.stage.method(state, found).replace(
            provenance=self.config | {"finished": False}, statistics={"validation": found}
        )
        if self.directory is not None and validated:
            self.directory.save_method(method)
        return method

    def _finish(self) -> Method:
        """Measure the best point on fresh test problems, and write it with its certificate."""
        end = self.stage.finished(self._best_state, self.position.best)
        method = self._with_test_results(end)
        certificate = dict(end.certificate) | {"statistical": method.statistics["statistical"]}
        method = method.replace(
            certificate=certificate,
            provenance=self.config | {"finished": True},
            statistics=dict(method.statistics) | {"seconds": time.perf_counter() - self._began},
        )
        if self.directory is not None:
            self.directory.save_method(method)
        return method

    def _with_test_results(self, end: Finished) -> Method:
        """Return the method with what it and its baselines need on fresh test problems."""
        every: Mapping[str, str | Method] = {"method": end.method, **end.baselines}
        methods = {name: [each] * len(end.problems) for name, each in every.items()}
        penalty: Any = self.family.penalty
        subjects = comparison.ProblemSet(
            end.problems, end.starts, self.options.tol, REPEATS, penalty
        )
        found = comparison.solve_all_by(methods, subjects, self.executor)
        measured = {
            "test": statistics(found["method"]) | dict(end.violations),
            "statistical": comparison.expected(found["method"], self.options.tol),
            "fresh": comparison.summary(found),
            comparison.CURVES: comparison.gradient_curves(found),
        }
        return end.method.replace(statistics=dict(end.method.statistics) | measured)
