"""StoPM, the stochastic penalty method (docs/mathematics.md, section 7; the paper's Algorithm 2).

theta <- theta - eta d/dtheta [ T + rho (P + Q) ]     on sampled problems
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ode2opt.base.arrays import Array
from ode2opt.paper.instance import InstanceT, StoppingRules, StoppingTime, Tree
from ode2opt.paper.jaxed import double

FINAL_SHARE = 0.01  # of the step size, at the end of an exponential decay
FIRST_STEPS = 10  # in which the step size of the decay theorem hardly falls


class StoPMOptions(Protocol):
    """What StoPM asks of the options of training."""

    @property
    def optimizer(self) -> str:
        """sgd (the paper's), adam or adamw."""

    @property
    def learning_rate(self) -> float:
        """The step size eta at the start."""

    @property
    def momentum(self) -> float:
        """Of sgd; the paper's is 0.9."""

    @property
    def decay(self) -> str:
        """How the step size falls: see :func:`step_sizes`."""

    @property
    def decay_power(self) -> float:
        """The power p of the decay "theorem"."""

    @property
    def steps(self) -> int:
        """Of training, in all."""

    @property
    def clip(self) -> float | None:
        """The largest norm of one problem's gradient."""

    @property
    def penalty(self) -> float:
        """The coefficient rho of P + Q at the start."""


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
    """

    def __init__(
        self,
        start: Tree,
        learnable: Any,
        options: StoPMOptions,
        rules: StoppingRules[Tree, InstanceT],
    ) -> None:
        self.options, self.rules = options, rules
        self._optimizer = _optimizer(options)
        first, self._rest = eqx.partition(start, learnable)
        self.start = self.start_from(first)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_optimizer": None}  # it is asked for slopes elsewhere, not updated

    def start_from(self, parameters: Any) -> TrainingState:
        """Return the state that training starts with."""
        return TrainingState(parameters, self._optimizer.init(parameters), self.options.penalty)

    def learned(self, state: TrainingState) -> Tree:
        """Return the whole tree of a state: learned arrays and fixed ones."""
        whole: Tree = eqx.combine(state.parameters, self._rest)
        return whole

    def step(
        self, state: TrainingState, instances: Sequence[InstanceT]
    ) -> tuple[TrainingState, Batch]:
        """Update the parameters once."""
        return self.updated(state, [self.slope(state, one) for one in instances])

    @double
    def updated(
        self, state: TrainingState, seen: Sequence[tuple[StoppingTime, Any]]
    ) -> tuple[TrainingState, Batch]:
        """Update the parameters by the gradients of a batch, which are added in their order.

        An instance that did not reach the tolerance contributes the gradients of P and Q only; one
        whose gradient is not finite contributes nothing.
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
        """Return the stopping time of an instance, and its gradient by the parameters."""
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
        """Return T, P and Q of an instance."""
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


def step_sizes(options: StoPMOptions) -> Callable[[Any], Any]:
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


def _optimizer(options: StoPMOptions) -> Any:
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
