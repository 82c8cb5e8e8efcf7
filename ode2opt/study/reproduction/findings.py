"""What a study has found so far, and one cell of its tables compared with the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import Made
from ode2opt.study.reproduction.plan import (
    ITERATIONS,
    LEARNED,
    RIVALS,
    ROWS,
    Effort,
    Item,
    Row,
    printed_cell,
)

QUANTITIES = {
    "measure": "log10 of the gradient norm at iteration 500",
    "complexity": "first iteration with gradient norm at most 3e-4",
}


@dataclass(frozen=True)
class Findings:
    """The results of a study by kind and cell."""

    store: Store
    effort: Effort
    datasets: Sequence[str]
    outputs: Sequence[str]
    _seen: dict[Item, Made | None] = field(default_factory=dict)

    def get(self, kind: str, problem: str, dataset: str) -> Made | None:
        """Return a result; None if it is missing."""
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


MISSING = "missing"
NOTHING = "-"
RECORDED = (
    "complexity_max", "oracle_calls_mean", "seconds_mean", "reached", "diverged", "handovers",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A method on a problem's test problems."""

    quantity: str
    total: int
    found: dict[str, Any] | None
    outcomes: list[dict[str, Any]]
    paper: tuple[float, float] | None

    @classmethod
    def of(
        cls, findings: Findings, problem: str, quantity: str, row: Row, dataset: str
    ) -> Comparison:
        """Return the cell of a row and a column."""
        return cls(
            quantity,
            findings.effort.instances,
            findings.statistics(problem, dataset).get(row.key),
            findings.measured(problem, dataset, "outcomes").get(row.key, []),
            printed_cell(quantity, problem, row, dataset),
        )

    @property
    def diverged(self) -> int:
        """On how many problems there is no measure; the mean is over the others."""
        return self.found["diverged"] if self.found and self.quantity == "measure" else 0

    @property
    def censored(self) -> bool:
        """Whether some problems were given up before the tolerance was reached."""
        return self.found is not None and self.found["reached"] < self.total

    @property
    def mean(self) -> float | None:
        """Our mean; None if all diverged or nothing was measured."""
        if self.found is None or self.diverged == self.total:
            return None
        if self.diverged:
            return float(np.mean([o["measure"] for o in self.outcomes if not o["diverged"]]))
        return float(self.found[f"{self.quantity}_mean"])

    def ours(self) -> str:
        """Return our number: what is not wholly measured is marked."""
        if self.found is None:
            return MISSING
        mean, spread = self.mean, self.found[f"{self.quantity}_std"]
        if mean is None:
            return f"diverged ({self.diverged}/{self.total})"
        if self.diverged:
            return f"{mean:.2f} ({self.diverged}/{self.total} diverged)"
        if self.quantity == "measure":
            return f"{mean:.2f} ({spread:.3f})"
        if self.censored:
            return f"> {mean:.1f} ({self.found['reached']}/{self.total})"
        return f"{mean:.1f} ({spread:.1f})"

    def theirs(self) -> str:
        """Return the paper's number."""
        if self.paper is None:
            return NOTHING
        if self._cap_printed():
            return f"{ITERATIONS} (cap)"
        return f"{self.paper[0]:.2f} ({self.paper[1]:.3f})"

    def difference(self) -> str:
        """Return ours minus the paper's, marked where either is a bound only."""
        if self.mean is None or self.paper is None:
            return NOTHING
        difference = round(self.mean - self.paper[0], 2) + 0.0  # no negative zero
        if self.quantity == "measure":
            return f"{difference:+.2f}"
        return f"{difference:+.1f}{' (capped)' if self.censored or self._cap_printed() else ''}"

    def price(self, name: str, factor: float = 1.0) -> str:
        """Return what it took to reach the tolerance, as text; ">" where some problems missed
        it.
        """
        if self.found is None:
            return MISSING
        return f"{'> ' if self.censored else ''}{factor * self.found[name]:.1f}"

    def record(self) -> dict[str, Any]:
        """Return the numbers for the CSV file."""
        paper = self.paper or (None, None)
        known = self.found is not None and not self.diverged
        difference = None if self.mean is None or paper[0] is None else self.mean - paper[0]
        return {
            "missing": self.found is None,
            "instances": self.total,
            f"{self.quantity}_mean": self.mean,
            f"{self.quantity}_std": self.found[f"{self.quantity}_std"]
            if self.found and known
            else None,
            "paper_mean": paper[0],
            "paper_std": paper[1],
            "difference": difference,
        } | {name: self.found and self.found[name] for name in RECORDED}

    def _cap_printed(self) -> bool:
        return (
            self.quantity == "complexity" and self.paper is not None and self.paper[0] == ITERATIONS
        )
