"""A while loop over the rows of a table that reverse mode can differentiate.

Every state is kept on the way and the step is done again on the way back: the price is one step
more, and nothing is paid for the rows after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ode2opt.base.arrays import Array

LoopStep = Callable[[Any, Any, Any, Any], tuple[Any, Array]]


def loop(step: LoopStep, state: Any, rows: Any, constants: Any) -> tuple[Any, Array, Array]:
    """Take steps from row to row until one asks to stop, or the rows end."""
    return _loop((state, rows), constants, step)


@eqx.filter_custom_vjp
def _loop(variables: Any, constants: Any, step: LoopStep) -> tuple[Any, Array, Array]:
    return _forward(variables, constants, step)[0]


def _forward(variables: Any, constants: Any, step: LoopStep) -> tuple[Any, Any]:
    first, rows = variables
    count = len(jax.tree.leaves(rows)[0]) - 1
    kept = jax.tree.map(lambda a: jnp.zeros((count, *a.shape), a.dtype), first)

    def go_on(carry: tuple[Any, Array, Array, Any]) -> Array:
        _, i, over, _ = carry
        return ~over & (i < count)

    def body(carry: tuple[Any, Array, Array, Any]) -> tuple[Any, Array, Array, Any]:
        state, i, _, kept = carry
        kept = jax.tree.map(lambda all_, one: all_.at[i].set(one), kept, state)
        new, over = step(row_of(rows, i), row_of(rows, i + 1), state, constants)
        state = jax.tree.map(lambda old, new: jnp.where(over, old, new), state, new)
        return state, jnp.where(over, i, i + 1), over, kept

    carry = (first, jnp.asarray(0), jnp.asarray(False), kept)
    state, i, over, kept = jax.lax.while_loop(go_on, body, carry)
    return (state, i, over), kept


def _fwd(perturbed: Any, variables: Any, constants: Any, step: LoopStep) -> tuple[Any, Any]:
    del perturbed
    out, kept = _forward(variables, constants, step)
    return out, (kept, out[1])


def _bwd(
    saved: Any, slopes: Any, perturbed: Any, variables: Any, constants: Any, step: LoopStep
) -> tuple[Any, Any]:
    del perturbed
    (kept, end), (first, rows) = saved, variables
    pull = jax.tree.map(
        lambda a, slope: jnp.zeros_like(a) if slope is None else slope, first, slopes[0]
    )

    def body(carry: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        i, pull, table = carry
        _, back = jax.vjp(
            lambda here, there, state: step(here, there, state, constants)[0],
            row_of(rows, i), row_of(rows, i + 1), row_of(kept, i),
        )  # fmt: skip
        here, there, pull = back(pull)
        table = jax.tree.map(lambda t, a, b: t.at[i].add(a).at[i + 1].add(b), table, here, there)
        return i - 1, pull, table

    carry = (end - 1, pull, jax.tree.map(jnp.zeros_like, rows))
    _, pull, table = jax.lax.while_loop(lambda carry: carry[0] >= 0, body, carry)
    return pull, table


_loop.def_fwd(_fwd)
_loop.def_bwd(_bwd)


def row_of(table: Any, i: Array) -> Any:
    """Return row ``i`` of every array of a tree."""
    return jax.tree.map(lambda rows: rows[i], table)
