"""The workers of a Dask cluster as an engine.

A part is read by a worker and stays there; the point goes out, and what parts answer is added up on
the workers, so that n numbers come back. Neighbouring parts are held together, a power of two of
them: a round takes few tasks, and sums are in the order of any other engine. What a worker held is
read again by others when it dies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from dask.sizeof import sizeof
from distributed import wait

from ode2opt.integrations.dask.arrays import Chunk
from ode2opt.integrations.dask.lost import Watch, telling
from ode2opt.problems.parts.blocks import Block, Facts, Given, Look, Part, Recipe, Source
from ode2opt.problems.parts.engines import Ask, Engine, quietly, tree_sum

LARGEST_GROUP = 1 << 27  # bytes of parts that are held together
GROUPS_IN_ROOM = 16  # of a worker's memory, at least
ARITY = 16  # answers that a worker adds up at once; a power of two
AT_ONCE = 4  # sums that come back: one more level of tasks would take longer
SMALL = 1 << 16  # bytes of a question that goes with every task
LOOK = 1.0  # seconds between two looks at the workers
TRANSFER = 300.0  # seconds that answers may take to come back
NUMBER = 8  # bytes
Group = list[Part | None]


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
        self._blocks: list[Any] = []
        self._parts: list[Any] = []
        self._homes: list[str | None] = []

    def words(self) -> str:
        return f"{len(self.watch.workers())} workers, {self.sent / 1e6:.1f} MB"

    def describe(self, sources: Sequence[Source], look: Look) -> list[Facts]:
        workers = self.watch.workers().values()
        slots = sum(worker["nthreads"] for worker in workers)
        room = min((worker["memory_limit"] or math.inf for worker in workers), default=math.inf)
        size = group_size([source.bytes for source in sources], slots, room)
        starts = range(0, len(sources), size)
        self._groups = [range(i, min(i + size, len(sources))) for i in starts]
        looked = [
            delayed(list, pure=False)([_looked(sources[i], look) for i in group])
            for group in self._groups
        ]
        with telling():
            self._blocks = self.client.compute(looked)
        facts = self._results([self._submit(_facts, blocks) for blocks in self._blocks])
        return [fact for group in facts for fact in group]

    def settle(self, recipes: Mapping[int, Recipe]) -> None:
        self._parts = [
            self._submit(_made, blocks, [recipes.get(i) for i in group])
            for blocks, group in zip(self._blocks, self._groups, strict=True)
        ]
        self._results([self._submit(len, parts) for parts in self._parts])
        self._blocks = []
        self._find_homes()

    def _find_homes(self) -> None:
        """Take note of who holds what: work goes there as long as they live, and no rows travel."""
        with telling():
            holders = self.client.who_has(self._parts)
        self._homes = [next(iter(holders.get(parts.key, ())), None) for parts in self._parts]

    def each(self, asks: Mapping[int, Ask]) -> dict[int, Any]:
        own = [
            {i: (i - group.start, asks[i]) for i in group if i in asks} for group in self._groups
        ]
        asked = [self._at_home(k, _answers, some) for k, some in enumerate(own) if some]
        return {i: answer for group in self._results(self._begun(asked)) for i, answer in group}

    def total(self, ask: Ask) -> Any:
        self.passes += 1
        with telling():
            question = self._shipped(ask)
            sums = [self._at_home(k, _asked, question) for k in range(len(self._parts))]
            while len(sums) > AT_ONCE:
                starts = range(0, len(sums), ARITY)
                sums = [delayed(tree_sum, pure=False)(sums[i : i + ARITY]) for i in starts]
        return tree_sum(self._results(self._begun(sums)))

    def _begun(self, tasks: list[Delayed]) -> list[Any]:
        """Send tasks off, all at once: a scheduler takes as long for one message as for another."""
        with telling():
            return self.client.compute(tasks, optimize_graph=False)

    def _shipped(self, ask: Ask) -> Any:
        """Return a question as it travels: a large one goes to each worker once."""
        size = _bytes(getattr(ask, "args", ()))
        self.sent += size * len(self._parts)
        return self.client.scatter(ask, broadcast=True, hash=False) if size > SMALL else ask

    def _submit(self, work: Callable[..., Any], *args: Any) -> Any:
        return self.client.submit(work, *args, pure=False)

    def _at_home(self, k: int, work: Callable[..., Any], question: Any) -> Delayed:
        """Return the task of asking a group: for who holds it, or any other where that is gone."""
        home = self._homes[k]
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with dask.annotate(**where):
            return delayed(work, pure=False)(self._parts[k], question)

    def _results(self, futures: list[Any]) -> list[Any]:
        """Return what tasks found; gives up where nobody is left to find it."""
        with telling(), self.client.as_current():
            moved = False
            while True:
                try:
                    wait(futures, timeout=LOOK)
                    found = self.client.sync(self._gathered, futures, callback_timeout=TRANSFER)
                except TimeoutError:
                    moved |= self.watch.moved()
                else:
                    break
        self.watch.answered()
        self.sent += _bytes(found)
        if moved and self._homes:
            self._find_homes()
        return found

    async def _gathered(self, futures: list[Any]) -> list[Any]:
        return await self.client.gather(futures, asynchronous=True)


def group_size(sizes: Sequence[int], slots: int, room: float = math.inf) -> int:
    """Return how many neighbours are held together: a power of two, a group or more a thread.

    A worker with ``room`` bytes puts groups on disk when it is short of memory: they are small.
    """
    for_all = len(sizes) / max(1, slots)
    by_size = min(LARGEST_GROUP, room / GROUPS_IN_ROOM) / max(1.0, float(np.mean(sizes)))
    return 1 << max(0, int(np.log2(max(1.0, min(for_all, by_size)))))


def _bytes(found: Any) -> int:
    if isinstance(found, tuple | list):
        return sum(map(_bytes, found))
    return int(getattr(found, "nbytes", 0))


def _looked(source: Source, look: Look) -> Delayed:
    if isinstance(source, Chunk):
        return delayed(_look_at, pure=False)(look, source.name, source.block)
    return delayed(look.facts, pure=False)(source)


def _look_at(look: Look, name: str, block: Block) -> tuple[Block, Facts]:
    return look.facts(Given(name, block))


def _facts(group: list[tuple[Block, Facts]]) -> list[Facts]:
    return [facts for _, facts in group]


def _made(group: list[tuple[Block, Facts]], recipes: Sequence[Recipe | None]) -> Group:
    pairs = zip(group, recipes, strict=True)
    return [None if recipe is None else recipe.part(block) for (block, _), recipe in pairs]


def _answers(group: Group, asks: Mapping[int, tuple[int, Ask]]) -> list[tuple[int, Any]]:
    return [(i, quietly(ask, group[at])) for i, (at, ask) in asks.items()]


def _asked(group: Group, ask: Ask) -> Any:
    return tree_sum(quietly(ask, part) for part in group)


@sizeof.register(Block)
def _size_of_block(block: Block) -> int:
    return block.bytes() + NUMBER * len(block)


@sizeof.register(Part)
def _size_of_part(part: Part) -> int:
    return _size_of_block(Block(part.model.A, part.model.b)) + NUMBER * part.model.N
