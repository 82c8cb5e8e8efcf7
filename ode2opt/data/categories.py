"""Columns of words: each becomes a column of zeros and ones for every word in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError, shown
from ode2opt.data.preparing import DENSE_ABOVE

MISSING_WORD = -1  # the code of a word that is missing

TRUTHS = {"false": 0.0, "true": 1.0}

Words = Mapping[str, tuple[str, ...]]
"""The words of each column, in order."""


def truth_values(words: Iterable[str]) -> np.ndarray | None:
    """Return 1 for each word that says true and 0 for false; None where there are other words."""
    values = [TRUTHS.get(word.lower()) for word in words]
    return None if None in values else np.array(values, dtype=np.float64)


@dataclass(frozen=True)
class Category:
    """A column of words: a number for each row, and the words that these stand for.

    Attributes:
        codes: N whole numbers; -1 where a word is missing.
        words: the words in the order of their numbers.
    """

    codes: np.ndarray
    words: tuple[str, ...]

    def of_rows(self) -> Category:
        """Return the column without words that none of its rows has."""
        used = np.unique(self.codes[self.codes >= 0])
        return self.coded(tuple(self.words[k] for k in used.tolist()))

    def truths(self) -> np.ndarray | None:
        """Return 1 for true, 0 for false and NaN where it is missing; None with other words."""
        values = truth_values(self.words) if self.words else None
        return None if values is None else np.append(values, np.nan)[self.codes]

    def coded(self, words: Sequence[str]) -> Category:
        """Return the column with the codes of other words; what is not among them is missing."""
        place = {word: k for k, word in enumerate(words)}
        places = [*(place.get(word, MISSING_WORD) for word in self.words), MISSING_WORD]
        return Category(np.array(places, dtype=np.int32)[self.codes], tuple(words))


def all_words(
    columns: Iterable[Mapping[str, Sequence[str]]],
    rows: int,
    always_allowed: int = 20,
    allowed_a_row: float = 0.5,
) -> Words:
    """Return the words that columns have in any of their parts, sorted.

    A column of more words than are allowed a row names rows, not kinds of them.
    """
    found: dict[str, set[str]] = {}
    for part in columns:
        for name, words in part.items():
            found.setdefault(name, set()).update(words)
    for name, each in found.items():
        if len(each) > max(always_allowed, allowed_a_row * rows):
            raise InputError(
                f"Column {shown(name)} has {len(each):,} different words in {rows:,} rows: it "
                f"names rows rather than kinds of them, so leave it out, of a file with "
                f"--drop {shown(name)}."
            )
    return {name: tuple(sorted(each)) for name, each in found.items()}


def width(numbers: int, words: Words) -> int:
    """Return how many columns there are of numbers and of words together."""
    return numbers + sum(map(len, words.values()))


def stays_dense(numbers: int, words: Words) -> bool:
    """Whether the matrix with columns of words is quicker to multiply as a dense one."""
    return numbers + len(words) >= DENSE_ABOVE * width(numbers, words)


def one_hot(A: Array, categories: Mapping[str, Category], words: Words) -> Array:
    """Return a matrix of numbers with a column of 0 and 1 for each word after it."""
    from scipy.sparse import csr_array, hstack

    rows = A.shape[0]
    blocks, each = [csr_array(A)], np.arange(rows + 1)
    for name, known in words.items():
        places = categories[name].coded(known).codes
        has = places >= 0
        ends = each if has.all() else np.append(0, np.cumsum(has))
        shape = (rows, len(known))
        blocks.append(csr_array((np.ones(int(ends[-1])), places[has], ends), shape=shape))
    found = hstack(blocks, format="csr")
    return found.toarray() if stays_dense(A.shape[1], words) else found


def column_names(names: Iterable[str], words: Words) -> list[str]:
    """Return the names of all columns: those of numbers, then name=word."""
    found = [*names, *(f"{name}={word}" for name, known in words.items() for word in known)]
    if len(set(found)) < len(found):
        twice = next(name for name, count in Counter(found).items() if count > 1)
        raise InputError(
            f"Two columns would be called {shown(twice)}, since a word becomes a column that is "
            f"called column=word: rename one of them."
        )
    return found


def words_note(words: Words) -> str:
    """Return a sentence about what columns of words have become."""
    each = ", ".join(f"{shown(name)} {len(known):,}" for name, known in words.items())
    return f"Words have become columns of 0 and 1, after those of numbers: {each}."
