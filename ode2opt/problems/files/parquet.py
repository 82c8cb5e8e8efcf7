"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.errors import InputError, MissingDependencyError
from ode2opt.problems.categories import Category
from ode2opt.problems.files.data_table import Asked, DataTable, as_labels, told_apart
from ode2opt.problems.files.unpacking import check_content

NUMBER = 8  # bytes


def read_parquet(path: Path, asked: Asked, group: int | None = None) -> DataTable:
    """Read a Parquet file of numeric columns with one label column; one row group if asked."""
    with _opened(path) as file:
        about = file.metadata
        check_content(path, max(about.num_rows * about.num_columns * NUMBER, _bytes(about)))
        groups = range(about.num_row_groups) if group is None else [group]
        table = file.read_row_groups(list(groups), use_threads=False)
        table.validate(full=True)
    keep = [j for j, name in enumerate(table.column_names) if name != "__index_level_0__"]
    names = [table.column_names[j] for j in keep]
    if len(names) < 2:
        raise InputError(f"{path} has {len(names)} columns: a label and features are due.")
    target, features, weighing = told_apart(names, asked, path)
    if not features:
        raise InputError(f"{path} has a label column and one of weights, but no features.")

    def numbers(j: int) -> np.ndarray:
        return _numbers(table.column(keep[j]), names[j], path)

    labels = _labels(table.column(keep[target]), names[target], path)
    worded = [j for j in features if _is_text(table.column(keep[j]).type)]
    features = [j for j in features if j not in worded]
    A = np.empty((len(labels), len(features)))
    for at, j in enumerate(features):
        A[:, at] = numbers(j)
    weights = None if weighing is None else numbers(weighing)
    categories = {names[j]: _category(table.column(keep[j]), names[j], path) for j in worded}
    return DataTable(A, labels, [names[j] for j in features], weights, categories)


def row_groups(path: Path) -> list[int]:
    """Return the bytes of each row group; nothing but the file's last lines is read."""
    with _opened(path) as file:
        about = file.metadata
        return [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install pyarrow.") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # a damaged file makes Arrow raise what it likes
        raise InputError(f"{path} is not a Parquet file: {error!s:.100}.") from None


def _bytes(about: Any) -> int:
    """Return what a file's pages say that they hold, unpacked."""
    return sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind)


def _category(column: Any, name: str, path: Path) -> Category:
    """Return a column of words; none may be missing."""
    if column.null_count:
        raise InputError(f"{path}: {column.null_count} cells of column '{name}' are missing.")
    coded = column.combine_chunks().dictionary_encode()
    words = tuple(coded.dictionary.to_pylist())
    return Category(coded.indices.to_numpy(zero_copy_only=False).astype(np.int32), words)


def _numbers(column: Any, name: str, path: Path) -> np.ndarray:
    """Return a column as float64; a missing cell is NaN."""
    import pyarrow

    if not _is_number(column.type):
        raise InputError(f"{path}: column '{name}' is {column.type!s:.40}, not a number.")
    return column.cast(pyarrow.float64(), safe=False).to_numpy()


def _labels(column: Any, name: str, path: Path) -> np.ndarray:
    """Return labels: numbers, or words; none may be missing."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_decimal(kind) or _is_number(kind):
        return column.cast(pyarrow.float64(), safe=False).to_numpy()
    if not _is_text(kind):
        raise InputError(f"{path}: the labels '{name}' are {kind!s:.40}, not numbers or words.")
    if column.null_count:
        raise InputError(f"{path}: {column.null_count} of the labels '{name}' are missing.")
    return as_labels(column.cast(pyarrow.string()).to_numpy(), path)
