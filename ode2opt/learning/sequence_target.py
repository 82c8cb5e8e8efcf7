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
from ode2opt.learning.options import Options
from ode2opt.learning.references import References
from ode2opt.learning.sequence import Learned, MetricInstance, SequenceRules
from ode2opt.learning.spectrum import Filter, Spectrum, metric_of
from ode2opt.learning.table import SplineTable
from ode2opt.learning.target import TEST, Target
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family, Fold
from ode2opt.solvers import Guard, Method, Result, solve

SPENT = 2_000  # iterations of a solve at most
WORTH = 10  # the longest horizon, in iterations of the fallback: more is not worth trying
SHORT_HORIZONS = (1, 2, 4, 8)  # where the fallback is the better method, it should begin early
BEYOND = 1.5  # the method's horizon, in iterations of the problem that decides about it
LBFGS_OVERHEAD = 0.1  # of an evaluation, in oracle calls
ENVELOPE = 3.0  # in the largest gradient norms of held-out problems
GUARD = Guard(fallback="metric-lbfgs")
FALLBACKS = ("metric-lbfgs", "lbfgs")


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
        fold = self._fold(stream, i)
        x0 = problem.start().x0 if self.starts is None else self.starts[fold]
        x0 = jnp.asarray(np.asarray(x0), dtype=jnp.float64)
        spectrum = jax.tree.map(jnp.asarray, self.spectra[fold])
        return MetricInstance(to_jax(problem), x0, spectrum)

    def solve(
        self, learned: Learned, problem: Problem, one: MetricInstance, method: Method | None = None
    ) -> Result:
        method = method or self._method(learned, one.spectrum, self.horizon)
        return self._solve(method, problem, np.asarray(one.x0))

    def method(self, learned: Learned, worst: int) -> Method:
        horizon = min(self.horizon, math.ceil(BEYOND * worst))
        method = self._method(learned, self.spectra[-1], horizon)
        return method if self.starts is None else method.replace(start=self.starts[-1])

    def polished(
        self,
        learned: Learned,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[MetricInstance],
    ) -> Method:
        """Choose on held-out problems when to hand over, and to whom.

        Horizon and fallback are those with the fewest oracle calls, the fallback's counted a tenth
        higher because its iterations cost more beside the gradient. With a horizon of 1 there is
        no step to scale, and the fallback's first trial does with the family's curvature.
        """
        pairs = list(zip(problems, instances, strict=True))
        alone = [self.solve(learned, *pair) for pair in pairs]
        ends = {math.ceil(BEYOND * one.iterations) for one in alone if not one.handovers}
        horizons = {min(h, self.horizon) for h in (*ends, *SHORT_HORIZONS)}
        scales = [method.scale_of(p, np.asarray(one.x0))[0] for p, one in pairs]

        def made(spectrum: Spectrum, choice: tuple[int, str]) -> Method:
            horizon, fallback = choice
            found = self._method(learned, spectrum, horizon)
            found = found.replace(guard=replace(GUARD, fallback=fallback))
            if horizon > 1:
                return found
            return found.replace(scale="family", family_scale=float(np.median(scales)))

        def solved(choice: tuple[int, str]) -> list[Result]:
            return [self.solve(learned, p, one, made(one.spectrum, choice)) for p, one in pairs]

        longest_first = sorted(horizons, reverse=True)
        choices = [(horizon, fallback) for horizon in longest_first for fallback in FALLBACKS]
        costs = [np.mean([_cost(result) for result in solved(choice)]) for choice in choices]
        best = choices[int(np.argmin(costs))]  # of equals the longest
        chosen = made(self.spectra[-1], best)
        return chosen.replace(
            start=method.start, provenance=method.provenance, statistics=method.statistics,
            guard=replace(chosen.guard, envelope=_envelope(solved(best))),
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

    def _solve(self, method: Method, problem: Problem, x0: np.ndarray) -> Result:
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


def _cost(result: Result) -> float:
    ours = result.handovers[0].iteration if result.handovers else result.iterations
    return result.oracle_calls + LBFGS_OVERHEAD * (result.iterations - ours)


def _envelope(results: Sequence[Result]) -> tuple[float, ...]:
    """Return by iteration how far above held-out problems a gradient norm may be."""
    runs = [one.history.grad_norm for one in results if one.history and not one.handovers]
    highest: list[float] = []
    for k in range(max(map(len, runs), default=0)):
        highest.append(max(run[k] / run[0] for run in runs if k < len(run)))
    return tuple(ENVELOPE * value for value in highest)
