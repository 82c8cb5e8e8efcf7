"""A run that learns a table inside its proof: ``ode2opt train --target sequence --certified 2``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.precision import double
from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.protocol import TEST, TRAINING
from ode2opt.learning.run import TEST_PROBLEMS, LearningRun, TrainingCallback, TrainingStep
from ode2opt.learning.run_directory import Position
from ode2opt.learning.sequence.background import READ
from ode2opt.learning.sequence.certified.candidates import (
    NESTEROV_ROWS,
    CandidateMaker,
    best_rho,
)
from ode2opt.learning.sequence.certified.objective import (
    BarrierObjective,
    CertifiedInstance,
    parts_of,
)
from ode2opt.learning.sequence.certified.rows import LearnedRows
from ode2opt.learning.sequence.certified.training import CertifiedStep, has_room, train_rows
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import in_metric
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.restarts import background_of
from ode2opt.learning.training import CERTIFIED_PROBLEMS
from ode2opt.learning.validation import Validation, counts_of, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.proofs.certificate import Certificate, uncertified
from ode2opt.proofs.exact import ProvedBound
from ode2opt.proofs.following import certificate_of
from ode2opt.solvers import Memory, Method, Result

FEWEST_ROWS, MOST_ROWS = 10, 80  # that are learned
TRAINING_FACTOR = 2  # times the batch: the problems that rows are learned on
LARGER = 1.1  # so many times the smoothness constants seen is the family's
ROOM = 1.5  # times the iterations of the slowest problem: how far a table is followed


class CertifiedRun(LearningRun[SequenceOptions]):
    """Learns rows whose worst case stays below a cap, proves them and measures them.

    A checkpoint is written after each weight of the barrier, where the descent begins anew: a run
    that is resumed goes on there and comes to the same table.
    """

    kind = "a certified table, which is learned in its own way"
    reads = READ | {"steps", "batch", "horizon", "knots", "certified", "tail"}

    def _set_up(self, memory: Memory | None) -> None:
        options = self.options
        assert options.certified is not None
        self.cap, self.position, self.steps = options.certified, Position(), options.steps
        self.background = background_of(self.family, options, memory, self.log, self.executor)
        self.metrics = self.background.metrics()
        numbers = range(TRAINING_FACTOR * options.batch)
        self.folds = [self.background.fold(TRAINING, i) for i in numbers]
        self.problems = [self.background.problem(TRAINING, i) for i in numbers]
        self.validation = HeldOut(self.background, range(options.validation))
        self.log("bounding the curvature")
        self.L = self._smoothness()

    def _smoothness(self) -> float:
        """Return L: a tenth above the largest of the problems that training sees."""
        pairs = [
            *zip(self.problems, self.folds, strict=True),
            *zip(self.validation.problems, self.validation.folds, strict=True),
        ]
        try:
            return LARGER * max(one.smoothness(self.metrics[fold]) for one, fold in pairs)
        except InputError as error:
            raise InputError(f"A certified table needs a bound of the curvature: {error}") from None

    def _run(self, callback: TrainingCallback | None) -> Method:
        """Learn, prove, choose the length of the steps, and measure."""
        rows, rho, followed = self._planned()
        self.maker = self._maker(rows)
        self.best = rows.first()
        self.best_calls, self.rho = math.inf, rho
        self._judge(self.best)
        objective = self._objective(rows, followed)
        if has_room(objective):
            if self._train(objective, callback):
                return self._unfinished()
        else:
            self.log(f"the cap {self.cap:g} leaves no room: the table is the tail's own")
            self.maker = self._maker(replace(rows, count=NESTEROV_ROWS))
            self.best = self.maker.rows.first()
        return self._finish()

    def _objective(self, rows: LearnedRows, followed: int) -> BarrierObjective:
        """Return what is minimised, at rho L, or above where the table alone leaves all numbers.

        A solve that begins with steps so long starts anew; the table in the objective does not.
        """
        instances, share = self.instances(), self.rho
        while True:
            objective = BarrierObjective(
                rows, self.cap, instances, share * self.L, self.options.tol, followed
            )
            self.learned_at = share * self.L
            count, slope = objective.count(rows.first())
            if share >= 1 or (np.isfinite(count) and np.all(np.isfinite(slope))):
                return objective
            share *= 2

    def _planned(self) -> tuple[LearnedRows, float, int]:
        """Return the rows to learn, the share of L to learn at, and how far to follow a table."""
        few = LearnedRows(self.options.tail, min(FEWEST_ROWS, self.options.horizon - 1))
        self.log("looking for the length of the steps")
        rho, results = best_rho(self._maker(few).unchecked(few.first(), 1.0), self.validation)
        spent = [one.iterations for one in results]
        most = min(MOST_ROWS, self.options.horizon - 1)
        count = min(most, max(FEWEST_ROWS, math.ceil(float(np.mean(spent)))))
        followed = min(self.options.horizon, max(count, math.ceil(ROOM * max(spent))))
        return replace(few, count=count), rho, followed

    def _maker(self, rows: LearnedRows) -> CandidateMaker:
        background, options = self.background, self.options
        return CandidateMaker(
            rows, self.family.name, options.tol, self.L, options.horizon, self.metrics,
            [background.rule(fold) for fold in range(background.folds + 1)],
        )  # fmt: skip

    @double
    def instances(self) -> list[CertifiedInstance]:
        """Return the training problems as the objective takes them."""
        parts = [parts_of(metric) for metric in self.metrics]
        return [
            CertifiedInstance(
                to_jax(problem), jnp.asarray(self.background.start(problem, fold)), parts[fold]
            )
            for problem, fold in zip(self.problems, self.folds, strict=True)
        ]

    def _train(self, objective: BarrierObjective, callback: TrainingCallback | None) -> bool:
        """Take the steps; keep the best by validation. Returns whether the callback ended it."""
        options, (learned, stage) = self.options, self._reached()
        for step in train_rows(objective, options.knots, options.steps, self.log, learned, stage):
            results = self._judge(step.rows) if step.last else None
            told = self._told(step, results)
            if step.last and self.directory is not None:
                done = np.array([step.stage + 1.0])
                self.directory.save(self.position, (step.rows, self.best, done))
            if callback is not None and callback(told):
                return True
        return False

    def _reached(self) -> tuple[np.ndarray, int]:
        """Return the rows to go on from and how many weights are over; after a checkpoint, its."""
        first = self.maker.rows.first()
        if not self.resuming:
            return first, 0
        assert self.directory is not None
        self.position, tree = self.directory.load(lambda _: (first, first, np.zeros(1)))
        learned, best, stage = (np.asarray(one) for one in tree)
        self._began -= self.position.seconds
        self._judge(best)
        return learned, int(stage[0])

    def _unfinished(self) -> Method:
        """Return the best table so far with its proof, for a run that can be gone on with."""
        proof = self.maker.proved(self.best, self.cap)
        method = self.maker.with_proof(self.best, proof, self.rho)[-1].replace(
            provenance=self.config | {"finished": False}
        )
        if self.directory is not None:
            self.directory.save_method(method)
        return method

    def _judge(self, rows: np.ndarray) -> list[Result]:
        """Solve the validation problems; keep proved rows that need the fewest calls so far."""
        results = self.validation.solved(self.maker.unchecked(rows, self.rho))
        calls = mean_calls(results)
        better = calls < self.best_calls and all(one.success for one in results)
        if better and self._is_proved(rows):
            self.best, self.best_calls = rows, calls
        return results

    def _is_proved(self, rows: np.ndarray) -> bool:
        """Whether rows have an exact proof below the cap; the tail's own need none here."""
        if np.array_equal(rows, self.maker.rows.first()):
            return True
        try:
            self.maker.proved(rows, self.cap)
        except Ode2OptError as error:
            self.log(str(error))
            return False
        return True

    def _told(self, step: CertifiedStep, results: list[Result] | None) -> TrainingStep:
        """Write a step's line of metrics, and return what a callback sees."""
        done = self.position.done + 1
        seconds = time.perf_counter() - self._began
        found = None
        if results is not None:
            found = Validation(**counts_of(results), flows=len(results), P=0.0, Q=0.0, strict=False)
        line = {
            "step": done - 1, "stopping_time": step.value, "P": 0.0, "Q": 0.0,
            "loss": step.value, "validation": found and found.complexity,
            "feasible": found and found.feasible, "reached": len(self.problems), "failed": 0,
            "penalty": step.mu, "seconds": round(seconds, 3), "ratio": step.ratio,
        }  # fmt: skip
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        self.position = replace(
            self.position, step=done, done=done, seconds=seconds, metrics_bytes=length
        )
        best = None if math.isinf(self.best_calls) else self.best_calls
        return TrainingStep(line, found, best, done, self.steps)

    def _finish(self) -> Method:
        """Prove the best rows, choose rho on fresh held-out problems, and measure the method."""
        self.log("proving the table in exact arithmetic")
        proof = self.maker.proved(self.best, self.cap)
        fresh = HeldOut(self.background)
        methods = self.maker.with_proof(self.best, proof, self.rho)
        rho, results = best_rho(methods, fresh)
        method = self.maker.with_proof(self.best, proof, rho)[-1].replace(
            statistics={
                "validation": statistics(results),
                "held_out": fresh.compared({"method": results}),
            }
        )
        background = self.background
        problems = [background.problem(TEST, i) for i in range(TEST_PROBLEMS)]
        starts = [background.start(problem, background.folds) for problem in problems]
        method = self._with_test_results(method, BASELINES, problems, starts)
        seen = slice(CERTIFIED_PROBLEMS)
        certificate = _certificate(method, proof, fresh.problems[seen], fresh.starts[seen])
        return self._finished(method, certificate.summary() | {"verdict": certificate.words()})


def _certificate(
    method: Method, proof: ProvedBound, problems: Sequence[Problem], starts: Sequence[np.ndarray]
) -> Certificate:
    """Return the certificate of a method along problems, with its exact proof."""
    try:
        subjects = in_metric(method, problems, starts)
    except InputError as error:
        return uncertified("learned", len(problems), str(error))
    return certificate_of(
        method.table(), subjects.problems, name="learned", K=method.horizon,
        scales=subjects.scales, starts=subjects.starts, proved=proof.words,
    )  # fmt: skip
