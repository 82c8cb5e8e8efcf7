"""Reading a user's table: LIBSVM, CSV, NPZ or Parquet, each with errors that name the place."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.errors import InputError, MissingDependencyError
from ode2opt.problems._arrays import Array

LABEL_NAMES = ("label", "target", "y", "class")


@dataclass(frozen=True)
class Table:
    """Rows as read: a matrix, one label each (numbers or words), and the columns' names."""

    A: Array
    labels: np.ndarray
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.A.shape[0] != len(self.labels):
            raise InputError(f"{self.A.shape[0]} rows but {len(self.labels)} labels.")


def read_table(path: str | Path, *, label: str | None = None, n: int | None = None) -> Table:
    """Read a file by its ending; anything but .csv, .tsv, .npz and .parquet is LIBSVM text.

    Args:
        path: the file; LIBSVM and CSV may be compressed (.gz, .bz2).
        label: the label column of a CSV or Parquet file, by name or number from 0. By default
            the column called label, target, y or class, else the last one.
        n: the number of columns of a LIBSVM file, by default the largest index in it.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a data file.")
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    reader = READERS.get(_ending(path))
    if reader is None:
        return read_libsvm(path, n)
    return reader(path, label)


def _ending(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# LIBSVM -----------------------------------------------------------------------------------------


def read_libsvm(path: Path, n: int | None = None) -> Table:
    """Read LIBSVM text (label index:value ...) into a CSR matrix."""
    from sklearn.datasets import load_svmlight_file

    try:
        A, labels = load_svmlight_file(str(path), n_features=n)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        place = _first_bad_line(path)
        raise InputError(f"{path} is not LIBSVM text: {place or error}.") from None
    if len(labels) == 0:
        raise InputError(f"{path} holds no rows.")
    return Table(A, labels)


def _first_bad_line(path: Path) -> str | None:
    """Say which line of a LIBSVM file does not parse, and why."""
    try:
        with _open_text(path, errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                problem = _libsvm_fault(line)
                if problem:
                    return f"line {number} {problem}"
    except (OSError, EOFError) as error:
        return f"it cannot be unpacked ({error})"
    return None


def _libsvm_fault(line: str) -> str | None:
    fields = line.split("#")[0].split()
    if not fields:
        return None
    if not _is_number(fields[0]):
        return f"starts with {_short(fields[0])} where a label is due"
    last = -1
    for field in fields[1:]:
        index, colon, value = field.partition(":")
        if not (colon and index.isdigit() and _is_number(value)):
            return f"has {_short(field)} where index:value is due (is the line cut off?)"
        if int(index) <= last:
            return f"has index {index} after {last}: indices must rise"
        last = int(index)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return repr(text if len(text) <= 20 else text[:20] + "...")


# CSV --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """A CSV file's columns, what separates them, and how many lines stand before the data."""

    names: list[str]
    delimiter: str
    skip: int


def read_csv(path: Path, label: str | None) -> Table:
    """Read comma, semicolon or tab separated numbers with one label column.

    A first line of names is recognised, and so are scikit-learn's own (`rows,columns,classes...`)
    and the unnamed index column that pandas writes, which is left out.
    """
    layout = _csv_layout(path)
    names = layout.names
    target = _label_column(names, label, path)
    features = [j for j in range(len(names)) if j != target and names[j].strip()]
    if not features:
        raise InputError(f"{path} has a label column but no features.")
    options: dict[str, Any] = {"delimiter": layout.delimiter, "skiprows": layout.skip}
    options |= {"quotechar": '"', "comments": None, "encoding": "utf-8"}
    try:
        A = np.loadtxt(path, usecols=features, ndmin=2, **options)
        labels = np.loadtxt(path, usecols=[target], dtype=str, ndmin=1, **options)
    except ValueError as error:
        raise InputError(_first_bad_cell(path, layout, features) or f"{path}: {error}.") from None
    return Table(A, as_numbers(labels), [names[j] for j in features])


def _csv_layout(path: Path) -> _Layout:
    try:
        with _open_text(path) as lines:
            first, second = next(lines, ""), next(lines, "")
    except (UnicodeDecodeError, OSError, EOFError):
        raise InputError(f"{path} is not CSV text: its bytes are not letters.") from None
    delimiter = max(",;\t", key=first.count)
    if delimiter not in first or "\0" in first:
        raise InputError(f"{path} is not CSV: its first line has no comma, semicolon or tab.")
    head, row = (next(csv.reader([line], delimiter=delimiter), []) for line in (first, second))
    numbered = [str(j) for j in range(len(row))]
    if len(row) != len(head) > 2 and head[0].isdigit() and head[1] == str(len(row) - 1):
        return _Layout(numbered, delimiter, skip=1)  # scikit-learn's bundled files
    if not _is_header(head, row):
        return _Layout([str(j) for j in range(len(head))], delimiter, skip=0)
    if not row:
        raise InputError(f"{path} has a header but no rows.")
    if len(head) != len(row):
        raise InputError(f"{path}: the header has {len(head)} columns, the first row {len(row)}.")
    return _Layout(head, delimiter, skip=1)


def _is_header(head: list[str], row: list[str]) -> bool:
    """Whether the first line names the columns: words over numbers, or 0, 1, 2, ..."""
    if not row:
        return not any(map(_is_number, head))
    words_over_numbers = any(
        not _is_number(h) and _is_number(r) for h, r in zip(head, row, strict=False)
    )
    return words_over_numbers or head == [str(j) for j in range(len(head))]


def _label_column(names: Sequence[str], label: str | None, path: Path) -> int:
    if label is None:
        lower = [name.strip().lower() for name in names]
        return next((lower.index(name) for name in LABEL_NAMES if name in lower), len(names) - 1)
    if label in names:
        return list(names).index(label)
    if label.lstrip("-").isdigit() and -len(names) <= int(label) < len(names):
        return int(label) % len(names)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{path} has no column '{label}': its columns are {shown}.")


def _first_bad_cell(path: Path, layout: _Layout, features: Sequence[int]) -> str | None:
    names = layout.names
    with _open_text(path, errors="replace") as lines:
        for number, row in enumerate(csv.reader(lines, delimiter=layout.delimiter), 1):
            if number <= layout.skip or not row:
                continue
            if len(row) != len(names):
                return f"{path}: line {number} has {len(row)} columns, not {len(names)}."
            for j in features:
                if not _is_number(row[j]):
                    what = _short(row[j]) if row[j].strip() else "empty"
                    return f"{path}: line {number}, column '{names[j]}' is {what}, not a number."
    return None


# NPZ and Parquet --------------------------------------------------------------------------------


def read_npz(path: Path, label: str | None) -> Table:
    """Read a NumPy archive with A and b (or X and y); a sparse A as scipy.sparse.save_npz does."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        AttributeError,
        TypeError,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(
            f"{path} is not a readable NPZ archive of plain arrays: {error}."
        ) from None
    b = next((arrays[name] for name in ("b", "y", label) if name in arrays), None)
    if {"data", "indices", "indptr", "shape"} <= arrays.keys():
        A = _csr_from_parts(path, arrays)
    else:
        A = next((arrays[name] for name in ("A", "X") if name in arrays), None)
    if A is None or b is None:
        found = ", ".join(arrays) or "nothing"
        raise InputError(f"{path} must hold a matrix A (or X) and labels b (or y); it has {found}.")
    if A.ndim != 2 or b.ndim != 1:
        raise InputError(f"{path}: A has {A.ndim} and b {b.ndim} dimensions; 2 and 1 are needed.")
    return Table(A, as_numbers(b))


def _csr_from_parts(path: Path, arrays: dict[str, np.ndarray]) -> Array:
    from scipy.sparse import csr_array

    try:
        A = csr_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
        )
        A.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: its sparse matrix is damaged: {error}.") from None
    return A


def read_parquet(path: Path, label: str | None) -> Table:
    """Read a Parquet file of numeric columns with one label column."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install pyarrow.") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    names = [name for name in table.column_names if name != "__index_level_0__"]
    target = names[_label_column(names, label, path)]
    names.remove(target)
    if not names:
        raise InputError(f"{path} has a label column but no features.")
    columns = []
    for name in names:
        try:
            columns.append(np.asarray(table[name].to_numpy(), dtype=np.float64))
        except (ValueError, TypeError):
            raise InputError(
                f"{path}: column '{name}' is {table[name].type}, not a number."
            ) from None
    return Table(np.stack(columns, axis=1), as_numbers(table[target].to_numpy()), names)


READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def as_numbers(labels: np.ndarray) -> np.ndarray:
    """Return labels as floats where all of them are numbers, else as words."""
    try:
        return labels.astype(np.float64)
    except (ValueError, TypeError):
        return labels.astype(str)


def _open_text(path: Path, errors: str = "strict"):  # type: ignore[no-untyped-def]
    import bz2
    import gzip

    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    return opener(path, "rt", encoding="utf-8", errors=errors, newline="")  # type: ignore[operator]
