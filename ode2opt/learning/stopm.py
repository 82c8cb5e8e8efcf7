"""StoPM, the stochastic penalty method (docs/mathematics.md, section 7; the paper's Algorithm 2).

theta <- theta - eta d/dtheta [ T + rho (P + Q) ]     on sampled problems
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ode2opt.dynamics.jaxed import double
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import InstanceT, StoppingRules, StoppingTime, Tree
from ode2opt.problems._arrays import Array

FINAL_SHARE = 0.01  # of the step size, at the end of an exponential decay
FIRST_STEPS = 10  # in which the step size of the decay theorem hardly falls


class TrainingState(NamedTuple):
    """What a step changes.

    Attributes:
        parameters: the learned arrays; None at leaves that are not learned.
        memory: the state of the optax optimiser.
        penalty: the coefficient rho of P + Q.
    """

    parameters: Any
    memory: Any
    penalty: float


class Batch(NamedTuple):
    """What a step saw: means over the problems of its batch.

    Attributes:
        stopping_time: the mean T of the instances that reached the tolerance, None if none did.
        P: the mean stability violation, None if no value is finite.
        Q: the mean convergence violation, None if no value is finite.
        loss: T + rho (P + Q), None where one of them is.
        reached: how many instances reached the tolerance.
        failed: how many blew up.
        min_cosines: ``StoppingTime.min_cosine`` of each instance.
    """

    stopping_time: float | None
    P: float | None
    Q: float | None
    loss: float | None
    reached: int
    failed: int
    min_cosines: tuple[float, ...]


class StoPM(Generic[Tree, InstanceT]):
    """The training step for one set of options and rules.

    theta <- theta - eta d/dtheta [ T + rho (P + Q) ], averaged over a batch.

    Args:
        start: the tree to learn: the coefficients of a flow, or a sequence's table and filter.
        learnable: the same tree with True at each array that is learned.
        options: of training: optimiser, step size, clipping, penalty.
        rules: how a stopping time is measured and what is minimised of it.
    """

    def __init__(
        self, start: Tree, learnable: Any, options: Options, rules: StoppingRules[Tree, InstanceT]
    ) -> None:
        self.options, self.rules = options, rules
        self._optimizer = _optimizer(options)
        first, self._rest = eqx.partition(start, learnable)
        self.start = self.start_from(first)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_optimizer": None}  # it is asked for slopes elsewhere, not updated

    def start_from(self, parameters: Any) -> TrainingState:
        """Return the state that training starts with.

        Args:
            parameters: the learned arrays to start from.
        """
        return TrainingState(parameters, self._optimizer.init(parameters), self.options.penalty)

    def learned(self, state: TrainingState) -> Tree:
        """Return the whole tree of a state: learned arrays and fixed ones.

        Args:
            state: of training.
        """
        whole: Tree = eqx.combine(state.parameters, self._rest)
        return whole

    def step(
        self, state: TrainingState, instances: Sequence[InstanceT]
    ) -> tuple[TrainingState, Batch]:
        """Update the parameters once.

        Args:
            state: before the step.
            instances: the batch.

        Returns:
            The state after the step, and what it saw.
        """
        return self.updated(state, [self.slope(state, one) for one in instances])

    @double
    def updated(
        self, state: TrainingState, seen: Sequence[tuple[StoppingTime, Any]]
    ) -> tuple[TrainingState, Batch]:
        """Update the parameters by the gradients of a batch, which are added in their order.

        An instance that did not reach the tolerance contributes the gradients of P and Q only; one
        whose gradient is not finite contributes nothing.

        Args:
            state: before the step.
            seen: what :meth:`slope` returned for each instance.

        Returns:
            The state after the step, and what it saw.
        """
        slopes = [slope for _, slope in seen if slope is not None]
        if slopes:
            mean = jax.tree.map(lambda *parts: sum(parts) / len(parts), *slopes)
            change, memory = self._optimizer.update(mean, state.memory, state.parameters)
            new = optax.apply_updates(state.parameters, change)
            state = state._replace(parameters=new, memory=memory)
        return state, _summary([found for found, _ in seen], state.penalty)

    @double
    def slope(self, state: TrainingState, instance: InstanceT) -> tuple[StoppingTime, Any]:
        """Return the stopping time of an instance, and its gradient by the parameters.

        Args:
            state: of training.
            instance: the problem with its start.

        Returns:
            The stopping time, and the gradient clipped to the norm ``options.clip``; None in its
            place where it is not finite.
        """
        rho = jnp.asarray(state.penalty)
        found, slope = _value_and_slope(state.parameters, self._rest, instance, rho, self.rules)
        norm = float(optax.tree.norm(slope))
        if not math.isfinite(norm):
            return found, None
        clip = self.options.clip
        if clip is None or norm <= clip:
            return found, slope
        return found, jax.tree.map(lambda part: clip / norm * part, slope)

    @double
    def measure(
        self, state: TrainingState, instance: InstanceT, safety: float = 1.0
    ) -> StoppingTime:
        """Return T, P and Q of an instance.

        Args:
            state: of training.
            instance: the problem with its start.
            safety: the factor on the curvature that P is measured with; 1 by default.
        """
        rho = jnp.asarray(state.penalty)
        rules = self.rules.with_safety(safety)
        return _value_and_slope(state.parameters, self._rest, instance, rho, rules)[0]


@eqx.filter_jit
def _value_and_slope(
    parameters: Any,
    rest: Any,
    instance: InstanceT,
    rho: Array,
    rules: StoppingRules[Tree, InstanceT],
) -> tuple[StoppingTime, Any]:
    def loss(parameters: Any) -> tuple[Array, StoppingTime]:
        found = rules.stopping_time(eqx.combine(parameters, rest), instance)
        return rules.objective(found) + rho * found.penalty, found

    slope, found = jax.grad(loss, has_aux=True)(parameters)
    return found, slope


def step_sizes(options: Options) -> Callable[[Any], Any]:
    """Return the step size as a function of the step k, counted from 0.

    The decay "theorem" is lr (1 + k/10)^-p with 1/2 < p <= 1. The sum of these over all k is
    infinite and that of their squares finite, as the convergence of StoPM asks
    (docs/mathematics.md, section 17).

    Args:
        options: ``decay``, ``decay_power``, the learning rate and ``steps`` of training.
    """
    lr, steps = options.learning_rate, options.steps
    schedules: dict[str, Callable[[Any], Any]] = {
        "constant": optax.constant_schedule(lr),
        "cosine": optax.cosine_decay_schedule(lr, steps),
        "exponential": optax.exponential_decay(lr, steps, FINAL_SHARE),
        "theorem": lambda k: lr * (1 + k / FIRST_STEPS) ** -options.decay_power,
    }
    return schedules[options.decay]


def _optimizer(options: Options) -> Any:
    schedule = step_sizes(options)
    return {
        "sgd": lambda: optax.sgd(schedule, momentum=options.momentum),
        "adam": lambda: optax.adam(schedule),
        "adamw": lambda: optax.adamw(schedule),
    }[options.optimizer]()


def _summary(found: list[StoppingTime], rho: float) -> Batch:
    reached = [bool(one.reached) for one in found]
    P, Q = _mean([float(one.P) for one in found]), _mean([float(one.Q) for one in found])
    T = _mean([float(one.T) for one, met in zip(found, reached, strict=True) if met])
    penalty = _mean([float(one.penalty) for one in found])
    loss = None if T is None or penalty is None else T + rho * penalty
    min_cosines = tuple(float(one.min_cosine) for one in found)
    return Batch(T, P, Q, loss, sum(reached), sum(bool(one.failed) for one in found), min_cosines)


def _mean(values: list[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
