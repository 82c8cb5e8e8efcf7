"""Batches of problems with a penalty on JAX: all of them make an iteration at once.

What all problems share, such as the matrix of a dictionary, is multiplied with all of their vectors
in one product.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.integrations.jax_fallback import norm
from ode2opt.learning.sequence.composite.objective import ProblemBatch
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.proofs.table import TableRow
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.oracle import PROGRESS


class ProximalLimits(NamedTuple):
    """A table and when it ends, as arrays: another of the same shapes does not compile anew.

    Attributes:
        rows: the columns m, p, q and w, divided by the curvature.
        envelope: the guard's, infinite where it has none; one number an iteration and one more.
        blowup: the guard's.
        patience: the guard's.
        tol: the residual to reach.
        max_iter: iterations at most.
    """

    rows: tuple[Array, ...]
    envelope: Array
    blowup: Array
    patience: Array
    tol: Array
    max_iter: Array


class ProximalState(NamedTuple):
    """One solve under way; ``norm`` is the residual.

    Attributes:
        k: iterations made.
        x: the iterate.
        before: the iterate before it.
        g: the gradient at the iterate.
        slope_before: the gradient that the last iteration was made with.
        norm: the residual at the iterate.
        first: that of the start.
        best_x: the point with the least residual.
        best_norm: the residual there.
        progress: the residual of the last iteration that was a tenth better than the one before.
        progress_k: that iteration.
    """

    k: Array
    x: Array
    before: Array
    g: Array
    slope_before: Array
    norm: Array
    first: Array
    best_x: Array
    best_norm: Array
    progress: Array
    progress_k: Array


def limits_of(method: Method, tol: float, max_iter: int | None) -> ProximalLimits:
    """Return the table of a method with its limits."""
    if method.proximal is None:
        raise InputError(f"The method for {method.family} is for smooth problems: leave penalty.")
    table, guard = method.proximal.scaled(method.family_scale or 1.0), method.guard
    envelope = np.full(len(table) + 1, np.inf)
    envelope[: len(guard.envelope)] = guard.envelope[: len(envelope)]
    most = len(table) + 1 if max_iter is None else max_iter
    rows = tuple(map(jnp.asarray, table.columns()))
    numbers = map(jnp.asarray, (envelope, guard.blowup, guard.patience, tol, most))
    return ProximalLimits(rows, *numbers)


class BatchOfPenalised:
    """Solves of problems of one kind and shape with one penalty."""

    def __init__(self, penalty: Penalty, status: Any) -> None:
        self.penalty, self._why = penalty, status
        self._compiled: dict[Any, Any] = {}

    def solve(
        self, limits: ProximalLimits, batch: ProblemBatch, starts: Array
    ) -> tuple[ProximalState, Array]:
        """Return the last states, and why each solve ended."""
        key = (batch.axes, batch.tree)
        if key not in self._compiled:
            self._compiled[key] = jax.jit(partial(self._all, *key))
        found: tuple[ProximalState, Array] = self._compiled[key](limits, batch.arrays, starts)
        return found

    def _all(
        self, axes: Any, tree: Any, limits: ProximalLimits, arrays: list[Array], starts: Array
    ) -> tuple[ProximalState, Array]:
        def each(function: Any, *rest: Array) -> Any:
            def one(state: Any, *leaves: Array) -> Any:
                return function(jax.tree.unflatten(tree, leaves), state, limits)

            return jax.vmap(one, in_axes=(0, *axes))(*rest, *arrays)

        why = jax.vmap(partial(self._why, limits))

        def step(states: ProximalState) -> ProximalState:
            new, running = each(self._step, states), why(states) < 0
            return jax.tree.map(
                lambda n, o: jnp.where(running.reshape(-1, *[1] * (n.ndim - 1)), n, o), new, states
            )

        first = each(self._begin, starts)
        last = jax.lax.while_loop(lambda states: jnp.any(why(states) < 0), step, first)
        return last, why(last)

    def _begin(self, problem: Problem, x: Array, limits: ProximalLimits) -> ProximalState:
        g = problem.gradient(x)
        size, zero = self._residual(x, g), jnp.asarray(0)
        return ProximalState(zero, x, x, g, g, size, size, x, size, size, zero)

    def _step(
        self, problem: Problem, state: ProximalState, limits: ProximalLimits
    ) -> ProximalState:
        row = TableRow(*(column[state.k] for column in limits.rows))
        at = row.ahead(state.x, state.before)
        slope = jax.lax.cond(
            jnp.any(limits.rows[-1] != 0), lambda: problem.gradient(at), lambda: state.g
        )
        slope = jnp.where(state.k == 0, state.g, slope)
        x = row.step(state.x, state.before, slope, state.slope_before, self.penalty.prox)
        g = problem.gradient(x)
        size, k = self._residual(x, g), state.k + 1
        better, progress = size < state.best_norm, size < PROGRESS * state.progress
        return ProximalState(
            k, x, state.x, g, slope, size, state.first,
            best_x=jnp.where(better, x, state.best_x),
            best_norm=jnp.where(better, size, state.best_norm),
            progress=jnp.where(progress, size, state.progress),
            progress_k=jnp.where(progress, k, state.progress_k),
        )  # fmt: skip

    def _residual(self, x: Array, g: Array) -> Array:
        size = norm(x - self.penalty.prox(x - g, 1.0))
        return jnp.where(jnp.all(jnp.isfinite(x)), size, jnp.inf)
