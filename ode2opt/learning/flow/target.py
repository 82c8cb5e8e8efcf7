"""The flow's stopping time as a target (docs/mathematics.md, sections 5 to 8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.coefficients import Coefficients, kind_of
from ode2opt.executor import Executor
from ode2opt.learning.comparison import BASELINES
from ode2opt.learning.flow.given import (
    NOTHING,
    Given,
    OwnPenalties,
    check_curves,
    check_penalties,
    module_of,
)
from ode2opt.learning.flow.mesh import chosen_substeps, mesh_error
from ode2opt.learning.flow.options import OWN, FlowOptions
from ode2opt.learning.flow.smoothness import fit_l0l1
from ode2opt.learning.protocol import TEST, TRAINING, VALIDATION, Target, TrainingPlan
from ode2opt.learning.stage import StopmStage
from ode2opt.paper.curvature import Estimator, Global, PowerIteration
from ode2opt.paper.default import check_times
from ode2opt.paper.stopping_time import FlowInstance, Rules
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.family import Family
from ode2opt.proofs.certificate import uncertified
from ode2opt.proofs.following import certificate_of
from ode2opt.solvers import Method, Result, solve
from ode2opt.solvers.method_file import Formula
from ode2opt.solvers.start_point import PAPER

FLOW_HORIZON_FACTOR = 1.25  # times the worst complexity of a validation


class InstanceSampler:
    """Draws the problems of a family: the same for the same seed, stream and number."""

    def __init__(self, family: Family, options: FlowOptions) -> None:
        self.family, self.options = family, options
        self.family_scale: float | None = None
        if options.scale == "family":
            self.family_scale = max(self._curvatures())

    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem of a stream; only the test stream sees test rows.

        With ``options.blocks`` every second problem is made of rows that follow each other.
        """
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        return self.family.sample(seed, block=self.options.blocks and i % 2 == 1)

    def instance(self, problem: Problem) -> FlowInstance:
        """Return a problem on JAX arrays, with its start and its curvature scale."""
        return FlowInstance.of(
            problem, problem.start().L if self.options.scale == "paper" else self.family_scale
        )

    def estimator(self) -> Estimator:
        """Return the curvature estimator that the options name, fitted where it has constants."""
        if self.options.estimator == "global":
            return Global(max(self._curvatures()))
        if self.options.estimator == "l0l1":
            return fit_l0l1(self.family, seed=self.options.seed)
        return PowerIteration(0, stir=0.02)

    def _curvatures(self) -> list[float]:
        """Return the curvatures at the starts of the held-out problems."""
        problems = (self.problem(VALIDATION, i) for i in range(self.options.validation))
        return [largest_curvature(problem, problem.start().x0)[0] for problem in problems]


class FlowTarget(Target[Coefficients, FlowInstance]):
    """Learns the coefficients of the inertial system; the sequence follows its flow."""

    strict = True
    rules: Rules

    def __init__(self, family: Family, options: FlowOptions, given: Given = NOTHING) -> None:
        self.family, self.options, self.given = family, options, given
        self.source = InstanceSampler(family, options)
        if given.coefficients is not None:
            self.start = given.coefficients
            check_times(float(self.start.alpha), options.h, options.t0)
            check_curves(self.start, options.t0, options.t1)
        else:
            self.start = options.first_coefficients()
        self.kind = OWN if options.coefficients == OWN else kind_of(self.start)
        self.rules = self._rules()
        self.learnable = jax.tree.map(eqx.is_inexact_array, self.start)
        if not options.learn_alpha:
            self.learnable = eqx.tree_at(lambda c: c.alpha, self.learnable, False)

    def _rules(self) -> Rules:
        """Return the rules, with the substeps that are given or that the first batch needs."""
        options = self.options
        rules = Rules(
            jnp.asarray(options.tol), options.safety, h=options.h, t0=options.t0,
            K=options.horizon, kappa=options.kappa, lam=options.lam,
            estimator=self.source.estimator(), printed=options.units == "printed",
            counted=self.given.counted, own=self._own_penalties(),
        )  # fmt: skip
        count = options.substeps or chosen_substeps(self.start, self._first_batch(), rules)
        return replace(rules, substeps=count)

    def _own_penalties(self) -> OwnPenalties | None:
        penalties = self.given.penalties
        if not penalties:
            return None
        x0 = self.problem(TRAINING, 0).start().x0
        check_penalties(penalties, self.start, x0, self.options.t0)
        return OwnPenalties(penalties, self.start)

    def _first_batch(self) -> list[FlowInstance]:
        problems = (self.problem(TRAINING, i) for i in range(self.options.batch))
        return [self.source.instance(problem) for problem in problems]

    def mesh(self, learned: Coefficients) -> dict[str, Any]:
        error = mesh_error(learned, self._first_batch(), self.rules)
        return {"substeps": self.rules.substeps, "mesh_error": error}

    def shown(self, learned: Coefficients) -> Any:
        return module_of(learned)

    def problem(self, stream: int, i: int) -> Problem:
        return self.source.problem(stream, i)

    def instance(self, problem: Problem, stream: int, i: int) -> FlowInstance:
        return self.source.instance(problem)

    def solve(self, learned: Coefficients, problem: Problem, instance: FlowInstance) -> Result:
        options = self.options
        schedule = learned.schedule(options.h, options.t0, options.horizon)
        return solve(
            problem, np.asarray(instance.x0), method=schedule.scaled(float(instance.scale)),
            tol=options.tol, max_iter=options.horizon,
        )  # fmt: skip

    def method(self, learned: Coefficients, worst: int) -> Method:
        options = self.options
        horizon = min(options.horizon, math.ceil(FLOW_HORIZON_FACTOR * worst))
        return Method(
            schedule=learned.schedule(options.h, options.t0, horizon),
            family=self.family.name,
            tol=options.tol,
            scale=options.scale,
            family_scale=self.source.family_scale,
            start=PAPER,
            formula=self._formula(learned),
        )

    def _formula(self, learned: Coefficients) -> Formula | None:
        """Return the coefficients for the file; it has no code, so none of one's own."""
        if self.kind == OWN:
            return None
        h, t0 = self.options.h, self.options.t0
        return Formula(self.kind, learned.settings, learned.parameters(), h, t0)

    def finalized(self, learned: Coefficients, method: Method) -> Method:
        return method.replace(statistics=dict(method.statistics) | {"mesh": self.mesh(learned)})

    def baselines(self, method: Method) -> dict[str, str | Method]:
        return BASELINES

    def certificate(
        self,
        learned: Coefficients,
        method: Method,
        problems: Sequence[Problem],
        instances: Sequence[FlowInstance],
    ) -> dict[str, Any]:
        try:
            found = certificate_of(
                learned, problems, name=self.kind, K=method.horizon,
                h=self.options.h, t0=self.options.t0,
                scales=[float(one.scale) for one in instances],
                starts=[np.asarray(one.x0) for one in instances],
            )  # fmt: skip
        except InputError as error:  # the last point of the paper's protocol may be anything
            found = uncertified(self.kind, len(problems), str(error))
        return found.summary() | {"verdict": found.words()}


def flow_plan(
    given: Given,
    family: Family,
    options: FlowOptions,
    memory: object,
    log: Callable[[str], None],
    executor: Executor,
) -> TrainingPlan:
    """Return how training of a flow begins: at once, without restarts."""
    return TrainingPlan(
        lambda _, steps: StopmStage(FlowTarget(family, options, given), options, steps, executor)
    )
