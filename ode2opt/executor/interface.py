"""Executors: who does the work of rows in parts, of training and of studies.

An executor does two things. :meth:`Executor.map` calls a function for each of some items.
:meth:`Executor.hold` loads items where they will be worked on and keeps them there, so that later
questions travel and the items do not. There are two: :class:`LocalExecutor` here, and
``ode2opt.integrations.dask.DaskExecutor``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Found = TypeVar("Found")
Work = Callable[[Any, Any], Any]
"""A function of what all calls share and of one item."""
Question = Callable[[Any], Any]
"""A function of one held item; one that goes to another process must be picklable."""


class Loaded(Protocol):
    """An item as it is held."""

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""

    def released(self) -> Self:
        """Return the item without its data, to be loaded again at each question, or itself."""


class Executor(ABC):
    """Does work that comes in independent pieces.

    Attributes:
        remote: whether other processes do it, so that it pays to have more work under way.
    """

    remote = False

    @abstractmethod
    def map(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        *,
        ordered: bool = True,
        threads: bool = False,
    ) -> Iterator[Found]:
        """Yield ``work(shared, item)`` for each item.

        Each result is computed by itself: it does not depend on who computes it, on processors of
        one kind.
        """

    @abstractmethod
    def hold(self, load: Callable[[Any], Loaded], sources: Sequence[Any]) -> HeldItems:
        """Load items where they are worked on, and keep those that fit into memory there."""


class HeldItems(ABC):
    """Items that stay where they were loaded."""

    @abstractmethod
    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Return the answers of some items."""

    @abstractmethod
    def change(self, changes: Mapping[int, Question]) -> None:
        """Replace items by what functions make of them."""

    @abstractmethod
    def sum(self, question: Question) -> Any:
        """Return the sum of all items' answers, in an order that depends on their number alone."""

    @abstractmethod
    def description(self) -> str:
        """Return who holds what, for a line of progress; it may be empty."""
