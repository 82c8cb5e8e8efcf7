"""Who does what comes in independent pieces: this process alone, or others that help.

A piece is a function of what all pieces share and of one item. Answers come in the order of the
items, and each is computed by itself, so that what is made of them is the same bit for bit wherever
they were computed, on processors of one kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Found = TypeVar("Found")


class Helpers(Protocol):
    """Those who help."""

    @property
    def elsewhere(self) -> bool:
        """Whether others do the work, so that it pays to have more of it under way."""

    def map(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        /,
        *,
        compiled: bool = False,
    ) -> list[Found]:
        """Return ``work(shared, item)`` for each item.

        Compiled work may be done by several threads of a process; all other is done in turn.
        """


class Alone:
    """Nobody: this process does it."""

    elsewhere = False

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count())

    def __reduce__(self) -> Any:
        return Alone, ()

    def map(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        /,
        *,
        compiled: bool = False,
    ) -> list[Found]:
        """Return the answers, of compiled work by as many threads as there are processors."""
        each = self._pool.map if compiled else map
        return list(each(lambda item: work(shared, item), items))


ALONE = Alone()
