"""The one container of rows as people have them: what every reader gives, and what becomes of it.

A reader gives columns of numbers with NaN where a cell is missing, columns of words as codes, and
what it knows of the file. Then, in this order: missing cells are dealt with, words become columns
of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, is_sparse
from ode2opt.base.errors import InputError, many
from ode2opt.data.categories import (
    MISSING_WORD,
    Category,
    Words,
    all_words,
    column_names,
    one_hot,
)
from ode2opt.data.encoding import TableEncoding, encoding_of, with_fills, with_words
from ode2opt.data.preparing import Place, column_place, row_place

WAYS_OUT = ": --missing drop leaves such rows out, --missing mean takes the mean of the column"
ONLY_DROP = ", and it has no mean: --missing drop leaves such rows out"


@dataclass(frozen=True)
class DataTable:
    """Rows: a matrix, one label each (numbers or words), the columns' names, weights.

    Attributes:
        A: the columns of numbers, dense or sparse; NaN where a cell is missing.
        labels: one for each row, floats (NaN where missing) or words (None where missing); None
            without labels.
        columns: the names of the matrix's columns; None where they have none.
        weights: of the rows, NaN where missing; None without weights.
        categories: columns of words beside the matrix.
        words: those that have become columns of the matrix.
        encoding: how columns of the file became those of the matrix; that of words which are still
            beside it has the words of this table alone.
        about: what a reader knows of the file, by the names of the encoding's fields.
        rows: which rows of the file these are, by number from 0; None for all.
        total: how many rows the file has.
        notes: sentences about what was done.
        place: the names of rows in errors: "line 17" of text, counting every line of the file, or
            "row 16", counting rows of data from 1.
        holes: where missing cells are that are to be filled, see :meth:`part`.
        partly_labelled: whether the file has labels, but lacks some of them.
    """

    A: Array
    labels: Any = None
    columns: Sequence[str] | None = None
    weights: np.ndarray | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    words: Words = field(default_factory=dict)
    encoding: TableEncoding | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    rows: Any = None
    total: int = 0
    notes: tuple[str, ...] = ()
    place: Place = row_place
    holes: Holes | None = None
    partly_labelled: bool = False

    def __len__(self) -> int:
        return int(self.A.shape[0])

    @classmethod
    def of(cls, found: Mapping[str, np.ndarray | Category], rows: int, **rest: Any) -> DataTable:
        """Return the table of columns of numbers and of words, by their names."""
        numbers = {name: one for name, one in found.items() if isinstance(one, np.ndarray)}
        A = np.empty((rows, len(numbers)))
        for j, column in enumerate(numbers.values()):
            A[:, j] = column
        words = {name: one for name, one in found.items() if isinstance(one, Category)}
        return cls(A, columns=list(numbers), categories=words, **rest)

    def called(self, j: int) -> str:
        """Return what errors call a column of the matrix."""
        return column_place(j, self.columns)

    def take(self, kept: np.ndarray) -> DataTable:
        """Return some of the rows, by a mask."""
        at = np.flatnonzero(kept)
        return replace(
            self,
            A=self.A[at],
            categories={
                name: Category(column.codes[at], column.words)
                for name, column in self.categories.items()
            },
            labels=None if self.labels is None else self.labels[at],
            weights=None if self.weights is None else self.weights[at],
            place=partial(_place_of, self.place, at),
            rows=at if self.rows is None else self.rows[at],
        ).with_own_words()

    def with_own_words(self) -> DataTable:
        """Return the table without words that none of its rows has."""
        return replace(self, categories={k: one.of_rows() for k, one in self.categories.items()})

    def without_missing(self, missing: str) -> DataTable:
        """Return a table of which no cell is missing, or, to be filled later, only numbers are."""
        numbers = missing != "mean"
        rows = self.missing_rows(numbers)
        if not rows.any():
            return self
        if missing != "drop":
            told, is_number = self.missing_cell(int(np.argmax(rows)), numbers)
            raise InputError(f"{told}{WAYS_OUT if is_number else ONLY_DROP}.")
        if rows.all():
            raise InputError("every row has a missing cell: --missing drop leaves none.")
        left_out = f"{many(int(rows.sum()), 'row')} of {len(self):,} left out: cells are missing."
        return replace(self.take(~rows), notes=(*self.notes, left_out))

    def missing_rows(self, numbers: bool = True) -> np.ndarray:
        """Return which rows have a missing cell, as a mask."""
        rows = _missing_numbers(self.A) if numbers else np.zeros(len(self), dtype=bool)
        for category in self.categories.values():
            rows |= category.codes == MISSING_WORD
        for values in (self.labels, self.weights):
            if values is not None:
                rows |= missing_values(values)
        return rows

    def missing_cell(self, row: int, numbers: bool) -> tuple[str, bool]:
        """Return in words which cell of a row is missing, and whether it is a number."""
        where = self.place(row)
        entries = self.A[[row]]
        if numbers and _missing_numbers(entries).any():
            dense = entries.toarray() if is_sparse(entries) else entries
            return f"{where}, {self.called(int(np.argmax(np.isnan(dense[0]))))} is missing", True
        for name, category in self.categories.items():
            if category.codes[row] == MISSING_WORD:
                return f"{where}, column '{name}' is missing", False
        label = self.labels is not None and missing_values(self.labels)[row]
        return f"the {'label' if label else 'weight'} in {where} is missing", False

    def part(self, missing: str) -> DataTable:
        """Return a part of a table: cells that are to be filled with means are zeros and holes."""
        found = self.without_missing(missing)
        A, notes, holes, fills = found.A, found.notes, None, None
        if missing == "mean":
            A, holes = holes_of(A)
            fills = np.zeros(A.shape[1])
            if len(holes):
                notes = (*notes, f"{many(len(holes), 'missing cell')} filled with column means.")
        words = {name: tuple(sorted(one.words)) for name, one in found.categories.items()}
        encoding = encoding_of(
            A.shape[1], self.columns, words, missing=missing, fills=fills, **self.about
        )
        return replace(found, A=A, notes=notes, holes=holes, encoding=encoding)

    def whole(self, missing: str, among: np.ndarray | None = None) -> DataTable:
        """Return a table without missing cells; means are those of the rows ``among`` a mask."""
        found = self.part(missing)
        if found.holes is None:
            return found
        rows, holes = (found.A, found.holes) if among is None else holes_of(self.A[among])
        fills = means(*holes.totals(rows), self.called)
        assert found.encoding is not None
        return replace(
            found,
            A=found.holes.filled(found.A, fills),
            encoding=with_fills(found.encoding, fills),
            holes=None,
        )

    def in_numbers(self) -> DataTable:
        """Return the table with columns of 0 and 1 for the words."""
        if not self.categories:
            return self
        own = {name: category.words for name, category in self.categories.items()}
        words = all_words([own], len(self))
        return replace(
            self,
            A=one_hot(self.A, self.categories, words),
            columns=column_names(self.columns or (), words),
            categories={},
            words=words,
            encoding=None if self.encoding is None else with_words(self.encoding, words),
        )


def _place_of(place: Place, rows: np.ndarray, row: int) -> str:
    """Return what errors call a row of a table that has some rows of another one."""
    return place(int(rows[row]))


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
        """Return the sum of each column, and how many of its cells are not missing."""
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
