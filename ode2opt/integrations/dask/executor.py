"""The workers of a Dask cluster as an executor.

What :meth:`DaskExecutor.map` sends travels as bytes that are made and read in JAX's double
precision where JAX is used: read elsewhere, JAX would give its arrays single precision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
from distributed.protocol.pickle import dumps, loads

from ode2opt.base.errors import InputError
from ode2opt.base.precision import jax_precision
from ode2opt.base.threads import one_thread
from ode2opt.executor import Executor, LocalExecutor
from ode2opt.executor.interface import Loaded, Work
from ode2opt.integrations.dask.workers import ClientWorkers, DaskItems, lost_in_words

UNPACKED = 8  # shared things that a worker keeps unpacked
TASKS = 2  # under way for each thread of the workers


class DaskExecutor(Executor):
    """The workers that a Dask client knows.

    Results are, bit for bit, those of this process where workers have processors of its kind. If a
    worker dies, others do its work again.

    Examples:
        >>> with open_executor("local", workers=1) as executor:  # or the address of a scheduler
        ...     learn(family, target="sequence", steps=0, executor=executor)
    """

    remote = True

    def __init__(self, client: Any) -> None:
        self.client, self.workers = client, ClientWorkers(client)
        self._sent: dict[int, tuple[Any, Any]] = {}

    def __reduce__(self) -> Any:
        return LocalExecutor, ()  # on a worker there is that worker alone

    def map(
        self, work: Work, shared: Any, items: Sequence[Any], *, ordered: bool = True,
        threads: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        """Yield ``work(shared, item)`` for each item, by tasks: see ``Executor.map``."""

        parcel = self._parcel(shared)
        slots = sum(worker["nthreads"] for worker in self.workers.known().values())
        tasks = (
            self.client.submit(_done, work, parcel, Packed.of(item), pure=False) for item in items
        )
        for found in self.workers.results(tasks, TASKS * max(1, slots), ordered):
            yield found.content()

    def hold(self, load: Callable[[Any], Loaded], sources: Sequence[Any]) -> DaskItems:
        """Have items loaded and held by workers: see ``Executor.hold``."""
        return DaskItems(self.workers, load, sources)

    def check_folder(self, folder: Path) -> None:
        """Refuse workers that do not see a folder."""
        with lost_in_words():
            seen = self.client.run(Path.is_dir, folder)
        for address, sees in seen.items():
            if not sees:
                raise InputError(
                    f"The worker at {address} does not see {folder}: name a folder on a file "
                    f"system that all workers share."
                )

    def _parcel(self, shared: Any) -> Any:
        """Return the task that holds what all calls share; each object is sent once.

        It is a task, not mere data: where its holders die, Dask makes it again.
        """
        if id(shared) not in self._sent:
            with (
                lost_in_words(),
                dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}),
            ):
                parcel = self.client.submit(
                    replace, Packed.of(shared), name=uuid4().hex, pure=False
                )
            self._sent[id(shared)] = shared, parcel  # which keeps the id from being used again
        return self._sent[id(shared)][1]


@dataclass(frozen=True)
class Packed:
    """Something as bytes."""

    pickled: bytes = field(compare=False)
    jax: bool = field(compare=False)
    name: str = ""

    @classmethod
    def of(cls, content: Any) -> Packed:
        """Pack something."""
        return cls(dumps(content), "jax" in sys.modules)

    def content(self) -> Any:
        """Return what was packed."""
        double = self.jax and find_spec("jax") is not None
        precision: AbstractContextManager[None] = jax_precision() if double else nullcontext()
        with precision:
            return loads(self.pickled)


@lru_cache(maxsize=UNPACKED)
def _unpacked(parcel: Packed) -> Any:
    return parcel.content()


def _done(work: Work, parcel: Packed, item: Packed) -> Packed:
    """Do the work on a worker, whose linear algebra has one thread, as here."""
    with one_thread():
        return Packed.of(work(_unpacked(parcel), item.content()))
