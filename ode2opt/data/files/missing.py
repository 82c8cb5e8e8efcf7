"""Missing cells: refused, left out with their rows, or replaced by the mean of their column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ode2opt.base.arrays import Array, is_sparse
from ode2opt.base.errors import InputError, many
from ode2opt.data.files.cells import MISSING_WORD
from ode2opt.data.files.raw import RawTable

WAYS_OUT = ": --missing drop leaves such rows out, --missing mean takes the mean of the column"
ONLY_DROP = ", and it has no mean: --missing drop leaves such rows out"


def apply_missing_policy(raw: RawTable, missing: str) -> RawTable:
    """Return a table of which no cell is missing, or, to be filled later, only numbers are."""
    numbers = missing != "mean"
    rows = rows_with_missing(raw, numbers)
    if not rows.any():
        return raw
    if missing != "drop":
        told, is_number = missing_cell_words(raw, int(np.argmax(rows)), numbers)
        raise InputError(f"{told}{WAYS_OUT if is_number else ONLY_DROP}.")
    if rows.all():
        raise InputError("every row has a missing cell: --missing drop leaves none.")
    left_out = f"{many(int(rows.sum()), 'row')} of {len(raw):,} left out: cells are missing."
    return replace(raw.take(~rows).with_own_words(), notes=(*raw.notes, left_out))


def rows_with_missing(raw: RawTable, numbers: bool = True) -> np.ndarray:
    """Return which rows have a missing cell, as a mask."""
    rows = _missing_numbers(raw.A) if numbers else np.zeros(len(raw), dtype=bool)
    for category in raw.categories.values():
        rows |= category.codes == MISSING_WORD
    for values in (raw.labels, raw.weights):
        if values is not None:
            rows |= missing_values(values)
    return rows


def missing_values(values: np.ndarray) -> np.ndarray:
    """Return which labels or weights are missing, as a mask."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.array([value is None for value in values], dtype=bool)


def _missing_numbers(A: Array) -> np.ndarray:
    rows = np.zeros(A.shape[0], dtype=bool)
    if is_sparse(A):
        if np.isnan(np.sum(A.data)):
            at = np.flatnonzero(np.isnan(A.data))
            rows[np.searchsorted(A.indptr, at, side="right") - 1] = True
    elif A.dtype.kind == "f" and not math.isfinite(np.sum(A)):  # a sum is one pass, no memory
        rows = np.isnan(A).any(axis=1)
    return rows


def missing_cell_words(raw: RawTable, row: int, numbers: bool) -> tuple[str, bool]:
    """Return in words which cell of a row is missing, and whether it is a number."""
    where = raw.place(row)
    entries = raw.A[[row]]
    if numbers and _missing_numbers(entries).any():
        dense = entries.toarray() if is_sparse(entries) else entries
        return f"{where}, {raw.column(int(np.argmax(np.isnan(dense[0]))))} is missing", True
    for name, category in raw.categories.items():
        if category.codes[row] == MISSING_WORD:
            return f"{where}, column '{name}' is missing", False
    what = "label" if raw.labels is not None and missing_values(raw.labels)[row] else "weight"
    return f"the {what} in {where} is missing", False


@dataclass(frozen=True)
class Holes:
    """Where the missing cells of a matrix are, which has zeros there.

    Attributes:
        at: their places in a dense matrix (rows and columns), or in the entries of a sparse one.
        columns: the column of each.
    """

    at: tuple[np.ndarray, ...]
    columns: np.ndarray

    def __len__(self) -> int:
        return len(self.columns)

    def totals(self, A: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of each column of the matrix, and how many of its cells are not
        missing.
        """
        rows, columns = A.shape
        sums = np.asarray(A.sum(axis=0), dtype=np.float64).reshape(-1)
        return sums, rows - np.bincount(self.columns, minlength=columns)

    def filled(self, A: Array, fills: np.ndarray) -> Array:
        """Return the matrix with its missing cells filled."""
        if not len(self):
            return A
        A = A.copy()
        (A.data if is_sparse(A) else A)[self.at] = fills[self.columns]
        return A


def holes_of(A: Array) -> tuple[Array, Holes]:
    """Return a matrix with zeros where it is NaN, and where that is."""
    if is_sparse(A):
        at: tuple[np.ndarray, ...] = (np.flatnonzero(np.isnan(A.data)),)
        holes = Holes(at, A.indices[at[0]])
    else:
        at = np.nonzero(np.isnan(A))
        holes = Holes(at, at[1])
    return holes.filled(A, np.zeros(A.shape[1])), holes


def means(sums: np.ndarray, counts: np.ndarray, called: Callable[[int], str]) -> np.ndarray:
    """Return the means of columns."""
    if not np.all(counts):
        column = called(int(np.argmin(counts)))
        raise InputError(f"{column} has no value in any row: leave it out with --drop.")
    found = sums / counts
    if not np.all(np.isfinite(found)):
        column = called(int(np.argmin(np.isfinite(found))))
        raise InputError(f"{column} has no finite mean: it holds infinite or very large numbers.")
    return found
