"""A table with a prox, learned for a family with a penalty.

Adam moves the rows, and goes back to the best point where a step led off a cliff: beyond an edge
of stability, which differs from problem to problem, iterates run away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.precision import double
from ode2opt.executor import Executor
from ode2opt.learning.protocol import (
    TEST,
    TEST_PROBLEMS,
    TRAINING,
    VALIDATION,
    Finished,
    Planner,
    TrainingPlan,
    TrainingStage,
)
from ode2opt.learning.sequence.certified.run import LARGER
from ode2opt.learning.sequence.composite.certifying import proximal_certificate
from ode2opt.learning.sequence.composite.guarding import BLOWUP, best_guard, guards, shortened
from ode2opt.learning.sequence.composite.objective import ProblemBatch, ResidualObjective
from ode2opt.learning.sequence.composite.rows import ROW_KINDS, ProvedRows, TableRows, table_of
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.validation import Validation, solve_one, statistics
from ode2opt.paper.stopm import Batch, TrainingState
from ode2opt.penalties import as_penalty
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.family import Family
from ode2opt.solvers import Guard, Memory, Method, Result

LOOSER = (1.0, 100.0)  # times the tolerance: a table is learned for both, so that it serves both
TOGETHER = 4  # times the options' batch and validation: what is followed together costs little more
BATCHES = 8  # of different training problems
MEASURED = 8  # training problems on which curvature and the fallback's iterations are measured
HELD_OUT = 2  # times the problems of a validation: fresh ones, for the guard
RATE = 0.02  # tuned on training draws of the three families of ode2opt.penalties.families
WORSE = 1.02  # times the best count on held-out problems: beyond it the descent goes back


class ProximalStage(TrainingStage):
    """Learns a table (m, p, q, w) by the soft count of iterations.

    The memory of its state is that of Adam and the step size.
    """

    worse = WORSE

    @double
    def __init__(
        self,
        family: Family,
        options: SequenceOptions,
        memory: Memory | None,
        log: Callable[[str], None],
        executor: Executor,
    ) -> None:
        if memory is not None:
            raise InputError("A memory knows nothing of penalties: learn without it.")
        self.family, self.options, self.log = family, options, log
        self.tols = [factor * options.tol for factor in LOOSER]
        first = self.problem(TRAINING, 0)
        assert family.penalty is not None
        self.penalty = as_penalty(family.penalty, first)
        self.x0 = np.asarray(self.penalty.project(np.zeros(first.n)), dtype=np.float64)
        measured = [self.problem(TRAINING, i) for i in range(MEASURED)]
        log("measuring curvature, and FISTA on training problems")
        found = {
            tol: [solve_one("fista", one, self.x0, tol, self.penalty) for one in measured]
            for tol in self.tols
        }
        prices = [float(np.mean([r.iterations for r in results])) for results in found.values()]
        self.scale = self._curvature(measured, [one.x for one in found[options.tol]])
        self.objective = ResidualObjective(self.penalty, self.x0, self.scale, self.tols, prices)
        self.held_out = self._batch(VALIDATION, 0, TOGETHER * options.validation)
        clip = math.inf if options.clip is None else options.clip
        self._adam = optax.chain(optax.clip_by_global_norm(clip), optax.scale_by_adam())
        rate = jnp.asarray(RATE if options.lr is None else options.lr, dtype=float)
        rows = ROW_KINDS[options.coefficients](options.horizon)
        self.start = TrainingState(rows, (self._adam.init(rows), rate), 0.0)

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

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch]:
        """Take one step; a gradient that is not finite moves nothing."""
        rows, (moments, rate), _ = state
        count, slope = self.objective.count(rows, self.batches[k % BATCHES])
        told = count if math.isfinite(count) else None
        batch = Batch(told, 0.0, 0.0, told, TOGETHER * self.options.batch, 0, ())
        if not all(bool(jnp.all(jnp.isfinite(part))) for part in jax.tree.leaves(slope)):
            return state, batch
        change, moments = self._adam.update(slope, moments)
        rows = jax.tree.map(lambda x, d: x - rate * d, rows, change)
        return TrainingState(rows, (moments, rate), 0.0), batch

    def due(self, k: int) -> bool:
        return (k + 1) % self.options.validate_every == 0 or k + 1 == self.options.steps

    def told(self, k: int, before: TrainingState, after: TrainingState) -> dict[str, Any]:
        return {"lr": float(after.memory[1])}

    def validated(self, state: TrainingState) -> Validation:
        """Return the mean iterations on held-out problems, the fallback's included."""
        residuals = self.objective.log_residuals(state.parameters, self.held_out)
        count, total = self.objective.guarded_count(residuals, BLOWUP), len(residuals)
        return Validation(count, math.ceil(count), total, 0, total, 0.0, 0.0, total, False)

    def back(self, state: TrainingState, best: TableRows) -> TrainingState:
        """Return to the best rows, with half the step size."""
        rate = state.memory[1] / 2
        return state._replace(parameters=best, memory=(self._adam.init(best), rate))

    def method(self, state: TrainingState, found: Mapping[str, Any]) -> Method:
        return self._method(state.parameters, Guard(blowup=BLOWUP, fallback="fista"))

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

    @double
    def finished(self, state: TrainingState, found: Mapping[str, Any] | None) -> Finished:
        """Choose the guard on fresh held-out problems."""
        self.log("choosing the guard on held-out problems")
        count, rows = TOGETHER * self.options.validation, state.parameters
        problems = [self.problem(VALIDATION, count + i) for i in range(HELD_OUT * count)]
        seen, judging = problems[:count], problems[count:]
        residuals = self.objective.log_residuals(rows, ProblemBatch.of(seen))

        def solved(guard: Guard) -> list[Result]:
            method = self._method(rows, guard)
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
            self._method(rows, guard), [r.iterations for r in results if not r.handovers]
        ).replace(statistics={"validation": statistics(results[:: len(self.tols)])})
        fresh = [self.problem(TEST, i) for i in range(TEST_PROBLEMS)]
        certificate = proximal_certificate(method)
        promise = certificate.summary() | {"verdict": certificate.words()}
        return Finished(method, {"fista": "fista"}, fresh, [self.x0] * len(fresh), promise)


PROXIMAL = Planner(
    lambda *given: TrainingPlan(lambda *_: ProximalStage(*given)),
    "a table for problems with a penalty, which has no metric and is learned in its own way",
    frozenset(
        ("tol", "steps", "seed", "blocks", "coefficients", "horizon", "batch", "validation",
         "validate_every", "patience", "lr", "clip")
    ),
)  # fmt: skip
