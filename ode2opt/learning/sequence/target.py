"""The target "sequence": a table and a preconditioner (docs/mathematics.md, section 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.base.schedule import Schedule
from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.protocol import Target
from ode2opt.learning.sequence.background import Background, MetricRecipe
from ode2opt.learning.sequence.handing_over import (
    Choice,
    beats_instant,
    best_choice,
    candidates,
    envelope,
    horizon_for,
    mean_calls,
)
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import in_metric, no_table
from ode2opt.learning.sequence.instant import Instant, instant
from ode2opt.learning.sequence.objective import (
    Learned,
    SequenceInstance,
    SequenceRules,
    SplineTable,
)
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.proved_table import ProvedTable
from ode2opt.learning.sequence.spectrum import Filter, Spectrum, filtered, metric_of
from ode2opt.learning.validation import solve_one, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.problems.jaxed import to_jax
from ode2opt.proofs.certificate import Certificate, uncertified
from ode2opt.proofs.following import certificate_of
from ode2opt.solvers import Guard, Method, Result
from ode2opt.solvers.metric import Metric

GUARD = Guard(fallback="metric-lbfgs")
TABLE_CLASSES = {"spline": SplineTable, "proved": ProvedTable}
"""What a table is made by, for the option ``coefficients``."""


class SequenceTarget(Target[Learned, SequenceInstance]):
    """Learns a table of three numbers an iteration, and a filter of the family's spectrum."""

    strict = False

    def __init__(
        self, family: Family, options: SequenceOptions, recipe: MetricRecipe, background: Background
    ) -> None:
        self.family, self.options, self.background = family, options, background
        self.metric = recipe.metric
        self.spectra = background.spectra(*recipe)
        first = Filter.whitening() if background.fixed_metric else Filter()
        self.scale = background.scale(self._metric(first, self.spectra[-1]))
        table = TABLE_CLASSES[options.coefficients](options.knots, options.horizon)
        self.start = Learned(table, first)
        self.learnable = jax.tree.map(eqx.is_inexact_array, self.start)
        if background.fixed_metric:
            self.learnable = eqx.tree_at(lambda tree: tree.filter.logits, self.learnable, False)
        numbers = (options.tol, GUARD.blowup, self._price(), options.margin, self.scale)
        self.rules = SequenceRules(*map(jnp.asarray, numbers))

    @cached_property
    def held_out(self) -> HeldOut:
        """Problems for what is chosen at the end."""
        return HeldOut(self.background)

    @cached_property
    def instant(self) -> Instant:
        """The instant method, which a table has to beat."""
        return instant(self.background, self.held_out)

    def problem(self, stream: int, i: int) -> Problem:
        return self.background.problem(stream, i)

    @double
    def instance(self, problem: Problem, stream: int, i: int) -> SequenceInstance:
        fold = self.background.fold(stream, i)
        x0 = jnp.asarray(self.background.start(problem, fold))
        return SequenceInstance(to_jax(problem), x0, jax.tree.map(jnp.asarray, self.spectra[fold]))

    def solve(self, learned: Learned, problem: Problem, instance: SequenceInstance) -> Result:
        method = self._method(learned, instance.spectrum)
        return solve_one(method, problem, np.asarray(instance.x0), self.options.tol)

    def method(self, learned: Learned, worst: int) -> Method:
        method = self._method(learned, self.spectra[-1])
        assert method.schedule is not None
        return method.replace(
            schedule=method.schedule.first(max(1, horizon_for(worst))),
            start=self.background.rule(self.background.folds),
        )

    def baselines(self, method: Method) -> dict[str, str | Method]:
        instant = self.instant.method
        return BASELINES if method.metric is instant.metric else BASELINES | {"instant": instant}

    def finalized(self, learned: Learned, method: Method) -> Method:
        """Choose when to hand over and to what; or take the instant method, if it is as good."""
        held_out, instant, overhead = self.held_out, self.instant, self.held_out.overhead
        long = [self._method(learned, spectrum) for spectrum in self.spectra]
        best, results = best_choice(
            candidates(held_out.solved(long), self.options.horizon),
            lambda choice: held_out.solved([choice.of(one) for one in long]),
            min(held_out.baselines["lbfgs"], instant.results, key=mean_calls),
            overhead,
        )
        chosen = best.of(long[-1])
        guard = replace(chosen.guard, envelope=envelope(results) if best.horizon else ())
        chosen = chosen.replace(start=method.start, guard=guard)
        if not beats_instant(best, results, instant.results, overhead):
            chosen, results = instant.method, instant.results
        return chosen.replace(
            provenance=method.provenance,
            statistics={
                "validation": statistics(results),
                "held_out": held_out.compared({"method": results, "instant": instant.results}),
            },
        )

    def certificate(
        self,
        learned: Learned,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[SequenceInstance],
    ) -> dict[str, Any]:
        found = self._certificate(method, problems, instances)
        return found.summary() | {"verdict": found.words()}

    def _certificate(
        self, method: Method, problems: Sequence[Problem], instances: Sequence[SequenceInstance]
    ) -> Certificate:
        if method.schedule is None:
            return no_table(method)
        try:
            subjects = in_metric(method, problems, [one.x0 for one in instances])
        except InputError as error:
            return uncertified("learned", len(problems), str(error))
        return certificate_of(
            method.schedule, subjects.problems, name="learned", K=method.horizon,
            scales=subjects.scales, starts=subjects.starts,
        )  # fmt: skip

    @double
    def _method(self, learned: Learned, spectrum: Spectrum) -> Method:
        return Method(
            schedule=_schedule(learned.table),
            family=self.family.name,
            tol=self.options.tol,
            scale=self.options.scale,
            family_scale=self.scale,
            metric=self._metric(learned.filter, spectrum),
            guard=GUARD,
        )

    @double
    def _metric(self, filter_: Filter, spectrum: Spectrum) -> Metric | None:
        return metric_of(self.metric, spectrum, filtered(spectrum, filter_))

    def _price(self) -> float:
        """Return how many iterations the fallback needs from the start, at least one."""
        fallback = Choice(0, GUARD.fallback).of(self._method(self.start, self.spectra[-1]))
        pairs = ((one.problem, one.x0) for one in self.background.solved[-1])
        results = [solve_one(fallback, *pair, self.options.tol) for pair in pairs]
        return max(1.0, float(np.mean([result.iterations for result in results])))


def _schedule(table: SplineTable | ProvedTable) -> Schedule:
    return Schedule(*(np.asarray(row) for row in eqx.filter_jit(table)()))
