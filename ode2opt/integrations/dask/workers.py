"""The workers of a Dask cluster: waiting for them, and the items that they hold.

Tasks of the scheduler load items, and workers keep them. If a worker dies, Dask has its items
loaded by others. A question goes past the scheduler's queue of tasks, which takes longer for one
task than a small question takes in all. The client asks a few workers. Each of these passes the
question on to a few others, asks its own items, and adds up the answers. So few sums come back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from distributed import wait
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.core import clean_exception
from distributed.protocol.pickle import dumps
from distributed.scheduler import KilledWorker

from ode2opt.base.errors import WorkersLostError
from ode2opt.executor.interface import HeldItems, Loaded, Question
from ode2opt.executor.local import POLL, under_way
from ode2opt.executor.sums import PairwiseSum
from ode2opt.integrations.dask.arrays import Chunk
from ode2opt.integrations.dask.groups import (
    ItemGroup,
    group_size,
    load_blocks,
    load_group,
    spread,
)

PATIENCE = 20.0  # seconds without a worker after which the work is given up
MOMENT = 0.1  # seconds that a scheduler needs to notice that a worker is gone, about
FEW = 8  # workers that one asks: more would wait for each other's answers

Found = TypeVar("Found")
Team = Sequence[tuple[str, Sequence[str]]]
"""Workers' addresses with the keys of the groups that they hold; the first one leads."""
Sums = dict[tuple[int, int], Any]
"""What :class:`PairwiseSum` has found."""


class ClientWorkers:
    """The workers that a client knows; where there are none for long, waiting for them ends."""

    def __init__(self, client: Any) -> None:
        self.client, self._seen = client, time.monotonic()

    def known(self) -> Mapping[str, Any]:
        """Return what is known of each worker, by address."""
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def check(self) -> None:
        """Raise ``WorkersLostError`` where there has been no worker for ``PATIENCE`` seconds."""
        if self.client.status == "running" and self.known():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > PATIENCE:
            raise WorkersLostError(f"The cluster has had no worker for {PATIENCE:g} seconds.")

    def _begin(self, work: Coroutine[Any, Any, Found]) -> Future[Found]:
        """Begin work in the client's event loop; the wait for workers counts from here."""
        self._seen = time.monotonic()
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)

    def result(self, work: Coroutine[Any, Any, Found]) -> Found:
        """Return what work in the client's event loop comes to."""
        begun = self._begin(work)
        try:
            with lost_in_words():
                while not wait_for([begun], timeout=POLL).done:
                    self.check()
                return begun.result()
        finally:
            begun.cancel()

    def results(self, tasks: Iterable[Any], most: int, ordered: bool = True) -> Iterator[Any]:
        """Yield the results of tasks."""
        with lost_in_words():
            yield from under_way(
                lambda task: self._begin(_result(task)), tasks, most, ordered, self.check
            )


async def _result(task: Any) -> Any:
    return await task


@contextmanager
def lost_in_words() -> Iterator[None]:
    """Raise ``WorkersLostError`` with a sentence where the cluster is lost."""
    try:
        yield
    except KilledWorker as error:
        raise WorkersLostError(
            f"Workers died again and again over the same part, {error.last_worker.address} last: "
            f"they need more memory, or smaller parts."
        ) from None
    except (CommClosedError, CancelledError, FutureCancelledError) as error:
        raise WorkersLostError(
            f"The scheduler of the cluster is gone, or has given the work up: {error!s:.150}"
        ) from None


class DaskItems(HeldItems):
    """Items that workers hold, neighbours together in groups.

    Attributes:
        sent: bytes of questions that went out and of answers that came back, about.
    """

    def __init__(
        self, workers: ClientWorkers, load: Callable[[Any], Loaded], sources: Sequence[Any]
    ) -> None:
        self._workers, self._client, self.sent = workers, workers.client, 0
        known = workers.known()
        slots = [where for where, worker in known.items() for _ in range(worker["nthreads"])]
        memory = min((one["memory_limit"] or math.inf for one in known.values()), default=math.inf)
        size = group_size([source.bytes for source in sources], len(slots), memory)
        starts = range(0, len(sources), size)
        self._numbers = [range(i, min(i + size, len(sources))) for i in starts]
        self._homes = spread(len(starts), slots)
        self._groups = [
            self._loaded(load, numbers, [sources[i] for i in numbers]) for numbers in self._numbers
        ]

    def _loaded(self, load: Callable[[Any], Loaded], numbers: range, sources: Sequence[Any]) -> Any:
        """Have a group loaded by a worker; Dask decides where blocks of its own arrays are."""
        blocks = [source.block for source in sources if isinstance(source, Chunk)]
        if not blocks:
            home = self._homes[numbers.start // len(self._numbers[0])]
            return self._submit(home, load_group, load, numbers.start, sources)
        with lost_in_words():
            computed = self._client.compute(blocks)
        names = [source.name for source in sources]
        return self._submit(None, load_blocks, load, numbers.start, names, computed)

    def description(self) -> str:
        """Return how many workers there are, and how much was sent."""
        return f"{len(self._workers.known())} workers, {self.sent / 1e6:.1f} MB"

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Return the answers of some items, by tasks: see :meth:`HeldItems.ask`."""
        tasks = [
            self._submit(home, ItemGroup.answers, group, own)
            for home, group, own in zip(
                self._homes, self._groups, self._own(questions), strict=True
            )
            if own
        ]
        answers = list(self._workers.results(tasks, len(tasks)))
        self.sent += _bytes([list(some.values()) for some in answers])
        found = {i: one for some in answers for i, one in some.items()}
        return {i: found[i] for i in questions}

    def change(self, changes: Mapping[int, Question]) -> None:
        """Replace items by tasks, and wait until workers hold them: see ``HeldItems.change``."""
        self._groups = [
            self._submit(None, ItemGroup.changed, group, own)
            for group, own in zip(self._groups, self._own(changes), strict=True)
        ]
        self._find_homes()

    def sum(self, question: Question) -> Any:
        """Return the sum of all answers; workers add up: see :meth:`HeldItems.sum`."""
        total = PairwiseSum(self._numbers[-1].stop)
        self._ask_round(question, total)
        while total.missing():  # workers were lost: their items are loaded by others
            self._find_homes()
            self._ask_round(question, total)
        return total.result()

    def _own(self, questions: Mapping[int, Question]) -> list[dict[int, Question]]:
        """Return the questions of each group."""
        return [{i: questions[i] for i in group if i in questions} for group in self._numbers]

    def _submit(self, home: str | None, work: Callable[..., Any], *args: Any) -> Any:
        """Submit a task: for this worker, or for any where it is None or lost."""
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with lost_in_words():
            return self._client.submit(work, *args, pure=False, **where)

    def _find_homes(self) -> None:
        """Wait until all groups are held, and take note of who holds them."""
        with lost_in_words(), self._client.as_current():
            while not all(found := self._holders()):
                self._workers.check()
                time.sleep(MOMENT)
        self._homes = [next(iter(addresses)) for addresses in found]

    def _holders(self) -> list[Sequence[str]]:
        """Return who holds each group: nobody, where that is not known yet."""
        with suppress(TimeoutError):
            wait(self._groups, timeout=POLL)
        for group in self._groups:
            if group.status == "error":
                raise group.exception()
        holders = self._client.who_has(self._groups)
        return [holders.get(group.key, ()) for group in self._groups]

    def _ask_round(self, question: Question, total: PairwiseSum) -> None:
        """Ask the groups whose answers are missing; workers that are lost do not answer."""
        missing, held = total.missing(), dict[str, list[str]]()
        for numbers, home, group in zip(self._numbers, self._homes, self._groups, strict=True):
            if numbers.start in missing:
                held.setdefault(str(home), []).append(group.key)
        led = teams(list(held.items()))
        self.sent += len(held) * _bytes(question)

        async def asked() -> dict[str, Any]:
            given = question, total.count, led
            try:
                return await self._client.run(
                    team_sums, *given, workers=list(led), on_error="return"
                )
            except OSError as error:
                raise CommClosedError(str(error)) from None

        for found in self._workers.result(asked()).values():
            if isinstance(found, OSError):
                continue
            if isinstance(found, Exception):
                raise found
            self.sent += _bytes(list(found.values()))
            total.add_all(found)


def _bytes(found: Any) -> int:
    if isinstance(found, partial):
        found = [*found.args, *found.keywords.values()]
    if isinstance(found, tuple | list):
        return sum(map(_bytes, found))
    return int(getattr(found, "nbytes", 0))


def teams(workers: Team, most: int = FEW) -> dict[str, Team]:
    """Return neighbouring workers in teams, by the addresses of those who lead them."""
    size = -(-len(workers) // most)
    parted = [workers[i : i + size] for i in range(0, len(workers), size or 1)]
    return {team[0][0]: team for team in parted}


async def team_sums(
    question: Question, count: int, led: Mapping[str, Team], dask_worker: Any
) -> Sums:
    """Return the sums of the answers of this worker and its team; it runs on the worker."""
    (_, keys), *others = led[dask_worker.contact_address]
    below = teams(others)
    passed = [_passed_on(dask_worker, leader, question, count, below) for leader in below]
    found = await asyncio.gather(_own_sums(dask_worker, keys, question, count), *passed)
    total = PairwiseSum(count)
    for sums in found:
        await _in_thread(dask_worker, total.add_all, sums)
    return total.found


async def _passed_on(
    worker: Any, leader: str, question: Question, count: int, led: Mapping[str, Team]
) -> Sums:
    """Have another worker's team answer; a worker that is lost answers nothing."""
    args = dumps((question, count, {leader: led[leader]}))
    try:
        answer = await worker.rpc(leader).run(function=dumps(team_sums), args=args)
    except OSError:
        return {}
    if answer["status"] == "error":
        _, error, trace = clean_exception(**answer)
        assert error is not None
        raise error.with_traceback(trace)
    return answer["result"]


async def _own_sums(worker: Any, keys: Sequence[str], question: Question, count: int) -> Sums:
    """Ask the groups that this worker holds, in as many threads as it has."""
    total, lock = PairwiseSum(count), Lock()

    def ask_group(group: ItemGroup) -> None:
        for i, item in enumerate(group.items, group.first):
            answer = None if item is None else question(item)
            with lock:
                total.add(answer, i)

    async def ask_some(left: Iterator[str]) -> None:
        for key in left:
            await _in_thread(worker, ask_group, worker.data[key])

    left = iter([key for key in keys if key in worker.data])
    await asyncio.gather(*(ask_some(left) for _ in range(worker.state.nthreads)))
    return total.found


async def _in_thread(worker: Any, work: Any, *args: Any) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(worker.executors["default"], work, *args)
