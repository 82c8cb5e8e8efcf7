"""Reading a user's table: LIBSVM, CSV, NPZ or Parquet, each with errors that name the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ode2opt.errors import InputError
from ode2opt.problems.files.arrays import read_npz
from ode2opt.problems.files.data_table import Asked, DataTable
from ode2opt.problems.files.delimited import read_csv
from ode2opt.problems.files.libsvm import read_libsvm
from ode2opt.problems.files.parquet import read_parquet
from ode2opt.problems.files.unpacking import PACKED

READERS: dict[str, Callable[[Path, Asked], DataTable]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def read_table(
    path: str | Path, *, label: str | int | None = None, weights: str | int | None = None
) -> DataTable:
    """Read a file by its ending; anything but .csv, .tsv, .npz and .parquet is LIBSVM text.

    A column of words becomes a column of 0 and 1 for each of them.

    Args:
        path: the file; LIBSVM and CSV may be compressed (.gz, .bz2).
        label: the label column of a CSV or Parquet file, by name or number from 0, or the array of
            labels in an NPZ file. By default the column called label, target, y or class, else
            the last one.
        weights: the column (the array) of the rows' weights in the same way; by default none.
    """
    path = Path(path)
    asked = (None if name is None else str(name) for name in (label, weights))
    try:
        return as_written(path, Asked(*asked)).in_numbers()
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def as_written(path: Path, asked: Asked) -> DataTable:
    """Read a file by its ending; columns of words stay what they are."""
    check_file(path)
    return reader_of(path)(path, asked)


def reader_of(path: Path) -> Callable[[Path, Asked], DataTable]:
    """Return what reads a file of this name."""
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return READERS.get(endings[-1] if endings else "", read_libsvm)


def check_file(path: Path) -> None:
    """Refuse what is no file, or an empty one."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a data file.")
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")


__all__ = [
    "READERS",
    "Asked",
    "DataTable",
    "as_written",
    "check_file",
    "read_csv",
    "read_libsvm",
    "read_parquet",
    "read_table",
    "reader_of",
]
