"""Groups of neighbouring items that a worker of a Dask cluster holds together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from distributed import get_worker

from ode2opt.executor.interface import Loaded, Question
from ode2opt.executor.local import MEMORY_SHARE, fitting
from ode2opt.problems.parts.blocks import RowsInMemory

LARGEST_GROUP = 1 << 27  # bytes of items that are held together
GROUPS_IN_MEMORY = 16  # of a worker, at least
GROUPS = 4  # for each thread, if there are items enough: others share those of a lost worker


def group_size(sizes: Sequence[int], slots: int, memory: float = math.inf) -> int:
    """Return how many neighbours are held together: a power of two, some groups for each thread."""
    for_all = len(sizes) / (GROUPS * max(1, slots))
    by_size = min(LARGEST_GROUP, memory / GROUPS_IN_MEMORY) / max(1.0, float(np.mean(sizes)))
    return 1 << max(0, int(np.log2(max(1.0, min(for_all, by_size)))))


def spread(groups: int, slots: Sequence[str]) -> list[str | None]:
    """Return which worker loads each group: neighbours the same one, and all about as many."""
    return [slots[len(slots) * k // groups] if slots else None for k in range(groups)]


@dataclass(frozen=True)
class ItemGroup:
    """Neighbouring items as a worker holds them."""

    first: int
    items: list[Any]

    def answers(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Return the answers of some items."""
        items = {i: self.items[i - self.first] for i in questions}
        return {i: None if one is None else questions[i](one) for i, one in items.items()}

    def changed(self, changes: Mapping[int, Question]) -> ItemGroup:
        """Return what functions make of the items; items without one become None."""
        numbered = enumerate(self.items, self.first)
        return ItemGroup(
            self.first, [changes[i](one) if i in changes else None for i, one in numbered]
        )


@sizeof.register(ItemGroup)
def _size_of_group(group: ItemGroup) -> int:
    return sum(item.bytes for item in group.items if item is not None)


def load_group(load: Callable[[Any], Loaded], first: int, sources: Sequence[Any]) -> ItemGroup:
    """Load a group on this worker; items that do not fit into its memory are released."""
    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    room = math.inf if limit is None else MEMORY_SHARE * limit - worker.state.nbytes
    return ItemGroup(first, fitting(map(load, sources), room)[0])


def load_blocks(
    load: Callable[[Any], Loaded], first: int, names: list[str], blocks: list[Any]
) -> ItemGroup:
    """Load a group of rows that Dask has computed."""
    return load_group(load, first, list(map(RowsInMemory, names, blocks)))
