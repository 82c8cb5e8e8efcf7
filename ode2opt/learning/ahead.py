"""What is made before it is asked for, by a thread of its own."""

from __future__ import annotations

from collections.abc import Iterable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any


class Ahead:
    """The items of an iterable in their order; an error comes where the next item would."""

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
        """Return the next item when it is there; raises ``queue.Empty`` after so many seconds."""
        item, error = self._made.get(timeout=timeout)
        if error is not None:
            raise error
        return item

    def close(self) -> None:
        """Make no more than the item that is under way."""
        self._closed.set()
