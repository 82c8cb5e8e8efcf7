"""A sequence as it is learned, and its stopping time, differentiated through the iteration.

docs/mathematics.md, section 13. The loop ends at T, so that nothing after it is computed. On the
way back each step is computed again instead of being stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.differentiable_loop import loop
from ode2opt.learning.sequence.proved_table import ProvedTable
from ode2opt.learning.sequence.spectrum import Filter, Spectrum, SquaredLengths, apply, filtered
from ode2opt.paper.ishd import eigac_move, eigac_velocity
from ode2opt.paper.stopping_time import StoppingTime
from ode2opt.problems.base import Problem

LEAST_DROP = 1e-3  # of the log of the gradient norm, in the step that crosses the tolerance
MIN_CURVATURE_CHANGE = 1e-9
TINY = 1e-300
FIRST_STEP = 0.7  # times the inverse curvature along the first gradient
FIRST_RATIO = 1.0
FIRST_ALPHA, FIRST_AGE = 6.0, 10.0


class SplineTable(eqx.Module):
    """A table (a_k, c_k, d_k), with log a and c/a linear in log k between knots.

    d_k = alpha/(k + age), with age above alpha. c/a lies in (d, 1) and d in (0, 1), so that
    d a <= c <= a (docs/mathematics.md, section 4) whatever is learned; d is that
    of the inertial system with t0 = age h.
    """

    log_a: Array
    ratio: Array
    log_alpha: Array
    log_age: Array
    K: int = eqx.field(static=True)

    def __init__(self, knots: int, K: int) -> None:
        self.log_a = jnp.full(knots, float(np.log(FIRST_STEP)))
        self.ratio = jnp.full(knots, FIRST_RATIO)
        self.log_alpha = jnp.log(jnp.asarray(FIRST_ALPHA))
        self.log_age = jnp.log(jnp.asarray(FIRST_AGE))
        self.K = K

    def __call__(self) -> tuple[Array, Array, Array]:
        """Return the columns a, c and d for curvature 1."""
        k = jnp.arange(self.K)
        knots = np.linspace(0.0, np.log(self.K), len(self.log_a))
        at = jnp.log1p(k)
        alpha = jnp.exp(self.log_alpha)
        d = alpha / (k + alpha + jnp.exp(self.log_age))
        a = jnp.exp(jnp.interp(at, knots, self.log_a))
        share = jax.nn.sigmoid(jnp.interp(at, knots, self.ratio))
        return a, a * (d + (1 - d) * share), d


class Learned(eqx.Module):
    """What is learned of a sequence.

    Attributes:
        table: the three numbers of each iteration.
        filter: turns the family's spectrum into a preconditioner.
    """

    table: SplineTable | ProvedTable
    filter: Filter


class SequenceInstance(NamedTuple):
    """A problem on which a sequence is followed.

    Attributes:
        problem: the problem on JAX arrays.
        x0: the start point.
        spectrum: what the preconditioner is made of.
    """

    problem: Problem
    x0: Array
    spectrum: Spectrum


class SequenceRules(eqx.Module):
    """How the stopping time of a sequence is measured.

    Attributes:
        tol: the gradient norm to reach.
        blowup: the growth of the gradient norm at which the guard hands over.
        fallback: the iterations that the guard's fallback needs from the start.
        margin: how far below the edge of linear stability P begins to count.
        scale: the family's curvature, by which the table is divided.
    """

    tol: Array
    blowup: Array
    fallback: Array
    margin: Array
    scale: Array

    def with_safety(self, safety: float) -> SequenceRules:
        """Return these rules: a sequence meets its own curvature, and takes no factor on it."""
        return self

    def stopping_time(self, learned: Learned, instance: SequenceInstance) -> StoppingTime:
        """Return T and P of an instance; Q is zero."""
        return sequence_time(learned, instance, self)

    def objective(self, found: StoppingTime) -> Array:
        """Return T, which includes the fallback's iterations where the guard handed over."""
        return found.T


class _SequenceState(NamedTuple):
    """Iterate x, u, gradient g, M g, log |g| now and one step before, the sum of violations."""

    x: Array
    u: Array
    g: Array
    mg: Array
    log_norm: Array
    log_before: Array
    P: Array
    squares: SquaredLengths


class _Limits(NamedTuple):
    """The log |g| at which the loop ends, the margin of P, and what is iterated on."""

    end: Array
    most: Array
    margin: Array
    problem: Problem
    spectrum: Spectrum


def sequence_time(
    learned: Learned, instance: SequenceInstance, rules: SequenceRules
) -> StoppingTime:
    """Follow a sequence until the tolerance is met, the guard hands over, or the table ends.

    T is the index of the first gradient norm at the tolerance, log-linear between iterations. A
    sequence that is handed over is charged a share of the fallback's iterations: the share of
    log |g| that is left.
    """
    problem, x0, spectrum = instance
    squares = filtered(spectrum, learned.filter)
    g = problem.gradient(x0)
    mg = apply(spectrum, squares, g)
    a, c, d = learned.table()
    a, c = a / rules.scale, c / rules.scale
    a, c, d = (jnp.append(row, row[-1]) for row in (a, c, d))  # the loop's last row
    begin, end = _log_norm(g), jnp.log(rules.tol)
    limits = _Limits(end, begin + jnp.log(rules.blowup), rules.margin, problem, spectrum)
    zero = jnp.zeros(())
    start = _SequenceState(x0, a[0] * mg, g, mg, begin, begin + 1.0, zero, squares)
    state, i, _ = loop(_step, start, (a, c, d), limits)
    reached = state.log_norm <= end
    drop = jnp.maximum(state.log_before - state.log_norm, LEAST_DROP)
    left = (state.log_norm - end) / jnp.maximum(begin - end, LEAST_DROP)
    T = jnp.where(reached, i - (end - state.log_norm) / drop, i + rules.fallback * left)
    failed = state.log_norm > limits.most
    return StoppingTime(jnp.maximum(T, 0.0), state.P, zero, state.P, reached, failed, jnp.ones(()))


def _step(
    here: tuple[Array, Array, Array], there: Any, state: _SequenceState, limits: _Limits
) -> tuple[_SequenceState, Array]:
    """Take one iteration, with M g in the place of g."""
    a, c, d = here
    e = eigac_move(state.u, state.mg, a)
    x = state.x + e
    g = limits.problem.gradient(x)
    mg = apply(limits.spectrum, state.squares, g)
    u = eigac_velocity(e, state.mg, a, c, d)
    swing = _swing(a, c, d, state, g, mg, e)
    violation = jax.nn.relu(jnp.log(jnp.maximum(swing, TINY)) - jnp.log1p(-limits.margin))
    over = (state.log_norm <= limits.end) | ~(state.log_norm <= limits.most)
    new = _SequenceState(
        x, u, g, mg, _log_norm(g), state.log_norm, state.P + violation, state.squares
    )
    return new, over


def _swing(
    a: Array, c: Array, d: Array, old: _SequenceState, g: Array, mg: Array, e: Array
) -> Array:
    """Return (a - c/2) l / (2 - d), 1 at the edge of linear stability (docs/mathematics.md,
    section 4).

    l is the curvature of f(S .) along the change of its gradient, which the sequence meets for
    free. A change of the size of rounding, as at the first move, which is none, tells nothing.
    """
    change, m_change = g - old.g, mg - old.mg
    up, down = change @ m_change, change @ e
    known = (change @ change > MIN_CURVATURE_CHANGE**2 * (old.g @ old.g)) & (down > 0)
    curvature = jnp.where(known, up / jnp.where(known, down, 1.0), 0.0)
    return (a - c / 2) * curvature / (2 - d)


def _log_norm(g: Array) -> Array:
    return 0.5 * jnp.log(g @ g + TINY)
