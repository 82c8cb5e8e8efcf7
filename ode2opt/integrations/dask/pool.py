"""Workers for the instances of a benchmark and the items of a study, by joblib's Dask backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple, TypeVar

from distributed import Future
from joblib import Parallel, delayed, parallel_config

from ode2opt.errors import InputError
from ode2opt.integrations.dask.lost import LOOK, Watch, telling
from ode2opt.learning.prefetch import Prefetch

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Found = TypeVar("Found")


class Answer(NamedTuple):
    """What a worker found; what joblib returns beside it tells of work that was given up."""

    found: Any


class WorkerPool:
    """The workers that a client knows.

    What one was doing when it died is done again by others.

    Args:
        client: a ``distributed.Client``.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.watch = client, Watch(client)

    def each(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        ordered: bool = True,
    ) -> Iterator[Found]:
        """Yield the answers of workers, in the order of the items or as they are done."""
        answers = Prefetch(self._answers(work, shared, items, ordered))
        left = len(items)
        while left:
            try:
                with telling():
                    answer = answers.next(timeout=LOOK)
                    if not isinstance(answer, Answer):
                        raise CancelledError("its answers are lost.")
            except Empty:
                self.watch.moved()
            else:
                self.watch.answered()
                left -= 1
                yield answer.found

    def _answers(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        ordered: bool,
    ) -> Iterator[Any]:
        order = "generator" if ordered else "generator_unordered"
        with parallel_config("dask", client=self.client):
            parallel = Parallel(return_as=order, batch_size=1)
        held = self.client.submit(_same, shared, pure=False)  # made again where its holder dies
        yield from parallel(delayed(_answer)(work, held, item) for item in items)

    def check_sees(self, folder: Path) -> None:
        """Refuse workers that do not see a folder which all of them write into."""
        with telling():
            seen = self.client.run(Path.is_dir, folder)
        for address, sees in seen.items():
            if not sees:
                raise InputError(
                    f"The worker at {address} does not see {folder}: name a folder on a file "
                    f"system that all workers share."
                )


def _same(shared: Shared) -> Shared:
    return shared


def _answer(work: Callable[[Any, Any], Any], shared: Any, item: Any) -> Answer:
    if isinstance(shared, Future):  # where one core is left, joblib does the work here
        shared = shared.result()
    return Answer(work(shared, item))
