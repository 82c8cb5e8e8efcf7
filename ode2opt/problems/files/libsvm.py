"""LIBSVM text: label index:value index:value ..."""

from __future__ import annotations

from pathlib import Path

from ode2opt.errors import InputError
from ode2opt.problems.files.table import MOST_COLUMNS, Table, is_number, open_text, short


def read_libsvm(path: Path, label: str | None = None, n: int | None = None) -> Table:
    """Read LIBSVM text into a CSR matrix of ``n`` columns, by default up to the largest index."""
    from sklearn.datasets import load_svmlight_file

    if label is not None:
        raise InputError(f"{path} is read as LIBSVM text, where the label comes first: no --label.")
    try:
        A, labels = load_svmlight_file(str(path), n_features=n)
    except (ValueError, OSError, EOFError, OverflowError, MemoryError) as error:
        place = _first_bad_line(path)
        raise InputError(f"{path} is not LIBSVM text: {place or error}.") from None
    if len(labels) == 0:
        raise InputError(f"{path} holds no rows.")
    if A.nnz == 0:
        raise InputError(f"{path} holds labels but no features.")
    if A.shape[1] > MOST_COLUMNS:
        raise InputError(f"{path} has an index of {A.shape[1]:,}: more columns than can be meant.")
    return Table(A, labels)


def _first_bad_line(path: Path) -> str | None:
    """Say which line does not parse, and why."""
    try:
        with path.open("rb") as raw:
            if raw.read(3) == b"\xef\xbb\xbf":
                return "it starts with a byte-order mark; save it as plain UTF-8"
        with open_text(path, errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                fault = _fault(line)
                if fault:
                    return f"line {number} {fault}"
    except (OSError, EOFError) as error:
        return f"it cannot be unpacked ({error})"
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
        if not (colon and index.isdigit() and is_number(value)):
            return f"has {short(field)} where index:value is due (is the line cut off?)"
        if int(index) <= last:
            return f"has index {index} after {last}: indices must rise"
        last = int(index)
    return None
