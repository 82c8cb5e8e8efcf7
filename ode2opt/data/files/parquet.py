"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, MissingDependencyError
from ode2opt.data.categories import MISSING_WORD, Category
from ode2opt.data.files.cells import as_labels
from ode2opt.data.files.columns import Columns, ReadOptions
from ode2opt.data.files.unpacking import check_content
from ode2opt.data.preparing import Place, row_place
from ode2opt.data.table import DataTable


def read_parquet(path: Path, wanted: ReadOptions, group: int | None = None) -> DataTable:
    """Read a Parquet file of columns of numbers and words with one label column."""
    with _opened(path) as file:
        about = file.metadata
        check_content(path, max(8 * about.num_rows * about.num_columns, _bytes(about)))
        groups = range(about.num_row_groups) if group is None else [group]
        before = sum(about.row_group(i).num_rows for i in range(group or 0))
        table = file.read_row_groups(list(groups), use_threads=False)
        table.validate(full=True)
    names = table.column_names
    if len(names) < 2 and not wanted.to_predict:
        raise InputError(f"{path} has {len(names)} columns: a label and features are due.")
    columns = wanted.columns(names, True, path)
    read = _Columns(path, table, partial(row_place, before=before))
    return read.table(columns)


@dataclass(frozen=True)
class _Columns:
    """The columns of a file as arrays."""

    path: Path
    arrow: Any
    place: Place

    def table(self, columns: Columns) -> DataTable:
        """Return the columns that are wanted."""
        names = self.arrow.column_names
        kinds = [column.kind for column in columns.encoded] or [""] * len(columns.features)
        found = [self._feature(j, kind) for j, kind in zip(columns.features, kinds, strict=True)]
        label, weights = columns.label, columns.weights
        labels = None if label is None else self._labels(label)
        kept = () if label is None else self.arrow.column(label).unique().to_pylist()
        return DataTable.of(
            dict(zip((names[j] for j in columns.features), found, strict=True)),
            self.arrow.num_rows,
            labels=labels,
            weights=None if weights is None else self._numbers(weights),
            about={"header": tuple(names), "named": True, **columns.about(names, kept)},
            place=self.place,
            notes=columns.notes,
        )

    def _feature(self, j: int, kind: str) -> np.ndarray | Category:
        """Return a column of numbers or of words; an encoding may ask for one ``kind``."""
        if not _is_text(self.arrow.column(j).type):
            if kind == "words" and self.arrow.num_rows:
                raise self._other_kind(j, "words")
            return self._numbers(j) if self.arrow.num_rows else np.empty(0)
        category = _category(self.arrow.column(j))
        if kind == "words":
            return category
        if (truths := category.truths()) is not None:
            return truths
        if kind == "number":
            raise self._other_kind(j, "numbers")
        return category

    def _other_kind(self, j: int, due: str) -> InputError:
        column, name = self.arrow.column(j), self.arrow.column_names[j]
        return InputError(
            f"{self.path}: {self.place(0)}, column '{name}' is {column[0].as_py()!r:.24}, but the "
            f"model was fitted to {due} there."
        )

    def _numbers(self, j: int) -> np.ndarray:
        """Return a column as float64; a missing cell is NaN."""
        column, name = self.arrow.column(j), self.arrow.column_names[j]
        if not _is_number(column.type):
            raise InputError(f"{self.path}: column '{name}' is {column.type!s:.40}, not a number.")
        return _as_floats(column)

    def _labels(self, j: int) -> np.ndarray:
        """Return labels: numbers (NaN where missing), or words (None where missing)."""
        import pyarrow
        from pyarrow import types

        column, name = self.arrow.column(j), self.arrow.column_names[j]
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if _is_number(kind):
            return _as_floats(column)
        if not _is_text(kind):
            raise InputError(
                f"{self.path}: the labels '{name}' are {kind!s:.40}, not numbers or words."
            )
        return as_labels(column.cast(pyarrow.string()).to_numpy())


def row_groups(path: Path) -> list[int]:
    """Return the bytes of each row group; nothing but the file's footer is read."""
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
    """Return the unpacked size of a file by its own account."""
    return sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind)


def _category(column: Any) -> Category:
    """Return a column of words; a missing one has the code -1."""
    coded = column.combine_chunks().dictionary_encode()
    if hasattr(coded, "combine_chunks"):  # an array of no chunk stays a chunked one
        coded = coded.combine_chunks()
    words = tuple(coded.dictionary.to_pylist())
    codes = coded.indices.fill_null(MISSING_WORD).to_numpy(zero_copy_only=False)
    return Category(codes.astype(np.int32), words)


def _as_floats(column: Any) -> np.ndarray:
    import pyarrow

    return column.cast(pyarrow.float64(), safe=False).to_numpy()
