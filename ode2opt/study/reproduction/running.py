"""Doing the work: in processes, each result kept as soon as it is there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ode2opt.base.errors import Ode2OptError
from ode2opt.base.threads import one_thread
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.study.reproduction import cells, contraction
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import Made
from ode2opt.study.reproduction.plan import NEEDS, TRAININGS, Effort, Item, needs_of

# Measured on two quiet cores; the paper's protocol by its processor seconds.
MINUTES = {"whole": 33, "quick": 11}


class Kind(NamedTuple):
    """How a kind of item is made."""

    make: Callable[[Store, Effort, Item], Made]
    steps: int


WORK: dict[str, Kind] = {
    "training": Kind(cells.training, 150),
    "protocol": Kind(cells.protocol, 360),
    "contraction": Kind(contraction.contraction, 60),
    "classics": Kind(cells.classics, 15),
    "learned": Kind(cells.learned, 5),
    "example": Kind(cells.example, 3),
    "smoothness": Kind(cells.smoothness, 2),
    "data": Kind(cells.data, 1),
}


class Failure(NamedTuple):
    """Work that could not be done."""

    item: Item
    why: str


def cost_of(items: Iterable[Item], effort: Effort) -> int:
    """Return how much work items are, in training steps."""
    return sum(_cost(item, effort) for item in items)


def _cost(item: Item, effort: Effort) -> int:
    if item.kind == "protocol":
        return int(effort.paper_options(item)["steps"])
    steps = WORK[item.kind].steps
    return int(effort.training.get("steps", steps)) if item.kind == "training" else steps


def run_items(
    store: Store,
    effort: Effort,
    items: Sequence[Item],
    executor: Executor = THIS_PROCESS,
    advance: Callable[[], None] = lambda: None,
) -> list[Failure]:
    """Do all items: those that others need first, and the longest first."""
    failures: list[Failure] = []
    with _watching(store, effort, items, advance):
        for late in (False, True):
            turn = [item for item in items if (item.kind in NEEDS) is late]
            turn = [item for item in turn if all(map(store.knows, needs_of(item)))]
            turn.sort(key=lambda item: -_cost(item, effort))
            done = executor.map(_do, (store, effort), turn, ordered=False)
            failures += [found for found in done if found]
    return failures


def _do(given: tuple[Store, Effort], item: Item) -> Failure | None:
    """Do one item on one thread, so that its numbers do not depend on how many there are."""
    store, effort = given
    with one_thread(), _noting_interrupts() as interrupted:
        try:
            made = WORK[item.kind].make(store, effort, item)
        except Ode2OptError as error:
            return Failure(item, str(error))
        if interrupted():
            raise KeyboardInterrupt
    store.save(item, made)
    return None


@contextmanager
def _noting_interrupts() -> Iterator[Callable[[], bool]]:
    """Remember Ctrl-C: a solve answers it with its best point, which must not pass for a result."""
    seen: list[int] = []
    old = signal.getsignal(signal.SIGINT)
    if old is not signal.default_int_handler or not _in_main_thread():
        yield lambda: False
        return

    def note(number: int, frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, old)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _watching(
    store: Store, effort: Effort, items: Sequence[Item], advance: Callable[[], None]
) -> Iterator[None]:
    """Tell how far the work is, from the files that it leaves: trainings move step by step."""
    over = threading.Event()
    told = 0

    def tell() -> None:
        nonlocal told
        done = sum(_done(store, effort, item) for item in items)
        for _ in range(done - told):
            advance()
        told = max(told, done)

    def watch() -> None:
        while not over.wait(1.0):  # seconds
            tell()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        tell()


def _done(store: Store, effort: Effort, item: Item) -> int:
    cost = _cost(item, effort)
    if store.knows(item):
        return cost
    metrics = RunDirectory(store.run(item)).metrics
    if item.kind not in TRAININGS or not metrics.is_file():
        return 0
    return min(metrics.read_bytes().count(b"\n"), cost - 1)
