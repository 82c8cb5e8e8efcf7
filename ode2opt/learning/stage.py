"""The stage of a target: StoPM learns it, and held-out problems judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic

import equinox as eqx
import jax
import numpy as np
import optax

from ode2opt.base.errors import Ode2OptError
from ode2opt.base.precision import double
from ode2opt.executor import Executor
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import (
    TEST,
    TEST_PROBLEMS,
    TRAINING,
    VALIDATION,
    Finished,
    InstanceT,
    Target,
    TrainingStage,
    Tree,
)
from ode2opt.learning.validation import ProblemTasks, Validation, Validator
from ode2opt.paper.stopm import Batch, StoPM, TrainingState
from ode2opt.solvers import Method

CAUTION = 1.02  # the factor by which validation takes the curvature to be larger
CERTIFIED_PROBLEMS = 5  # held-out ones
REJECT_RATIO = 1.2  # times the best complexity: beyond it training goes back to the best point
FINAL_SHARE = 0.01  # of the step size, at the end of an exponential decay
FIRST_STEPS = 10  # in which the step size of the decay theorem hardly falls


def step_sizes(options: Options) -> Callable[[Any], Any]:
    """Return the step size as a function of the step k, counted from 0.

    The decay "theorem" is lr (1 + k/10)^-p with 1/2 < p <= 1. The sum of these over all k is
    infinite and that of their squares finite, as the convergence of StoPM asks
    (docs/mathematics.md, section 17).
    """
    lr, steps = options.learning_rate, options.steps
    schedules: dict[str, Callable[[Any], Any]] = {
        "constant": optax.constant_schedule(lr),
        "cosine": optax.cosine_decay_schedule(lr, steps),
        "exponential": optax.exponential_decay(lr, steps, FINAL_SHARE),
        "theorem": lambda k: lr * (1 + k / FIRST_STEPS) ** -options.decay_power,
    }
    return schedules[options.decay]


def optimizer_of(options: Options) -> Any:
    """Return the optimiser that the options name."""
    sizes = step_sizes(options)
    return {
        "sgd": lambda: optax.sgd(sizes, momentum=options.momentum),
        "adam": lambda: optax.adam(sizes),
        "adamw": lambda: optax.adamw(sizes),
    }[options.optimizer]()


def stopm_of(target: Target[Tree, InstanceT], options: Options) -> StoPM[Tree, InstanceT]:
    """Return the training step of a target with the options' optimiser."""
    return StoPM(
        target.start, target.learnable, target.rules, optimizer_of(options),
        penalty=options.penalty, clip=options.clip,
    )  # fmt: skip


class StopmStage(TrainingStage, Generic[Tree, InstanceT]):
    """Makes steps of StoPM on the problems of a target."""

    @double
    def __init__(
        self, target: Target[Tree, InstanceT], options: Options, steps: int, executor: Executor
    ) -> None:
        self.target, self.options, self.executor = target, replace(options, steps=steps), executor
        self.stopm = stopm_of(target, self.options)
        self.start = self.stopm.start
        self.worse = TrainingStage.worse if target.strict else REJECT_RATIO
        self.tasks = ProblemTasks(target, self.stopm)
        self.validator = Validator(self.tasks, VALIDATION, options.validation, CAUTION, executor)

    def begin(self, parameters: Any) -> TrainingState:
        return self.stopm.start_from(parameters)

    def numbers(self, k: int) -> range:
        return range(k * self.options.batch, (k + 1) * self.options.batch)

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch]:
        """Update the parameters once, by the slopes of step k's problems."""
        asked = [(state._replace(memory=None), (TRAINING, i)) for i in self.numbers(k)]
        slopes = list(self.executor.map(ProblemTasks.slope, self.tasks, asked, threads=True))
        return self.stopm.updated(state, slopes)

    def due(self, k: int) -> bool:
        return (k + 1) % self.options.validate_every == 0 or k + 1 == self.options.steps

    def told(self, k: int, before: TrainingState, after: TrainingState) -> dict[str, Any]:
        """Return how exact T was, at the start and where a validation is due."""
        return self.target.mesh(self.stopm.learned(before)) if self.due(k) or k == 0 else {}

    def validated(self, state: TrainingState) -> Validation:
        return self.validator(state)

    def check_start(self, found: Validation) -> None:
        """Refuse a family on which not one problem reaches the tolerance."""
        if found.flows if self.target.strict else found.reached:
            return
        options, family = self.options, self.target.family
        raise Ode2OptError(
            f"No {options.target} of {found.total} held-out problems of {family.name} reaches the "
            f"gradient norm {options.tol:g} within {options.horizon} iterations: raise the "
            f"tolerance or the horizon, or add l2 to the problem, and train anew (there is nothing "
            f"to resume)."
        )

    def learned(self, state: TrainingState) -> Any:
        shown = self.target.shown(self.stopm.learned(state))
        return jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, shown)

    def method(self, state: TrainingState, found: Mapping[str, Any]) -> Method:
        return self.target.method(self.stopm.learned(state), found["worst"])

    def finished(self, state: TrainingState, found: Mapping[str, Any] | None) -> Finished:
        """Certify the best point, and follow fresh test problems."""
        assert found is not None
        target, learned = self.target, self.stopm.learned(state)
        method = self.method(state, found).replace(statistics={"validation": found})
        method = target.finalized(learned, method)
        held_out = self.validator.drawn(CERTIFIED_PROBLEMS)
        certificate = target.certificate(learned, method, *held_out)
        fresh = Validator(self.tasks, TEST, TEST_PROBLEMS, executor=self.executor)
        problems, instances = fresh.drawn()
        starts = [np.asarray(one.x0) for one in instances]
        end = Finished(method, target.baselines(method), problems, starts, certificate)
        return end if method.instant else end._replace(violations=fresh.follow(state))
