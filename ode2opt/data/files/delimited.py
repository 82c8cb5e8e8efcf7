"""CSV: comma, semicolon or tab separated numbers and words with one label column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.data.categories import Category
from ode2opt.data.files.cells import (
    CellParser,
    LabelParser,
    NumberParser,
    WordParser,
    as_labels,
    has_decimal_comma,
    has_thousands,
    is_missing,
    is_number,
)
from ode2opt.data.files.columns import Columns, ReadOptions
from ode2opt.data.files.layout import TextLayout, layout_of
from ode2opt.data.files.scanning import decimal_sign, first_fault, scanned
from ode2opt.data.files.unpacking import is_packed, open_text
from ode2opt.data.table import DataTable

CellParsers = Mapping[int, CellParser]
"""What reads the cells of a column, by its number; other columns are plain numbers."""


def read_csv(path: Path, wanted: ReadOptions) -> DataTable:
    """Read a CSV file.

    A first line of names is recognised, and so are scikit-learn's own (`rows,columns,classes...`).
    Plain numbers are read by NumPy. Only where a cell is none the whole file is looked through
    cell by cell, to find out which columns have missing cells, decimal commas or words.
    """
    layout = layout_of(path, wanted)
    layout, columns = _chosen(layout, wanted)
    cells, parsers, decimal = _read(layout, columns, wanted)
    return _table(layout, columns, cells, parsers, decimal)


def _chosen(layout: TextLayout, wanted: ReadOptions) -> tuple[TextLayout, Columns]:
    """Return which columns are what; empty columns at the end are left out.

    To predict, columns without names are matched by position. There an empty one may be a label or
    a feature that is missing in all rows: it is left out only if the file has too many columns.
    """
    if layout.empty and wanted.to_predict and not layout.named:
        with suppress(InputError):
            return replace(layout, empty=0), wanted.columns(layout.names, False, layout.path)
    return layout, wanted.columns(layout.columns, layout.named, layout.path)


def _read(
    layout: TextLayout, columns: Columns, wanted: ReadOptions
) -> tuple[np.ndarray, CellParsers, str]:
    """Return all cells as numbers, the parsers that read them, and the decimal sign."""
    for features, decimal in _attempts(layout, columns, wanted):
        parsers = {**features, **_others(layout, columns)}
        cells = _loaded(layout, parsers)
        if cells is not None:
            return cells, parsers, decimal
    raise first_fault(layout, parsers)


def _attempts(
    layout: TextLayout, columns: Columns, wanted: ReadOptions
) -> Iterator[tuple[CellParsers, str]]:
    """Yield parsers of the features and a decimal sign: a guess, then what the cells show.

    Where an encoding says what columns hold, plain numbers are tried first. The decimal sign is the
    file's own, unless it is said.
    """
    decimal = wanted.decimal
    if columns.encoded:
        assert wanted.encoding is not None
        if decimal != ",":
            yield _forced(columns, None), "."
        if decimal is None:
            decimal = decimal_sign(layout, columns.numbers, wanted.encoding.decimal)
        yield _forced(columns, decimal), decimal
        return
    first = {j: layout.first[j].strip() for j in columns.features}
    if decimal != "," and not any(map(_is_odd, first.values())):
        words = (j for j, cell in first.items() if not is_number(cell) and not is_missing(cell))
        yield {j: WordParser() for j in words}, "."
    kinds = scanned(layout, _numeric(columns), decimal)
    found: dict[int, CellParser] = {j: NumberParser(kinds.decimal) for j in kinds.odd}
    found |= {j: WordParser() for j in kinds.words}
    if columns.weights is not None:
        found[columns.weights] = NumberParser(kinds.decimal, weights=True)
    yield found, kinds.decimal


def _numeric(columns: Columns) -> list[int]:
    """Return the columns that hold numbers if they do not hold words: features and weights."""
    return [*columns.features, *([] if columns.weights is None else [columns.weights])]


def _others(layout: TextLayout, columns: Columns) -> dict[int, CellParser]:
    """Return the parsers of labels and of columns that are not used."""
    used = {*_numeric(columns), columns.label}
    found: dict[int, CellParser] = {
        j: CellParser() for j in range(len(layout.names)) if j not in used
    }
    return found if columns.label is None else found | {columns.label: LabelParser()}


def _is_odd(cell: str) -> bool:
    return has_decimal_comma(cell) or has_thousands(cell)


def _forced(columns: Columns, decimal: str | None) -> dict[int, CellParser]:
    """Return the parsers of columns as an encoding has them; plain numbers (None) need none."""
    found: dict[int, CellParser] = {}
    for j, column in zip(columns.features, columns.encoded, strict=True):
        if column.kind == "words":
            found[j] = WordParser(column.words)
        elif decimal is not None:
            found[j] = NumberParser(decimal, truths=True)
    return found


def _loaded(layout: TextLayout, parsers: CellParsers) -> np.ndarray | None:
    """Return all cells as numbers; None where one does not parse or lines differ in length."""
    try:
        with warnings.catch_warnings(), _source(layout.path) as source:
            warnings.simplefilter("ignore", UserWarning)  # blank lines at the end
            cells = np.loadtxt(
                source,
                delimiter=layout.delimiter,
                skiprows=layout.skip,
                converters={j: parser.number for j, parser in parsers.items()},
                quotechar='"',
                comments=None,
                encoding="utf-8-sig",
                ndmin=2,
            )
    except InputError:
        raise
    except (ValueError, OverflowError, OSError):
        return None
    if not cells.size:
        raise InputError(f"{layout.path} has no rows of data.")
    return cells if cells.shape[1] == len(layout.names) else None


@contextmanager
def _source(path: Path) -> Iterator[Path | IO[str]]:
    """Yield what NumPy reads from: a plain file's name, which is quickest, or unpacked text."""
    if not is_packed(path):
        yield path
        return
    with open_text(path) as lines:
        yield lines


def _table(
    layout: TextLayout, columns: Columns, cells: np.ndarray, parsers: CellParsers, decimal: str
) -> DataTable:
    """Return the table of cells that have been read."""
    names = layout.names
    categories = {}
    for j in columns.features:
        parser = parsers.get(j)
        if not isinstance(parser, WordParser):
            continue
        found = Category(cells[:, j].astype(np.int32), tuple(parser.words))
        truths = None if columns.encoded else found.truths()
        if truths is None:
            categories[names[j]] = found
        else:
            cells[:, j] = truths
    numbers = [j for j in columns.features if names[j] not in categories]
    notes = ("Its numbers have decimal commas.",) if decimal == "," else ()
    words: Sequence[str] = ()
    labels = None
    if columns.label is not None:
        parser = parsers[columns.label]
        assert isinstance(parser, LabelParser)
        words, labels = parser.words, _labels(cells[:, columns.label], parser.words)
    return DataTable(
        cells[:, numbers],
        labels,
        [names[j] for j in numbers],
        None if columns.weights is None else cells[:, columns.weights].copy(),
        categories,
        about={
            "header": tuple(layout.columns),
            "named": layout.named,
            "decimal": decimal,
            **columns.about(names, words),
        },
        place=layout.place,
        notes=(*layout.notes, *layout.about_empty(), *columns.notes, *notes),
    )


def _labels(codes: np.ndarray, words: Sequence[str]) -> np.ndarray:
    values = as_labels(np.array(words, dtype=object))
    hole = np.array([np.nan if values.dtype.kind == "f" else None], dtype=values.dtype)
    return np.append(values, hole)[codes.astype(int)]
