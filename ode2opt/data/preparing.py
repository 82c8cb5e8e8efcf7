"""From rows as read to rows to learn from: labels in {0, 1}, columns of size one, held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ode2opt.base.arrays import Array, first_non_finite, is_sparse
from ode2opt.base.errors import InputError, many

if TYPE_CHECKING:
    from ode2opt.data.table import DataTable

DENSE_ABOVE = 0.15  # the density from which dense products are quicker than sparse ones
MORE_CLASSES = "more classes take a softmax (--problem softmax)"
Place = Callable[[int], str]
"""What errors call a row, by its number from 0: "line 17" of text, "row 16" of anything else."""


def row_place(row: int, before: int = 0) -> str:
    """Return what errors call a row; rows of data are counted from 1."""
    return f"row {before + row + 1}"


def column_place(column: int, names: Sequence[str] | None = None) -> str:
    """Return what errors call a column."""
    return f"column {column} (counted from 0)" if names is None else f"column '{names[column]}'"


@dataclass(frozen=True)
class DataRows:
    """A matrix of features, one target per row, and weights where rows have them.

    Attributes:
        A: N x n matrix, dense or sparse.
        b: N targets.
        weights: N weights; None is one each.
        words: labels that were no numbers, in the order of the numbers they have become.
    """

    A: Array
    b: np.ndarray
    weights: np.ndarray | None = None
    words: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.A.shape[0])

    def take(self, index: np.ndarray | slice) -> DataRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[index]
        return DataRows(self.A[index], self.b[index], weights, self.words)

    def then(self, other: DataRows) -> DataRows:
        """Return these rows and others after them."""
        if is_sparse(self.A):
            from scipy.sparse import vstack

            A: Array = vstack([self.A, other.A], format="csr")
        else:
            A = np.concatenate([self.A, other.A])
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return DataRows(A, np.concatenate([self.b, other.b]), weights, self.words)


TrainAndTest = tuple[DataRows, DataRows]
"""The rows to learn from, and those to test with."""


def class_labels(
    labels: np.ndarray, where: str = "The data", place: Place = row_place
) -> np.ndarray:
    """Return labels as numbers from 0, in the order of their values.

    Examples:
        >>> class_labels(np.array(["b", "a", "c"])).tolist()
        [1.0, 0.0, 2.0]
    """
    _check_labels(labels, where, place)
    values, counted = np.unique(labels, return_inverse=True)
    if len(values) < 2:
        raise InputError(f"{where}: there must be two classes or more, but all are {values[0]}.")
    return counted.astype(np.float64)


def _check_labels(labels: np.ndarray, where: str, place: Place) -> None:
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"{where}: the label in {place(row)} is {labels[row]}.")


def label_words(labels: np.ndarray) -> tuple[str, ...]:
    """Return labels that are no numbers, each once and in order."""
    return () if labels.dtype.kind == "f" else tuple(str(word) for word in np.unique(labels))


def labels_note(words: tuple[str, ...], most: int = 12) -> str:
    """Return a sentence about the numbers that labels have become."""
    if len(words) == 2:
        return f"The label '{words[1]}' is 1, '{words[0]}' is 0."
    shown = ", ".join(f"{k} is '{word}'" for k, word in enumerate(words[:most]))
    return f"Of the classes {shown}{', ...' * (len(words) > most)}."


def check_weights(weights: np.ndarray, where: str, place: Place = row_place) -> None:
    """Refuse weights that are not finite, negative, or all zero."""
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"{where}: the weight in {place(row)} is {weights[row]:g}: weights are finite numbers, "
            f"none of them negative."
        )
    if not np.any(weights):
        raise InputError(f"{where}: all weights are zero.")


def binary_labels(
    labels: np.ndarray, where: str = "The data", place: Place = row_place
) -> np.ndarray:
    """Return two kinds of labels as 0 (the smaller, or first in order) and 1.

    Examples:
        >>> binary_labels(np.array([1.0, -1.0, 1.0])).tolist()
        [1.0, 0.0, 1.0]
    """
    _check_labels(labels, where, place)
    values = np.unique(labels)
    if len(values) != 2:
        shown = ", ".join(str(v) for v in values[:5]) + (", ..." if len(values) > 5 else "")
        found = f"{len(values)} ({shown})" if len(values) != 1 else f"only {shown}"
        way_out = f": {MORE_CLASSES}" if len(values) > 2 else ""
        raise InputError(
            f"{where}: a binary problem needs two label values, but has {found}{way_out}."
        )
    return (labels == values[1]).astype(np.float64)


def numeric_targets(
    labels: np.ndarray, where: str = "The data", place: Place = row_place
) -> np.ndarray:
    """Return labels as regression targets."""
    if labels.dtype.kind != "f":
        raise InputError(f"{where}: a regression needs numbers as targets, not '{labels[0]}'.")
    _check_labels(labels, where, place)
    return labels


def check_finite(
    A: Array,
    where: str,
    columns: Sequence[str] | None = None,
    place: Place = row_place,
) -> None:
    """Refuse NaN and infinity, naming row and column."""
    found = first_non_finite(A)
    if found is None:
        return
    row, column, value = found
    name = column_place(column, columns)
    raise InputError(f"{where}: {place(row)}, {name} is {value}; mend or drop it.")


def largest_entries(A: Array) -> np.ndarray:
    """Return each column's largest absolute value, 1 for columns of zeros."""
    size = abs(A).max(axis=0)
    size = size.toarray().reshape(-1) if is_sparse(size) else np.asarray(size)
    return np.where(size == 0, 1.0, size)


def scaled(A: Array, size: np.ndarray) -> Array:
    """Return a matrix with its columns divided by numbers."""
    if is_sparse(A):
        from scipy.sparse import diags_array

        return (A @ diags_array(1.0 / size)).tocsr()
    return A / size


def quicker_layout(A: Array) -> Array:
    """Return a sparse matrix as a dense one where that multiplies quicker and is small.

    That is where at least 15% of the entries are non-zero and the array stays below 1 GiB.
    """
    if is_sparse(A):
        dense = A.nnz >= DENSE_ABOVE * A.shape[0] * A.shape[1]
        small = A.shape[0] * A.shape[1] * 8 < 2**30
        return A.toarray() if dense and small else A
    return A


def rows_of(table: DataTable, where: str, binary: bool | None, classes: bool = False) -> DataRows:
    """Return a table's rows with checked features, labels and weights."""
    check_finite(table.A, where, table.columns, table.place)
    if table.weights is not None:
        check_weights(table.weights, where, table.place)
    if binary is None:
        binary = len(np.unique(table.labels)) == 2
    mapped = class_labels if classes else binary_labels if binary else numeric_targets
    b = mapped(table.labels, where, table.place)
    return DataRows(table.A, b, table.weights, label_words(table.labels))


def split_at(rows: DataRows, first: int) -> TrainAndTest:
    """Return the first rows and the others."""
    return rows.take(slice(0, first)), rows.take(slice(first, None))


def check_share(share: float) -> float:
    """Return the share of rows to hold back, checked."""
    if not 0 < share < 1:
        raise InputError(
            f"--holdout {share:g}: name the share of rows to hold back, more than 0 and less than "
            f"1, such as 0.2."
        )
    return share


def held_out(labels: np.ndarray, share: float, seed: int, classes: bool) -> np.ndarray:
    """Return which rows are held back, as a mask: at random, the same for the same seed."""
    check_share(share)
    rng = np.random.default_rng(seed)
    groups = [np.arange(len(labels))]
    if classes:
        _, group = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        groups = [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]
    held = np.zeros(len(labels), dtype=bool)
    for rows in groups:
        count = min(round(share * len(rows)), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    if not held.any():
        few = max(map(len, groups)) == 1
        way_out = "every class has one row only" if few else "name a larger share"
        raise InputError(
            f"--holdout {share:g} of {many(len(labels), 'row')} holds none back: {way_out}."
        )
    return held
