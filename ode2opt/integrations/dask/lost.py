"""Workers and schedulers that are gone: how long one waits for them, and what is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from ode2opt.errors import WorkersLostError

Found = TypeVar("Found")
LOOK = 1.0  # seconds between two looks at the workers
PATIENCE = 20.0  # seconds without a worker after which they are given up


class Watch:
    """Keeps an eye on the workers that a client knows."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._known = set(self.workers())
        self.answered()

    def workers(self) -> Mapping[str, Any]:
        """Return what is known of each worker, by address."""
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def answered(self) -> None:
        """Note that workers are there: they have answered."""
        self._seen = time.monotonic()

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """Return what tasks found, in their order; gives up where nobody is left to find it.

        Where several went wrong, the first of them is told, whoever was the quickest.
        """

        async def gathered() -> list[Any]:
            try:
                return await self.client.gather(list(futures))
            except Exception:
                for future in futures:
                    await future
                raise

        return self.outcome(gathered())

    def outcome(self, work: Coroutine[Any, Any, Found]) -> Found:
        """Return what the client's work comes to; gives up where nobody is left to do it."""
        begun = asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)
        try:
            with telling():
                while True:
                    try:
                        found = begun.result(timeout=LOOK)
                    except TimeoutError:
                        if begun.done():
                            raise
                        self.moved()
                    else:
                        self.answered()
                        return found
        finally:
            begun.cancel()

    def moved(self) -> bool:
        """Whether workers have come or gone; where all are gone for long, they are given up."""
        workers = set(self.workers()) if self.client.status == "running" else set()
        if workers:
            self.answered()
        elif time.monotonic() - self._seen > PATIENCE:
            raise WorkersLostError(f"The cluster has had no worker for {PATIENCE:g} seconds.")
        before, self._known = self._known, workers
        return workers != before


@contextmanager
def telling() -> Iterator[None]:
    """Say in a sentence how a cluster got lost."""
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
