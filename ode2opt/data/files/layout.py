"""What a text table looks like: its delimiter, its header, its first row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from ode2opt.base.errors import InputError
from ode2opt.data.files.cells import has_decimal_comma, is_number
from ode2opt.data.files.columns import LABEL_NAMES, ReadOptions
from ode2opt.data.files.unpacking import open_text

MOST_COLUMNS = 2**20
DIGIT_HEADER = 3  # a first line 0,1,2,... of at least so many columns is a header, not data
MOST_LINES = 50  # that are looked at first; a row of quoted text may have several
AS_NAMES = "The first line counts 0, 1, 2, ... and is taken as a header, not as a row of data."
AS_DATA = (
    "The first line is 0, 1 and is taken as a row of data: name columns in words for a header."
)
DELIMITERS = "\t;,"  # in the order in which they are tried


@dataclass(frozen=True)
class TextLayout:
    """A file's columns, what separates them, and how many lines stand before the data.

    Attributes:
        path: the file.
        names: of all columns; their numbers where the file has no names.
        delimiter: what separates cells: a comma, a semicolon or a tab.
        skip: how many lines stand before the data.
        first: the first row of data.
        named: whether names are the file's own.
        notes: sentences about how the first line was taken, where that may be doubted.
        empty: how many of the last columns have no name and no cell in any row: a comma at the end
            of every line makes one.
    """

    path: Path
    names: list[str]
    delimiter: str
    skip: int
    first: list[str]
    named: bool
    notes: tuple[str, ...] = ()
    empty: int = 0

    @property
    def columns(self) -> list[str]:
        """The names of columns without the last ones that are empty."""
        return self.names[: len(self.names) - self.empty]

    def about_empty(self) -> tuple[str, ...]:
        """Return a sentence about the last columns that are empty, if there are some."""
        which = "The last column has" if self.empty == 1 else f"The last {self.empty} columns have"
        note = f"{which} no name and no cells: left out, as after a comma at the end of each line."
        return (note,) if self.empty else ()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Give each row of cells with the number of its line; blank lines are passed over."""
        with open_text(self.path, errors="replace") as lines:
            reader = csv.reader(self._not_too_wide(lines), delimiter=self.delimiter)
            for row in reader:
                if reader.line_num > self.skip and row:
                    yield reader.line_num, row

    def _not_too_wide(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines; one with far too many cells is cut to one cell too many."""
        for line in lines:
            wide = line.count(self.delimiter) > MOST_COLUMNS
            yield self.delimiter * (len(self.names) + 1) if wide else line

    def place(self, row: int) -> str:
        """Return what errors call a row: its line."""
        line = next((line for i, (line, _) in enumerate(self.rows()) if i == row), None)
        return f"row {row + 1}" if line is None else f"line {line}"


def layout_of(path: Path, wanted: ReadOptions) -> TextLayout:
    """Return the layout of a text table."""
    layout = _begun(path, wanted)
    return replace(layout, empty=_empty_columns(layout))


def _empty_columns(layout: TextLayout) -> int:
    """Return how many of the last columns are empty; all rows are read only if some may be."""
    empty = _blank_at_end(layout.first)
    if layout.named:
        empty = min(empty, _blank_at_end(layout.names))
    try:
        rows = layout.rows() if empty else iter(())
        for _, row in rows:
            empty = min(empty, _blank_at_end(row))
            if not empty:
                break
    except csv.Error:
        return 0  # reading the rows raises the error
    return 0 if empty == len(layout.names) else empty


def _blank_at_end(cells: list[str]) -> int:
    """Return how many cells at the end of a row are blank."""
    return next((i for i, cell in enumerate(reversed(cells)) if cell.strip()), len(cells))


def _begun(path: Path, wanted: ReadOptions) -> TextLayout:
    """Return the layout that the first lines of a file show."""
    try:
        with open_text(path) as lines:
            begin = list(islice(lines, MOST_LINES))
            header = _lines_of_first_row(begin)
            rest = list(islice(_full(chain(begin[header:], lines)), MOST_LINES))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not CSV in UTF-8: save it in that encoding.") from None
    joined = _lines_of_first_row(rest)
    first, second = "".join(begin[:header]), "".join(rest[:joined])
    delimiter = _delimiter(first, second)
    alone = wanted.to_predict and not any(sign in first for sign in DELIMITERS)
    if (delimiter not in first and not alone) or "\0" in first:
        raise InputError(f"{path} is not CSV: its first line has no comma, semicolon or tab.")
    if max(line.count(delimiter) for line in (first, second)) >= MOST_COLUMNS:
        raise InputError(f"{path} has more than {MOST_COLUMNS:,} columns: save it as NPZ.")
    try:
        reader = csv.reader([first, second, *rest[joined:]], delimiter=delimiter)
        head, row = next(reader, []), next(reader, [])
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: {error}.") from None
    if len(row) != len(head) > 2 and head[0].isdigit() and head[1] == str(len(row) - 1):
        return TextLayout(
            path, _numbered(row), delimiter, header, row, False
        )  # scikit-learn's own files
    if not _is_header(head, row, wanted.known):
        notes = (AS_DATA,) if row and len(head) == DIGIT_HEADER - 1 and _is_counted(head) else ()
        return TextLayout(path, _numbered(head), delimiter, 0, head, False, notes)
    if not row:
        raise InputError(f"{path} has a header but no rows.")
    if len(head) != len(row):
        raise InputError(f"{path}: the header has {len(head)} columns, the first row {len(row)}.")
    notes = (AS_NAMES,) if _is_counted(head) else ()
    return TextLayout(path, [name.strip() for name in head], delimiter, header, row, True, notes)


def _lines_of_first_row(lines: list[str]) -> int:
    """Return how many lines the first row has: names in quotes may go over several."""
    ends_in_quotes = lines and lines[0].count('"') % 2
    return max(_lines_of_row(lines, sign) for sign in DELIMITERS) if ends_in_quotes else 1


def _lines_of_row(lines: list[str], delimiter: str) -> int:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    if max(line.count(delimiter) for line in lines) >= MOST_COLUMNS:
        return 1
    try:
        next(reader, None)
    except csv.Error:  # a quote is no quote by this delimiter, or does not end
        return 1
    return reader.line_num


def _full(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that are not blank."""
    return (line for line in lines if line.strip("\r\n"))


def _split(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _delimiter(first: str, second: str) -> str:
    """Return the delimiter: one that splits both lines into as many cells, else the most frequent.

    A comma may be the decimal sign where there are semicolons or tabs: then these separate cells
    though there are more commas.
    """
    found = {sign: _cells(first, second, sign) for sign in DELIMITERS}
    commas = found[","]
    for sign in "\t;":
        cells = found[sign]
        with_commas = [cell for cell in cells if "," in cell]
        if cells and (len(cells) >= len(commas) or all(map(has_decimal_comma, with_commas))):
            return sign
    return "," if commas else max(",;\t", key=first.count)


def _cells(first: str, second: str, sign: str) -> list[str]:
    """Return the cells of both lines; none where the sign splits them into different numbers."""
    if not 0 < first.count(sign) < MOST_COLUMNS or not second.strip():
        return []
    try:
        one, other = _split(first, sign), _split(second, sign)
    except csv.Error:
        return []
    return [*one, *other] if len(one) == len(other) > 1 else []


def _numbered(row: list[str]) -> list[str]:
    return [str(j) for j in range(len(row))]


def _is_header(head: list[str], row: list[str], known: frozenset[str]) -> bool:
    """Whether the first line names columns: words over numbers, known names, or 0, 1, 2, ..."""
    if not row:
        return not any(map(is_number, head))
    return (
        any(not _numeric(name) and _numeric(cell) for name, cell in zip(head, row, strict=False))
        or any(name.strip().lower() in LABEL_NAMES for name in head)
        or any(name.strip() in known and not is_number(name) for name in head)
        or (_is_counted(head) and (len(head) >= DIGIT_HEADER or known.issuperset(_numbered(head))))
    )


def _is_counted(head: list[str]) -> bool:
    """Whether a line is 0, 1, 2, ..., as pandas writes the names of columns that have none."""
    return [cell.strip() for cell in head] == _numbered(head)


def _numeric(cell: str) -> bool:
    return is_number(cell) or has_decimal_comma(cell)
