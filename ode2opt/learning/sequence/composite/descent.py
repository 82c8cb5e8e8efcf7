"""Adam on the rows of a table, which goes back to the best point where a step led off a cliff.

The count of iterations has cliffs: beyond an edge of stability, which differs from problem to
problem, iterates run away.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ode2opt.base.arrays import Array
from ode2opt.learning.sequence.composite.objective import ProblemBatch, ResidualObjective
from ode2opt.learning.sequence.composite.rows import TableRows
from ode2opt.learning.sequence.options import SequenceOptions

RATE = 0.02  # tuned on training draws of the three families of ode2opt.penalties.families
WORSE = 1.02  # times the best count on held-out problems: beyond it the descent goes back


class DescentState(NamedTuple):
    """What a step changes.

    Attributes:
        rows: what is learned.
        moments: the state of Adam.
        rate: the step size.
        best: the rows with the fewest iterations on held-out problems.
        best_count: their iterations there.
        last: the iterations of the last validation.
        stale: validations without progress since.
    """

    rows: Any
    moments: Any
    rate: Array
    best: Any
    best_count: Array
    last: Array
    stale: Array


class RowDescent:
    """The steps of training."""

    def __init__(self, objective: ResidualObjective, options: SequenceOptions) -> None:
        self.objective = objective
        self.rate = RATE if options.lr is None else options.lr
        clip = math.inf if options.clip is None else options.clip
        self._adam = optax.chain(optax.clip_by_global_norm(clip), optax.scale_by_adam())

    def begin(self, rows: TableRows, count: float) -> DescentState:
        """Return the state before the first step."""
        rate, count_, stale = (jnp.asarray(x, dtype=float) for x in (self.rate, count, 0))
        return DescentState(rows, self._adam.init(rows), rate, rows, count_, count_, stale)

    def step(self, state: DescentState, batch: ProblemBatch) -> tuple[DescentState, float]:
        """Return the state after one step, and the mean soft count before it.

        A gradient that is not finite moves nothing.
        """
        count, slope = self.objective.count(state.rows, batch)
        if not all(bool(jnp.all(jnp.isfinite(part))) for part in jax.tree.leaves(slope)):
            return state, count
        change, moments = self._adam.update(slope, state.moments)
        rows = jax.tree.map(lambda x, d: x - state.rate * d, state.rows, change)
        return state._replace(rows=rows, moments=moments), count

    def judged(self, state: DescentState, count: float) -> DescentState:
        """Return the state after a validation."""
        last = jnp.asarray(count, dtype=float)
        if count < state.best_count:
            return state._replace(best=state.rows, best_count=last, last=last, stale=0 * last)
        state = state._replace(last=last, stale=state.stale + 1)
        if count <= WORSE * state.best_count:
            return state
        return state._replace(
            rows=state.best, moments=self._adam.init(state.best), rate=state.rate / 2
        )
