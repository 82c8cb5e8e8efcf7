"""optax: ``eigac(method)``, a learned table as a gradient transformation on any tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ode2opt.base.arrays import Array
from ode2opt.base.errors import needing
from ode2opt.base.schedule import Schedule
from ode2opt.integrations._table import ScaledTable, table_of
from ode2opt.paper.ishd import eigac_move, eigac_velocity
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import product

with needing("learn"):
    import jax
    import jax.numpy as jnp
    import optax
    from jax.flatten_util import ravel_pytree

Tree = Any


class EigacState(NamedTuple):
    """How many updates were made, and u, a tree like the parameters."""

    count: Array
    u: Tree


def eigac(
    method: str | Path | Method | Schedule, scale: float | None = None
) -> optax.GradientTransformation:
    """Return EIGAC as an optax transformation (docs/mathematics.md, section 2).

    With p = M g, the preconditioned gradient, each update is e = u - a_k p, x <- x + e and
    u <- u - d_k e - c_k p, with a and c divided by ``scale``. After k updates the parameters
    are x_k of :func:`ode2opt.solve` without a guard: the first update moves nothing. Beyond its end
    the table's last row is used. A preconditioner acts on all leaves as one vector, in the order of
    ``jax.tree.leaves``. There is no guard here: use :func:`ode2opt.solve` for one.
    The parameters start where you put them; a learned table was trained from
    ``method.start_of(problem)``.

    Args:
        method: a learned method with a table: its name ("logistic-a5a"), the ``Path`` of its file
            or a ``Method``; or a schedule.
        scale: the curvature that the table is divided by; positive. By default the method's own
            where it has one for its family, and 1 for a schedule.

    Returns:
        An ``optax.GradientTransformation``.

    Raises:
        InputError: if the method has no table, or is scaled at each start and ``scale`` is None.

    Examples:
        >>> optimizer = eigac(Path("method.safetensors"))
        >>> state = optimizer.init(params)
        >>> updates, state = optimizer.update(jax.grad(loss)(params), state)
        >>> params = optax.apply_updates(params, updates)
    """
    table = table_of(method, scale)
    schedule = table.schedule.scaled(table.scale)

    def init(params: Tree) -> EigacState:
        table.check_size(sum(jnp.size(leaf) for leaf in jax.tree.leaves(params)))
        return EigacState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(
        updates: Tree, state: EigacState, params: Tree | None = None
    ) -> tuple[Tree, EigacState]:
        del params
        p = updates if table.metric is None else _in_metric(table, updates)

        def move(p: Array, u: Array) -> Array:
            a, _, _ = _row(schedule, state.count, p.dtype)
            return eigac_move(jnp.where(state.count == 0, a * p, u), p, a)

        def velocity(p: Array, e: Array) -> Array:
            return eigac_velocity(e, p, *_row(schedule, state.count, p.dtype))

        e = jax.tree.map(move, p, state.u)
        u = jax.tree.map(velocity, p, e)
        return e, EigacState(optax.safe_increment(state.count), u)

    return optax.GradientTransformation(init, update)


def _row(schedule: Schedule, count: Array, dtype: Any) -> tuple[Array, Array, Array]:
    """Return (a, c, d) of an update; beyond the table's end its last row."""
    k = jnp.minimum(count, len(schedule) - 1)
    a, c, d = (jnp.asarray(each, dtype)[k] for each in (schedule.a, schedule.c, schedule.d))
    return a, c, d


def _in_metric(table: ScaledTable, gradients: Tree) -> Tree:
    g, back = ravel_pytree(gradients)
    return back(product(table.parts(lambda part: jnp.asarray(part, g.dtype)), g))
