"""Labels: numbers where all of them are, else words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.data.files.cells import truth_values


def as_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels as floats where all of them are numbers, else as words, each kept once.

    True and false are 1 and 0.
    """
    if labels.dtype.kind not in "fiubSUO":
        raise InputError(f"its labels are of {labels.dtype}, not numbers or words.")
    try:
        return labels.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        words = _words(labels.tolist())
    kinds = sorted({word for word in words if word is not None})
    truths = truth_values(kinds)
    if truths is None:
        return words
    values: dict[str | None, float] = dict(zip(kinds, truths.tolist(), strict=True))
    return np.array([values.get(word, np.nan) for word in words])


def are_truths(labels: Iterable[Any]) -> bool:
    """Whether labels are true and false."""
    kinds = {label for label in labels if label is not None}
    return bool(kinds) and truth_values(str(label) for label in kinds) is not None


def _words(labels: list[Any]) -> np.ndarray:
    """Return words as an array that holds each of them once, however long one is."""
    once: dict[str, str] = {}
    return np.array([_word(label, once) for label in labels], dtype=object)


def _word(label: Any, once: dict[str, str]) -> str | None:
    if label is None:
        return None
    text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
    return once.setdefault(text, text)
