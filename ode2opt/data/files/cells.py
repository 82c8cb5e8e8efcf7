"""The cells of a table: which are missing, numbers, truth values or words; and its labels.

Each column of a text table is read by a parser: an object whose ``number`` returns a float for a
cell, NaN (a number) or -1 (a word) for a missing one, and raises ValueError for one that does not
belong into the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.data.categories import MISSING_WORD, TRUTHS, truth_values

MISSING_CELLS = frozenset(
    {"", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null", "<NA>", "#N/A"}
)
_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}((\.\d{3})+,\d*|(,\d{3})+\.\d*)", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a cell is a number with a decimal point."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def is_missing(text: str) -> bool:
    """Whether a cell has no value: it is empty, or says so."""
    return text.strip() in MISSING_CELLS


def has_decimal_comma(text: str) -> bool:
    """Whether a cell is a number with a decimal comma."""
    return _COMMA.fullmatch(text.strip()) is not None


def has_thousands(text: str) -> bool:
    """Whether a cell is a number with a sign for thousands, such as 1.234,5 or 1,234.5."""
    return _GROUPED.fullmatch(text.strip()) is not None


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


class CellParser:
    """Reads the cells of a column; this one those of a column that is not used: any cell is 0."""

    def number(self, cell: str) -> float:
        """Return the number that a cell stands for."""
        return 0.0

    def fault(self, cell: str) -> str:
        """Return what is wrong with a cell, as the end of "column x is ..."."""
        return f"{short(cell)}, not a number"


class NumberParser(CellParser):
    """Reads a column of numbers, or of weights; missing cells are NaN."""

    def __init__(self, decimal: str = ".", truths: bool = False, weights: bool = False) -> None:
        self._comma, self._truths, self._weights = decimal == ",", truths, weights

    def number(self, cell: str) -> float:
        """Return the number of a cell."""
        text = cell.strip()
        if text in MISSING_CELLS:
            return math.nan
        if self._truths and text.lower() in TRUTHS:
            return TRUTHS[text.lower()]
        if self._comma:
            if "." in text:
                raise ValueError(cell)
            text = text.replace(",", ".", 1)
        if not is_number(text):
            raise ValueError(cell)
        return float(text)

    def fault(self, cell: str) -> str:
        """Return what is wrong with a cell."""
        told = super().fault(cell)
        if self._comma and is_number(cell):
            told = f"{short(cell)}, but numbers here have decimal commas"
        elif not self._comma and has_decimal_comma(cell):
            told = f"{short(cell)}, but numbers here have decimal points"
        return told + ": weights are numbers" * self._weights


class WordParser(CellParser):
    """Reads a column of words, numbered as they come; a number among them is refused."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.words: list[str] = []
        self._codes: dict[str, float] = {}
        self._known = frozenset(known)
        self._any = any(map(is_number, known))

    def number(self, cell: str) -> float:
        """Return the code of a word: its number from 0, or -1 where it is missing."""
        code = self._codes.get(cell)
        return self._new(cell) if code is None else code

    def fault(self, cell: str) -> str:
        """Return what is wrong with a cell."""
        return f"{short(cell)}, a number among words"

    def _new(self, cell: str) -> float:
        word = cell.strip()
        if word != cell:
            code = self.number(word)
        elif word in MISSING_CELLS and word not in self._known:
            code = float(MISSING_WORD)
        else:
            self._check(word)
            code = float(len(self.words))
            self.words.append(word)
        self._codes[cell] = code
        return code

    def _check(self, word: str) -> None:
        if word not in self._known and not self._any and is_number(word):
            raise ValueError(word)


class LabelParser(WordParser):
    """Reads labels: numbers, words or both."""

    def _check(self, word: str) -> None:
        pass


def short(text: str) -> str:
    """Return a cell in quotes, cut to a readable length."""
    return repr(text if len(text) <= 20 else text[:20] + "...")
