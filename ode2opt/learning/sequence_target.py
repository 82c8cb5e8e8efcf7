"""The guarded sequence's stopping time in a learned metric as a target (SPEC.md section 13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.dynamics.certificate import certify
from ode2opt.dynamics.jaxed import double, to_jax
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError
from ode2opt.learning.certificates import in_metric
from ode2opt.learning.handing_over import Choice, best_choice, beyond, choices, envelope
from ode2opt.learning.options import Options
from ode2opt.learning.references import SPENT, References
from ode2opt.learning.sequence import Learned, MetricInstance, SequenceRules
from ode2opt.learning.spectrum import Filter, Spectrum, metric_of
from ode2opt.learning.table import SplineTable
from ode2opt.learning.target import TEST, VALIDATION, Target
from ode2opt.learning.validation import counted
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers import Guard, Method, Result, solve

WORTH = 10  # the longest horizon, in iterations of the fallback: more is not worth trying
FRESH = 3  # times the problems of a validation decide about the handing over
GUARD = Guard(fallback="metric-lbfgs")


class SequenceTarget(Target):
    """A table of three numbers an iteration, and a filter of the family's spectrum."""

    strict = False

    def __init__(
        self, family: Family, options: Options, metric: str, reference: str, known: References
    ) -> None:
        self.family, self.options, self.metric = family, options, metric
        self.folds = known.folds
        self.spectra = known.spectra(metric, reference)
        self.starts = known.starts() if options.start == "learned" else None
        price = self._price(known)
        if price == 0:
            raise InputError(
                f"Problems of {family.name} meet the gradient norm {options.tol:g} where they "
                f"start: lower the tolerance."
            )
        self.horizon = min(options.horizon, math.ceil(WORTH * price))
        self.start = Learned(SplineTable(options.knots, self.horizon), Filter())
        self.learnable = jax.tree.map(eqx.is_inexact_array, self.start)
        self.rules = SequenceRules(
            *map(jnp.asarray, (options.tol, GUARD.blowup, price, options.margin))
        )

    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem of all rows where i is even or it is a test, else of one fold."""
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        fold = self._fold(stream, i)
        return self.family.sample(seed, fold=None if fold == self.folds else Fold(fold, self.folds))

    @double
    def of(self, problem: Problem, stream: int, i: int) -> MetricInstance:
        x0 = jnp.asarray(self._start(problem, stream, i), dtype=jnp.float64)
        spectrum = jax.tree.map(jnp.asarray, self.spectra[self._fold(stream, i)])
        return MetricInstance(to_jax(problem), x0, spectrum)

    def solve(
        self, learned: Learned, problem: Problem, one: MetricInstance, method: Method | None = None
    ) -> Result:
        method = method or self._method(learned, one.spectrum, self.horizon)
        return self._solve(method, problem, np.asarray(one.x0))

    def method(self, learned: Learned, worst: int) -> Method:
        horizon = min(self.horizon, beyond(worst))
        method = self._method(learned, self.spectra[-1], horizon)
        return method if self.starts is None else method.replace(start=self.starts[-1])

    def polished(self, learned: Learned, method: Method) -> Method:
        """Choose when to hand over, and to whom, on problems that validation has not seen.

        With a horizon of 1 there is no step to scale, and the fallback's first trial does with the
        family's curvature.
        """
        seen = self.options.validation
        numbers = range(seen, (1 + FRESH) * seen)
        problems = [self.problem(VALIDATION, i) for i in numbers]
        starts = [self._start(p, VALIDATION, i) for p, i in zip(problems, numbers, strict=True)]
        methods = [self._method(learned, spectrum, self.horizon) for spectrum in self.spectra]
        long = [methods[self._fold(VALIDATION, i)] for i in numbers]
        scales = [method.scale_of(*pair)[0] for pair in zip(problems, starts, strict=True)]

        def made(long: Method, choice: Choice) -> Method:
            guard = replace(GUARD, fallback=choice.fallback, power=choice.power)
            found = long.replace(schedule=long.schedule.first(choice.horizon), guard=guard)
            if choice.horizon > 1:
                return found
            return found.replace(scale="family", family_scale=float(np.median(scales)))

        def solved(by: Sequence[str | Method]) -> list[Result]:
            return list(map(self._solve, by, problems, starts))

        best, results = best_choice(
            choices(solved(long), self.horizon),
            lambda choice: solved([made(one, choice) for one in long]),
            rival=solved(["lbfgs"] * len(problems)),
        )
        chosen = made(methods[-1], best)
        found = counted(results)
        found["feasible"] = found["reached"] == found["total"]
        return chosen.replace(
            start=method.start, provenance=method.provenance, statistics={"validation": found},
            guard=replace(chosen.guard, envelope=envelope(results)),
        )  # fmt: skip

    def certificate(
        self,
        learned: Learned,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[MetricInstance],
    ) -> dict[str, Any]:
        try:
            subjects = in_metric(method, problems, [one.x0 for one in instances])
        except InputError as error:
            levels = {"flow": False, "sequence": False, "guarded": True}
            return {"levels": levels, "margins": {}, "verdict": [str(error)]}
        found = certify(
            method.schedule, subjects.problems, name="learned", K=method.horizon,
            scales=subjects.scales, starts=subjects.starts,
        )  # fmt: skip
        return found.summary() | {"verdict": found.words()}

    def _fold(self, stream: int, i: int) -> int:
        if stream == TEST or not self.options.blocks or i % 2 == 0:
            return self.folds
        return i // 2 % self.folds

    def _start(self, problem: Problem, stream: int, i: int) -> np.ndarray:
        return np.asarray(
            problem.start().x0 if self.starts is None else self.starts[self._fold(stream, i)]
        )

    @double
    def _method(self, learned: Learned, spectrum: Spectrum, horizon: int) -> Method:
        return Method(
            schedule=_schedule(learned.table, horizon),
            family=self.family.name,
            tol=self.options.tol,
            scale="product",
            metric=metric_of(self.metric, spectrum, learned.filter),
            guard=GUARD,
        )

    def _solve(self, method: str | Method, problem: Problem, x0: np.ndarray) -> Result:
        return solve(problem, x0, method=method, tol=self.options.tol, max_iter=SPENT, history=True)

    def _price(self, known: References) -> float:
        """Return how many iterations the fallback needs from the start, in the first metric."""
        first = Learned(SplineTable(2, 2), Filter())
        method = self._method(first, self.spectra[-1], 1)
        results = [self._solve(method, one.problem, one.x0) for one in known.solved[-1]]
        return float(np.mean([result.iterations for result in results]))


def _schedule(table: SplineTable, horizon: int) -> Schedule:
    a, c, d = (np.array(row[:horizon], dtype=np.float64) for row in eqx.filter_jit(table)())
    return Schedule(a, c, d)
