"""What every reader returns, and the little they share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array
from ode2opt.problems.categories import Category, Words, all_words, column_names, one_hot

LABEL_NAMES = ("label", "target", "y", "class")
SURE_COLUMNS = 2**21  # that any file may have; one of more bytes as many as it has bytes
_NUMBER = re.compile("-?[0-9]{1,9}")


@dataclass(frozen=True)
class DataTable:
    """Rows as read: a matrix, one label each (numbers or words), the columns' names, weights.

    ``categories`` are columns of words beside the matrix; ``words`` are those that have become
    columns of it.
    """

    A: Array
    labels: np.ndarray
    columns: Sequence[str] | None = None
    weights: np.ndarray | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    words: Words = field(default_factory=dict)

    def in_numbers(self) -> DataTable:
        """Return the table with columns of 0 and 1 for the words."""
        if not self.categories:
            return self
        own = {name: category.words for name, category in self.categories.items()}
        words = all_words([own], len(self.labels))
        A = one_hot(self.A, self.categories, words)
        columns = column_names(self.columns or (), words)
        return replace(self, A=A, columns=columns, categories={}, words=words)


@dataclass(frozen=True)
class Asked:
    """The columns (of an archive: the arrays) that a file's labels and weights are in.

    By name or by number; None is the usual place of labels, and no weights.
    """

    label: str | None = None
    weights: str | None = None


USUAL = Asked()


class Columns(NamedTuple):
    """Which columns are what, by number."""

    label: int
    features: list[int]
    weights: int | None


def told_apart(names: Sequence[str], asked: Asked, path: Path) -> Columns:
    """Return which columns hold what: the label as asked for, by its usual names, or the last."""
    weights = None if asked.weights is None else _column(names, asked.weights, path)
    if asked.label is not None:
        label = _column(names, asked.label, path)
    else:
        lower = [name.strip().lower() for name in names]
        usual = [lower.index(name) for name in LABEL_NAMES if name in lower]
        last = reversed(range(len(names)))
        label = next((j for j in (*usual, *last) if j != weights), 0)
    if label == weights:
        raise InputError(f"{path}: the column '{names[label]}' cannot hold labels and weights.")
    features = [j for j in range(len(names)) if j not in (label, weights)]
    return Columns(label, features, weights)


def _column(names: Sequence[str], asked: str, path: Path) -> int:
    """Return the index of a column by its name, or by its number."""
    if asked in names:
        return list(names).index(asked)
    if _NUMBER.fullmatch(asked) and -len(names) <= int(asked) < len(names):
        return int(asked) % len(names)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{path} has no column '{asked}': its columns are {shown}.")


def as_labels(labels: np.ndarray, path: Path) -> np.ndarray:
    """Return labels as floats where all of them are numbers, else as words, each kept once."""
    if labels.dtype.kind not in "fiubSUO":
        raise InputError(f"{path}: its labels are of {labels.dtype}, not numbers or words.")
    try:
        return labels.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        return _words(labels.tolist())


def _words(labels: list[Any]) -> np.ndarray:
    """Return words as an array that holds each of them once, however long one is."""
    once: dict[str, str] = {}
    texts = (x.decode(errors="replace") if isinstance(x, bytes) else str(x) for x in labels)
    return np.array([once.setdefault(text, text) for text in texts], dtype=object)


def check_columns(count: int, path: Path) -> None:
    """Refuse more columns than a file of this size can mean: each costs memory in a solve."""
    if count > max(SURE_COLUMNS, path.stat().st_size):
        raise InputError(f"{path} has an index of {count:,}: more columns than can be meant.")


def is_number(text: str) -> bool:
    """Whether a cell parses as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(text: str) -> str:
    """Return a cell in quotes, cut to a readable length."""
    return repr(text if len(text) <= 20 else text[:20] + "...")
