"""What is minimised: a soft count of the iterations until the residual is at the tolerance.

Problems are followed together: what all of them share, such as the matrix of a dictionary, is
multiplied with all of their vectors at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.precision import double
from ode2opt.learning.sequence.certified.objective import FIRST_HIT, WIDTH
from ode2opt.learning.sequence.composite.rows import TableRows
from ode2opt.learning.sequence.objective import TINY
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.proofs.table import TableRow

LEAST_FALL = 1.0  # of the log residual to the tolerance, for a start that is almost there


class ProblemBatch(NamedTuple):
    """Problems of one kind and shape, to be followed together.

    Attributes:
        arrays: the leaves of the problems: shared ones once, others stacked.
        axes: the axis of each leaf over problems: None for one that they share.
        tree: how the leaves make a problem.
    """

    arrays: list[Array]
    axes: tuple[int | None, ...]
    tree: Any

    @classmethod
    @double
    def of(cls, problems: Sequence[Problem]) -> ProblemBatch:
        """Return a batch."""
        flat = [jax.tree.flatten(to_jax(problem)) for problem in problems]
        arrays, axes = [], []
        for leaves in zip(*(leaves for leaves, _ in flat), strict=True):
            shared = all(np.array_equal(leaves[0], one) for one in leaves[1:])
            arrays.append(leaves[0] if shared else jnp.stack(leaves))
            axes.append(None if shared else 0)
        if all(axis is None for axis in axes):  # one problem, or one problem again and again
            arrays, axes = [jnp.stack([one] * len(flat)) for one in arrays], [0] * len(arrays)
        return cls(arrays, tuple(axes), flat[0][1])


class ResidualObjective:
    """The soft count of a table on problems with a penalty, and its gradient."""

    def __init__(
        self,
        penalty: Penalty,
        x0: np.ndarray,
        scale: float,
        tols: Sequence[float],
        prices: Sequence[float],
    ) -> None:
        self.penalty, self.x0, self.scale = penalty, x0, scale
        self.log_tols, self.prices = np.log(tols), np.asarray(prices)
        self._compiled: dict[Any, Any] = {}

    def count(self, rows: TableRows, batch: ProblemBatch) -> tuple[float, Any]:
        """Return the mean soft count on a batch, and its gradient by the rows."""

        def mean(rows: TableRows, arrays: list[Array]) -> Array:
            return jnp.mean(self._soft_counts(self._followed(rows, arrays, batch)))

        value, slope = self._run("count", jax.value_and_grad(mean), rows, batch)
        return float(value), slope

    def log_residuals(self, rows: TableRows, batch: ProblemBatch) -> np.ndarray:
        """Return the log residuals of each problem from the start on, K + 1 a problem."""

        def residuals(rows: TableRows, arrays: list[Array]) -> Array:
            return self._followed(rows, arrays, batch)

        return np.asarray(self._run("residuals", residuals, rows, batch))

    @double
    def _run(self, name: str, function: Any, rows: TableRows, batch: ProblemBatch) -> Any:
        """Run a function of rows and arrays, compiled once for each kind of batch."""
        key = (name, batch.axes, batch.tree)
        if key not in self._compiled:
            self._compiled[key] = jax.jit(function)
        return self._compiled[key](rows, batch.arrays)

    def _followed(self, rows: TableRows, arrays: list[Array], batch: ProblemBatch) -> Array:
        columns = rows()

        def one(*leaves: Array) -> Array:
            problem = jax.tree.unflatten(batch.tree, leaves)
            return self._one(columns, problem, rows.at_iterate)

        return jax.vmap(one, in_axes=batch.axes)(*arrays)

    def _one(self, columns: TableRow, problem: Problem, at_iterate: bool) -> Array:
        """Return the log residuals of one problem."""
        x0 = jnp.asarray(self.x0)
        g0, scale = problem.gradient(x0), self.scale

        def step(state: tuple[Array, ...], row: TableRow) -> tuple[tuple[Array, ...], Array]:
            x, before, g, slope_before = state
            slope = g if at_iterate else problem.gradient(row.ahead(x, before))
            scaled = row._replace(p=row.p / scale, q=row.q / scale)
            new = scaled.step(x, before, slope, slope_before, self.penalty.prox)
            g_new = problem.gradient(new)
            return (new, x, g_new, slope), self._log_residual(new, g_new)

        _, later = jax.lax.scan(step, (x0, x0, g0, g0), columns)
        return jnp.append(self._log_residual(x0, g0), later)

    def _log_residual(self, x: Array, g: Array) -> Array:
        r = x - self.penalty.prox(x - g, 1.0)
        return 0.5 * jnp.log(r @ r + TINY)

    def _soft_counts(self, residuals: Array) -> Array:
        """Return for each problem the mean over tolerances of the iterations it takes, about.

        It is the mean of two counts: of the iterations before the tolerance is met first, and of
        all that are above it. The first one alone learns dips that another problem does not have.
        """
        first, end = residuals[:, :1], residuals[:, -1:]
        lowest = jax.lax.cummin(residuals, axis=1)
        total = jnp.zeros(len(residuals))
        for log_tol, price in zip(self.log_tols, self.prices, strict=True):
            above = jnp.sum(jax.nn.sigmoid((residuals - log_tol) / WIDTH), axis=1)
            before = jnp.sum(jax.nn.sigmoid((lowest - log_tol) / WIDTH), axis=1)
            left = jax.nn.relu(end - log_tol) / jnp.maximum(first - log_tol, LEAST_FALL)
            total += FIRST_HIT * before + (1 - FIRST_HIT) * above + price * left[:, 0]
        return total / len(self.log_tols)

    def guarded_count(self, residuals: np.ndarray, blowup: float) -> float:
        """Return the mean iterations of solves by a table, the fallback's included."""
        K = residuals.shape[1] - 1
        bad = ~(residuals <= residuals[:, :1] + np.log(blowup))
        dead = np.where(bad.any(axis=1), bad.argmax(axis=1), K + 1)
        spent = []
        for log_tol, price in zip(self.log_tols, self.prices, strict=True):
            met = residuals <= log_tol
            hit = np.where(met.any(axis=1), met.argmax(axis=1), K + 2)
            spent.append(np.where(hit < dead, hit, np.minimum(dead, K) + price))
        return float(np.mean(spent))
