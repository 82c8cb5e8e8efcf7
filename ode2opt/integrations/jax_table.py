"""A table inside JAX: the loop of ``ode2opt.solvers.table`` and its guard, compiled.

It is a copy of that loop, crossed with it in ``tests/solvers/test_table_copies.py``; the iteration
itself is ``TableRow.step``. Problems may be traced.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError
from ode2opt.base.schedule import Schedule
from ode2opt.integrations.jax_fallback import norm
from ode2opt.integrations.jax_start import LARGEST_HESSIAN, fit, largest_curvature
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.proofs.table import Table, TableRow, no_penalty
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import product
from ode2opt.solvers.oracle import PROGRESS

ENDS = (
    Ended.CONVERGED, Ended.MAX_ITER, Ended.HORIZON, Ended.NON_FINITE, Ended.BLOWUP,
    Ended.ENVELOPE, Ended.PATIENCE,
)  # fmt: skip
SENTENCES = tuple(one.value for one in ENDS)
"""Why a solve stopped: ``Solution.status`` is a place in this list."""
RUNNING = len(ENDS)


class TableKind(NamedTuple):
    """What is compiled: by which rule the scale is found, and whether the first iteration is idle
    and gradients are taken ahead of the iterate."""

    rule: str
    idle: bool
    ahead: bool


class GivenTable(NamedTuple):
    """A table and its limits as arrays: another of the same shapes does not compile anew."""

    columns: tuple[Array, ...]
    parts: tuple[Array, ...]
    scale: Array
    envelope: Array
    blowup: Array
    patience: Array
    tol: Array
    max_iter: Array
    fallback: Array


class TableState(NamedTuple):
    """One solve under way; ``first`` is the norm at the start, ``progress`` that of the last
    iteration that was a tenth better than the one before. With a penalty norms are residuals."""

    k: Array
    x: Array
    before: Array
    g: Array
    slope: Array  # the gradient in the metric that the last iteration was made with
    norm: Array
    first: Array
    best_x: Array
    best_norm: Array
    progress: Array
    progress_k: Array


def given_table(
    method: Method | Schedule,
    n: int,
    tol: float | None,
    max_iter: int | None,
    fallback: int,
    penalised: bool = False,
) -> tuple[GivenTable, TableKind]:
    """Return the table of a method on JAX arrays, and its kind."""
    if isinstance(method, Schedule):
        table, guard, own, rule = Table.of(method), Guard(), 1e-6, "family"
    else:
        guard, own, rule = method.guard, method.tol, method.scale
        if penalised and method.proximal is None:
            raise InputError(
                f"The method for {method.family} is for smooth problems: leave penalty."
            )
        prox = method.proximal if penalised else None
        table = Table.of(method.table()) if prox is None else prox
    metric = getattr(method, "metric", None)
    if metric is not None and metric.n != n:
        raise InputError(f"The method is for {metric.n} variables; this problem has {n}.")
    if rule == "paper":
        raise InputError(
            "The method is scaled by the paper's step constant L, which is not found here: use "
            "ode2opt.solve."
        )
    if rule == "instance" and n > LARGEST_HESSIAN:
        raise InputError(
            f"The method is scaled by the largest curvature at each start, which is found for up "
            f"to {LARGEST_HESSIAN} variables here, not {n:,}: use ode2opt.solve."
        )
    limits = np.full(len(table) + 1, np.inf)
    limits[: len(guard.envelope)] = guard.envelope[: len(limits)]
    given = GivenTable(
        tuple(table.columns()),
        () if metric is None else metric.parts(),
        getattr(method, "family_scale", None) or 1.0,
        limits,
        guard.blowup,
        guard.patience,
        own if tol is None else as_positive(tol, "tol"),
        len(table) + 1 if max_iter is None else as_count(max_iter, "max_iter", least=0),
        as_count(fallback, "fallback", least=0),
    )
    kind = TableKind(rule, not table.p[0], bool(np.any(table.w)))
    return jax.tree.map(jnp.asarray, given), kind


def followed(
    kind: TableKind, given: GivenTable, problem: Problem, x: Array, penalty: Penalty | None = None
) -> TableState:
    """Follow the table until something ends it."""
    prox = no_penalty if penalty is None else penalty.prox
    g = problem.gradient(x)
    slope, size, zero = in_metric(given.parts, g), _size(penalty, x, g), jnp.asarray(0)
    scale = _scale(kind.rule, given, problem, x, g, slope)
    state = TableState(zero, x, x, g, slope, size, size, x, size, size, zero)

    def step(state: TableState) -> TableState:
        m, p, q, w = (column[state.k] for column in given.columns)
        row, at = TableRow(m, p / scale, q / scale, w), state.g
        if kind.ahead:
            at = problem.gradient(row.ahead(state.x, state.before))
        slope = in_metric(given.parts, at)
        x = row.step(state.x, state.before, slope, state.slope, prox)
        g = problem.gradient(x)
        return _noted(state, x, g, slope, _size(penalty, x, g))

    def goes_on(state: TableState) -> Array:
        return status_of(given, state) == RUNNING

    if kind.idle:  # its gradient is known
        idle = _noted(state, x, g, slope, size)
        state = jax.tree.map(partial(jnp.where, goes_on(state)), idle, state)
    return jax.lax.while_loop(goes_on, step, state)


def _size(penalty: Penalty | None, x: Array, g: Array) -> Array:
    """Return the gradient norm, with a penalty the residual."""
    size = norm(g if penalty is None else x - penalty.prox(x - g, 1.0))
    return jnp.where(jnp.all(jnp.isfinite(x)), size, jnp.inf)


def _noted(state: TableState, x: Array, g: Array, slope: Array, size: Array) -> TableState:
    """Return the state at the next iterate, with the best point and the last progress so far."""
    better, k, progress = size < state.best_norm, state.k + 1, size < PROGRESS * state.progress
    return TableState(
        k, x, state.x, g, slope, size, state.first,
        best_x=jnp.where(better, x, state.best_x),
        best_norm=jnp.where(better, size, state.best_norm),
        progress=jnp.where(progress, size, state.progress),
        progress_k=jnp.where(progress, k, state.progress_k),
    )  # fmt: skip


def status_of(given: GivenTable, state: TableState) -> Array:
    """Return the first reason that holds to end the table at this iterate; else RUNNING."""
    reasons = {
        Ended.CONVERGED: state.norm <= given.tol,
        Ended.MAX_ITER: state.k >= given.max_iter,
        Ended.NON_FINITE: ~jnp.isfinite(state.norm),
        Ended.BLOWUP: state.norm > given.blowup * state.first,
        Ended.ENVELOPE: state.norm > given.envelope[state.k] * state.first,
        Ended.PATIENCE: state.k - state.progress_k >= given.patience,
        Ended.HORIZON: state.k >= len(given.columns[0]),
    }
    codes = [jnp.int32(ENDS.index(reason)) for reason in reasons]
    return jnp.select([*reasons.values()], codes, jnp.int32(RUNNING))


def _scale(rule: str, given: GivenTable, problem: Problem, x: Array, g: Array, p: Array) -> Array:
    """Return the curvature to divide by (docs/mathematics.md, section 8)."""
    if rule == "family":
        return given.scale
    if rule == "product":
        return fit((p @ problem.hvp(x, p)) / (p @ g))
    return fit(largest_curvature(problem, x))


def in_metric(parts: tuple[Array, ...], g: Array) -> Array:
    """Return M g, or g itself without a metric."""
    return product(parts, g) if parts else g
