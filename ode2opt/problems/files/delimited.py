"""CSV: comma, semicolon or tab separated numbers with one label column."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems.categories import Category
from ode2opt.problems.files.data_table import (
    LABEL_NAMES,
    Asked,
    Columns,
    DataTable,
    as_labels,
    is_number,
    short,
    told_apart,
)
from ode2opt.problems.files.unpacking import is_packed, open_text

MOST_COLUMNS = 2**20
DIGIT_HEADER = 4  # a first line 0,1,2,... of at least so many columns is a header, not data


@dataclass(frozen=True)
class Layout:
    """A file's columns, what separates them, and how many lines stand before the data."""

    names: list[str]
    delimiter: str
    skip: int
    first: list[str]
    """The first row of data."""

    def worded(self, columns: Columns) -> list[int]:
        """Return the columns that begin with a word, though they are not the label."""
        cells = ((j, self.first[j].strip()) for j in columns.features)
        return [j for j, cell in cells if cell and not is_number(cell)]


def read_csv(path: Path, asked: Asked) -> DataTable:
    """Read a CSV file.

    A first line of names is recognised, and so are scikit-learn's own (`rows,columns,classes...`)
    and the unnamed index column that pandas writes first, which is left out.
    """
    layout = _layout(path)
    names = layout.names
    columns = told_apart(names, asked, path)
    if not names[0].strip() and 0 in columns.features:
        columns.features.remove(0)
    if not columns.features:
        raise InputError(f"{path} has a label column but no features.")
    cells, words = _cells(path, layout, columns)
    values = as_labels(np.array(list(words.pop(columns.label)), dtype=object), path)
    labels = values[cells[:, columns.label].astype(int)]
    weights = None if columns.weights is None else cells[:, columns.weights].copy()
    numbers = [j for j in columns.features if j not in words]
    return DataTable(
        cells[:, numbers],
        labels,
        [names[j] for j in numbers],
        weights,
        {names[j]: Category(cells[:, j].astype(np.int32), tuple(words[j])) for j in words},
    )


class _Words(dict[str, int]):
    """The words of a column, numbered as they come."""

    def number(self, word: str) -> float:
        """Return the number of a word."""
        return float(self.setdefault(word.strip(), len(self)))


class _OnlyWords(_Words):
    """Those of a column that is no label: a number among them is refused, and so is no word."""

    def number(self, word: str) -> float:
        if word not in self and (not word.strip() or is_number(word)):
            raise ValueError(word)
        return super().number(word)


def _cells(path: Path, layout: Layout, columns: Columns) -> tuple[np.ndarray, dict[int, _Words]]:
    """Return all cells as numbers; those of labels and of columns of words stand for words."""
    words: dict[int, _Words] = {columns.label: _Words()}
    words |= {j: _OnlyWords() for j in layout.worded(columns)}
    features = [*columns.features]
    if columns.weights is not None:
        features.append(columns.weights)
    try:
        with warnings.catch_warnings(), _source(path) as source:
            warnings.simplefilter("ignore", UserWarning)  # blank lines at the end
            cells = np.loadtxt(
                source,
                delimiter=layout.delimiter,
                skiprows=layout.skip,
                converters={j: found.number for j, found in words.items()},
                quotechar='"',
                comments=None,
                encoding="utf-8-sig",
                ndmin=2,
            )
    except InputError:
        raise
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(_first_bad_cell(path, layout, features) or f"{path}: {error}.") from None
    if not cells.size:
        raise InputError(f"{path} has no rows of data.")
    if cells.shape[1] != len(layout.names):
        message = f"{path}: rows have {cells.shape[1]} columns, not {len(layout.names)}."
        raise InputError(_first_bad_cell(path, layout, features) or message)
    return cells, words


@contextmanager
def _source(path: Path) -> Iterator[Path | IO[str]]:
    """What NumPy reads from: a plain file's name, which is quickest, or unpacked text."""
    if not is_packed(path):
        yield path
        return
    with open_text(path) as lines:
        yield lines


def _layout(path: Path) -> Layout:
    try:
        with open_text(path) as lines:
            first, second = next(lines, ""), next(lines, "")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not CSV in UTF-8: save it in that encoding.") from None
    delimiter = max(",;\t", key=first.count)
    if delimiter not in first or "\0" in first:
        raise InputError(f"{path} is not CSV: its first line has no comma, semicolon or tab.")
    if max(line.count(delimiter) for line in (first, second)) >= MOST_COLUMNS:
        raise InputError(f"{path} has more than {MOST_COLUMNS:,} columns: save it as NPZ.")
    try:
        head, row = (next(csv.reader([line], delimiter=delimiter), []) for line in (first, second))
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: {error}.") from None
    if len(row) != len(head) > 2 and head[0].isdigit() and head[1] == str(len(row) - 1):
        return Layout(_numbered(row), delimiter, 1, row)  # scikit-learn's bundled files
    if not _is_header(head, row):
        return Layout(_numbered(head), delimiter, 0, head)
    if not row:
        raise InputError(f"{path} has a header but no rows.")
    if len(head) != len(row):
        raise InputError(f"{path}: the header has {len(head)} columns, the first row {len(row)}.")
    return Layout(head, delimiter, 1, row)


def _numbered(row: list[str]) -> list[str]:
    return [str(j) for j in range(len(row))]


def _is_header(head: list[str], row: list[str]) -> bool:
    """Whether the first line names columns: words over numbers, a label's name, or 0, 1, 2, ..."""
    if not row:
        return not any(map(is_number, head))
    pairs = zip(head, row, strict=False)
    return (
        any(not is_number(name) and is_number(cell) for name, cell in pairs)
        or any(name.strip().lower() in LABEL_NAMES for name in head)
        or (head == _numbered(head) and len(head) >= DIGIT_HEADER)
    )


def _first_bad_cell(path: Path, layout: Layout, features: Sequence[int]) -> str | None:
    """Say which cell is not a number, or which line is too short or too long."""
    names = layout.names
    above = {j: layout.first[j].strip() for j in features}
    try:
        with open_text(path, errors="replace") as lines:
            rows = csv.reader(_not_too_wide(lines, layout), delimiter=layout.delimiter)
            for number, row in enumerate(rows, 1):
                if number <= layout.skip or not row:
                    continue
                if len(row) != len(names):
                    return f"{path}: line {number} has {len(row)} columns, not {len(names)}."
                for j in features:
                    wrong = _wrong(row[j], above[j])
                    if wrong is not None:
                        return f"{path}: line {number}, column '{names[j]}' is {wrong}."
    except csv.Error as error:
        return f"{path} cannot be read: {error}."
    return None


def _wrong(cell: str, first: str) -> str | None:
    """Say what a cell is that does not go with the first one of its column; None if it does."""
    if not first or is_number(first):
        what = short(cell) if cell.strip() else "empty"
        return None if is_number(cell) else f"{what}, not a number"
    if not cell.strip():
        return "empty"
    return f"{short(cell)}, but the first cell is {short(first)}" if is_number(cell) else None


def _not_too_wide(lines: Iterable[str], layout: Layout) -> Iterator[str]:
    """Pass lines on; of one with far too many cells only as much as shows it."""
    for line in lines:
        wide = line.count(layout.delimiter) > MOST_COLUMNS
        yield layout.delimiter * (len(layout.names) + 1) if wide else line
