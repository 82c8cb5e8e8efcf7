"""A run that learns a table with a prox for a family with a penalty."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.precision import double
from ode2opt.learning.protocol import TEST, TRAINING, VALIDATION
from ode2opt.learning.run import TEST_PROBLEMS, LearningRun, TrainingCallback, TrainingStep
from ode2opt.learning.run_directory import Position
from ode2opt.learning.sequence.certified.run import LARGER
from ode2opt.learning.sequence.composite.certifying import proximal_certificate
from ode2opt.learning.sequence.composite.descent import DescentState, RowDescent
from ode2opt.learning.sequence.composite.guarding import BLOWUP, best_guard, guards, shortened
from ode2opt.learning.sequence.composite.objective import ProblemBatch, ResidualObjective
from ode2opt.learning.sequence.composite.rows import ROW_KINDS, ProvedRows, TableRows, table_of
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.validation import Validation, solve_one, statistics
from ode2opt.penalties import as_penalty
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers import Guard, Memory, Method, Result

LOOSER = (1.0, 100.0)  # times the tolerance: a table is learned for both, so that it serves both
TOGETHER = 4  # times the options' batch and validation: what is followed together costs little more
BATCHES = 8  # of different training problems
MEASURED = 8  # training problems on which curvature and the fallback's iterations are measured
HELD_OUT = 2  # times the problems of a validation: fresh ones, for the guard
BASELINE = {"fista": "fista"}


class CompositeRun(LearningRun[SequenceOptions]):
    """Learns a table (m, p, q, w) by the soft count of iterations, and measures it.

    A point that is clearly worse on held-out problems is left for the best one, with half the step
    size. A checkpoint is written after each validation.
    """

    kind = "a table for problems with a penalty, which has no metric and is learned in its own way"
    reads = frozenset(
        ("tol", "steps", "seed", "blocks", "coefficients", "horizon", "batch", "validation",
         "validate_every", "patience", "lr", "clip")
    )  # fmt: skip

    def _set_up(self, memory: Memory | None) -> None:
        if memory is not None:
            raise InputError("A memory knows nothing of penalties: learn without it.")
        options = self.options
        self.position, self.steps = Position(), options.steps
        self.tols = [factor * options.tol for factor in LOOSER]
        first = self.problem(TRAINING, 0)
        assert self.family.penalty is not None
        self.penalty = as_penalty(self.family.penalty, first)
        self.x0 = np.asarray(self.penalty.project(np.zeros(first.n)), dtype=np.float64)
        measured = [self.problem(TRAINING, i) for i in range(MEASURED)]
        self.log("measuring curvature, and FISTA on training problems")
        found = {
            tol: [solve_one("fista", one, self.x0, tol, self.penalty) for one in measured]
            for tol in self.tols
        }
        prices = [float(np.mean([r.iterations for r in results])) for results in found.values()]
        self.scale = self._curvature(measured, [one.x for one in found[options.tol]])
        self.objective = ResidualObjective(self.penalty, self.x0, self.scale, self.tols, prices)
        self.held_out = self._batch(VALIDATION, 0, TOGETHER * options.validation)

    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem of a stream; only the test stream sees test data.

        With ``options.blocks`` every second problem is made of rows that follow each other.
        """
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        return self.family.sample(seed, block=self.options.blocks and i % 2 == 1)

    def _batch(self, stream: int, first: int, count: int) -> ProblemBatch:
        return ProblemBatch.of([self.problem(stream, first + i) for i in range(count)])

    @cached_property
    def batches(self) -> list[ProblemBatch]:
        """The training problems."""
        count = TOGETHER * self.options.batch
        return [self._batch(TRAINING, count * i, count) for i in range(BATCHES)]

    def _curvature(self, problems: list[Problem], ends: list[np.ndarray]) -> float:
        """Return what tables are divided by: the largest curvature at start and end of solves.

        For a proved table it is a bound of all curvatures.
        """
        if self.options.coefficients == "proved":
            found = [one.smoothness() for one in problems]
        else:
            pairs = zip(problems, ends, strict=True)
            found = [
                max(largest_curvature(one, x)[0] for x in (self.x0, end)) for one, end in pairs
            ]
        if not all(math.isfinite(one) and one > 0 for one in found):
            raise InputError("The problems have no curvature at their start: no step fits them.")
        differ = max(found) > (1 + 1e-6) * min(found)
        return max(found) * (LARGER if differ else 1.0)

    @double
    def _run(self, callback: TrainingCallback | None) -> Method:
        """Take the steps, choose the guard, and measure."""
        descent = RowDescent(self.objective, self.options)
        first = ROW_KINDS[self.options.coefficients](self.options.horizon)
        state = descent.begin(first, self._judged(first))
        if self.resuming:
            assert self.directory is not None
            self.position, state = self.directory.load(lambda _: state)
            self._began -= self.position.seconds
        while self.position.step < self.steps and state.stale < self.options.patience:
            k = self.position.step
            state, count = descent.step(state, self.batches[k % BATCHES])
            due = (k + 1) % self.options.validate_every == 0 or k + 1 == self.steps
            if due:
                state = descent.judged(state, self._judged(state.rows))
            told = self._told(state, count, due)
            if due and self.directory is not None:
                self.directory.save(self.position, state)
            if callback is not None and callback(told):
                return self._unfinished(state)
        return self._finish(state)

    def _judged(self, rows: TableRows) -> float:
        """Return the mean iterations on held-out problems, the fallback's included."""
        return self.objective.guarded_count(
            self.objective.log_residuals(rows, self.held_out), BLOWUP
        )

    def _told(self, state: DescentState, count: float, validated: bool) -> TrainingStep:
        """Write a step's line of metrics, and return what a callback sees."""
        done, seconds = self.position.done + 1, time.perf_counter() - self._began
        last, best = float(state.last), float(state.best_count)
        line = {
            "step": done - 1, "stopping_time": count if math.isfinite(count) else None, "P": 0.0,
            "Q": 0.0, "loss": count if math.isfinite(count) else None,
            "validation": last if validated else None, "feasible": True if validated else None,
            "reached": TOGETHER * self.options.batch, "failed": 0, "penalty": 0.0,
            "seconds": round(seconds, 3), "lr": float(state.rate),
        }  # fmt: skip
        length = 0 if self.directory is None else self.directory.add_metrics(line)
        self.position = replace(
            self.position, step=done, done=done, seconds=seconds, metrics_bytes=length
        )
        total = TOGETHER * self.options.validation
        found = None
        if validated:
            found = Validation(last, math.ceil(last), total, 0, total, 0.0, 0.0, total, False)
        return TrainingStep(line, found, best, done, self.steps)

    def _unfinished(self, state: DescentState) -> Method:
        """Return the best table so far, for a run that can be gone on with."""
        method = self._method(state.best, Guard(blowup=BLOWUP, fallback="fista"))
        method = method.replace(provenance=self.config | {"finished": False})
        if self.directory is not None:
            self.directory.save_method(method)
        return method

    def _method(self, rows: TableRows, guard: Guard) -> Method:
        table, proof = table_of(rows), None
        if isinstance(rows, ProvedRows):
            table, ages = rows.proof(len(table))
            proof = {"kind": "fista", "ages": ages}
        return Method(
            schedule=None,
            family=self.family.name,
            tol=self.options.tol,
            scale="family",
            family_scale=self.scale,
            guard=guard,
            proof=proof,
            proximal=table,
        )

    def _finish(self, state: DescentState) -> Method:
        """Choose the guard on fresh held-out problems, and measure the method on test problems."""
        self.log("choosing the guard on held-out problems")
        count = TOGETHER * self.options.validation
        problems = [self.problem(VALIDATION, count + i) for i in range(HELD_OUT * count)]
        seen, judging = problems[:count], problems[count:]
        residuals = self.objective.log_residuals(state.best, ProblemBatch.of(seen))

        def solved(guard: Guard) -> list[Result]:
            method = self._method(state.best, guard)
            return [
                solve_one(method, one, self.x0, tol, self.penalty)
                for one in judging
                for tol in self.tols
            ]

        guard, results = best_guard(guards(residuals, self.options.tol), solved)
        if not all(one.success for one in results):
            raise Ode2OptError(
                f"Not all held-out problems of {self.family.name} reach the residual "
                f"{self.options.tol:g}: raise the tolerance, and train anew (there is nothing to "
                f"resume)."
            )
        method = shortened(
            self._method(state.best, guard), [r.iterations for r in results if not r.handovers]
        )
        method = method.replace(statistics={"validation": statistics(results[:: len(self.tols)])})
        fresh = [self.problem(TEST, i) for i in range(TEST_PROBLEMS)]
        method = self._with_test_results(method, BASELINE, fresh, [self.x0] * len(fresh))
        certificate = proximal_certificate(method)
        return self._finished(method, certificate.summary() | {"verdict": certificate.words()})
