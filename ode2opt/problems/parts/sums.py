"""Sums in an order that depends on nothing but how many answers there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Sum = Any
"""Numbers, arrays, or tuples of them; None, from parts without rows, counts for nothing."""


class Sums:
    """Answers, added in pairs of neighbours, then in pairs of pairs, whenever they come.

    The i-th answer is at (0, i), and (level, i) is the sum of (level - 1, 2 i) and the place after.
    Sums that have their pair go up at once, so that few are kept where neighbours come in turn.

    Args:
        count: how many answers there are in all; places beyond count for nothing.
    """

    def __init__(self, count: int) -> None:
        self.count, self._top = count, (count - 1).bit_length()
        self.found: dict[tuple[int, int], Sum] = {}

    def add(self, answer: Sum, place: int, level: int = 0) -> None:
        """Take an answer, or a sum of another's."""
        while level < self._top:
            pair = (level, place ^ 1)
            if pair in self.found:
                other = self.found.pop(pair)
                answer = _plus(other, answer) if place % 2 else _plus(answer, other)
            elif pair[1] << level < self.count:
                break
            level, place = level + 1, place // 2
        self.found[level, place] = answer

    def take(self, found: Mapping[tuple[int, int], Sum]) -> None:
        """Take all that another has found."""
        for (level, place), answer in found.items():
            self.add(answer, place, level)

    def lacking(self) -> set[int]:
        """Return the places whose answers have not come."""
        return set(range(self.count)).difference(
            *(range(place << level, (place + 1) << level) for level, place in self.found)
        )

    def total(self) -> Sum:
        """Return the sum of all answers; they must have come."""
        return self.found[self._top, 0]


def _plus(a: Sum, b: Sum) -> Sum:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(map(_plus, a, b))
    return a + b
