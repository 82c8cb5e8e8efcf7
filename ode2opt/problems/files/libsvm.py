"""LIBSVM text: label index:value index:value ..."""

from __future__ import annotations

from pathlib import Path

from ode2opt.errors import InputError
from ode2opt.problems.files.data_table import (
    USUAL,
    Asked,
    DataTable,
    check_columns,
    is_number,
    short,
)
from ode2opt.problems.files.unpacking import open_bytes, open_text

MOST_DIGITS = 18  # of an index


def read_libsvm(path: Path, asked: Asked = USUAL, n: int | None = None) -> DataTable:
    """Read LIBSVM text into a CSR matrix of ``n`` columns, by default up to the largest index."""
    from sklearn.datasets import load_svmlight_file

    if asked.label is not None:
        raise InputError(f"{path} is read as LIBSVM text, where the label comes first: no --label.")
    if asked.weights is not None:
        raise InputError(
            f"{path} is read as LIBSVM text, whose columns are all features: for weights use CSV, "
            f"NPZ or Parquet."
        )
    try:
        with open_bytes(path) as stream:
            A, labels = load_svmlight_file(stream, n_features=n)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        place = _first_bad_line(path)
        raise InputError(f"{path} is not LIBSVM text: {place or error}.") from None
    if len(labels) == 0:
        raise InputError(f"{path} holds no rows.")
    if A.nnz == 0:
        raise InputError(f"{path} holds labels but no features.")
    check_columns(A.shape[1], path)
    return DataTable(A, labels)


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
        if len(index) > MOST_DIGITS:
            return f"has an index of {len(index)} digits"
        if int(index) <= last:
            return f"has index {index} after {last}: indices must rise"
        last = int(index)
    return None
