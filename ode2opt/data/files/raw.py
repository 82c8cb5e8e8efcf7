"""A table as it is read, before missing cells are handled and words become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.data.categories import Category
from ode2opt.data.encoding import ColumnEncoding
from ode2opt.data.preparing import Place, row_place


@dataclass(frozen=True)
class RawTable:
    """The columns of a file.

    Attributes:
        A: the columns of numbers, dense or sparse; a missing cell is NaN.
        names: of these columns, None where they have none.
        categories: the columns of words; a missing one has the code -1.
        labels: floats (NaN where missing) or words (None where missing); None without labels.
        weights: of the rows, NaN where missing.
        place: the names of rows in errors.
        header: all columns of the file.
        named: whether the header's names are the file's own.
        label: the name of the label column.
        weighed: the name of the column of weights.
        truths: whether the labels were true and false.
        decimal: the decimal sign.
        zero_based: whether indices count from 0.
        encoded: how columns had to be read, where an encoding says so.
        notes: sentences about what was done.
        rows: which rows of the file these are, None for all.
    """

    A: Array
    names: Sequence[str] | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    place: Place = row_place
    header: Sequence[str] = ()
    named: bool = False
    label: str | None = None
    weighed: str | None = None
    truths: bool = False
    decimal: str = "."
    zero_based: bool | None = None
    encoded: Sequence[ColumnEncoding] = ()
    notes: tuple[str, ...] = ()
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.A.shape[0])

    def take(self, kept: np.ndarray) -> RawTable:
        """Return some of the rows."""
        rows = np.flatnonzero(kept)
        return replace(
            self,
            A=self.A[rows],
            categories={
                name: Category(column.codes[rows], column.words)
                for name, column in self.categories.items()
            },
            labels=None if self.labels is None else self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            place=partial(_place_of, self.place, rows),
            rows=rows,
        )

    def with_own_words(self) -> RawTable:
        """Return the table without words that none of its rows has."""
        return replace(
            self, categories={name: _own(column) for name, column in self.categories.items()}
        )

    def column(self, j: int) -> str:
        """Return what errors call a column of numbers."""
        return f"column {j} (counted from 0)" if self.names is None else f"column '{self.names[j]}'"


def _place_of(place: Place, rows: np.ndarray, row: int) -> str:
    """Return what errors call a row of a table that has some rows of another one."""
    return place(int(rows[row]))


def _own(column: Category) -> Category:
    used = np.unique(column.codes[column.codes >= 0])
    places = np.full(len(column.words) + 1, -1, dtype=np.int32)  # the last is that of code -1
    places[used] = np.arange(len(used))
    return Category(places[column.codes], tuple(column.words[k] for k in used.tolist()))
