"""Reading another file as a saved encoding says: the rows that a model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.data.categories import MISSING_WORD, Category, one_hot
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.files.columns import (
    LABEL_NAMES,
    Columns,
    check_names,
    first_names,
    indices,
    usual_label,
)
from ode2opt.data.preparing import check_finite
from ode2opt.data.table import DataTable, holes_of, missing_values

UNKNOWN = ("error", "zero")


@dataclass(frozen=True)
class EncodingRequest:
    """What the encoding of a model needs of a file; see :class:`ReadRequest`.

    Attributes:
        encoding: of the model.
        decimal: the decimal sign of text; None (the default) where it is to be found out.
        to_predict: whether labels may be absent; True by default.
        weights: None: weights are not read.
    """

    encoding: TableEncoding
    decimal: str | None = None
    to_predict: bool = True
    weights: None = None

    @property
    def label(self) -> str | None:
        return self.encoding.label

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self.encoding.header if self.encoding.named else ())

    def columns(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Return the places of the encoding's columns: by name, or by position without names."""
        if named:
            check_names(names, str(path))
        encoding = self.encoding
        if not encoding.columns:
            return self._of_matrix(names, named, path)
        if named and encoding.named:
            return self._by_name(names, path)
        return self._by_position(names, named, path)

    def _by_name(self, names: Sequence[str], path: Path) -> Columns:
        encoding = self.encoding
        places = {name: j for j, name in enumerate(names)}
        lacking = [column.name for column in encoding.columns if column.name not in places]
        if lacking:
            raise InputError(
                f"{path} has no column {_quoted(lacking)}, which the model needs: its columns are "
                f"{first_names(names)}."
            )
        skipped = {*encoding.header, *(names[j] for j in indices(names, True))}
        extra = [name for name in names if name not in skipped]
        notes = (f"Columns that the model does not have are ignored: {_quoted(extra)}.",)
        return Columns(
            None if encoding.label is None else places.get(encoding.label),
            [places[column.name] for column in encoding.columns],
            encoded=encoding.columns,
            notes=notes if extra else (),
        )

    def _by_position(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Match a file whose columns are those of training, with or without label and weights."""
        encoding, header = self.encoding, self.encoding.header
        used = [name for name in header if name in {column.name for column in encoding.columns}]
        orders = (
            header,
            [name for name in header if name != encoding.label],
            [name for name in header if name not in (encoding.label, encoding.weights)],
            [name for name in header if name in (*used, encoding.label)],
            used,
        )
        order = next((order for order in orders if len(order) == len(names)), None)
        if order is None:
            raise InputError(
                f"{path} has {len(names)} columns, but the rows of the model have {len(header)}: "
                f"without names in both, columns are matched by position."
            )
        places = {name: j for j, name in enumerate(order)}
        owner = "The model's columns have" if named else f"{path.name} has"
        return Columns(
            None if encoding.label is None else places.get(encoding.label),
            [places[column.name] for column in encoding.columns],
            encoded=encoding.columns,
            notes=(f"{owner} no names: columns are taken by position.",)
            if named or encoding.named
            else (),
        )

    def _of_matrix(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Match columns in their order; if there is one more than the model has, it is the label.

        Where the file has names, a note says that they do not count, and what became of the label.
        """
        width = self.encoding.width
        own = [j for j in range(len(names)) if j not in indices(names, named)]
        label, about_label = None, ""
        if len(own) == width + 1:
            label = own[usual_label([names[j] for j in own])]
            own.remove(label)
            about_label = f", and {shown(names[label])} is taken as the label"
        elif called := [names[j] for j in own if names[j].strip().lower() in LABEL_NAMES]:
            about_label = f", {shown(called[0])} as a feature, too"
        if len(own) != width:
            raise InputError(f"{path} has {len(own)} columns, but the model has {width}.")
        fills = self.encoding.fills or (None,) * width
        encoded = [ColumnEncoding(names[j], fill=fill) for j, fill in zip(own, fills, strict=True)]
        note = f"The model's columns have no names: columns are taken by position{about_label}."
        return Columns(label, own, encoded=encoded, notes=(note,) if named else ())

    def check_matrix(self, path: Path) -> None:
        """Refuse a file whose columns have no names where the model has words."""
        if self.encoding.worded:
            names = _quoted([column.name for column in self.encoding.worded])
            raise InputError(
                f"{path} holds numbers only, but the model has words in {names}: give it CSV or "
                f"Parquet."
            )


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
    codes = {word: k for k, word in enumerate(column.words)}
    places = np.array([*(codes.get(word, MISSING_WORD) for word in category.words), MISSING_WORD])
    return Category(places[category.codes].astype(np.int32), column.words)


def _listed(words: Sequence[str], most: int = 6) -> str:
    more = f" and {len(words) - most:,} more" * (len(words) > most)
    return ", ".join(map(shown, words[:most])) + more


def _quoted(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(map(shown, names[:most])) + ", ..." * (len(names) > most)
