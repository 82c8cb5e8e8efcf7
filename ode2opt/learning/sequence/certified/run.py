"""A table that is learned inside its proof: ``ode2opt train --target sequence --certified 2``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.precision import double
from ode2opt.executor import Executor
from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.protocol import TRAINING, Finished, Planner, TrainingPlan, TrainingStage
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
from ode2opt.learning.stage import CERTIFIED_PROBLEMS
from ode2opt.learning.validation import Validation, counts_of, statistics
from ode2opt.paper.stopm import Batch, TrainingState
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.problems.jaxed import to_jax
from ode2opt.proofs.certificate import Certificate, uncertified
from ode2opt.proofs.exact import ProvedBound
from ode2opt.proofs.following import certificate_of
from ode2opt.solvers import Memory, Method

FEWEST_ROWS, MOST_ROWS = 10, 80  # that are learned
TRAINING_FACTOR = 2  # times the batch: the problems that rows are learned on
LARGER = 1.1  # so many times the smoothness constants seen is the family's
ROOM = 1.5  # times the iterations of the slowest problem: how far a table is followed


class CertifiedStage(TrainingStage):
    """Learns rows whose worst case stays below a cap, and proves them.

    The memory of its state is how many weights of the barrier are over. With each the descent
    begins anew: there a run is resumed, and comes to the same table.
    """

    def __init__(
        self,
        family: Family,
        options: SequenceOptions,
        memory: Memory | None,
        log: Callable[[str], None],
        executor: Executor,
    ) -> None:
        assert options.certified is not None
        self.family, self.options, self.log, self.cap = family, options, log, options.certified
        self.background = background_of(family, options, memory, log, executor)
        self.metrics = self.background.metrics()
        numbers = range(TRAINING_FACTOR * options.batch)
        self.folds = [self.background.fold(TRAINING, i) for i in numbers]
        self.problems = [self.background.problem(TRAINING, i) for i in numbers]
        self.validation = HeldOut(self.background, range(options.validation))
        log("bounding the curvature")
        self.L = self._smoothness()
        rows, self.rho, followed = self._planned()
        self.maker = self._maker(rows)
        self.objective: BarrierObjective | None = self._objective(rows, followed)
        if not has_room(self.objective):
            log(f"the cap {self.cap:g} leaves no room: the table is the tail's own")
            self.maker = self._maker(replace(rows, count=NESTEROV_ROWS))
            self.objective = None
        self.start = TrainingState(self.maker.rows.first(), np.zeros(1), 0.0)
        self._points: Iterator[CertifiedStep] | None = None
        self._calls = self._best_calls = math.inf
        self._proofs: dict[bytes, ProvedBound] = {}

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

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch] | None:
        """Take the next accepted point of the descent."""
        if self.objective is None:
            return None
        if self._points is None:
            options, reached = self.options, int(state.memory[0])
            self._points = train_rows(
                self.objective, options.knots, options.steps, self.log,
                np.asarray(state.parameters), reached,
            )  # fmt: skip
        point = next(self._points, None)
        if point is None:
            return None
        self._point = point
        over = np.array([point.stage + 1.0]) if point.last else state.memory
        batch = Batch(point.value, 0.0, 0.0, point.value, len(self.problems), 0, ())
        return TrainingState(point.rows, over, 0.0), batch

    def due(self, k: int) -> bool:
        return self._point.last

    def whole(self, k: int) -> bool:
        return self._point.last

    def told(self, k: int, before: TrainingState, after: TrainingState) -> dict[str, Any]:
        return {"penalty": self._point.mu, "ratio": self._point.ratio}

    def validated(self, state: TrainingState) -> Validation:
        """Solve the validation problems with multipliers that nobody has checked."""
        self._rows = np.asarray(state.parameters)
        results = self.validation.solved(self.maker.unchecked(self._rows, self.rho))
        self._calls = mean_calls(results) if all(one.success for one in results) else math.inf
        return Validation(**counts_of(results), flows=len(results), P=0.0, Q=0.0, strict=False)

    def better(self, new: Validation, best: Mapping[str, Any] | None) -> bool:
        """Whether the rows need the fewest calls so far and are proved; the first ones count."""
        if best is not None and not (self._calls < self._best_calls and self._is_proved()):
            return False
        self._best_calls = self._calls
        return True

    def resumed(self, best: TrainingState) -> None:
        self.validated(best)
        self._best_calls = self._calls

    def _is_proved(self) -> bool:
        """Whether the rows have an exact proof below the cap."""
        try:
            self._proof(self._rows)
        except Ode2OptError as error:
            self.log(str(error))
            return False
        return True

    def _proof(self, rows: np.ndarray) -> ProvedBound:
        key = rows.tobytes()
        if key not in self._proofs:
            self._proofs = {key: self.maker.proved(rows, self.cap)}
        return self._proofs[key]

    def method(self, state: TrainingState, found: Mapping[str, Any]) -> Method:
        """Return the table with its proof."""
        rows = np.asarray(state.parameters)
        return self.maker.with_proof(rows, self._proof(rows), self.rho)[-1]

    def finished(self, state: TrainingState, found: Mapping[str, Any] | None) -> Finished:
        """Prove the best rows, and choose rho on fresh held-out problems."""
        self.log("proving the table in exact arithmetic")
        rows = np.asarray(state.parameters)
        proof = self._proof(rows)
        fresh = HeldOut(self.background)
        rho, results = best_rho(self.maker.with_proof(rows, proof, self.rho), fresh)
        seen = {
            "validation": statistics(results),
            "held_out": fresh.compared({"method": results}),
        }
        method = self.maker.with_proof(rows, proof, rho)[-1].replace(statistics=seen)
        few = slice(CERTIFIED_PROBLEMS)
        certificate = _certificate(method, proof, fresh.problems[few], fresh.starts[few])
        promise = certificate.summary() | {"verdict": certificate.words()}
        return Finished(method, BASELINES, *self.background.test_problems(), promise)


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


CERTIFIED = Planner(
    lambda *given: TrainingPlan(lambda *_: CertifiedStage(*given)),
    "a certified table, which is learned in its own way",
    READ | {"steps", "batch", "horizon", "knots", "certified", "tail"},
)
