"""The rows of a table with a prox as they are learned: free numbers, or inside FISTA's proof."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.precision import double
from ode2opt.proofs.table import Table, TableRow, proved_ages

NEAR_ONE = 4.0  # the logit of shares and steps that a proved table begins with: 0.982
KEEP = 0.999  # of the step: how near to 1 a proved one comes, so that rounding keeps it below


class TableRows(Protocol):
    """What is learned: a tree of arrays that makes a table.

    Attributes:
        at_iterate: whether every gradient is taken at the iterate.
    """

    at_iterate: ClassVar[bool]

    def __call__(self) -> TableRow:
        """Return the columns of the table for curvature 1, on JAX arrays."""


class FreeRows(eqx.Module):
    """Three free numbers a row: log step s, momentum m and correction c; p = s (1 + c), q = s c.

    The gradient is taken at the iterate (w = 0), so that its residual is known without another
    one. On a quadratic m = c is FISTA: there the gradient at x + m (x - x_before) is
    (1 + m) g - m g_before.
    """

    at_iterate: ClassVar[bool] = True

    log_s: Array
    m: Array
    c: Array

    def __init__(self, K: int) -> None:
        momenta = jnp.asarray(Table.fista(K).m)
        self.log_s, self.m, self.c = jnp.zeros(K), momenta, momenta

    def __call__(self) -> TableRow:
        """Return the columns of the table for curvature 1, on JAX arrays."""
        s, c = jnp.exp(self.log_s), self.c.at[0].set(0.0)
        return TableRow(self.m, s * (1 + c), s * c, jnp.zeros_like(s))


class ProvedRows(eqx.Module):
    """Two free numbers a row: the step in (0, 1), and the share of the largest proved age."""

    at_iterate: ClassVar[bool] = False

    step: Array
    share: Array

    def __init__(self, K: int) -> None:
        self.step, self.share = jnp.full(K, NEAR_ONE), jnp.full(K, NEAR_ONE)

    def steps_and_ages(self) -> tuple[Array, Array]:
        """Return steps and ages inside the proved set."""
        steps, shares = KEEP * jax.nn.sigmoid(self.step), jax.nn.sigmoid(self.share)

        def older(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Any, Array]:
            (s_before, t_before), (s, share) = before, now
            t = proved_ages((s_before, s), (1.0, share), first=t_before)[1]
            return (s, t), t

        first = (steps[0], jnp.ones(()))
        _, later = jax.lax.scan(older, first, (steps[1:], shares[1:]))
        return steps, jnp.append(jnp.ones(1), later)

    def __call__(self) -> TableRow:
        """Return the columns of the table for curvature 1, on JAX arrays."""
        s, t = self.steps_and_ages()
        m = jnp.append(jnp.zeros(1), (t[:-1] - 1) / t[1:])
        return TableRow(m, s, jnp.zeros_like(s), m)

    @double
    def proof(self, K: int) -> tuple[Table, list[float]]:
        """Return the first rows as a table in plain numbers, and the ages that prove it."""
        steps, ages = (np.asarray(one)[:K] for one in eqx.filter_jit(self.steps_and_ages)())
        return Table.proved(steps, ages), ages.tolist()


@double
def table_of(rows: TableRows) -> Table:
    """Return rows as a table in plain numbers."""
    return Table(*(np.asarray(column) for column in rows()))


ROW_KINDS: dict[str, type[FreeRows] | type[ProvedRows]] = {"spline": FreeRows, "proved": ProvedRows}
"""What a table is made by, for the option ``coefficients``."""
