"""Workers that help with training: problems of a batch, restarts, solves.

Everything travels as bytes that are made and read in double precision: read elsewhere, JAX would
give its arrays single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import uuid4

import dask
from distributed.protocol.pickle import dumps, loads

from ode2opt.dynamics.jaxed import double
from ode2opt.integrations.dask.lost import Watch, telling
from ode2opt.learning.helpers import Alone, Found, Item, Shared
from ode2opt.threads import one_thread

KEPT = 8  # shared things that a worker has unpacked


class Workers:
    """The workers that a client knows, as helpers of ``ode2opt.learn``.

    What is learned is, bit for bit, what this process would have learned alone, where workers have
    processors of its kind. A worker that dies is replaced by the others.

    Args:
        client: a ``distributed.Client``.

    Examples:
        >>> with opened("local", workers=1) as cluster:  # or the address of a scheduler
        ...     learn(family, target="sequence", steps=0, helpers=Workers(cluster.client))
    """

    elsewhere = True

    def __init__(self, client: Any) -> None:
        self.client, self.watch = client, Watch(client)
        self._sent: dict[int, tuple[Any, Any]] = {}

    def __reduce__(self) -> Any:
        return Alone, ()  # a worker has nobody to help it

    def map(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        /,
        *,
        compiled: bool = False,
    ) -> list[Found]:
        """Return the answers of workers, in the order of the items."""
        with telling():
            parcel = self._parcel(shared)
            pieces = [
                self.client.submit(_done, work, parcel, packed(item), pure=False) for item in items
            ]
        return [unpacked(answer) for answer in self.watch.results(pieces)]

    def _parcel(self, shared: Any) -> Any:
        """Return what all pieces share as it is on the workers, sent once.

        It is a task, not mere data: where its holders die it is made again.
        """
        if id(shared) not in self._sent:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                parcel = self.client.submit(Parcel, uuid4().hex, packed(shared), pure=False)
            self._sent[id(shared)] = shared, parcel  # which keeps the id from being used again
        return self._sent[id(shared)][1]


class Parcel(NamedTuple):
    """Something packed, under a name of its own."""

    name: str
    content: bytes


def packed(content: Any) -> bytes:
    """Return something as bytes."""
    return dumps(content)


@double
def unpacked(content: bytes) -> Any:
    """Return what was packed, in double precision."""
    return loads(content)


class _Opened:
    """A parcel that is known by its name."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel

    def __hash__(self) -> int:
        return hash(self.parcel.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opened) and other.parcel.name == self.parcel.name


@lru_cache(maxsize=KEPT)
def _content(opened: _Opened) -> Any:
    return unpacked(opened.parcel.content)


def _done(work: Callable[[Any, Any], Any], parcel: Parcel, item: bytes) -> bytes:
    with one_thread():  # as it is in the process that trains
        return packed(work(_content(_Opened(parcel)), unpacked(item)))
