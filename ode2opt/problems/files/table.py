"""What every reader returns, and the little they share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array

LABEL_NAMES = ("label", "target", "y", "class")
SURE_COLUMNS = 2**21  # that any file may have; one of more bytes as many as it has bytes
_NUMBER = re.compile("-?[0-9]{1,9}")


@dataclass(frozen=True)
class Table:
    """Rows as read: a matrix, one label each (numbers or words), and the columns' names."""

    A: Array
    labels: np.ndarray
    columns: Sequence[str] | None = None


def label_column(names: Sequence[str], label: str | None, path: Path) -> int:
    """Return the index of the label column: as asked for, by its usual names, or the last."""
    if label is None:
        lower = [name.strip().lower() for name in names]
        return next((lower.index(name) for name in LABEL_NAMES if name in lower), len(names) - 1)
    if label in names:
        return list(names).index(label)
    if _NUMBER.fullmatch(label) and -len(names) <= int(label) < len(names):
        return int(label) % len(names)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{path} has no column '{label}': its columns are {shown}.")


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
