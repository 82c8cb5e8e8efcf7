"""The workers of a Dask cluster as an engine.

A part is read by a worker and stays there; the point goes out, and what parts answer is added up on
the workers, so that n numbers come back. Neighbouring parts are held together, by tasks: when a
worker dies, Dask has what it held read by others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from distributed import get_worker, wait
from distributed.comm.core import CommClosedError

from ode2opt.integrations.dask.arrays import Chunk
from ode2opt.integrations.dask.lost import LOOK, Watch, telling
from ode2opt.integrations.dask.rounds import answered, teams
from ode2opt.problems.parts.blocks import Block, Facts, Given, Look, Recipe, Source
from ode2opt.problems.parts.engines import Engine
from ode2opt.problems.parts.held import HELD, Ask, Held, Rows
from ode2opt.problems.parts.sums import Sums

LARGEST_GROUP = 1 << 27  # bytes of parts that are held together
GROUPS_IN_ROOM = 16  # of a worker's memory, at least
GROUPS = 4  # for each thread, if there are parts enough: others share what a worker leaves behind
MOMENT = 0.1  # seconds until a scheduler has noticed that a worker is gone, about
NUMBER = 8  # bytes


class Cluster(Engine):
    """The workers that a client knows.

    Args:
        client: a ``distributed.Client``.

    Attributes:
        sent: bytes of points that went out and of answers that came back, about.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.watch, self.sent = client, Watch(client), 0
        self._groups: list[range] = []
        self._rows: list[Any] = []
        self._held: list[Any] = []
        self._homes: list[str] = []

    def words(self) -> str:
        return f"{len(self.watch.workers())} workers, {self.sent / 1e6:.1f} MB"

    def describe(self, sources: Sequence[Source], look: Look) -> list[Facts]:
        workers = self.watch.workers()
        slots = [where for where, worker in workers.items() for _ in range(worker["nthreads"])]
        room = min((one["memory_limit"] or math.inf for one in workers.values()), default=math.inf)
        size = group_size([source.bytes for source in sources], len(slots), room)
        starts = range(0, len(sources), size)
        self._groups = [range(i, min(i + size, len(sources))) for i in starts]
        self._rows = [
            self._looked(look, group, [sources[i] for i in group], home)
            for group, home in zip(self._groups, spread(len(starts), slots), strict=True)
        ]
        facts = self._results([self._at(None, _facts, rows) for rows in self._rows])
        return [fact for group in facts for fact in group]

    def _looked(self, look: Look, group: range, own: Sequence[Source], home: str | None) -> Any:
        """Have a group read by who is to hold it; Dask decides where blocks of its own are."""
        chunks = [source for source in own if isinstance(source, Chunk)]
        if not chunks:
            return self._at(home, _look_at, look, group, own)
        with telling():
            blocks = self.client.compute([chunk.block for chunk in chunks])
        return self._at(None, _look_at_blocks, look, group, [one.name for one in own], blocks)

    def settle(self, recipes: Mapping[int, Recipe]) -> None:
        self._held = [
            self._at(None, _made, rows, {i: recipes[i] for i in group if i in recipes})
            for rows, group in zip(self._rows, self._groups, strict=True)
        ]
        self._find_homes()
        self._rows = []

    def _find_homes(self) -> None:
        """Wait until all parts are held, and take note by whom."""
        with telling(), self.client.as_current():
            while not all(found := self._holders()):
                self.watch.moved()
                time.sleep(MOMENT)
        self._homes = [next(iter(addresses)) for addresses in found]

    def _holders(self) -> list[Sequence[str]]:
        """Return who holds each group; nobody, where this is not known yet."""
        with suppress(TimeoutError):
            wait(self._held, timeout=LOOK)
        for held in self._held:
            if held.status == "error":
                raise held.exception()
        holders = self.client.who_has(self._held)
        return [holders.get(held.key, ()) for held in self._held]

    def each(self, asks: Mapping[int, Ask]) -> dict[int, Any]:
        self.passes += 1
        own = [{i: asks[i] for i in group if i in asks} for group in self._groups]
        asked = [
            self._at(home, _answers, held, some)
            for home, held, some in zip(self._homes, self._held, own, strict=True)
            if some
        ]
        return {i: answer for group in self._results(asked) for i, answer in group.items()}

    def total(self, ask: Ask) -> Any:
        self.passes += 1
        sums = Sums(self._groups[-1].stop)
        self._round(ask, sums)
        while sums.lacking():
            self._find_homes()
            self._round(ask, sums)
        return sums.total()

    def _round(self, ask: Ask, sums: Sums) -> None:
        """Ask who holds parts whose answers lack; workers that are gone do not answer."""
        lacking, held = sums.lacking(), dict[str, list[str]]()
        for group, home, parts in zip(self._groups, self._homes, self._held, strict=True):
            if group.start in lacking:
                held.setdefault(home, []).append(parts.key)
        led = teams(list(held.items()))
        self.sent += len(held) * _bytes(getattr(ask, "args", ()))

        async def asked() -> dict[str, Any]:
            args = ask, sums.count, led
            try:
                return await self.client.run(answered, *args, workers=list(led), on_error="return")
            except OSError as error:
                raise CommClosedError(str(error)) from None

        for answer in self.watch.outcome(asked()).values():
            if isinstance(answer, OSError):
                continue
            if isinstance(answer, Exception):
                raise answer
            self.sent += _bytes(list(answer.values()))
            sums.take(answer)

    def _at(self, home: str | None, work: Callable[..., Any], *args: Any) -> Any:
        """Send off a task: for this worker, or for any where it is None or gone."""
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with telling():
            return self.client.submit(work, *args, pure=False, **where)

    def _results(self, futures: list[Any]) -> list[Any]:
        found = self.watch.results(futures)
        self.sent += _bytes(found)
        return found


def group_size(sizes: Sequence[int], slots: int, room: float = math.inf) -> int:
    """Return how many neighbours are held together: a power of two, some groups for each thread.

    A worker with ``room`` bytes puts groups on disk when it is short of memory: they are small.
    """
    for_all = len(sizes) / (GROUPS * max(1, slots))
    by_size = min(LARGEST_GROUP, room / GROUPS_IN_ROOM) / max(1.0, float(np.mean(sizes)))
    return 1 << max(0, int(np.log2(max(1.0, min(for_all, by_size)))))


def spread(groups: int, slots: Sequence[str]) -> list[str | None]:
    """Return who is to hold each group: neighbours have one home, and all homes as many."""
    return [slots[len(slots) * k // groups] if slots else None for k in range(groups)]


def _bytes(found: Any) -> int:
    if isinstance(found, tuple | list):
        return sum(map(_bytes, found))
    return int(getattr(found, "nbytes", 0))


def _look_at(look: Look, group: range, sources: Sequence[Source]) -> Rows:
    return Rows.of(group, sources, map(look.facts, sources), _room())


def _look_at_blocks(look: Look, group: range, names: list[str], blocks: list[Block]) -> Rows:
    return _look_at(look, group, list(map(Given, names, blocks)))


def _room() -> float:
    """Return the bytes that this worker may still hold."""
    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    return math.inf if limit is None else HELD * limit - worker.state.nbytes


def _facts(rows: Rows) -> list[Facts]:
    return rows.facts


def _made(rows: Rows, recipes: Mapping[int, Recipe]) -> Held:
    return replace(rows, blocks=dict(rows.blocks)).held(recipes)


def _answers(held: Held, asks: Mapping[int, Ask]) -> dict[int, Any]:
    return {i: held.ask(i, ask) for i, ask in asks.items()}


@sizeof.register(Rows)
def _size_of_rows(rows: Rows) -> int:
    return sum(block.bytes() + NUMBER * len(block) for block in rows.blocks.values())


@sizeof.register(Held)
def _size_of_held(held: Held) -> int:
    models = [part.model for part in held.made.values()]
    return sum(Block(model.A, model.b).bytes() + 2 * NUMBER * model.N for model in models)
