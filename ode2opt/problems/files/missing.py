"""Missing cells: told, left out with their rows, or replaced by the mean of their column."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ode2opt.errors import InputError, many
from ode2opt.problems._arrays import Array, is_sparse
from ode2opt.problems.files.cells import MISSING_WORD
from ode2opt.problems.files.raw import RawTable

WAYS_OUT = "--missing drop leaves such rows out, --missing mean takes the mean of the column"
ONLY_DROP = "it has no mean: --missing drop leaves such rows out"


def settled(raw: RawTable, missing: str) -> RawTable:
    """Return a table of which no cell is missing, or, to be filled later, only numbers are.

    Args:
        raw: the table.
        missing: "error", "drop" or "mean"; with "mean" numbers stay NaN, see :func:`column_means`
            and :func:`filled`.
    """
    rows = rows_with_missing(raw, numbers=missing != "mean")
    if not rows.any():
        return raw
    if missing != "drop":
        raise InputError(_first_missing(raw, int(np.argmax(rows)), missing))
    if rows.all():
        raise InputError("every row has a missing cell: --missing drop leaves none.")
    left_out = f"{many(int(rows.sum()), 'row')} of {len(raw):,} with missing cells are left out."
    return replace(raw.take(~rows), notes=(*raw.notes, left_out))


def rows_with_missing(raw: RawTable, numbers: bool = True) -> np.ndarray:
    """Return which rows have a missing cell, as a mask.

    Without ``numbers`` only words, labels and weights are looked at.
    """
    rows = _missing_numbers(raw.A) if numbers else np.zeros(len(raw), dtype=bool)
    for category in raw.categories.values():
        rows |= category.codes == MISSING_WORD
    for values in (raw.labels, raw.weights):
        if values is not None:
            rows |= missing_values(values)
    return rows


def missing_values(values: np.ndarray) -> np.ndarray:
    """Return which of labels or weights are missing, as a mask."""
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


def _first_missing(raw: RawTable, row: int, missing: str) -> str:
    """Say which cell of a row is missing, and the way out."""
    where = raw.place(row)
    number = WAYS_OUT if missing == "error" else ""
    entries = raw.A[[row]]
    if number and _missing_numbers(entries).any():
        dense = entries.toarray() if is_sparse(entries) else entries
        column = raw.column(int(np.argmax(np.isnan(dense[0]))))
        return f"{where}, {column} is missing: {number}."
    for name, category in raw.categories.items():
        if category.codes[row] == MISSING_WORD:
            return f"{where}, column '{name}' is missing, and {ONLY_DROP}."
    what = "label" if raw.labels is not None and missing_values(raw.labels)[row] else "weight"
    return f"the {what} in {where} is missing, and {ONLY_DROP}."


def column_means(raw: RawTable) -> np.ndarray:
    """Return the mean of each column of numbers over the cells that are not missing."""
    A = raw.A
    if is_sparse(A):
        gone = np.isnan(A.data)
        shape = A.shape[1]
        sums = np.bincount(A.indices, np.where(gone, 0.0, A.data), minlength=shape)
        counts = A.shape[0] - np.bincount(A.indices[gone], minlength=shape)
    else:
        gone = np.isnan(A)
        sums, counts = np.where(gone, 0.0, A).sum(axis=0), A.shape[0] - gone.sum(axis=0)
    if not np.all(counts):
        column = raw.column(int(np.argmin(counts)))
        raise InputError(f"{column} has no value in any row: leave it out with --drop.")
    means = np.asarray(sums, dtype=np.float64) / counts
    if not np.all(np.isfinite(means)):
        column = raw.column(int(np.argmin(np.isfinite(means))))
        raise InputError(f"{column} has no finite mean: it holds infinite or very large numbers.")
    return means


def filled(A: Array, fills: np.ndarray) -> Array:
    """Return the numbers with missing cells replaced by what their columns are filled with."""
    if is_sparse(A):
        data = np.where(np.isnan(A.data), fills[A.indices], A.data)
        return type(A)((data, A.indices, A.indptr), shape=A.shape)
    if A.dtype.kind != "f":
        return A
    rows, columns = np.nonzero(np.isnan(A))
    if not len(rows):
        return A
    A = A.copy()
    A[rows, columns] = fills[columns]
    return A
