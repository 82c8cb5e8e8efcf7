"""Parts that are held in memory, and those that are read again whenever they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems.parts.blocks import Block, Facts, Given, Part, Recipe, Source

Ask = Callable[[Part], Any]
"""A question to a part; one that travels must be picklable."""
HELD = 0.5  # of the memory, for parts that are not read again


@dataclass(frozen=True)
class Rows:
    """The rows of some parts, by their numbers: as many as there is room for.

    Attributes:
        sources: of the others.
        facts: of all, in order.
    """

    blocks: dict[int, Block]
    sources: dict[int, Source]
    facts: list[Facts]

    @classmethod
    def of(
        cls,
        numbers: Iterable[int],
        sources: Sequence[Source],
        looked: Iterable[tuple[Block, Facts]],
        room: float,
    ) -> Rows:
        """Keep what fits into ``room`` bytes; what is in memory already is kept in any case."""
        rows = cls({}, {}, [])
        for i, source, (block, facts) in zip(numbers, sources, looked, strict=True):
            rows.facts.append(facts)
            if isinstance(source, Given) or facts.bytes <= room:
                room -= facts.bytes
                rows.blocks[i] = block
            else:
                rows.sources[i] = source
        return rows

    def held(self, recipes: Mapping[int, Recipe]) -> Held:
        """Return the parts, and let go of the rows; those without rows have no recipe."""
        numbers = [*self.blocks, *self.sources]
        made = {i: recipes[i].part(self.blocks.pop(i)) for i in list(self.blocks) if i in recipes}
        again = {i: (source, recipes[i]) for i, source in self.sources.items() if i in recipes}
        return Held(sorted(numbers), made, again)


@dataclass(frozen=True)
class Held:
    """Some parts: those that are ``made``, and how those that are not are made ``again``."""

    numbers: list[int]
    made: dict[int, Part]
    again: dict[int, tuple[Source, Recipe]]

    def ask(self, i: int, ask: Ask) -> Any:
        """Ask a part; one without rows answers None. An overflow is an answer, as in a solve."""
        part = self._part(i)
        if part is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return ask(part)

    def _part(self, i: int) -> Part | None:
        if i not in self.again:
            return self.made.get(i)
        source, recipe = self.again[i]
        try:
            return recipe.part(source.read())
        except OSError as error:
            raise InputError(f"{source.name} could not be read again: {error}") from None
