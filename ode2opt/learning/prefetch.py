"""Items made by a background thread before they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any


class Prefetch:
    """Iterates in a thread of its own and hands out the items in their order.

    Used by training on a cluster: the steps of later restarts are computed while an earlier
    restart is still under way.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._made: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._closed = Event()
        Thread(target=self._make, args=(items,), daemon=True).start()

    def _make(self, items: Iterable[Any]) -> None:
        try:
            for item in items:
                self._made.put((item, None))
                if self._closed.is_set():
                    return
        except BaseException as error:
            self._made.put((None, error))

    def next(self, timeout: float | None = None) -> Any:
        """Return the next item, waiting for it if need be."""
        item, error = self._made.get(timeout=timeout)
        if error is not None:
            raise error
        return item

    def close(self) -> None:
        """Stop the thread after the item that it is making."""
        self._closed.set()
