"""Where parts are worked on: an engine asks each of them and adds up what they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ode2opt.machine import cpu_count, physical_memory
from ode2opt.problems.parts.blocks import Facts, Look, Recipe, Source
from ode2opt.problems.parts.held import HELD, Ask, Held, Rows
from ode2opt.problems.parts.sums import Sums


class Engine(ABC):
    """Hands that hold parts.

    Attributes:
        passes: how often parts were asked, all or those that a sample is from.
        watcher: told while :meth:`describe` reads: how many parts are read, and of how many. The
            workers of a cluster do not tell.
    """

    passes = 0
    watcher: Callable[[int, int], None] | None = None

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
        self.memory = int(HELD * physical_memory()) if memory is None else memory
        self.threads = threads or cpu_count()
        self._pool: ThreadPoolExecutor | None = None
        self._rows = Rows({}, {}, [])
        self._held = Held([], {}, {})

    def words(self) -> str:
        again, made = len(self._held.again), len(self._held.made)
        return f"{again} of {again + made} parts read in each pass" if again else ""

    def describe(self, sources: Sequence[Source], look: Look) -> list[Facts]:
        looked = self._watched(self._map(look.facts, sources), len(sources))
        self._rows = Rows.of(range(len(sources)), sources, looked, self.memory)
        return self._rows.facts

    def _watched(self, looked: Iterator[Any], total: int) -> Iterator[Any]:
        for done, one in enumerate(looked, 1):
            if self.watcher is not None:
                self.watcher(done, total)
            yield one

    def settle(self, recipes: Mapping[int, Recipe]) -> None:
        self._held = self._rows.held(recipes)
        self._rows = Rows({}, {}, [])

    def each(self, asks: Mapping[int, Ask]) -> dict[int, Any]:
        self.passes += 1
        answers = self._map(lambda i: self._held.ask(i, asks[i]), asks)
        return dict(zip(asks, answers, strict=True))

    def total(self, ask: Ask) -> Any:
        self.passes += 1
        sums = Sums(len(self._held.numbers))
        answers = self._map(lambda i: self._held.ask(i, ask), self._held.numbers)
        for i, answer in enumerate(answers):
            sums.add(answer, i)
        return sums.total()

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
