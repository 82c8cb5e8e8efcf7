"""StoPM, the stochastic penalty method (docs/mathematics.md, section 7; the paper's Algorithm 2).

theta <- theta - eta d/dtheta [ T + rho (P + Q) ]     on sampled problems
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ode2opt.dynamics.jaxed import double
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import One, StoppingRules, StoppingTime, Tree
from ode2opt.problems._arrays import Array

FINAL_SHARE = 0.01  # of the step size, at the end of an exponential decay


class TrainingState(NamedTuple):
    """What a step changes: the learned arrays, the optimiser's memory, rho."""

    parameters: Any
    memory: Any
    penalty: float


class Batch(NamedTuple):
    """What a step saw: means over the problems where they are known, else None."""

    stopping_time: float | None
    P: float | None
    Q: float | None
    loss: float | None
    reached: int
    failed: int
    turns: tuple[float, ...]


class StoPM(Generic[Tree, One]):
    """The training step for one set of options and rules.

    Args:
        start: a tree to learn, the coefficients of a flow or a sequence's table and filter.
        learnable: the same tree with True at each array that is learned.
        options: of training.
        rules: what is minimised.
    """

    def __init__(
        self, start: Tree, learnable: Any, options: Options, rules: StoppingRules[Tree, One]
    ) -> None:
        self.options, self.rules = options, rules
        self._optimizer = _optimizer(options)
        first, self._rest = eqx.partition(start, learnable)
        self.start = self.start_from(first)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_optimizer": None}  # it is asked for slopes elsewhere, not updated

    def start_from(self, parameters: Any) -> TrainingState:
        """Return the state that training starts with, from given parameters."""
        return TrainingState(parameters, self._optimizer.init(parameters), self.options.penalty)

    def learned(self, state: TrainingState) -> Tree:
        """Return the whole tree of a state."""
        whole: Tree = eqx.combine(state.parameters, self._rest)
        return whole

    def step(self, state: TrainingState, instances: Sequence[One]) -> tuple[TrainingState, Batch]:
        """Update the parameters on a batch."""
        return self.updated(state, [self.slope(state, one) for one in instances])

    @double
    def updated(
        self, state: TrainingState, seen: Sequence[tuple[StoppingTime, Any]]
    ) -> tuple[TrainingState, Batch]:
        """Update the parameters by the slopes of a batch, which are added in their order.

        Where a flow was not finished, its T is left out and its P and Q stay; an instance whose
        gradient is not finite is left out altogether.
        """
        slopes = [slope for _, slope in seen if slope is not None]
        if slopes:
            mean = jax.tree.map(lambda *parts: sum(parts) / len(parts), *slopes)
            change, memory = self._optimizer.update(mean, state.memory, state.parameters)
            new = optax.apply_updates(state.parameters, change)
            state = state._replace(parameters=new, memory=memory)
        return state, _summary([found for found, _ in seen], state.penalty)

    @double
    def slope(self, state: TrainingState, one: One) -> tuple[StoppingTime, Any]:
        """Return the stopping time of an instance and its clipped slope, None if not finite."""
        rho = jnp.asarray(state.penalty)
        found, slope = _value_and_slope(state.parameters, self._rest, one, rho, self.rules)
        norm = float(optax.tree.norm(slope))
        if not math.isfinite(norm):
            return found, None
        shrink = min(1.0, self.options.clip / norm) if norm else 1.0
        return found, jax.tree.map(lambda part: shrink * part, slope)

    @double
    def measure(self, state: TrainingState, one: One, safety: float = 1.0) -> StoppingTime:
        """Return T, P and Q of one instance, P with a safety factor of its own."""
        rho = jnp.asarray(state.penalty)
        rules = self.rules.cautious(safety)
        return _value_and_slope(state.parameters, self._rest, one, rho, rules)[0]


@eqx.filter_jit
def _value_and_slope(
    parameters: Any, rest: Any, one: One, rho: Array, rules: StoppingRules[Tree, One]
) -> tuple[StoppingTime, Any]:
    def loss(parameters: Any) -> tuple[Array, StoppingTime]:
        found = rules.stopping_time(eqx.combine(parameters, rest), one)
        return rules.objective(found) + rho * (found.P + found.Q), found

    slope, found = jax.grad(loss, has_aux=True)(parameters)
    return found, slope


def _optimizer(options: Options) -> Any:
    lr, steps = options.learning_rate, options.steps
    schedule = {
        "constant": optax.constant_schedule(lr),
        "cosine": optax.cosine_decay_schedule(lr, steps),
        "exponential": optax.exponential_decay(lr, steps, FINAL_SHARE),
    }[options.decay]
    return {
        "sgd": lambda: optax.sgd(schedule, momentum=options.momentum),
        "adam": lambda: optax.adam(schedule),
        "adamw": lambda: optax.adamw(schedule),
    }[options.optimizer]()


def _summary(found: list[StoppingTime], rho: float) -> Batch:
    reached = [bool(one.reached) for one in found]
    P, Q = _mean([float(one.P) for one in found]), _mean([float(one.Q) for one in found])
    T = _mean([float(one.T) for one, met in zip(found, reached, strict=True) if met])
    loss = None if T is None or P is None or Q is None else T + rho * (P + Q)
    turns = tuple(float(one.turn) for one in found)
    return Batch(T, P, Q, loss, sum(reached), sum(bool(one.failed) for one in found), turns)


def _mean(values: list[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
