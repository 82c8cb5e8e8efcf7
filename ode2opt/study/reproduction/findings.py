"""What a study has found so far, as tables, figures and the report ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import Made
from ode2opt.study.reproduction.plan import Effort, Item
from ode2opt.study.reproduction.rows import LEARNED, RIVALS, ROWS

QUANTITIES = {
    "measure": "log10 of the gradient norm at iteration 500",
    "complexity": "first iteration with gradient norm at most 3e-4",
}


@dataclass(frozen=True)
class Findings:
    """The results of a study by kind and cell.

    Attributes:
        store: where they are kept.
        effort: how much was done for each.
        datasets: the columns, those whose data is missing included.
        outputs: the tables and figures to make of them.
    """

    store: Store
    effort: Effort
    datasets: Sequence[str]
    outputs: Sequence[str]
    _seen: dict[Item, Made | None] = field(default_factory=dict)

    def get(self, kind: str, problem: str, dataset: str) -> Made | None:
        """Return a result; None where it is missing."""
        item = Item(kind, problem, dataset)
        if item not in self._seen:
            self._seen[item] = self.store.load(item)
        return self._seen[item]

    def measured(self, problem: str, dataset: str, part: str) -> dict[str, Any]:
        """Return statistics or outcomes of a cell, for the methods that have them."""
        parts = (self.get(kind, problem, dataset) for kind in ("classics", "learned"))
        return {key: value for made in parts if made for key, value in made[part].items()}

    def statistics(self, problem: str, dataset: str) -> dict[str, dict[str, Any]]:
        """Return the benchmark's numbers of a cell by method, in the order of the tables."""
        found = self.measured(problem, dataset, "statistics")
        return {row.key: found[row.key] for row in ROWS if row.key in found}

    def win_rate(
        self, problem: str, dataset: str, quantity: str, rivals: Sequence[str] = RIVALS
    ) -> float | None:
        """Return the share of test problems on which the learned method beats all others.

        It wins where its number is the smallest, ties excluded.
        """
        found = self.measured(problem, dataset, "outcomes")
        if LEARNED.key not in found or not set(rivals) <= set(found):
            return None
        numbers = [[one[quantity] for one in found[key]] for key in (LEARNED.key, *rivals)]
        wins = [own < min(others) for own, *others in zip(*numbers, strict=True)]
        return float(sum(wins) / len(wins))
