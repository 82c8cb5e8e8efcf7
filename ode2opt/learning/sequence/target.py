"""The stopping time of a guarded sequence in a metric (docs/mathematics.md, section 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.dynamics.certificate import Certificate, certificate_of, uncertified
from ode2opt.dynamics.jaxed import double, to_jax
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError
from ode2opt.learning.comparison import RIVALS
from ode2opt.learning.sequence.background import Background, MetricRecipe
from ode2opt.learning.sequence.handing_over import (
    Choice,
    best_choice,
    beyond,
    choices,
    earned,
    envelope,
    mean_calls,
)
from ode2opt.learning.sequence.held_out import HeldOut
from ode2opt.learning.sequence.in_metric import in_metric, no_table
from ode2opt.learning.sequence.instant import Instant, instant
from ode2opt.learning.sequence.objective import (
    Learned,
    MetricInstance,
    SequenceRules,
    SplineTable,
)
from ode2opt.learning.sequence.options import SequenceOptions
from ode2opt.learning.sequence.spectrum import Filter, Spectrum, filtered, metric_of
from ode2opt.learning.validation import solve_one, statistics
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family
from ode2opt.solvers import Guard, Method, Result
from ode2opt.solvers.metric import Metric

GUARD = Guard(fallback="metric-lbfgs")
TABLES = {"spline": SplineTable}
"""What a table is made by, for the option ``coefficients``."""


class SequenceTarget:
    """A table of three numbers an iteration, and a filter of the family's spectrum."""

    strict = False

    def __init__(
        self, family: Family, options: SequenceOptions, way: MetricRecipe, known: Background
    ) -> None:
        self.family, self.options, self.known = family, options, known
        self.metric = way.metric
        self.spectra = known.spectra(*way)
        first = Filter.whole() if known.settled else Filter()
        self.scale = known.scale(self._metric(first, self.spectra[-1]))
        table = TABLES[options.coefficients](options.knots, options.horizon)
        self.start = Learned(table, first)
        self.learnable = jax.tree.map(eqx.is_inexact_array, self.start)
        if known.settled:
            self.learnable = eqx.tree_at(lambda tree: tree.filter.logits, self.learnable, False)
        numbers = (options.tol, GUARD.blowup, self._price(), options.margin, self.scale)
        self.rules = SequenceRules(*map(jnp.asarray, numbers))

    @cached_property
    def held_out(self) -> HeldOut:
        """Problems to choose on at the end."""
        return HeldOut(self.known)

    @cached_property
    def instant(self) -> Instant:
        """The method that training has to beat."""
        return instant(self.known, self.held_out)

    def problem(self, stream: int, i: int) -> Problem:
        return self.known.problem(stream, i)

    @double
    def of(self, problem: Problem, stream: int, i: int) -> MetricInstance:
        fold = self.known.fold(stream, i)
        x0 = jnp.asarray(self.known.start(problem, fold))
        return MetricInstance(to_jax(problem), x0, jax.tree.map(jnp.asarray, self.spectra[fold]))

    def solve(self, learned: Learned, problem: Problem, one: MetricInstance) -> Result:
        method = self._method(learned, one.spectrum)
        return solve_one(method, problem, np.asarray(one.x0), self.options.tol)

    def method(self, learned: Learned, worst: int) -> Method:
        start = None if self.known.starts is None else self.known.starts[-1]
        method = self._method(learned, self.spectra[-1])
        assert method.schedule is not None
        return method.replace(schedule=method.schedule.first(max(1, beyond(worst))), start=start)

    def rivals(self, method: Method) -> dict[str, str | Method]:
        instant = self.instant.method
        return RIVALS if method.metric is instant.metric else RIVALS | {"instant": instant}

    def polished(self, learned: Learned, method: Method) -> Method:
        """Choose when to hand over, and to whom; or the instant method, if that is as good."""
        held_out, instant, overhead = self.held_out, self.instant, self.held_out.overhead
        long = [self._method(learned, spectrum) for spectrum in self.spectra]
        best, results = best_choice(
            choices(held_out.solved(long), self.options.horizon),
            lambda choice: held_out.solved([choice.of(one) for one in long]),
            min(held_out.rivals["lbfgs"], instant.results, key=mean_calls),
            overhead,
        )
        chosen = best.of(long[-1])
        guard = replace(chosen.guard, envelope=envelope(results) if best.horizon else ())
        chosen = chosen.replace(start=method.start, guard=guard)
        if not earned(best, results, instant.results, overhead):
            chosen, results = instant.method, instant.results
        return chosen.replace(
            provenance=method.provenance,
            statistics={
                "validation": statistics(results),
                "held_out": held_out.beside({"method": results, "instant": instant.results}),
            },
        )

    def certificate(
        self,
        learned: Learned,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[MetricInstance],
    ) -> dict[str, Any]:
        found = self._certificate(method, problems, instances)
        return found.summary() | {"verdict": found.words()}

    def _certificate(
        self, method: Method, problems: Sequence[Problem], instances: Sequence[MetricInstance]
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
        pairs = ((one.problem, one.x0) for one in self.known.solved[-1])
        results = [solve_one(fallback, *pair, self.options.tol) for pair in pairs]
        return max(1.0, float(np.mean([result.iterations for result in results])))


def _schedule(table: SplineTable) -> Schedule:
    return Schedule(*(np.asarray(row) for row in eqx.filter_jit(table)()))
