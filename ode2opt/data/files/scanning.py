"""Looking through a text table cell by cell: what its columns hold, and the first that is wrong."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ode2opt.base.errors import InputError
from ode2opt.data.files.cells import (
    CellParser,
    NumberParser,
    has_decimal_comma,
    has_thousands,
    is_missing,
    is_number,
    short,
)
from ode2opt.data.files.layout import TextLayout


@dataclass(frozen=True)
class ColumnKinds:
    """What columns hold: plain numbers, numbers that NumPy cannot read alone, or words.

    Attributes:
        decimal: the decimal sign.
        plain: the columns of plain numbers.
        odd: the columns of numbers with decimal commas or missing cells.
        words: the columns of words.
    """

    decimal: str = "."
    plain: list[int] = field(default_factory=list)
    odd: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)


class _Cell(NamedTuple):
    line: int
    text: str


_Seen = dict[str, _Cell]
"""The first cell of each kind in a column, in the order in which kinds come."""


def scanned(layout: TextLayout, columns: Sequence[int], decimal: str | None) -> ColumnKinds:
    """Return what columns hold, by looking at every cell.

    Numbers have decimal commas if the user says so, or if cells are not separated by commas and
    the cells of some column are numbers with and only with decimal commas.
    """
    seen = _first_of_each_kind(layout, columns)
    if decimal is None:
        commas = layout.delimiter != "," and any(map(_has_commas, seen.values()))
        decimal = "," if commas else "."
    found = ColumnKinds(decimal)
    for j, kinds in seen.items():
        _sorted_in(found, layout, j, kinds)
    return found


def decimal_sign(layout: TextLayout, columns: Sequence[int], usual: str) -> str:
    """Return the decimal sign of columns that are known to hold numbers."""
    seen = _first_of_each_kind(layout, columns).values()
    if (layout.delimiter != "," or usual == ",") and any(map(_has_commas, seen)):
        return ","
    return "." if any("point" in kinds for kinds in seen) else usual


def _first_of_each_kind(layout: TextLayout, columns: Sequence[int]) -> dict[int, _Seen]:
    seen: dict[int, _Seen] = {j: {} for j in columns}
    try:
        for line, row in layout.rows():
            _check_length(layout, line, row)
            for j, kinds in seen.items():
                kind = _kind(row[j])
                if kind not in kinds:
                    kinds[kind] = _Cell(line, row[j])
    except csv.Error as error:
        raise InputError(f"{layout.path} cannot be read: {error}.") from None
    return seen


def _kind(cell: str) -> str:
    if is_number(cell):
        return "point" if "." in cell else "missing" if is_missing(cell) else "whole"
    if is_missing(cell):
        return "missing"
    if has_thousands(cell):
        return "grouped"
    return "comma" if has_decimal_comma(cell) else "word"


def _has_commas(kinds: _Seen) -> bool:
    return "comma" in kinds and "word" not in kinds


def _sorted_in(found: ColumnKinds, layout: TextLayout, j: int, kinds: _Seen) -> None:
    """Add a column to the list of its kind."""
    number = {"whole", "comma"} if found.decimal == "," else {"whole", "point"}
    numbers = [kind for kind in kinds if kind in number]
    others = [kind for kind in kinds if kind not in number and kind != "missing"]
    if "grouped" in kinds and "word" not in kinds:
        raise InputError(_told(layout, j, kinds["grouped"], _about_thousands))
    if found.decimal == "," and "point" in kinds and "word" not in kinds:
        raise InputError(_told(layout, j, kinds["point"], NumberParser(",").fault))
    if numbers and others:
        raise InputError(_mixed(found, layout, j, kinds[numbers[0]], kinds[others[0]]))
    if others:
        found.words.append(j)
    elif found.decimal == "," or "missing" in kinds:
        found.odd.append(j)
    else:
        found.plain.append(j)


def _mixed(found: ColumnKinds, layout: TextLayout, j: int, number: _Cell, other: _Cell) -> str:
    """Return the error for a column of numbers and words: the cell that is out of place."""
    if number.line < other.line or _is_almost_a_number(other.text):
        return _told(layout, j, other, lambda cell: _no_number(cell, found.decimal))
    return _told(
        layout, j, number, lambda cell: f"{short(cell)}, but the first cell is {short(other.text)}"
    )


def _is_almost_a_number(text: str) -> bool:
    """Whether a cell has digits and signs but no letters, such as $1, 1_000 or 1,5."""
    letters, digits = (any(map(test, text)) for test in (str.isalpha, str.isdigit))
    return digits and not letters


def _no_number(cell: str, decimal: str) -> str:
    """Return what is wrong with a cell among numbers, and the way out."""
    if decimal == "." and has_decimal_comma(cell):
        way_out = "--decimal , reads decimal commas"
    else:
        way_out = "mend it, or leave the column out with --drop"
    return f"{NumberParser(decimal).fault(cell)}: {way_out}"


def _about_thousands(cell: str) -> str:
    return f"{short(cell)}, a number with a sign for thousands: write it without"


def _told(layout: TextLayout, j: int, cell: _Cell, fault: Callable[[str], str]) -> str:
    return (
        f"{layout.path}: line {cell.line}, column '{layout.names[j]}' is "
        f"{fault(cell.text.strip())}."
    )


def _check_length(layout: TextLayout, line: int, row: Sequence[str]) -> None:
    if len(row) != len(layout.names):
        raise InputError(
            f"{layout.path}: line {line} has {len(row)} columns, not {len(layout.names)}."
        )


def first_fault(layout: TextLayout, parsers: Mapping[int, CellParser]) -> InputError:
    """Return the error of the first cell that its column's parser refuses, or of a short line."""
    every = {j: parsers.get(j, NumberParser()) for j in range(len(layout.names))}
    used = {j: parser for j, parser in every.items() if type(parser) is not CellParser}
    try:
        for line, row in layout.rows():
            _check_length(layout, line, row)
            for j, parser in used.items():
                try:
                    parser.number(row[j])
                except ValueError:
                    return InputError(_told(layout, j, _Cell(line, row[j]), parser.fault))
    except csv.Error as error:
        return InputError(f"{layout.path} cannot be read: {error}.")
    except InputError as error:
        return error
    return InputError(f"{layout.path} cannot be read as CSV: a quote may be missing.")
