"""Rows of a pandas DataFrame: numbers, columns of words, labels that may be words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, refuse_masked
from ode2opt.base.errors import InputError, shown
from ode2opt.data.categories import Category, one_hot
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.files.columns import check_names
from ode2opt.data.preparing import binary_labels, class_labels
from ode2opt.data.table import DataTable


def is_frame(values: Any) -> bool:
    """Whether this is a pandas DataFrame (asked without importing pandas)."""
    return type(values).__module__.split(".")[0] == "pandas" and hasattr(values, "columns")


def taken_out(frame: Any, **columns: Any) -> tuple[Any, list[Any]]:
    """Return a frame without the columns that are named, and these; other values as they are."""
    named = [name for name in columns.values() if isinstance(name, str)]
    names = list(getattr(frame, "columns", []))
    for name in named:
        if name not in names:
            raise InputError(f"There is no column '{name}': the columns are {names!s:.100}.")
    found = [frame[one] if isinstance(one, str) else one for one in columns.values()]
    return (frame.drop(columns=named) if named else frame), found


def frame_rows(frame: Any, **about: Any) -> DataTable:
    """Return the columns of a DataFrame.

    Words become columns of 0 and 1 later, as those of files do; true and false are 1 and 0.
    ``about`` is what else is known, by the names of an encoding's fields.
    """
    names = list(map(str, frame.columns))
    check_names(names, "The frame")
    found = {name: _column(frame.iloc[:, j], name) for j, name in enumerate(names)}
    about = {"header": tuple(names), "named": True} | about
    return DataTable.of(found, len(frame), about=about)


def encoded_frame(frame: Any, encoding: TableEncoding) -> Array:
    """Return the rows of a pandas DataFrame in the columns of an encoding, found by name."""
    places = {str(name): j for j, name in enumerate(frame.columns)}
    for column in encoding.columns:
        if column.name not in places:
            raise InputError(
                f"The rows have no column {shown(column.name)}, which the model needs."
            )
    found: dict[str, np.ndarray | Category] = {}
    for column in encoding.columns:
        read = _word_column if column.words else _number_column
        found[column.name] = read(frame.iloc[:, places[column.name]], column)
    table = DataTable.of(found, len(frame))
    words = {column.name: column.words for column in encoding.worded}
    return one_hot(table.A, table.categories, words) if words else table.A


def _number_column(column: Any, encoded: ColumnEncoding) -> np.ndarray:
    if encoded.fill is not None:
        column = column.fillna(encoded.fill)
    found = _column(column, encoded.name)
    if isinstance(found, Category):
        raise InputError(
            f"Column {shown(encoded.name)} has the word {shown(found.words[0])}, but the model "
            f"has numbers there."
        )
    return found


def _word_column(column: Any, encoded: ColumnEncoding) -> Category:
    _check_missing(column, encoded.name)
    codes, words = column.factorize()
    for word in words:
        if word not in encoded.words:
            raise InputError(
                f"Column {shown(encoded.name)} has {shown(word)}, which the model has not seen."
            )
    return Category(codes.astype(np.int32), tuple(words))


def _column(column: Any, name: str) -> np.ndarray | Category:
    """Return a column of numbers, or of words."""
    kind = getattr(column.dtype, "kind", "O")
    _check_missing(column, name)
    if kind in "fiub":
        return column.to_numpy(dtype=np.float64)
    if not is_worded(column):
        return _numbers(column, name)
    codes, words = column.factorize()
    if not any(isinstance(word, str) for word in words):
        return _numbers(column, name)
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"Column '{name}' has numbers among its words, or other things.")
    found = Category(codes.astype(np.int32), tuple(words))
    truths = found.truths()
    return found if truths is None else truths


def _numbers(column: Any, name: str) -> np.ndarray:
    """Return a column of Python objects, or of a category, as numbers."""
    try:
        values = column.to_numpy()
        if values.dtype.kind in "fiubO":
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise InputError(f"Column '{name}' is {column.dtype}: neither numbers nor words.")


def _check_missing(column: Any, name: str) -> None:
    missing = np.asarray(column.isna())
    if missing.any():
        raise InputError(
            f"{int(missing.sum()):,} cells of column '{name}' are missing, the first in row "
            f"{int(np.argmax(missing)) + 1}: fill them or drop the rows (fillna, dropna)."
        )


def is_worded(column: Any) -> bool:
    """Whether a column is of strings, of a category of strings, or of Python objects."""
    from pandas.api import types

    kind = column.dtype
    inside = column.cat.categories if isinstance(kind, types.CategoricalDtype) else column
    return bool(types.is_string_dtype(inside.dtype))


def has_words(labels: Any) -> bool:
    """Whether labels are words: strings, or Python objects of which the first is one."""
    if isinstance(labels, list | tuple):
        return len(labels) > 0 and isinstance(labels[0], str)
    dtype = getattr(labels, "dtype", None)
    if dtype is None or getattr(dtype, "kind", "") in "fiubc":
        return False
    if type(labels).__module__.split(".")[0] == "pandas":
        return is_worded(labels) and len(labels) > 0 and isinstance(labels.iloc[0], str)
    if not isinstance(labels, np.ndarray) or labels.ndim != 1:
        return False
    return labels.dtype.kind in "US" or (
        labels.dtype.kind == "O" and len(labels) > 0 and isinstance(labels[0], str)
    )


def counted_labels(labels: Any, kind: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels that are words counted from 0, and the words in order."""
    refuse_masked(labels, "b")
    words = np.asarray(labels, dtype=object)
    odd = next((i for i, word in enumerate(words) if not isinstance(word, str)), None)
    if odd is not None:
        raise InputError(f"b[{odd}] is {shown(words[odd])}, but other labels are words.")
    if not (kind.binary or kind.counted):
        raise InputError(f"{kind.__name__} needs numbers as targets, not {shown(words[0])}.")
    values: Sequence[str] = np.unique(words.astype(str)).tolist()
    return (binary_labels if kind.binary else class_labels)(words.astype(str)), tuple(values)
