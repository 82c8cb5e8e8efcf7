"""Sums in an order that depends on nothing but how many terms there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PairwiseSum:
    """A sum whose order depends on the number of its terms alone, not on when they come.

    Neighbours are added in pairs, then pairs of pairs. Term i is at (0, i), and (level, i) is the
    sum of (level - 1, 2 i) and (level - 1, 2 i + 1). A sum moves up as soon as its pair is there,
    so few are kept where neighbours come one after the other.
    """

    def __init__(self, count: int) -> None:
        self.count, self._top = count, (count - 1).bit_length()
        self.found: dict[tuple[int, int], Any] = {}

    def add(self, term: Any, place: int, level: int = 0) -> None:
        """Add a term, or a sum of terms that another process has added."""
        while level < self._top:
            pair = (level, place ^ 1)
            if pair in self.found:
                other = self.found.pop(pair)
                term = _plus(other, term) if place % 2 else _plus(term, other)
            elif pair[1] << level < self.count:
                break
            level, place = level + 1, place // 2
        self.found[level, place] = term

    def add_all(self, found: Mapping[tuple[int, int], Any]) -> None:
        """Add all that another sum of the same terms has found."""
        for (level, place), term in found.items():
            self.add(term, place, level)

    def missing(self) -> set[int]:
        """Return the numbers of the terms that have not come."""
        return set(range(self.count)).difference(
            *(range(place << level, (place + 1) << level) for level, place in self.found)
        )

    def result(self) -> Any:
        """Return the sum; all terms must have come."""
        return self.found[self._top, 0]


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(map(_plus, a, b))
    return a + b
