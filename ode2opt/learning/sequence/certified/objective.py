"""What is minimised: the mean soft count of iterations, with a barrier at the cap.

    F(rows) = mean count - mu log(log cap - log ratio)

``ratio`` is the worst case of the rows over all smooth convex functions, divided by Nesterov's own
(docs/mathematics.md, section 15). F is infinite at and beyond the cap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import Ode2OptError
from ode2opt.base.precision import double
from ode2opt.learning.sequence.certified.rows import LearnedRows
from ode2opt.learning.sequence.objective import TINY
from ode2opt.problems.base import Problem
from ode2opt.proofs.chain import worst_case
from ode2opt.solvers.metric import Metric, product

WIDTH = 0.25  # of the soft step, in units of log |g|
INSIDE = 1e-3
"""By how much, relatively, learning stays below the cap: fractions cost a little, 1e-4 of the ratio
at most where it was looked at. Where the first rows are that near, nothing can be learned."""
FIRST_HIT = 0.5  # the weight of the first time at the tolerance; the rest counts all times above


class CertifiedInstance(NamedTuple):
    """A problem on which a table is followed.

    Attributes:
        problem: the problem on JAX arrays.
        x0: the start point.
        parts: what the product with the preconditioner is made of; empty for none.
    """

    problem: Problem
    x0: Array
    parts: tuple[Any, ...]


def parts_of(metric: Metric | None) -> tuple[Any, ...]:
    """Return a preconditioner as arrays of JAX; nothing for None."""
    if metric is None:
        return ()
    return tuple(None if part is None else jnp.asarray(part) for part in metric.parts())


def log_norms(rows: Array, instance: CertifiedInstance, L: Array) -> Array:
    """Return log |g_k| at the points of rows (m, p, q), divided by L, from k = 0 on."""
    problem, x0, parts = instance

    def step(state: tuple[Array, Array, Array], row: Array) -> tuple[Any, Array]:
        x, before, mg_before = state
        g = problem.gradient(x)
        mg = (product(parts, g) if parts else g) / L
        new = x + row[0] * (x - before) - row[1] * mg + row[2] * mg_before
        return (new, x, mg), 0.5 * jnp.log(g @ g + TINY)

    return jax.lax.scan(step, (x0, x0, jnp.zeros_like(x0)), rows)[1]


def soft_count(
    learned: Array, after: Array, instance: CertifiedInstance, L: Array, log_tol: Array
) -> Array:
    """Return about how many iterations a table takes to the tolerance; differentiable.

    It is the mean of two counts: of the iterations before the tolerance is met first, and of all
    that are above it. The first one alone learns dips that another problem does not have. What is
    left of log |g| at the end is charged at the pace so far.
    """
    above = log_norms(jnp.concatenate([learned, after]), instance, L) - log_tol
    soft = above / WIDTH
    first = jnp.sum(jnp.exp(jnp.cumsum(jax.nn.log_sigmoid(soft))))
    every = jnp.sum(jax.nn.sigmoid(soft))
    left = jnp.maximum(above[-1], 0.0) / jnp.maximum(above[0], WIDTH)
    return FIRST_HIT * first + (1 - FIRST_HIT) * every + len(above) * left


_count_and_slope = eqx.filter_jit(eqx.filter_value_and_grad(soft_count))


class Certified(NamedTuple):
    """What the chain of matrix inequalities says of rows.

    Attributes:
        ratio: the worst case divided by Nesterov's own.
        slope: the derivative of log ratio by the rows.
    """

    ratio: float
    slope: np.ndarray


class BarrierObjective:
    """The mean soft count with a barrier, and its derivative by the learned rows.

    Attributes:
        cap: where the barrier stands.
        ratio: that of the last rows with a finite value; not a number before the first call.
    """

    def __init__(
        self,
        rows: LearnedRows,
        cap: float,
        instances: Sequence[CertifiedInstance],
        L: float,
        tol: float,
        horizon: int,
    ) -> None:
        self.rows, self.cap, self.instances = rows, (1 - INSIDE) * cap, instances
        self.ratio = math.nan
        self._after = rows.after(max(horizon - rows.count, 0))
        self._given = (np.float64(L), np.log(np.float64(tol)))

    def __call__(self, learned: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        """Return F and its derivative; infinity where the rows are not certified."""
        found = self.certified(learned)
        if found is None:
            return math.inf, np.zeros_like(learned)
        count, slope = self.count(learned)
        room = math.log(self.cap) - math.log(found.ratio)
        value = count - mu * math.log(room)
        if not (math.isfinite(value) and np.all(np.isfinite(slope))):
            return math.inf, np.zeros_like(learned)
        self.ratio = found.ratio
        return value, slope + mu / room * found.slope

    def certified(self, learned: np.ndarray) -> Certified | None:
        """Return the ratio of rows where it was computed and is below the cap, else None."""
        if not np.all(np.isfinite(learned)):
            return None
        rows = self.rows
        try:
            found = worst_case(learned, tail=rows.tail, star=rows.star, theta=rows.theta)
        except Ode2OptError:  # no multipliers: beyond every cap
            return None
        if not (found.solved and 0 < found.ratio < self.cap):
            return None
        return Certified(found.ratio, found.gradient / found.tau)

    @double
    def count(self, learned: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean soft count over the problems, and its derivative."""
        found = [
            _count_and_slope(jnp.asarray(learned), self._after, one, *self._given)
            for one in self.instances
        ]
        slope = np.mean([np.asarray(slope) for _, slope in found], axis=0)
        return float(np.mean([float(value) for value, _ in found])), slope
