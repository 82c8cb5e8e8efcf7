"""JAX's side of the problems: dense arrays, problems as pytrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, is_sparse
from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.problems.base import Problem
from ode2opt.problems.function import FunctionProblem

ALIGNED = 8  # numbers: JAX wants its arrays to begin at a multiple of 64 bytes

_registered: set[type] = set()
_NOT_STATIC = (
    "_start",
    "data",
    "_last_bend",
    "_signs",
    "_one_hot",
    "asymmetry",
    "largest_entry",
)


def refuse_single_precision(*trees: Any) -> None:
    """Refuse to be traced by a transformation that was started in single precision."""
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))
    if traced and not jax.config.jax_enable_x64:
        raise InputError(
            "JAX traces this in single precision: wrap the function that you transform in "
            "ode2opt.paper.double, as in double(jax.grad(f))."
        )


@double
def to_jax(problem: Problem) -> Problem:
    """Return the problem on dense float64 JAX arrays, as a pytree for jit, vmap and grad.

    Two problems of the same kind and shape have the same tree structure: what was compiled for one
    serves the other, and ``stack`` makes a batch of them.

    Examples:
        >>> from ode2opt.paper import double, to_jax
        >>> import jax
        >>> double(jax.jit(to_jax(problem).value))(np.zeros(3))
    """
    return jax.tree.map(_dense, _twin(problem))


@double
def stack(problems: list[Problem]) -> Problem:
    """Return problems as one batch, for vmap over its leading axis."""
    twins = [jax.tree.flatten(_twin(problem)) for problem in problems]
    if len({(tree, tuple(map(np.shape, leaves))) for leaves, tree in twins}) != 1:
        raise InputError("Problems of different kinds or shapes cannot be stacked into a batch.")
    stacked = map(_stacked, zip(*(leaves for leaves, _ in twins), strict=True))
    return jax.tree.unflatten(twins[0][1], stacked)


def _stacked(leaves: tuple[Array, ...]) -> Array:
    """Stack arrays, in NumPy if their values are known: JAX would compile hundreds of operands."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return jnp.stack([_dense(leaf) for leaf in leaves])
    whole = _aligned((len(leaves), *np.shape(leaves[0])))
    for i, leaf in enumerate(leaves):
        if is_sparse(leaf):
            leaf.astype(np.float64, copy=False).toarray(out=whole[i])
        else:
            whole[i] = leaf
    return jax.device_put(whole, may_alias=True)


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Return an empty array whose memory JAX takes over without a copy."""
    size = math.prod(shape)
    room = np.empty(size + ALIGNED)
    first = -(room.ctypes.data // room.itemsize) % ALIGNED
    return room[first : first + size].reshape(shape)


def _twin(problem: Problem) -> Problem:
    """Return the problem as a tree of arrays: JAX's, NumPy's in float64, or sparse as they are."""
    if isinstance(problem, FunctionProblem):
        if problem.traceable is None:
            raise InputError(
                "This function came with a gradient of its own and cannot be traced by JAX: "
                "write it with jax.numpy and leave the gradient out."
            )
        return JaxFunction(problem.traceable, problem.n)
    if isinstance(problem, JaxFunction):
        return problem
    if not problem.arrays:
        raise InputError(f"{type(problem).__name__} does not say which arrays it is made of.")
    _register(type(problem))
    twin = object.__new__(type(problem))
    vars(twin).update({k: v for k, v in vars(problem).items() if k not in _NOT_STATIC})
    for name in problem.arrays:
        part = getattr(problem, name)
        if isinstance(part, Problem):
            setattr(twin, name, _twin(part))
        elif part is not None:
            setattr(twin, name, _matrix(part) if name.isupper() else _leaf(part))
    twin.xp, twin.dtype = jnp, np.dtype(np.float64)
    return twin


def _matrix(A: Array) -> Array:
    """Return an array as a matrix for products; problems name these in capital letters."""
    return A if isinstance(A, ColumnMajorMatrix) else ColumnMajorMatrix(_leaf(A).T)


def _leaf(values: Array) -> Array:
    if isinstance(values, jax.Array):
        return values.astype(jnp.float64)
    return values if is_sparse(values) else np.asarray(values, dtype=np.float64)


def _dense(leaf: Array) -> Array:
    return jnp.asarray(leaf.toarray() if is_sparse(leaf) else leaf, dtype=jnp.float64)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ColumnMajorMatrix:
    """A matrix stored by columns: ``A @ x`` and ``A.T @ r`` take half the time of one by rows.

    XLA's products with a vector are fastest along contiguous memory, and problems have more rows
    than columns.
    """

    T: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.T.shape[::-1]

    def __matmul__(self, x: Array) -> Array:
        return x @ self.T if x.ndim == 1 else self.T.T @ x

    def __rmul__(self, weights: Array) -> Array:
        return weights * self.T.T


def _register(kind: type[Problem]) -> None:
    """Make a class of problems a pytree: its arrays are the leaves, the rest is static."""
    if kind in _registered:
        return

    def flatten(problem: Problem) -> tuple[tuple[Array, ...], tuple[tuple[str, Any], ...]]:
        hidden = {*kind.arrays, *_NOT_STATIC}
        static = sorted((k, v) for k, v in vars(problem).items() if k not in hidden)
        return tuple(getattr(problem, name) for name in kind.arrays), tuple(static)

    def unflatten(static: tuple[tuple[str, Any], ...], leaves: tuple[Array, ...]) -> Problem:
        problem = object.__new__(kind)
        vars(problem).update(dict(static))
        vars(problem).update(zip(kind.arrays, leaves, strict=True))
        return problem

    jax.tree_util.register_pytree_node(kind, flatten, unflatten)
    _registered.add(kind)


class JaxFunction(Problem):
    """A function written with jax.numpy, differentiated where it is traced."""

    def __init__(self, fun: Callable[[Array], Array], n: int) -> None:
        self.fun = fun
        self.n, self.dtype, self.xp = n, np.dtype(np.float64), jnp

    def value(self, x: Array) -> Array:
        return self.fun(x)

    def gradient(self, x: Array) -> Array:
        return jax.grad(self.fun)(x)

    def hvp(self, x: Array, v: Array) -> Array:
        return jax.jvp(jax.grad(self.fun), (x,), (v,))[1]


_register(JaxFunction)
