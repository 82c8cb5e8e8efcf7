"""What every reader returns, and the little they share."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array

LABEL_NAMES = ("label", "target", "y", "class")
MOST_COLUMNS = 2**27


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
    if re.fullmatch("-?[0-9]{1,9}", label) and -len(names) <= int(label) < len(names):
        return int(label) % len(names)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{path} has no column '{label}': its columns are {shown}.")


def as_numbers(labels: np.ndarray, path: Path) -> np.ndarray:
    """Return labels as floats where all of them are numbers, else as words."""
    if np.iscomplexobj(labels):
        raise InputError(f"{path}: its labels are complex numbers.")
    try:
        return labels.astype(np.float64)
    except (ValueError, TypeError):
        return labels.astype(str)


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


def open_text(path: Path, errors: str = "strict") -> IO[str]:
    """Open plain or compressed text, without a byte-order mark."""
    options = {"encoding": "utf-8-sig", "errors": errors, "newline": ""}
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", **options)  # type: ignore[call-overload]
    if path.suffix.lower() == ".bz2":
        return bz2.open(path, "rt", **options)  # type: ignore[call-overload]
    return open(path, **options)  # type: ignore[call-overload]
