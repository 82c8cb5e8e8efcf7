"""From rows as read to rows to learn from: labels in {0, 1}, columns of size one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array, first_non_finite, is_sparse

DENSE_ABOVE = 0.15  # the density from which dense products are quicker than sparse ones


@dataclass(frozen=True)
class Rows:
    """A matrix of features and one target per row."""

    A: Array
    b: np.ndarray

    def __len__(self) -> int:
        return int(self.A.shape[0])

    def take(self, index: np.ndarray | slice) -> Rows:
        """Return some of the rows."""
        return Rows(self.A[index], self.b[index])


def binary_labels(labels: np.ndarray, where: str = "The data") -> np.ndarray:
    """Map exactly two label values to 0 (the smaller, or first in order) and 1."""
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"{where}: the label in row {row} is {labels[row]}.")
    values = np.unique(labels)
    if len(values) != 2:
        shown = ", ".join(str(v) for v in values[:5]) + (", ..." if len(values) > 5 else "")
        found = f"{len(values)} ({shown})" if len(values) != 1 else f"only {shown}"
        raise InputError(f"{where}: a binary problem needs two label values, but has {found}.")
    return (labels == values[1]).astype(np.float64)


def numeric_targets(labels: np.ndarray, where: str = "The data") -> np.ndarray:
    """Return labels as regression targets; words are refused."""
    if labels.dtype.kind != "f":
        raise InputError(f"{where}: a regression needs numbers as targets, not '{labels[0]}'.")
    return labels


def check_finite(A: Array, where: str, columns: Sequence[str] | None = None) -> None:
    """Refuse NaN and infinity, naming row and column."""
    found = first_non_finite(A)
    if found is None:
        return
    row, column, value = found
    name = f"column {column}" if columns is None else f"column {column} ('{columns[column]}')"
    raise InputError(f"{where}: row {row}, {name} is {value} (counted from 0); mend or drop it.")


def largest_entries(A: Array) -> np.ndarray:
    """Return each column's largest absolute value, 1 for columns of zeros."""
    size = abs(A).max(axis=0)
    size = size.toarray().reshape(-1) if is_sparse(size) else np.asarray(size)
    return np.where(size == 0, 1.0, size)


def scaled(A: Array, size: np.ndarray) -> Array:
    """Return ``A`` with its columns divided by ``size``."""
    if is_sparse(A):
        from scipy.sparse import diags_array

        return (A @ diags_array(1.0 / size)).tocsr()
    return A / size


def quicker_layout(A: Array) -> Array:
    """Return ``A`` dense or sparse, whichever multiplies quicker, and dense only if it is small.

    Dense when at least 15% of the entries are non-zero and the array stays below 1 GiB.
    """
    if is_sparse(A):
        dense = A.nnz >= DENSE_ABOVE * A.shape[0] * A.shape[1]
        small = A.shape[0] * A.shape[1] * 8 < 2**30
        return A.toarray() if dense and small else A
    return A
