"""Where parts are worked on: an engine asks each of them and adds up what they answer.

Answers are added in pairs of neighbours, then in pairs of pairs: the order depends on nothing but
the number of parts, neither on how many hands an engine has nor on which is the quickest.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ode2opt.problems.parts.blocks import Block, Facts, Look, Part, Recipe, Source

Ask = Callable[[Part], Any]
"""A question to a part; one that travels must be picklable."""
HELD = 0.5  # of the memory, for parts that are not read again


class Engine(ABC):
    """Hands that hold parts.

    Attributes:
        passes: how often all parts were asked.
    """

    passes = 0

    @abstractmethod
    def describe(self, sources: Sequence[Source], look: Look) -> list[Facts]:
        """Read all parts and return what is to be known of each."""

    @abstractmethod
    def settle(self, recipes: Mapping[int, Recipe]) -> None:
        """Make the parts that have rows, by their numbers."""

    @abstractmethod
    def each(self, asks: Mapping[int, Ask]) -> dict[int, Any]:
        """Return the answers of some parts, by their numbers."""

    @abstractmethod
    def total(self, ask: Ask) -> Any:
        """Return the sum of all parts' answers (numbers, arrays, or tuples of them)."""

    def words(self) -> str:
        """Return who works, for a line of progress."""
        return ""


class Threads(Engine):
    """This process: parts in threads; those that do not fit into ``memory`` are read every time.

    Args:
        memory: bytes that parts may take; half of what the machine has by default.
        threads: at work at a time; one for each processor by default.
    """

    def __init__(self, memory: int | None = None, threads: int | None = None) -> None:
        self.memory = int(HELD * _physical_memory()) if memory is None else memory
        self.threads = threads or len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None
        self._sources: Sequence[Source] = ()
        self._blocks: dict[int, Block] = {}
        self._parts: dict[int, Part] = {}
        self._recipes: dict[int, Recipe] = {}

    def words(self) -> str:
        again = len(self._recipes) - len(self._parts)
        return f"{again} of {len(self._recipes)} parts read in each pass" if again else ""

    def describe(self, sources: Sequence[Source], look: Look) -> list[Facts]:
        self._sources, found, left = sources, [], self.memory
        for i, (block, facts) in enumerate(self._map(look.facts, sources)):
            found.append(facts)
            if facts.bytes <= left:
                left -= facts.bytes
                self._blocks[i] = block
        return found

    def settle(self, recipes: Mapping[int, Recipe]) -> None:
        self._recipes = dict(recipes)
        for i, recipe in self._recipes.items():
            if i in self._blocks:
                self._parts[i] = recipe.part(self._blocks.pop(i))
        self._blocks.clear()

    def _part(self, i: int) -> Part | None:
        """Return a part, read again where it is not held; None for one without rows."""
        if i in self._parts or i not in self._recipes:
            return self._parts.get(i)
        return self._recipes[i].part(self._sources[i].read())

    def each(self, asks: Mapping[int, Ask]) -> dict[int, Any]:
        answers = self._map(lambda i: quietly(asks[i], self._part(i)), asks)
        return dict(zip(asks, answers, strict=True))

    def total(self, ask: Ask) -> Any:
        self.passes += 1
        numbers = range(len(self._sources))
        return tree_sum(self._map(lambda i: quietly(ask, self._part(i)), numbers))

    def _map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results in order; no more are under way than there are threads, and one."""
        items = list(items)
        if min(self.threads, len(items)) < 2:
            yield from map(work, items)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        under_way: deque[Future[Any]] = deque()
        try:
            for item in items:
                if len(under_way) > self.threads:
                    yield under_way.popleft().result()
                under_way.append(self._pool.submit(work, item))
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def quietly(ask: Ask, part: Part | None) -> Any:
    """Ask a part, if there is one; an overflow is an answer, as in a solve."""
    if part is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return ask(part)


def tree_sum(answers: Iterable[Any]) -> Any:
    """Return the sum, added in pairs of neighbours as these come; memory for a few is enough.

    Parts without rows answer None and keep their places, so that numbers tell who is whose pair.
    """
    sums: list[tuple[int, Any]] = []  # of so many answers, falling powers of two
    for answer in answers:
        size = 1
        while sums and sums[-1][0] == size:
            answer = _plus(sums.pop()[1], answer)
            size *= 2
        sums.append((size, answer))
    total = sums.pop()[1]
    while sums:
        total = _plus(sums.pop()[1], total)
    return total


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(map(_plus, a, b))
    return a + b


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
