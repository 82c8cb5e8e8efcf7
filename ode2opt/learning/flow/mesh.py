"""How fine the mesh of a flow must be, by halving its step (docs/mathematics.md, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from ode2opt.base.arrays import Array
from ode2opt.base.precision import double
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.stopping_time import FlowInstance, Rules, crossing, hermite, heun, row_at

EXACT_ENOUGH = 0.01  # of T - t0: what halving the step may change
TRIED = (1, 2, 4, 8, 16)

Moving = tuple[Array, Array, Array]
"""Point, velocity and scaled gradient."""


def chosen_substeps(
    coefficients: Coefficients, instances: Sequence[FlowInstance], rules: Rules
) -> int:
    """Return the fewest steps of the flow in each of the sequence that are exact enough.

    Halving them changes T - t0 by less than 1% on every instance; 16 where none are.
    """
    for count in TRIED:
        error = mesh_error(coefficients, instances, replace(rules, substeps=count))
        if error is None or error < EXACT_ENOUGH:
            return count
    return TRIED[-1]


@double
def mesh_error(
    coefficients: Coefficients, instances: Sequence[FlowInstance], rules: Rules
) -> float | None:
    """Return the largest relative change of T - t0 where the flow's step is halved."""
    halved, changes = replace(rules, substeps=2 * rules.substeps), []
    end = rules.h * rules.K
    for instance in instances:
        coarse, fine = (flow_time(coefficients, instance, one) for one in (rules, halved))
        if min(coarse, fine) < end and fine > 0:
            changes.append(abs(coarse - fine) / fine)
    return max(changes, default=None)


def flow_time(coefficients: Coefficients, instance: FlowInstance, rules: Rules) -> float:
    """Return T - t0 of the flow alone; K h where it is given up."""
    numbers = (rules.eps, rules.t0, rules.step, rules.K * rules.substeps)
    T = float(_flow_time(coefficients, instance, *map(jnp.asarray, numbers)))
    return min(T, rules.h * rules.K)


@eqx.filter_jit
def _flow_time(
    coefficients: Coefficients, instance: FlowInstance, eps: Array, t0: Array, step: Array, K: Array
) -> Array:
    """Take Heun's steps to the tolerance; the mesh is traced, so that one program serves all."""
    problem, x0, scale = instance
    at = partial(row_at, coefficients)

    def norm(g: Array) -> Array:
        return scale * jnp.sqrt(jnp.sum(g**2))

    def go_on(carry: tuple[Array, Moving, Moving]) -> Array:
        i, _, (_, _, g) = carry
        return (norm(g) > eps) & (i < K)

    def take_step(carry: tuple[Array, Moving, Moving]) -> tuple[Array, Moving, Moving]:
        i, _, now = carry
        here, there = at(t0 + i * step), at(t0 + (i + 1) * step)
        point, v = heun(problem, scale, step, here, there, *now)
        return i + 1, now, (point.x, v, problem.gradient_at(point) / scale)

    g = problem.gradient(x0) / scale
    first = (x0, at(t0).beta * g, g)
    i, (x, v, g), (new_x, new_v, new_g) = jax.lax.while_loop(go_on, take_step, (0, first, first))
    slopes = (v - at(t0 + (i - 1) * step).beta * g, new_v - at(t0 + i * step).beta * new_g)
    share = crossing(problem, partial(hermite, step, x, new_x, *slopes), eps)
    T = jnp.where(i > 0, (i - 1 + share) * step, 0.0)
    return jnp.where(norm(new_g) <= eps, T, jnp.inf)
