"""Reading another file as a saved encoding says: the rows that a model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.data.categories import MISSING_WORD, Category, one_hot
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.preparing import check_finite
from ode2opt.data.table import DataTable, holes_of, missing_values

UNKNOWN = ("error", "zero")


def encoded_rows(table: DataTable, encoding: TableEncoding, unknown: str, where: str) -> DataTable:
    """Return rows as an encoding has them; labels are None where the file lacks some of them."""
    if unknown not in UNKNOWN:
        raise InputError(f"unknown is {shown(unknown)}: choose error or zero.")
    found = _optional_labels(table)
    words_count_as_unknown = encoding.missing == "mean" and unknown == "zero"
    if not words_count_as_unknown:
        found = _without_missing(found, encoding)
    A = found.A
    if encoding.missing == "mean":
        fills = [column.fill for column in encoding.numbers] if encoding.columns else encoding.fills
        A, holes = holes_of(A)
        A = holes.filled(A, np.array(fills))
    check_finite(A, where, found.columns, found.place)
    notes = list(found.notes)
    if encoding.worded:
        words = {column.name: column.words for column in encoding.worded}
        known = {
            column.name: _known(column, category, unknown, notes)
            for column, category in zip(encoding.worded, found.categories.values(), strict=True)
        }
        A = one_hot(A, known, words)
    names = encoding.names if encoding.columns else None
    return replace(found, A=A, columns=names, categories={}, encoding=encoding, notes=tuple(notes))


def _optional_labels(table: DataTable) -> DataTable:
    """Return the table without labels where some are missing: they are not needed to predict."""
    if table.labels is None or not missing_values(table.labels).any():
        return table
    note = "Some labels are missing: the label column is ignored."
    return replace(table, labels=None, partly_labelled=True, notes=(*table.notes, note))


def _without_missing(table: DataTable, encoding: TableEncoding) -> DataTable:
    """Return rows without missing cells that the model has no rule for."""
    numbers = encoding.missing != "mean"
    rows = table.missing_rows(numbers)
    if not rows.any() or encoding.missing == "drop":
        return table.without_missing(encoding.missing)
    told, _ = table.missing_cell(int(np.argmax(rows)), numbers)
    way_out = " or mean" if numbers else ", or predict with --unknown zero"
    raise InputError(
        f"{told}, and the model has no rule for it: fit the model with --missing drop{way_out}."
    )


def _known(column: ColumnEncoding, category: Category, unknown: str, notes: list[str]) -> Category:
    """Return a column of words with the codes of the model; words it does not know have code -1."""
    unseen = [word for word in category.words if word not in set(column.words)]
    missing = bool(np.any(category.codes == MISSING_WORD))
    if unseen and unknown == "error":
        raise InputError(
            f"column '{column.name}' has {_listed(unseen)}, which the model has not seen: "
            f"--unknown zero counts such words as none of those it knows."
        )
    if unseen or missing:
        told = ["missing words"] * missing + [_listed(unseen)] * bool(unseen)
        notes.append(
            f"Words that the model does not know are zeros: {' and '.join(told)} in column "
            f"'{column.name}'."
        )
    return category.coded(column.words)


def _listed(words: Sequence[str], most: int = 6) -> str:
    more = f" and {len(words) - most:,} more" * (len(words) > most)
    return ", ".join(map(shown, words[:most])) + more
