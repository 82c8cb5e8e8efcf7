"""What reading a file gives: rows of numbers, labels, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import many
from ode2opt.data.categories import Category, Words, all_words, column_names, one_hot
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.files.missing import Holes, apply_missing_policy, holes_of, means
from ode2opt.data.files.raw import RawTable
from ode2opt.data.preparing import Place, row_place


@dataclass(frozen=True)
class DataTable:
    """Rows as read: a matrix, one label each (numbers or words), the columns' names, weights.

    Attributes:
        A: the columns of numbers, dense or sparse.
        labels: one for each row, numbers or words.
        columns: the names of the matrix's columns; None where they have none.
        weights: of the rows; None without weights.
        categories: columns of words beside the matrix.
        words: those that have become columns of the matrix.
        encoding: how columns of the file became those of the matrix; that of words which are still
            beside it has the words of this table alone.
        rows: which rows of the file these are, by number from 0.
        notes: sentences about what was done.
        place: the names of rows in errors: "line 17" of text, counting every line of the file, or
            "row 16", counting rows of data from 1.
        holes: where missing cells are that are to be filled, see :func:`part_of`.
    """

    A: Array
    labels: np.ndarray
    columns: Sequence[str] | None = None
    weights: np.ndarray | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    words: Words = field(default_factory=dict)
    encoding: TableEncoding | None = None
    rows: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    place: Place = row_place
    holes: Holes | None = None

    def in_numbers(self) -> DataTable:
        """Return the table with columns of 0 and 1 for the words."""
        if not self.categories:
            return self
        own = {name: category.words for name, category in self.categories.items()}
        words = all_words([own], len(self.labels))
        return replace(
            self,
            A=one_hot(self.A, self.categories, words),
            columns=column_names(self.columns or (), words),
            categories={},
            words=words,
            encoding=None if self.encoding is None else with_words(self.encoding, words),
        )


def table_of(raw: RawTable, missing: str, among: np.ndarray | None = None) -> DataTable:
    """Return a table without missing cells."""
    table = part_of(raw, missing)
    if table.holes is None:
        return table
    rows, holes = (table.A, table.holes) if among is None else holes_of(raw.A[among])
    fills = means(*holes.totals(rows), raw.column)
    return replace(
        table,
        A=table.holes.filled(table.A, fills),
        encoding=_encoding(raw, missing, fills),
        holes=None,
    )


def part_of(raw: RawTable, missing: str) -> DataTable:
    """Return a part of a table: cells that are to be filled with means are zeros and ``holes``."""
    raw = apply_missing_policy(raw, missing)
    A, notes, holes, fills = raw.A, raw.notes, None, None
    if missing == "mean":
        A, holes = holes_of(raw.A)
        fills = np.zeros(A.shape[1])
        if len(holes):
            notes = (*notes, f"{many(len(holes), 'missing cell')} filled with column means.")
    assert raw.labels is not None
    return DataTable(
        A,
        raw.labels,
        raw.names,
        raw.weights,
        raw.categories,
        encoding=_encoding(raw, missing, fills),
        rows=np.arange(len(raw)) if raw.rows is None else raw.rows,
        notes=notes,
        place=raw.place,
        holes=holes,
    )


def _encoding(raw: RawTable, missing: str, fills: np.ndarray | None) -> TableEncoding:
    common: dict[str, Any] = {
        "label": raw.label,
        "weights": raw.weighed,
        "truths": raw.truths,
        "decimal": raw.decimal,
        "missing": missing,
        "zero_based": raw.zero_based,
    }
    if raw.names is None:
        each = () if fills is None else tuple(fills.tolist())
        return TableEncoding(int(raw.A.shape[1]), fills=each, **common)
    each = (None,) * len(raw.names) if fills is None else tuple(fills.tolist())
    numbers = [ColumnEncoding(name, fill=fill) for name, fill in zip(raw.names, each, strict=True)]
    worded = [
        ColumnEncoding(name, "words", tuple(sorted(category.words)))
        for name, category in raw.categories.items()
    ]
    width = len(numbers) + sum(len(column.words) for column in worded)
    columns, header = (*numbers, *worded), tuple(raw.header)
    return TableEncoding(width, columns, header=header, named=raw.named, **common)


def with_fills(encoding: TableEncoding, fills: np.ndarray) -> TableEncoding:
    """Return an encoding with what missing cells of the columns of numbers are replaced by."""
    if not encoding.columns:
        return replace(encoding, width=len(fills), fills=tuple(fills.tolist()))
    each = zip(encoding.numbers, fills.tolist(), strict=True)
    numbers = (replace(column, fill=fill) for column, fill in each)
    return replace(encoding, columns=(*numbers, *encoding.worded))


def with_words(encoding: TableEncoding, words: Words, width: int | None = None) -> TableEncoding:
    """Return an encoding with the words that columns have in a whole table."""
    worded = [ColumnEncoding(name, "words", known) for name, known in words.items()]
    columns = (*encoding.numbers, *worded)
    if width is None:
        width = len(encoding.numbers) + sum(map(len, words.values()))
    return replace(encoding, width=width, columns=columns if encoding.columns else ())
