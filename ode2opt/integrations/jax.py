"""JAX: ``solve(method, problem, x0)``, compiled, for one problem or a batch, differentiable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive
from ode2opt.base.errors import InputError, needing, unknown_name
from ode2opt.paper.ishd import eigac_step
from ode2opt.paper.schedule import Schedule
from ode2opt.penalties import Penalty, as_penalty
from ode2opt.problems.base import Problem
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.library import learned_or_table
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import product
from ode2opt.solvers.oracle import PROGRESS
from ode2opt.solvers.result import Status

with needing("learn"):
    import jax
    import jax.numpy as jnp
    from jax.scipy.sparse.linalg import cg

    from ode2opt.base.precision import double
    from ode2opt.integrations.jax_fallback import lower, nesterov, norm
    from ode2opt.integrations.jax_proximal import (
        BatchOfPenalised,
        ProximalLimits,
        ProximalState,
        limits_of,
    )
    from ode2opt.integrations.jax_ridge import Ridged
    from ode2opt.integrations.jax_start import (
        LARGEST_HESSIAN,
        fit,
        largest_curvature,
        paper_start,
        paper_starts,
        starts,
    )
    from ode2opt.learning.sequence.composite.objective import ProblemBatch
    from ode2opt.problems.jaxed import JaxFunction, refuse_single_precision, stack, to_jax

__all__ = [
    "SENTENCES",
    "Solution",
    "double",
    "solve",
    "solve_all",
    "stack",
    "to_jax",
    "with_arrays",
]

SENTENCES = (
    Status.CONVERGED.value,
    Status.MAX_ITER.value,
    Status.HORIZON.value,
    Status.NON_FINITE.value,
    "The guard stopped it: the gradient norm blew up.",
    "The guard stopped it: the gradient norm is far above that of all held-out problems.",
    "The guard stopped it: no progress.",
)
"""Why a solve stopped: ``Solution.status`` is a place in this list."""
_CONVERGED, _MAX_ITER, _HORIZON, _NON_FINITE, _BLOWUP, _ENVELOPE, _NO_PROGRESS = range(7)
_RUNNING = -1
TOL = 1e-6  # of a schedule, which brings none
LINEAR_TOL = 1e-12  # of the linear system behind a derivative
MOST_SOLVERS = 16  # that are kept, with what was compiled for them
_SOLVERS: dict[Any, tuple[Penalty, Any]] = {}  # compiled for a penalty and a kind of problem


class Solution(NamedTuple):
    """What a solve found; of a batch each field has a leading axis.

    Attributes:
        x: the point with the smallest gradient norm seen. Its derivatives are the minimiser's.
        grad_norm: the Euclidean norm of the gradient there.
        iterations: how many were made.
        status: why it stopped, a place in ``SENTENCES``; 0 is success.
    """

    x: Array
    grad_norm: Array
    iterations: Array
    status: Array

    @property
    def success(self) -> Array:
        """Whether the gradient norm reached the tolerance."""
        return self.status == _CONVERGED

    @property
    def message(self) -> str | list[str]:
        """The status as a sentence; of a batch one each."""
        words: Any = np.asarray(SENTENCES)[np.asarray(self.status)].tolist()
        return words


class _Given(NamedTuple):
    """A method and its limits as arrays: another of the same shapes does not compile anew."""

    table: tuple[Array, Array, Array]
    parts: tuple[Array, ...]
    scale: Array
    envelope: Array
    blowup: Array
    patience: Array
    tol: Array
    max_iter: Array
    fallback: Array


class _TableState(NamedTuple):
    """One solve under way; ``first`` is the norm at the start, ``progress`` that of the last
    iteration that was a tenth better than the one before."""

    k: Array
    x: Array
    u: Array
    g: Array
    norm: Array
    first: Array
    best_x: Array
    best_norm: Array
    progress: Array
    progress_k: Array


def solve(
    method: str | Path | Method | Schedule,
    problem: Problem | Callable[[Array], Array],
    x0: Array = None,
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    fallback: int = 0,
) -> Solution:
    """Follow a learned table until the gradient norm is at most ``tol``, compiled by JAX.

    Args:
        method: a learned method with a table: its name ("logistic-a5a"), the ``Path`` of its file
            or a ``Method``; or a schedule, which is taken as it is.
        problem: a problem, or a function written with ``jax.numpy``, which needs ``x0`` and is
            compiled anew in each call. Inside your own ``jit``, ``vmap`` or ``grad`` pass what
            ``to_jax`` or ``stack`` made of problems, and wrap the transformed function in
            ``double``.
        x0: where to start; by default where ``ode2opt.solve`` does: as the method was trained. The
            paper's start is found for up to 512 variables here.
        tol: the gradient norm to reach, by default the method's own (1e-6 for a schedule).
        max_iter: at most this many iterations, by default the table's length.
        fallback: where the guard stops the table or it ends unsolved, Nesterov's method with
            backtracking goes on from the best point (or the start, where that is lower) with the
            iterates of ``ode2opt.solve``'s own, for at most this many iterations of two gradients
            each; 0: nobody takes over.

    Returns:
        A ``Solution``. The table's iterates are those of :func:`ode2opt.solve`. A problem that is
        not solved keeps its best point, and ``status`` tells what became of the table.
        ``x`` can be differentiated by the problem's arrays, forwards and backwards: by the implicit
        function theorem, with conjugate gradients in the method's metric, as if ``x`` were the
        exact minimiser of a strictly convex function.

    Examples:
        >>> solve(method, problem).x
        >>> slope = double(jax.grad(lambda p: solve(method, p).x[0]))(to_jax(problem))
        >>> slope.b  # how the first coefficient moves with each target
    """
    refuse_single_precision(problem, x0)
    return _solve(learned_or_table(method), problem, x0, tol, max_iter, fallback)


@double
def _solve(method: Method | Schedule, problem: Any, x0: Array, *limits: Any) -> Solution:
    task = _task(problem, x0)
    given, rule = _as_arrays(method, task, *limits)
    return _one(rule, given, task, starts(method, x0, (task.n,), lambda: paper_start(task)))


@double
def solve_all(
    method: str | Path | Method | Schedule,
    problems: Sequence[Problem] | Problem,
    x0: Array = None,
    *,
    penalty: Penalty | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    fallback: int = 0,
) -> Solution:
    """Solve a batch of problems of one kind and shape, as :func:`solve` does each of them.

    Args:
        method: as in :func:`solve`.
        problems: a list, or what ``stack`` made of it, which takes half as long as the solving.
        x0: one start for all or one for each; by default as in :func:`solve`.
        penalty: what is added to each problem of a list, where the method's table has a prox:
            :class:`ode2opt.Penalty`. The residual then takes the place of the gradient norm, all
            problems are solved at once, there is no fallback here, and x has no derivatives.
        tol: as in :func:`solve`.
        max_iter: as in :func:`solve`.
        fallback: as in :func:`solve`.

    Returns:
        A ``Solution`` whose fields have a leading axis. A problem that is stopped by the guard
        leaves the others alone and keeps its best point, from which ``fallback`` here or
        :func:`ode2opt.solve` goes on. On a processor problems are solved one after the other,
        as each fits its cache; on other devices all at once.

    Examples:
        >>> problems = [family.sample(i) for i in range(256)]
        >>> found = solve_all(method, problems)
        >>> for i in np.flatnonzero(~found.success):
        ...     rest = ode2opt.solve(problems[i], found.x[i])
    """
    method = learned_or_table(method)
    if penalty is not None:
        if fallback:
            raise InputError("With a penalty nobody takes over here: go on with ode2opt.solve.")
        return _solve_penalised(method, problems, x0, penalty, tol, max_iter)
    batch = problems if isinstance(problems, Problem) else _stack(problems)
    given, rule = _as_arrays(method, batch, tol, max_iter, fallback)
    count = len(jax.tree.leaves(batch)[0])
    first = starts(method, x0, (count, batch.n), lambda: paper_starts(batch))
    return _each(rule, given, batch, first)


def _solve_penalised(
    method: Method | Schedule,
    problems: Sequence[Problem] | Problem,
    x0: Array,
    penalty: Penalty,
    tol: float | None,
    max_iter: int | None,
) -> Solution:
    """Solve a list of problems with a penalty, all at once."""
    if not isinstance(method, Method):
        raise InputError("A schedule has no prox: with a penalty give a method learned for one.")
    if isinstance(problems, Problem) or not len(problems):
        raise InputError("With a penalty give a list of problems, at least one.")
    limits = limits_of(
        method,
        method.tol if tol is None else as_positive(tol, "tol"),
        None if max_iter is None else as_count(max_iter, "max_iter", least=0),
    )
    first = starts(
        method, x0, (len(problems), problems[0].n),
        lambda: np.stack([np.asarray(one.start().x0) for one in problems]),
    )  # fmt: skip
    key = (id(penalty), problems[0].n, type(problems[0]), getattr(problems[0], "intercept", False))
    if key not in _SOLVERS or _SOLVERS[key][0] is not penalty:
        own = as_penalty(penalty, problems[0])
        if len(_SOLVERS) >= MOST_SOLVERS:
            _SOLVERS.pop(next(iter(_SOLVERS)))
        _SOLVERS[key] = (penalty, BatchOfPenalised(own, _status))
    solver = _SOLVERS[key][1]
    inside = np.array([solver.penalty.project(np.asarray(x)) for x in first])
    found, status = solver.solve(limits, ProblemBatch.of(problems), jnp.asarray(inside))
    return Solution(found.best_x, found.best_norm, found.k, status)


def _stack(problems: Sequence[Problem]) -> Problem:
    if not len(problems):
        raise InputError("There is no problem in the batch.")
    return stack(list(problems))


def _task(problem: Any, x0: Array) -> Problem:
    """Return what is to be minimised on JAX arrays."""
    if isinstance(problem, Problem):
        return to_jax(problem)
    if not callable(problem):
        raise InputError(f"{type(problem).__name__} is neither a Problem nor a function.")
    if x0 is None:
        raise InputError("A function needs a start point: pass x0.")
    return JaxFunction(problem, jnp.size(x0))


@double
def with_arrays(problem: Problem, **arrays: Array) -> Problem:
    """Return the problem on JAX arrays with some of its arrays replaced, traced ones included.

    Args:
        problem: a problem that is made of arrays.
        arrays: by name, ``A``, ``b``, ``weights``, ``offset`` and, though it is one number, ``l2``,
            which is an array of the new problem: derivatives by it and batches over it work, too.

    Examples:
        >>> double(jax.grad(lambda b: solve(method, with_arrays(problem, b=b)).x[0]))(b)
        >>> double(jax.grad(lambda l2: solve(method, with_arrays(problem, l2=l2)).x[0]))(0.1)
    """
    twin, l2 = to_jax(problem), arrays.pop("l2", None)
    if isinstance(twin, Ridged):
        twin, l2 = twin.inner, twin.l2 if l2 is None else l2
    twin = copy.copy(twin)
    for name, values in arrays.items():
        if name not in twin.arrays:
            raise unknown_name("array", name, [*twin.arrays, "l2"])
        setattr(twin, name, values)
    return to_jax(twin if l2 is None else Ridged(twin, l2))


def _as_arrays(
    method: Method | Schedule,
    problem: Problem,
    tol: float | None,
    max_iter: int | None,
    fallback: int,
) -> tuple[_Given, str]:
    """Return the method on JAX arrays, and the rule by which its scale is found."""
    if isinstance(method, Method):
        schedule, guard, own, rule = method.table(), method.guard, method.tol, method.scale
    else:
        schedule, guard, own, rule = method, Guard(), TOL, "family"
    metric = getattr(method, "metric", None)
    if metric is not None and metric.n != problem.n:
        raise InputError(f"The method is for {metric.n} variables; this problem has {problem.n}.")
    if rule == "paper":
        raise InputError(
            "The method is scaled by the paper's step constant L, which is not found here: use "
            "ode2opt.solve."
        )
    if rule == "instance" and problem.n > LARGEST_HESSIAN:
        raise InputError(
            f"The method is scaled by the largest curvature at each start, which is found for up "
            f"to {LARGEST_HESSIAN} variables here, not {problem.n:,}: use ode2opt.solve."
        )
    limits = np.full(len(schedule) + 1, np.inf)
    limits[: len(guard.envelope)] = guard.envelope[: len(limits)]
    given = _Given(
        (schedule.a, schedule.c, schedule.d),
        () if metric is None else metric.parts(),
        getattr(method, "family_scale", None) or 1.0,
        limits,
        guard.blowup,
        guard.patience,
        own if tol is None else as_positive(tol, "tol"),
        len(schedule) + 1 if max_iter is None else as_count(max_iter, "max_iter", least=0),
        as_count(fallback, "fallback", least=0),
    )
    return jax.tree.map(jnp.asarray, given), rule


@partial(jax.jit, static_argnums=0)
def _each(rule: str, given: _Given, problems: Problem, first: Array) -> Solution:
    """Solve a batch: on a processor one after the other, as a problem fits its cache."""
    at_once = None if jax.default_backend() == "cpu" else len(first)
    pairs = (problems, first)
    return jax.lax.map(lambda pair: _one(rule, given, *pair), pairs, batch_size=at_once)


@partial(jax.jit, static_argnums=0)
def _one(rule: str, given: _Given, problem: Problem, x0: Array) -> Solution:
    """Solve one problem; its minimiser is a root of the gradient, and differentiated as such."""

    def follow(gradient: Any, start: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        found = _taken_over(given, problem, start, _followed(rule, given, problem, start))
        counts = found.iterations.astype(float), found.status.astype(float)  # JAX wants tangents
        return found.x, (found.grad_norm, *counts)

    def linear(hessian: Any, y: Array) -> Array:
        metric = partial(_in_metric, given.parts)
        inverse = partial(_conjugate_gradients, M=metric, maxiter=20 * problem.n)
        return jax.lax.custom_linear_solve(hessian, y, inverse, symmetric=True)

    x, (least, k, status) = jax.lax.custom_root(problem.gradient, x0, follow, linear, has_aux=True)
    return Solution(x, least, k.astype(jnp.int32), status.astype(jnp.int32))


def _conjugate_gradients(hessian: Any, y: Array, **options: Any) -> Array:
    return cg(hessian, y, tol=LINEAR_TOL, **options)[0]


def _followed(rule: str, given: _Given, problem: Problem, x: Array) -> _TableState:
    """Run the table until something ends it."""
    g = problem.gradient(x)
    start, p = norm(g), _in_metric(given.parts, g)
    scale = _scale(rule, given, problem, x, g, p)
    a, c, d = given.table[0] / scale, given.table[1] / scale, given.table[2]
    state = _TableState(jnp.asarray(0), x, x, g, start, start, x, start, start, jnp.asarray(0))

    def step(state: _TableState) -> _TableState:
        k = state.k
        p = _in_metric(given.parts, state.g)
        e, u = eigac_step(state.u, p, a[k], c[k], d[k])
        x = state.x + e
        return _noted(state, x, u, problem.gradient(x))

    # The first iteration does not move: its gradient is known (u_0 = a_0 M g, so that e = 0).
    idle = _noted(state, x, (a[0] - c[0]) * p, g)
    begun = _status(given, state) == _RUNNING
    state = jax.tree.map(partial(jnp.where, begun), idle, state)
    return jax.lax.while_loop(lambda state: _status(given, state) == _RUNNING, step, state)


def _taken_over(given: _Given, problem: Problem, start: Array, end: _TableState) -> Solution:
    """Return the table's solution or, where it is not solved, that of the fallback."""
    status = _status(given, end)
    table = Solution(end.best_x, end.best_norm, end.k, status)

    def rest() -> Solution:
        last = nesterov(problem, lower(problem, end.best_x, start), given.tol, given.fallback)
        found = last.best.x, last.best.norm
        why = jnp.where(last.best.norm <= given.tol, jnp.int32(_CONVERGED), status)
        better = last.best.norm < end.best_norm
        x, least = jax.tree.map(partial(jnp.where, better), found, table[:2])
        return Solution(x, least, end.k + last.k, why)

    unsolved = (status != _CONVERGED) & (status != _MAX_ITER) & jnp.isfinite(end.best_norm)
    return jax.lax.cond(unsolved & (given.fallback > 0), rest, lambda: table)


def _noted(state: _TableState, x: Array, u: Array, g: Array) -> _TableState:
    """Return the state at the next iterate, with the best point and the last progress so far."""
    size = jnp.where(jnp.all(jnp.isfinite(x)), norm(g), jnp.inf)
    better, k = size < state.best_norm, state.k + 1
    progress = size < PROGRESS * state.progress
    return _TableState(
        k, x, u, g, size, state.first,
        best_x=jnp.where(better, x, state.best_x),
        best_norm=jnp.where(better, size, state.best_norm),
        progress=jnp.where(progress, size, state.progress),
        progress_k=jnp.where(progress, k, state.progress_k),
    )  # fmt: skip


def _status(given: _Given | ProximalLimits, state: _TableState | ProximalState) -> Array:
    """Return the first reason that holds to end the table at this iterate; else _RUNNING."""
    horizon = len(given.rows[0] if isinstance(given, ProximalLimits) else given.table[0])
    reasons = {
        _CONVERGED: state.norm <= given.tol,
        _MAX_ITER: state.k >= given.max_iter,
        _NON_FINITE: ~jnp.isfinite(state.norm),
        _BLOWUP: state.norm > given.blowup * state.first,
        _ENVELOPE: state.norm > given.envelope[state.k] * state.first,
        _NO_PROGRESS: state.k - state.progress_k >= given.patience,
        _HORIZON: state.k >= horizon,
    }
    return jnp.select([*reasons.values()], [*map(jnp.int32, reasons)], jnp.int32(_RUNNING))


def _scale(rule: str, given: _Given, problem: Problem, x: Array, g: Array, p: Array) -> Array:
    """Return the curvature to divide by (docs/mathematics.md, section 8)."""
    if rule == "family":
        return given.scale
    if rule == "product":
        return fit((p @ problem.hvp(x, p)) / (p @ g))
    return fit(largest_curvature(problem, x))


def _in_metric(parts: tuple[Array, ...], g: Array) -> Array:
    return product(parts, g) if parts else g
