"""The group penalty: whole groups of variables are 0 together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ode2opt.base.arrays import Array, namespace, refuse_masked
from ode2opt.base.errors import InputError, many
from ode2opt.penalties.base import Face, Penalty
from ode2opt.penalties.separable import as_weight


class GroupL1(Penalty):
    """The penalty sum_g weight_g |x_g|_2 over groups g of variables.

    Args:
        weight: not negative; one number for every group, or one for each. A usual choice is the
            root of the group's size, times one number.
        groups: the columns of each group, as lists of numbers from 0; each column is in exactly
            one of them.

    Raises:
        InputError: a weight is negative, a column is in two groups or in none.

    Examples:
        >>> from ode2opt.penalties import *
        >>> GroupL1(1.0, [[0, 1], [2]]).prox(np.array([3.0, 4.0, 0.5]), 1.0)
        array([2.4, 3.2, 0. ])
    """

    def __init__(self, weight: Any, groups: Sequence[Sequence[int]]) -> None:
        self.labels = _labels(groups)
        self.n, self.count = len(self.labels), int(self.labels.max()) + 1
        found = as_weight(weight)
        if np.ndim(found) and len(found) != self.count:
            raise InputError(
                f"weight has {many(len(found), 'number')} for {many(self.count, 'group')}."
            )
        self.weight = np.array(np.broadcast_to(found, (self.count,)), dtype=np.float64)
        self._padded: np.ndarray | None = None

    def value(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.sum(self._of(self.weight, x) * self._norms(x))

    def prox(self, x: Array, step: Any) -> Array:
        xp, norms = namespace(x), self._norms(x)
        safe = xp.where(norms > 0, norms, xp.ones_like(norms))
        keep = xp.clip(1 - step * self._of(self.weight, x) / safe, 0.0, 1.0)
        return x * xp.take(keep, self._of(self.labels, x), axis=0)

    def _norms(self, x: Array) -> Array:
        """Return the Euclidean norm of each group."""
        if isinstance(x, np.ndarray):
            return np.sqrt(np.bincount(self.labels, x * x, minlength=self.count)).astype(x.dtype)
        xp, padded = namespace(x), self._index()
        longer = xp.concat([x, xp.zeros(1, dtype=x.dtype)])
        flat = xp.take(longer, self._of(padded.reshape(-1), x), axis=0)
        entries = xp.reshape(flat, padded.shape)
        return xp.sqrt(xp.sum(entries * entries, axis=1))

    def _index(self) -> np.ndarray:
        """Return the variables of each group, a row each, filled up with n."""
        if self._padded is None:
            sizes = np.bincount(self.labels)
            order = np.argsort(self.labels, kind="stable")
            first = np.cumsum(sizes) - sizes
            place = np.arange(len(order)) - first[self.labels[order]]
            self._padded = np.full((self.count, int(sizes.max())), len(order))
            self._padded[self.labels[order], place] = order
        return self._padded

    def _of(self, values: np.ndarray, x: Array) -> Array:
        """Return an array of ours on the library of x."""
        if isinstance(x, np.ndarray):
            return values.astype(x.dtype) if values.dtype.kind == "f" else values
        xp = namespace(x)
        return xp.asarray(values, dtype=x.dtype) if values.dtype.kind == "f" else xp.asarray(values)

    def curvature_set(self, x: np.ndarray) -> Face:
        """Groups that are not 0 move: the second derivative is w/|x| (I - x x^T / |x|^2)."""
        norms = self._norms(x)
        here = norms[self.labels]
        weight = self.weight[self.labels]
        free = (here > 0) | (weight == 0)
        size = np.where(here > 0, here, 1.0)
        over = np.where(free, weight / size, 0.0)
        return Face(free, over * x, over, np.sqrt(over) * x / size, self.labels)

    def conjugate(self, v: np.ndarray) -> float:
        inside = self._norms(v) <= self.weight * (1 + 1e-12)
        return 0.0 if bool(np.all(inside)) else np.inf

    def dual_scale(self, v: np.ndarray) -> float:
        norms = self._norms(v)
        some = norms > 0
        return float(min(1.0, np.min(self.weight[some] / norms[some], initial=np.inf)))

    def critical_scale(self, g: np.ndarray) -> float | None:
        norms, some = self._norms(g), self.weight > 0
        return float(np.max(norms[some] / self.weight[some], initial=0.0)) if some.any() else None

    def scaled(self, factor: float) -> Self:
        other = type(self).__new__(type(self))
        vars(other).update(vars(self) | {"weight": factor * self.weight})
        return other

    def only(self, kept: np.ndarray) -> GroupL1 | None:
        """Groups of which no variable is kept are gone; None where nothing is left."""
        if not kept.any():
            return None
        groups, labels = np.unique(self.labels[kept], return_inverse=True)
        other = type(self).__new__(type(self))
        vars(other).update(
            labels=labels, n=len(labels), count=len(groups), weight=self.weight[groups]
        )
        other._padded = None
        return other

    def sized(self, n: int, free: int = 0, width: int = 1) -> Penalty:
        assert self.n is not None
        if width > 1 and self.n * width == n - free:
            wide = type(self).__new__(type(self))
            labels = np.repeat(self.labels, width)
            vars(wide).update(vars(self) | {"labels": labels, "n": len(labels), "_padded": None})
            return wide.sized(n, free)
        return super().sized(n, free, width)

    def _about(self) -> list[tuple[str, str]]:
        low, high = self.weight.min(), self.weight.max()
        weight = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return [("groups", many(self.count, "group")), ("weight", weight)]


def _labels(groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the number of each variable's group."""
    refuse_masked(groups, "groups")
    try:
        found = [np.asarray(group) for group in groups]
    except (TypeError, ValueError):
        found = []
    if any(one.ndim == 1 and not len(one) for one in found):
        raise InputError("A group has no columns: leave it out.")
    if not found or any(one.ndim != 1 or one.dtype.kind not in "iu" for one in found):
        raise InputError("groups must be lists of column numbers, such as [[0, 1], [2]].")
    columns = np.concatenate(found)
    if columns.min() < 0:
        raise InputError(f"groups has column {columns.min()}: columns are counted from 0.")
    counts = np.bincount(columns)
    for wrong, words in ((counts > 1, "is in two groups"), (counts == 0, "is in no group")):
        if wrong.any():
            raise InputError(
                f"Column {int(np.flatnonzero(wrong)[0])} {words}: each must be in exactly one."
            )
    labels = np.empty(len(columns), dtype=np.int64)
    for number, group in enumerate(found):
        labels[group] = number
    return labels
