"""Modules of arrays that a file can hold by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError


class Stored(eqx.Module):
    """An equinox module that is made anew from settings, plain values, and arrays by name."""

    @property
    def settings(self) -> dict[str, Any]:
        """What :meth:`blank` needs to make coefficients of the same shape; plain values."""
        return {}

    @classmethod
    def blank(cls, **settings: Any) -> Self:
        """Return coefficients of a given shape, whose parameters are to be filled in.

        Args:
            **settings: the value of ``settings``.
        """
        return cls(**settings)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, as NumPy arrays."""
        return {name: np.asarray(leaf) for name, leaf in _named_arrays(self)}

    def with_parameters(self, values: Mapping[str, np.ndarray]) -> Self:
        """Return a copy with other arrays.

        Args:
            values: arrays of the names and shapes that :meth:`parameters` has.

        Raises:
            InputError: names or shapes differ.
        """
        own = _named_arrays(self)
        if (names := {name for name, _ in own}) != set(values):
            raise InputError(f"Parameters {sorted(names)} are due, not {sorted(values)}.")
        for name, leaf in own:
            if np.shape(values[name]) != np.shape(leaf):
                shapes = f"{np.shape(values[name])}, not {np.shape(leaf)}"
                raise InputError(f"The parameter {name} has the shape {shapes}.")
        arrays, rest = eqx.partition(self, eqx.is_inexact_array)
        filled = [np.asarray(values[name], dtype=np.float64) for name, _ in own]
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), filled), rest)


def _named_arrays(tree: Any) -> list[tuple[str, Array]]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
