"""LIBSVM text: label index:value index:value ..."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.data.files.cells import is_number, short
from ode2opt.data.files.columns import ReadOptions, check_matrix
from ode2opt.data.files.unpacking import check_columns, open_bytes, open_text
from ode2opt.data.table import DataTable


def read_libsvm(path: Path, wanted: ReadOptions, n: int | None = None) -> DataTable:
    """Read LIBSVM text into a CSR matrix.

    Indices count from 1, or from 0 where the file has an index 0 or an encoding says so.
    """
    zero_based = None
    check_matrix(wanted, path)
    if wanted.encoding is None:
        _check_asked(path, wanted)
    else:
        n, zero_based = wanted.encoding.width, wanted.encoding.zero_based
    A, labels = _loaded(path)
    if len(labels) == 0:
        raise InputError(f"{path} holds no rows.")
    if A.nnz == 0 and not wanted.to_predict:
        raise InputError(f"{path} holds labels but no features.")
    if zero_based is None:
        zero_based = bool(A.nnz and A.indices.min() == 0)
    A = _shaped(path, A, zero_based, n)
    check_columns(A.shape[1], path)
    about = {"zero_based": zero_based}
    return DataTable(A, labels, place=partial(_place, path), about=about)


def _check_asked(path: Path, asked: ReadOptions) -> None:
    if asked.label is not None:
        raise InputError(f"{path} is read as LIBSVM text, where the label comes first: no --label.")
    if asked.weights is not None:
        raise InputError(
            f"{path} is read as LIBSVM text, whose columns are all features: for weights use CSV, "
            f"NPZ or Parquet."
        )
    if asked.drop or asked.only:
        raise InputError(
            f"{path} is read as LIBSVM text, whose columns have no names: --drop and --columns are "
            f"for CSV and Parquet."
        )


def _loaded(path: Path) -> tuple[Array, np.ndarray]:
    """Return the matrix, a column for each index from 0, and the labels."""
    from sklearn.datasets import load_svmlight_file

    try:
        with open_bytes(path) as stream:
            A, labels = load_svmlight_file(stream, zero_based=True)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        place = _first_bad_line(path)
        raise InputError(f"{path} is not LIBSVM text: {place or error}.") from None
    return A, labels


def _shaped(path: Path, A: Array, zero_based: bool, n: int | None) -> Array:
    """Return the matrix with ``n`` columns; the first is index 0 or 1."""
    first = 0 if zero_based else 1
    if A.nnz and A.indices.min() < first:
        raise InputError(f"{path} has an index 0, but the model's indices count from 1.")
    last = int(A.indices.max()) if A.nnz else first
    width = last + 1 - first if n is None else n
    if last + 1 - first > width:
        raise InputError(
            f"{path} has an index of {last:,}, but there are {width:,} columns, from index {first}."
        )
    return type(A)(
        (A.data, A.indices - A.indices.dtype.type(first), A.indptr), shape=(A.shape[0], width)
    )


def _place(path: Path, row: int) -> str:
    """Return the line of a row, by its number from 0."""
    with open_text(path, errors="replace") as lines:
        full = (number for number, line in enumerate(lines, 1) if line.split("#")[0].split())
        line = next((number for i, number in enumerate(full) if i == row), None)
    return f"row {row + 1}" if line is None else f"line {line}"


def _first_bad_line(path: Path) -> str | None:
    """Say which line does not parse, and why."""
    with open_bytes(path) as raw:
        if raw.read(3) == b"\xef\xbb\xbf":
            return "it starts with a byte-order mark; save it as plain UTF-8"
    with open_text(path, errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            fault = _fault(line)
            if fault:
                return f"line {number} {fault}"
    return None


def _fault(line: str) -> str | None:
    fields = line.split("#")[0].split()
    if not fields:
        return None
    if not is_number(fields[0]):
        return f"starts with {short(fields[0])} where a label is due"
    last = -1
    for field in fields[1:]:
        index, colon, value = field.partition(":")
        if not (colon and index.isascii() and index.isdigit() and is_number(value)):
            return f"has {short(field)} where index:value is due (is the line cut off?)"
        if len(index) > 18:  # what 64 bits hold
            return f"has an index of {len(index)} digits"
        if int(index) <= last:
            return f"has index {index} after {last}: indices must rise"
        last = int(index)
    return None
