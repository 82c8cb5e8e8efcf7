"""How the columns of a table became the columns of a matrix: what a saved model needs to predict.

An encoding is made where a table is read. With it another file is read in the same way: columns in
the same order, the same words as columns of 0 and 1, the same means for missing cells.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ode2opt.base import schema
from ode2opt.base.errors import InputError, shown

KINDS = ("number", "words")
MISSING = ("error", "drop", "mean")
DECIMALS = (".", ",")


@dataclass(frozen=True)
class ColumnEncoding:
    """One column of a table.

    Attributes:
        name: in the file's header, or its number from 0 where there is no header.
        kind: "number" is one column of the matrix, "words" one column for each word.
        words: the words in the order of their columns.
        fill: what a missing cell is replaced by; None where missing cells are not filled.
    """

    name: str
    kind: str = "number"
    words: tuple[str, ...] = ()
    fill: float | None = None

    def __post_init__(self) -> None:
        _check_choice("kind of a column", self.kind, KINDS)
        if (self.kind == "words") != bool(self.words):
            raise InputError(f"its column {shown(self.name)} of {self.kind} has other words.")
        if len(set(self.words)) < len(self.words):
            raise InputError(f"its column {shown(self.name)} has a word twice.")
        if self.fill is not None and (self.kind == "words" or not math.isfinite(self.fill)):
            raise InputError(f"its column {shown(self.name)} cannot be filled with {self.fill}.")

    @property
    def names(self) -> list[str]:
        """The names of its columns in the matrix."""
        return [f"{self.name}={word}" for word in self.words] or [self.name]


@dataclass(frozen=True)
class TableEncoding:
    """How a table became a matrix.

    Attributes:
        width: the number of columns of the matrix.
        columns: the columns that were used, in the order of the matrix: those of numbers, then
            those of words. Empty for NPZ and LIBSVM files, whose columns have no names.
        fills: where ``columns`` is empty, what missing entries of each column are replaced by.
        header: all columns of the file in its order, those that were not used included.
        named: whether the file had a header; columns without one are matched by position.
        label: the name of the label column (array of an NPZ file), None where not known.
        weights: the name of the column of weights, likewise.
        truths: whether the labels were true and false, which are 1 and 0 for a problem.
        decimal: the decimal sign of text; another file may have its own.
        missing: what happens to missing cells: "error", "drop" (leave the row out) or "mean".
        zero_based: whether the indices of a LIBSVM file count from 0; None of other files.

    Raises:
        InputError: the fields contradict each other.

    Examples:
        >>> from ode2opt.data.encoding import ColumnEncoding, TableEncoding
        >>> columns = (ColumnEncoding("age"), ColumnEncoding("town", "words", ("Bonn", "Ulm")))
        >>> encoding = TableEncoding(3, columns, header=("age", "town", "y"), named=True, label="y")
        >>> encoding.names
        ['age', 'town=Bonn', 'town=Ulm']
        >>> TableEncoding.from_json(encoding.to_json()) == encoding
        True
    """

    width: int
    columns: tuple[ColumnEncoding, ...] = ()
    fills: tuple[float, ...] = ()
    header: tuple[str, ...] = ()
    named: bool = False
    label: str | None = None
    weights: str | None = None
    truths: bool = False
    decimal: str = "."
    missing: str = "error"
    zero_based: bool | None = None

    def __post_init__(self) -> None:
        _check_choice("decimal sign", self.decimal, DECIMALS)
        _check_choice("policy for missing cells", self.missing, MISSING)
        if self.width < 1:
            raise InputError(f"its width is {self.width}: a matrix has at least one column.")
        if self.columns:
            self._check_columns()
        elif len(self.fills) not in (0, self.width) or not all(map(math.isfinite, self.fills)):
            raise InputError(f"its fills are not {self.width} finite numbers.")

    def _check_columns(self) -> None:
        kinds = [column.kind for column in self.columns]
        if kinds != sorted(kinds):
            raise InputError("its columns of words do not come after those of numbers.")
        if sum(max(1, len(column.words)) for column in self.columns) != self.width:
            raise InputError(f"its columns do not make a matrix of width {self.width}.")
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise InputError("it has a column twice.")
        lacking = {*names, *filter(None, (self.label, self.weights))} - {*self.header}
        if lacking:
            raise InputError(f"its header has no column {shown(min(lacking))}.")
        filled = self.missing == "mean"
        if any((column.fill is not None) != filled for column in self.numbers):
            raise InputError(f"its fills are not those of missing cells under '{self.missing}'.")

    @property
    def numbers(self) -> tuple[ColumnEncoding, ...]:
        """The columns of numbers."""
        return tuple(column for column in self.columns if column.kind == "number")

    @property
    def worded(self) -> tuple[ColumnEncoding, ...]:
        """The columns of words."""
        return tuple(column for column in self.columns if column.kind == "words")

    @property
    def names(self) -> list[str]:
        """The names of the matrix's columns; numbers from 0 where they have none."""
        if not self.columns:
            return list(map(str, range(self.width)))
        return [name for column in self.columns for name in column.names]

    def to_json(self) -> dict[str, Any]:
        """Return a plain object that JSON can hold."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableEncoding:
        """Return the encoding that an object describes.

        Args:
            document: what :meth:`to_json` returned.

        Raises:
            InputError: a field is wrong; the sentence names it.
        """
        return schema.read(cls, document)


def encoding_of(
    numbers: int,
    names: Sequence[str] | None,
    words: Mapping[str, Sequence[str]],
    fills: np.ndarray | None = None,
    **fields: Any,
) -> TableEncoding:
    """Return the encoding of columns of numbers, and after them of words; None is nameless."""
    if names is None:
        return TableEncoding(
            numbers, fills=() if fills is None else tuple(fills.tolist()), **fields
        )
    each = (None,) * numbers if fills is None else fills.tolist()
    columns = (
        *(ColumnEncoding(name, fill=fill) for name, fill in zip(names, each, strict=True)),
        *(ColumnEncoding(name, "words", tuple(known)) for name, known in words.items()),
    )
    fields["header"] = tuple(fields.get("header") or (*names, *words))
    return TableEncoding(numbers + sum(map(len, words.values())), columns, **fields)


def with_fills(encoding: TableEncoding, fills: np.ndarray) -> TableEncoding:
    """Return an encoding with what missing cells of the columns of numbers are replaced by."""
    if not encoding.columns:
        return replace(encoding, width=len(fills), fills=tuple(fills.tolist()))
    each = zip(encoding.numbers, fills.tolist(), strict=True)
    numbers = (replace(column, fill=fill) for column, fill in each)
    return replace(encoding, columns=(*numbers, *encoding.worded))


def with_words(
    encoding: TableEncoding, words: Mapping[str, Sequence[str]], width: int | None = None
) -> TableEncoding:
    """Return an encoding with the words that columns have in a whole table."""
    worded = (ColumnEncoding(name, "words", tuple(known)) for name, known in words.items())
    if width is None:
        width = len(encoding.numbers) + sum(map(len, words.values()))
    columns = (*encoding.numbers, *worded) if encoding.columns else ()
    return replace(encoding, width=width, columns=columns)


def _check_choice(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"its {what} is {shown(value)}, not one of {', '.join(known)}.")
