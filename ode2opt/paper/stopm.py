"""One step of StoPM, the stochastic penalty method (section 7; the paper's Algorithm 2).

    theta <- theta - eta d/dtheta [ T + rho (P + Q) ]     on sampled problems

What is learned may be any tree of arrays: a flow's coefficients (the paper), a sequence's table.
``rules`` say what T and the penalty of an instance are, ``_value_and_slope`` is what is
differentiated, and the optimiser is one of optax.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ode2opt.base.arrays import Array
from ode2opt.base.precision import double
from ode2opt.paper.stopping_time import StoppingTime

Tree = TypeVar("Tree")
InstanceT = TypeVar("InstanceT")
Tree_contra = TypeVar("Tree_contra", contravariant=True)
InstanceT_contra = TypeVar("InstanceT_contra", contravariant=True)


class StoppingRules(Protocol[Tree_contra, InstanceT_contra]):
    """How the stopping time of an instance is measured, and what is minimised of it."""

    def stopping_time(self, learned: Tree_contra, instance: InstanceT_contra, /) -> StoppingTime:
        """Return T, P and Q of an instance, differentiable."""

    def objective(self, found: StoppingTime, /) -> Array:
        """Return what is minimised, before the penalty."""

    def with_safety(self, safety: float, /) -> StoppingRules[Tree_contra, InstanceT_contra]:
        """Return the same rules with another factor on the curvature that P is measured with."""


class TrainingState(NamedTuple):
    """What a step changes."""

    parameters: Any  # the learned arrays; None at leaves that are not learned
    memory: Any  # of the optimiser
    penalty: float  # rho


class Batch(NamedTuple):
    """What a step saw: means over the problems of its batch, None if no value is finite."""

    stopping_time: float | None  # of the instances that reached the tolerance
    P: float | None
    Q: float | None
    loss: float | None  # T + rho times the penalty
    reached: int
    failed: int
    min_cosines: tuple[float, ...]  # of each instance


class StoPM(Generic[Tree, InstanceT]):
    """The training step, for one set of rules.

    ``learnable`` is a tree like ``start`` with True at the arrays that are learned; ``clip`` is the
    largest norm of one problem's gradient.
    """

    def __init__(
        self, start: Tree, learnable: Any, rules: StoppingRules[Tree, InstanceT],
        optimizer: optax.GradientTransformation, *, penalty: float, clip: float | None = None,
    ) -> None:  # fmt: skip
        self.rules, self.penalty, self.clip, self._optimizer = rules, penalty, clip, optimizer
        first, self._rest = eqx.partition(start, learnable)
        self.start = self.start_from(first)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_optimizer": None}  # it is asked for slopes elsewhere, not updated

    def start_from(self, parameters: Any) -> TrainingState:
        """Return the state that begins with parameters."""
        return TrainingState(parameters, self._optimizer.init(parameters), self.penalty)

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
        """Update the parameters by the finite gradients of a batch, added in their order."""
        slopes = [slope for _, slope in seen if slope is not None]
        if slopes:
            mean = jax.tree.map(lambda *parts: sum(parts) / len(parts), *slopes)
            change, memory = self._optimizer.update(mean, state.memory, state.parameters)
            new = optax.apply_updates(state.parameters, change)
            state = state._replace(parameters=new, memory=memory)
        return state, _summary([found for found, _ in seen], state.penalty)

    @double
    def slope(self, state: TrainingState, instance: InstanceT) -> tuple[StoppingTime, Any]:
        """Return T, P, Q of an instance, and its gradient by the parameters, clipped, or None."""
        found, slope = _value_and_slope(*self._asked(state, instance), self.rules)
        norm = float(optax.tree.norm(slope))
        if not math.isfinite(norm):
            return found, None
        if self.clip is None or norm <= self.clip:
            return found, slope
        return found, jax.tree.map(lambda part: self.clip / norm * part, slope)

    @double
    def measure(
        self, state: TrainingState, instance: InstanceT, safety: float = 1.0
    ) -> StoppingTime:
        """Return T, P and Q of an instance."""
        asked = self._asked(state, instance)
        return _value_and_slope(*asked, self.rules.with_safety(safety))[0]  # compiled already

    def _asked(self, state: TrainingState, instance: InstanceT) -> tuple[Any, Any, InstanceT, Any]:
        return state.parameters, self._rest, instance, jnp.asarray(state.penalty)


@eqx.filter_jit
def _value_and_slope(
    parameters: Any, rest: Any, instance: Any, rho: Array, rules: StoppingRules[Any, Any]
) -> tuple[StoppingTime, Any]:
    """Return T, P, Q and d/dtheta [ T + rho penalty ]: all that is differentiated."""

    def loss(parameters: Any) -> tuple[Array, StoppingTime]:
        found = rules.stopping_time(eqx.combine(parameters, rest), instance)
        return rules.objective(found) + rho * found.penalty, found

    slope, found = jax.grad(loss, has_aux=True)(parameters)
    return found, slope


def _summary(found: list[StoppingTime], rho: float) -> Batch:
    reached, failed = [bool(one.reached) for one in found], [bool(one.failed) for one in found]
    T = _mean(one.T for one, met in zip(found, reached, strict=True) if met)
    P, Q = _mean(one.P for one in found), _mean(one.Q for one in found)
    penalty = _mean(one.penalty for one in found)
    loss = None if T is None or penalty is None else T + rho * penalty
    cosines = tuple(float(one.min_cosine) for one in found)
    return Batch(T, P, Q, loss, sum(reached), sum(failed), cosines)


def _mean(values: Iterable[Array]) -> float | None:
    finite = [value for value in map(float, values) if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
