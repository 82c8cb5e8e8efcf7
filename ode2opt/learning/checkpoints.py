"""A tree of arrays as a checkpoint stores it: one array for each leaf, named by its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.base.record import Arrays

Tree = TypeVar("Tree")


@double
def packed(tree: Any) -> dict[str, np.ndarray]:
    """Return the leaves of a tree as NumPy arrays, for a checkpoint."""
    return {_place(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


@double
def unpacked(found: Arrays, like: Callable[[], Tree]) -> Tree:
    """Return the tree that :func:`packed` took apart."""
    leaves, structure = jax.tree.flatten(like())
    return jax.tree.unflatten(structure, _in_places(found, leaves))


def _place(number: int) -> str:
    return f"{number:04}"


def _in_places(found: Arrays, leaves: list[Any]) -> list[jax.Array]:
    """Return a checkpoint's arrays in the order of the leaves that they are to replace."""
    names = [_place(i) for i in range(len(leaves))]
    arrays = [found.take(name, np.shape(leaf)) for name, leaf in zip(names, leaves, strict=True)]
    found.check_all_taken()
    for array, leaf in zip(arrays, map(np.asarray, leaves), strict=True):
        if array.dtype != leaf.dtype:
            raise InputError(f"it holds {array.dtype} where {leaf.dtype} is due.")
    return [jnp.asarray(array) for array in arrays]
