"""JAX: ``solve(method, problem, x0)``, compiled, for one problem or a batch, differentiable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError, needing, unknown_name
from ode2opt.base.precision import double
from ode2opt.base.schedule import Schedule
from ode2opt.integrations._table import learned_or_table
from ode2opt.penalties import Penalty, as_penalty
from ode2opt.problems.base import Problem
from ode2opt.solvers.method_file import Method

with needing("learn"):
    import jax
    import jax.numpy as jnp
    from jax.scipy.sparse.linalg import cg

    from ode2opt.integrations.jax_fallback import lower, nesterov
    from ode2opt.integrations.jax_start import Ridged, paper_start, paper_starts, starts
    from ode2opt.integrations.jax_table import (
        ENDS,
        SENTENCES,
        GivenTable,
        TableKind,
        TableState,
        followed,
        given_table,
        in_metric,
        status_of,
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

_SOLVERS: dict[Any, tuple[Penalty, Penalty, Any]] = {}  # for a penalty and a kind of problem


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
        return self.status == ENDS.index(Ended.CONVERGED)

    @property
    def message(self) -> str | list[str]:
        """The status as a sentence; of a batch one each."""
        words: Any = np.asarray(SENTENCES)[np.asarray(self.status)].tolist()
        return words


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
    given, kind = given_table(method, task.n, *limits)
    return _one(kind, given, task, starts(method, x0, (task.n,), lambda: paper_start(task)))


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
    given, kind = given_table(method, batch.n, tol, max_iter, fallback)
    count = len(jax.tree.leaves(batch)[0])
    first = starts(method, x0, (count, batch.n), lambda: paper_starts(batch))
    return _each(kind, given, batch, first)


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
    like = problems[0]
    given, kind = given_table(method, like.n, tol, max_iter, 0, penalised=True)
    first = starts(
        method, x0, (len(problems), like.n),
        lambda: np.stack([np.asarray(one.start().x0) for one in problems]),
    )  # fmt: skip
    key = (id(penalty), like.n, type(like), getattr(like, "intercept", False))
    if key not in _SOLVERS or _SOLVERS[key][0] is not penalty:
        own = as_penalty(penalty, like)
        if len(_SOLVERS) >= 16:  # kept, with what was compiled for them
            _SOLVERS.pop(next(iter(_SOLVERS)))
        _SOLVERS[key] = (penalty, own, jax.jit(partial(_together, own), static_argnums=(0, 1, 2)))
    _, own, together = _SOLVERS[key]
    inside = jnp.asarray(np.array([own.project(np.asarray(x)) for x in first]))
    batch = ProblemBatch.of(problems)
    found: Solution = together(kind, batch.axes, batch.tree, given, batch.arrays, inside)
    return found


def _together(
    penalty: Penalty, kind: TableKind, axes: Any, tree: Any, given: GivenTable, arrays: Any,
    starts: Array,
) -> Solution:  # fmt: skip
    """Solve problems at once: what all share, such as a dictionary, is multiplied with all of
    their vectors in one product."""

    def one(x: Array, *leaves: Array) -> Solution:
        return _found(given, followed(kind, given, jax.tree.unflatten(tree, leaves), x, penalty))

    solution: Solution = jax.vmap(one, in_axes=(0, *axes))(starts, *arrays)
    return solution


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


@partial(jax.jit, static_argnums=0)
def _each(kind: TableKind, given: GivenTable, problems: Problem, first: Array) -> Solution:
    """Solve a batch: on a processor one after the other, as a problem fits its cache."""
    at_once = None if jax.default_backend() == "cpu" else len(first)
    pairs = (problems, first)
    return jax.lax.map(lambda pair: _one(kind, given, *pair), pairs, batch_size=at_once)


@partial(jax.jit, static_argnums=0)
def _one(kind: TableKind, given: GivenTable, problem: Problem, x0: Array) -> Solution:
    """Solve one problem; its minimiser is a root of the gradient, and differentiated as such."""

    def follow(gradient: Any, start: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        found = _taken_over(given, problem, start, followed(kind, given, problem, start))
        counts = found.iterations.astype(float), found.status.astype(float)  # JAX wants tangents
        return found.x, (found.grad_norm, *counts)

    def linear(hessian: Any, y: Array) -> Array:
        def inverse(hessian: Any, y: Array) -> Array:
            metric = partial(in_metric, given.parts)
            return cg(hessian, y, tol=1e-12, M=metric, maxiter=20 * problem.n)[0]

        return jax.lax.custom_linear_solve(hessian, y, inverse, symmetric=True)

    x, (least, k, status) = jax.lax.custom_root(problem.gradient, x0, follow, linear, has_aux=True)
    return Solution(x, least, k.astype(jnp.int32), status.astype(jnp.int32))


def _found(given: GivenTable, end: TableState) -> Solution:
    return Solution(end.best_x, end.best_norm, end.k, status_of(given, end))


def _taken_over(given: GivenTable, problem: Problem, start: Array, end: TableState) -> Solution:
    """Return the table's solution or, where it is not solved, that of the fallback."""
    table, converged = _found(given, end), ENDS.index(Ended.CONVERGED)

    def rest() -> Solution:
        last = nesterov(problem, lower(problem, end.best_x, start), given.tol, given.fallback)
        found = last.best.x, last.best.norm
        why = jnp.where(last.best.norm <= given.tol, jnp.int32(converged), table.status)
        better = last.best.norm < end.best_norm
        x, least = jax.tree.map(partial(jnp.where, better), found, table[:2])
        return Solution(x, least, end.k + last.k, why)

    stopped = (table.status != converged) & (table.status != ENDS.index(Ended.MAX_ITER))
    unsolved = stopped & jnp.isfinite(end.best_norm) & (given.fallback > 0)
    return jax.lax.cond(unsolved, rest, lambda: table)
