"""Reading another file as a saved encoding says: the rows that a model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError, shown
from ode2opt.data.categories import Category, one_hot
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.files.cells import MISSING_WORD
from ode2opt.data.files.missing import (
    apply_missing_policy,
    holes_of,
    missing_cell_words,
    missing_values,
    rows_with_missing,
)
from ode2opt.data.files.raw import RawTable
from ode2opt.data.preparing import check_finite

UNKNOWN = ("error", "zero")
MOST_SHOWN = 6  # words in a sentence


@dataclass(frozen=True)
class EncodedRows:
    """The rows of a file in the columns of a model.

    Attributes:
        A: the matrix.
        labels: numbers or words as in :class:`DataTable`; None where the file has none, or lacks
            some of them.
        rows: which rows of the file these are, by number from 0.
        notes: sentences about what was done.
        total: how many rows the file has.
        partly_labelled: whether the file has labels, but lacks some of them.
    """

    A: Array
    labels: np.ndarray | None
    rows: np.ndarray
    notes: tuple[str, ...]
    total: int
    partly_labelled: bool = False


def encoded_rows(raw: RawTable, encoding: TableEncoding, unknown: str, where: str) -> EncodedRows:
    """Return rows as an encoding has them."""
    if unknown not in UNKNOWN:
        raise InputError(f"unknown is {shown(unknown)}: choose error or zero.")
    total, had_labels, raw = len(raw), raw.labels is not None, _optional_labels(raw)
    words_count_as_unknown = encoding.missing == "mean" and unknown == "zero"
    kept = raw if words_count_as_unknown else _without_missing(raw, encoding)
    fills = np.array([c.fill for c in encoding.numbers] if encoding.columns else encoding.fills)
    A = kept.A
    if encoding.missing == "mean":
        A, holes = holes_of(A)
        A = holes.filled(A, fills)
    check_finite(A, where, kept.names, kept.place)
    notes = list(kept.notes)
    if encoding.worded:
        words = {column.name: column.words for column in encoding.worded}
        known = {
            column.name: _known(column, category, unknown, notes)
            for column, category in zip(encoding.worded, kept.categories.values(), strict=True)
        }
        A = one_hot(A, known, words)
    rows = np.arange(total) if kept.rows is None else kept.rows
    partly_labelled = had_labels and kept.labels is None
    return EncodedRows(A, kept.labels, rows, tuple(notes), total, partly_labelled)


def _optional_labels(raw: RawTable) -> RawTable:
    """Return the table without labels where some are missing: they are not needed to predict."""
    if raw.labels is None or not missing_values(raw.labels).any():
        return raw
    note = "Some labels are missing: the label column is ignored."
    return replace(raw, labels=None, notes=(*raw.notes, note))


def _without_missing(raw: RawTable, encoding: TableEncoding) -> RawTable:
    """Return rows without missing cells that the model has no rule for."""
    numbers = encoding.missing != "mean"
    rows = rows_with_missing(raw, numbers)
    if not rows.any() or encoding.missing == "drop":
        return apply_missing_policy(raw, encoding.missing)
    told, _ = missing_cell_words(raw, int(np.argmax(rows)), numbers)
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
    codes = {word: k for k, word in enumerate(column.words)}
    places = np.array([*(codes.get(word, MISSING_WORD) for word in category.words), MISSING_WORD])
    return Category(places[category.codes].astype(np.int32), column.words)


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - MOST_SHOWN:,} more" * (len(words) > MOST_SHOWN)
    return ", ".join(map(shown, words[:MOST_SHOWN])) + more
