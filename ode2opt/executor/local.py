"""The executor of one machine: this process with its threads, or several processes."""

from __future__ import annotations

import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import Any

from ode2opt.base.machine import cpu_count, physical_memory
from ode2opt.base.threads import alone
from ode2opt.executor.interface import Executor, Found, HeldItems, Item, Loaded, Question, Work
from ode2opt.executor.sums import PairwiseSum

MEMORY_SHARE = 0.5  # of the memory, for items that are held
POLL = 1.0  # seconds between two looks at work that is under way
QUIET = "ignore:resource_tracker"  # which warns of processes that Ctrl-C has ended
REPLACED = "A worker stopped while some jobs"  # joblib's warning when it replaces a process


class LocalExecutor(Executor):
    """Works in this process and, if asked to, in other processes of this machine.

    Examples:
        >>> list(LocalExecutor().map(pow, 2, [1, 2, 3]))
        [2, 4, 8]
    """

    def __init__(
        self,
        processes: int = 1,
        threads: int | None = None,
        memory: int | None = None,
        watcher: Callable[[int, int], None] | None = None,
    ) -> None:
        self.processes, self.memory, self.watcher = processes, memory, watcher
        self._threads = threads

    def __reduce__(self) -> Any:
        return LocalExecutor, (self.processes, self._threads, self.memory)

    @cached_property
    def threads(self) -> int:
        """How many threads work at the same time."""
        return self._threads or cpu_count()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, initializer=alone)

    def map(
        self, work: Work, shared: Any, items: Sequence[Any], *, ordered: bool = True,
        threads: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        """Yield ``work(shared, item)`` for each item: see :meth:`Executor.map`."""
        processes = min(self.processes, len(items))
        if processes > 1:
            return _in_processes(processes, work, shared, items, ordered)
        if threads:
            return self.in_threads(lambda item: work(shared, item), items, ordered)
        return (work(shared, item) for item in items)

    def in_threads(
        self, work: Callable[[Item], Found], items: Iterable[Item], ordered: bool = True
    ) -> Iterator[Found]:
        """Yield ``work(item)`` for each item; one more is under way than there are threads."""
        items = list(items)
        if min(self.threads, len(items)) < 2:
            return map(work, items)
        return under_way(lambda item: self._pool.submit(work, item), items, self.threads, ordered)

    def hold(self, load: Callable[[Any], Loaded], sources: Sequence[Any]) -> LocalItems:
        """Load items in threads of this process: see :meth:`Executor.hold`."""
        room = MEMORY_SHARE * physical_memory() if self.memory is None else self.memory
        loaded = self._watched(self.in_threads(load, sources), len(sources))
        return LocalItems(self, *fitting(loaded, room))

    def _watched(self, loaded: Iterable[Item], total: int) -> Iterator[Item]:
        for count, item in enumerate(loaded, 1):
            if self.watcher is not None:
                self.watcher(count, total)
            yield item


THIS_PROCESS = LocalExecutor()
"""The executor of training, validation and comparisons where no other is named."""


class LocalItems(HeldItems):
    """Items that this process holds."""

    def __init__(self, executor: LocalExecutor, items: list[Any], released: int) -> None:
        self._executor, self._items, self._released = executor, items, released

    def description(self) -> str:
        """Return how many items are read again in each pass, if any are."""
        total = sum(item is not None for item in self._items)
        return f"{self._released} of {total} parts read in each pass" if self._released else ""

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Return the answers of some items: see :meth:`HeldItems.ask`."""
        answers = self._executor.in_threads(
            lambda i: _answer(self._items[i], questions[i]), questions
        )
        return dict(zip(questions, answers, strict=True))

    def change(self, changes: Mapping[int, Question]) -> None:
        """Replace items one after the other: see :meth:`HeldItems.change`."""
        for i, item in enumerate(self._items):
            self._items[i] = changes[i](item) if i in changes else None

    def sum(self, question: Question) -> Any:
        """Return the sum of all items' answers: see :meth:`HeldItems.sum`."""
        total = PairwiseSum(len(self._items))
        answers = self._executor.in_threads(lambda item: _answer(item, question), self._items)
        for i, found in enumerate(answers):
            total.add(found, i)
        return total.result()


def _answer(item: Any, question: Question) -> Any:
    """Return the answer of an item; one that was dropped answers None."""
    return None if item is None else question(item)


def fitting(items: Iterable[Any], room: float) -> tuple[list[Any], int]:
    """Release those items that do not fit into memory."""
    kept, released = [], 0
    for item in items:
        held = item if item.bytes <= room else item.released()
        released += held is not item
        room -= held.bytes
        kept.append(held)
    return kept, released


def under_way(
    submit: Callable[[Item], Future[Found]],
    items: Iterable[Item],
    most: int,
    ordered: bool = True,
    check: Callable[[], object] = lambda: None,
) -> Iterator[Found]:
    """Yield results of futures of which only some are under way at a time."""
    begun: deque[Future[Found]] = deque()

    def next_result() -> Found:
        waited_for = [begun[0]] if ordered else list(begun)
        while not (done := [one for one in waited_for if one.done()]):
            if not wait(waited_for, POLL, FIRST_COMPLETED).done:
                check()
        begun.remove(done[0])
        return done[0].result()

    try:
        for item in items:
            if len(begun) > most:
                yield next_result()
            begun.append(submit(item))
        while begun:
            yield next_result()
    finally:
        for one in begun:
            one.cancel()


def _in_processes(
    processes: int, work: Work, shared: Any, items: Sequence[Any], ordered: bool
) -> Iterator[Any]:
    """Yield the results of joblib's processes, each with one thread for linear algebra."""
    from joblib import Parallel, delayed, parallel_config

    if QUIET not in sys.warnoptions:
        sys.warnoptions.append(QUIET)  # handed on to the processes
    warnings.filterwarnings("ignore", REPLACED)
    order = "generator" if ordered else "generator_unordered"
    with parallel_config("loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=processes, return_as=order, batch_size=1)
    yield from parallel(delayed(_without_interrupts)(work, shared, item) for item in items)


def _without_interrupts(work: Work, shared: Any, item: Any) -> Any:
    """Work, and leave Ctrl-C to the process that waits for the result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(shared, item)
