"""Reading a user's table: LIBSVM, CSV, NPZ or Parquet, each with errors that name the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import Unpack

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.data.encoding import TableEncoding
from ode2opt.data.files.arrays import read_npz
from ode2opt.data.files.columns import DEFAULT_OPTIONS, ReadKeywords, ReadOptions
from ode2opt.data.files.delimited import read_csv
from ode2opt.data.files.encoded import encoded_rows
from ode2opt.data.files.libsvm import read_libsvm
from ode2opt.data.files.parquet import read_parquet
from ode2opt.data.files.unpacking import PACKED
from ode2opt.data.table import DataTable

READERS: dict[str, Callable[[Path, ReadOptions], DataTable]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def read_table(
    path: str | Path, reading: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> DataTable:
    """Read a file by its ending; anything but .csv, .tsv, .npz and .parquet is LIBSVM text.

    A column of words becomes a column of 0 and 1 for each of them; one of true and false becomes
    one column of 1 and 0.

    Args:
        path: the file; LIBSVM and CSV may be compressed (.gz, .bz2).
        reading: how it is read; None (the default) takes the keywords alone.
        **keywords: ``label``, ``weights``, ``missing``, ``drop``, ``columns`` and ``decimal``: see
            :class:`ode2opt.data.files.ReadKeywords`.

    Returns:
        The rows, with ``encoding``: how another file is read in the same way, see
        :func:`read_encoded`.

    Raises:
        InputError: the file is missing or damaged, or a cell is wrong; the sentence names the
            place.

    Examples:
        >>> _ = Path("pets.csv").write_text("id,age,kind,y\\n1,3,cat,0\\n2,,dog,1\\n3,8,cat,1\\n")
        >>> table = read_table("pets.csv", label="y", missing="mean", drop="id")
        >>> table.columns
        ['age', 'kind=cat', 'kind=dog']
        >>> table.A[1].tolist()
        [5.5, 0.0, 1.0]
    """
    options = ReadOptions.of(reading, **keywords)
    with errors_naming(path):
        return raw_table(path, options).whole(options.missing).in_numbers()


def read_encoded(
    path: str | Path, encoding: TableEncoding, unknown: str = "error", decimal: str | None = None
) -> DataTable:
    """Read another file as a table was read before: the rows that a model predicts.

    Columns are matched by name, in any order; without names in both files by position. Others than
    the encoding's are ignored. Labels may be absent.

    Args:
        path: a file of any kind, as in :func:`read_table`.
        encoding: ``read_table(...).encoding``.
        unknown: what happens to words that the first table did not have: "error", or "zero" for
            zeros in all columns of that column's words.
        decimal: the decimal sign of this file, "." or ","; by default it is found out.

    Examples:
        >>> _ = Path("pets.csv").write_text("age,kind,y\\n3,cat,0\\n7,dog,1\\n")
        >>> _ = Path("new.csv").write_text("kind,age\\ndog,2\\nowl,5\\n")
        >>> encoding = read_table("pets.csv").encoding
        >>> read_encoded("new.csv", encoding, unknown="zero").A.tolist()
        [[2.0, 0.0, 1.0], [5.0, 0.0, 0.0]]
    """
    with errors_naming(path):
        asked = ReadOptions(label=encoding.label, decimal=decimal, encoding=encoding)
        raw = raw_table(path, asked)
        return encoded_rows(raw, encoding, unknown, str(path))


def read_split(
    path: str | Path,
    held_back: Callable[[np.ndarray], np.ndarray],
    reading: ReadOptions = DEFAULT_OPTIONS,
) -> tuple[DataTable, DataTable]:
    """Read a file and hold rows back, those of a mask that is made of the labels.

    What is learned from rows, words and means for missing cells, is learned from the others alone.
    A word that only rows held back have counts as none of the words.
    """
    with errors_naming(path):
        raw = raw_table(path, reading).without_missing(reading.missing)
        held = held_back(raw.labels)
        table = raw.take(~held).whole(reading.missing).in_numbers()
        assert table.encoding is not None
        others = replace(raw.take(held), notes=())  # the table's notes are about the whole file
        return table, encoded_rows(others, table.encoding, "zero", str(path))


def raw_table(path: str | Path, wanted: ReadOptions) -> DataTable:
    """Return the columns of a file that are wanted, as they are."""
    path = Path(path)
    check_file(path)
    raw = reader_of(path)(path, wanted)
    if not len(raw):
        raise InputError(f"{path} has no rows of data.")
    return replace(raw, rows=np.arange(len(raw)), total=len(raw))


@contextmanager
def errors_naming(path: str | Path) -> Iterator[None]:
    """Make errors name the file they are about."""
    try:
        yield
    except InputError as error:
        told = str(error)
        if told[1:2].islower():  # a word of a sentence, not the name of something
            told = told[0].lower() + told[1:]
        raise InputError(str(error) if str(path) in told else f"{path}: {told}") from None


def reader_of(path: Path) -> Callable[[Path, ReadOptions], DataTable]:
    """Return the function that reads files of this ending."""
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return READERS.get(endings[-1] if endings else "", read_libsvm)


def are_parts(where: str | Path) -> bool:
    """Whether a path names a folder or a pattern, not a file."""
    return Path(where).is_dir() or (has_magic(str(where)) and not Path(where).exists())


def check_file(path: Path) -> None:
    """Refuse a file that is missing or empty, or a folder."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a data file.")
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")


__all__ = [
    "READERS",
    "DataTable",
    "ReadKeywords",
    "ReadOptions",
    "are_parts",
    "check_file",
    "errors_naming",
    "raw_table",
    "read_csv",
    "read_encoded",
    "read_libsvm",
    "read_parquet",
    "read_split",
    "read_table",
    "reader_of",
]
