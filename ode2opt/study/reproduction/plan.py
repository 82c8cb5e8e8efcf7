"""What the study consists of: tables and figures, their rows, the work behind each, how much."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ode2opt.base.errors import InputError
from ode2opt.learning.flow.paper import EPOCHS, PROBLEMS_AN_EPOCH
from ode2opt.problems import DATASETS as KNOWN_DATASETS

PROBLEMS = ("logistic", "lpp")
DATASETS = ("mushrooms", "a5a", "w3a", "phishing", "covtype", "separable", "covtype20k")
"""In the order of the paper's columns; the last one stands in where the whole covtype is not."""
IF_AT_HAND = "covtype"
TOL, ITERATIONS, SEED = 3e-4, 500, 0
FOLLOWED = 1000  # iterations of an example: well past the horizon of any learned method
EARLY = 10  # of figure 4: training steps of ours, epochs of the paper's, behind the early line
LATE = 80  # the paper's epochs behind its last line
FOLLOWED_CELL = ("lpp", "a5a")  # of figure 4


class Item(NamedTuple):
    """A piece of work with a result of its own."""

    kind: str
    problem: str
    dataset: str

    def __str__(self) -> str:
        return f"{self.kind} of {self.problem} {self.dataset}"


@dataclass(frozen=True)
class Effort:
    """How much is done for each number."""

    instances: int = 100
    training: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = PROBLEMS_AN_EPOCH
    curvature_every: int = 1
    scatter_every: int = 30
    mark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def marked(self, text: str) -> str:
        """Return a caption or title with the mark of a quick study behind it."""
        return f"{text} [{self.mark}]" if self.mark else text

    def paper_options(self, item: Item) -> dict[str, Any]:
        """Return the options of the paper's protocol for a cell: 60 epochs, or 80 for figure 4."""
        epochs, epoch = EPOCHS, self.epoch
        if (item.problem, item.dataset) == FOLLOWED_CELL:
            epochs, epoch = LATE, PROBLEMS_AN_EPOCH
        steps, every = epochs * epoch, 10 * epoch  # validation changes nothing but what it tells
        named = {"protocol": "paper", "steps": steps, "validate_every": every, "seed": SEED}
        return named | dict(self.protocol)


FULL = Effort()
QUICK = Effort(
    instances=10,
    training={"steps": 40},
    epoch=1,
    curvature_every=5,
    scatter_every=60,
    mark="quick: 10 test problems, 40 training steps, 1 problem in most epochs",
)


def covtype_of(datasets: Iterable[str]) -> str:
    """Return which of the two covtypes a study shows where the paper shows one."""
    return IF_AT_HAND if IF_AT_HAND in datasets else "covtype20k"


Needs = Callable[[Sequence[str]], list[Item]]


def _cells(kinds: Sequence[str], problems: Sequence[str] = PROBLEMS) -> Needs:
    return lambda datasets: [Item(k, p, d) for k in kinds for p in problems for d in datasets]


def _some_cells(
    kind: str, problems: Sequence[str], chosen: Callable[[Sequence[str]], Sequence[str]]
) -> Needs:
    return lambda datasets: [Item(kind, p, d) for p in problems for d in chosen(datasets)]


BENCHMARKS = ("classics", "learned")
TRAININGS = ("training", "protocol")
"""Ours, and the paper's: both are kept as runs."""
OUTPUTS: dict[str, Needs] = {
    "table1": _cells(("data",), ("logistic",)),
    "table2": _cells(BENCHMARKS, ("logistic",)),
    "table3": _cells(BENCHMARKS, ("lpp",)),
    "table4": _cells(BENCHMARKS, ("logistic",)),
    "table5": _cells(BENCHMARKS, ("lpp",)),
    "fig2": _some_cells("smoothness", PROBLEMS, lambda _: ("separable", "mushrooms")),
    "fig3": _cells(TRAININGS),
    "fig4": lambda _: [Item("contraction", *FOLLOWED_CELL)],
    "fig5": _cells(("example",), ("logistic",)),
    "fig6": _cells(("example",), ("lpp",)),
    "fig7": _some_cells("example", PROBLEMS, lambda found: ("phishing", covtype_of(found))),
}
"""Every table and figure by name, with the work that it shows."""

NEEDS: dict[str, Sequence[str]] = {
    "learned": ("training",),
    "example": ("training",),
    "contraction": TRAININGS,
}
"""Kinds of work that need methods learned in their cell, and by which training."""


def needs_of(item: Item) -> list[Item]:
    """Return the trainings of an item's cell that it needs."""
    return [item._replace(kind=kind) for kind in NEEDS.get(item.kind, ())]


def chosen_outputs(only: str | None) -> tuple[str, ...]:
    """Return the tables and figures to make, in the paper's order."""
    if only is None:
        return tuple(OUTPUTS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in OUTPUTS:
            known = ", ".join(OUTPUTS)
            raise InputError(f"Unknown table or figure '{name}': choose from {known}.")
    if not names:
        raise InputError(f"--only names nothing: choose from {', '.join(OUTPUTS)}.")
    return tuple(name for name in OUTPUTS if name in names)


def datasets_of_study() -> tuple[str, ...]:
    """Return the datasets that make the columns; covtype only if it is on this machine."""
    return tuple(
        name
        for name in DATASETS
        if name != IF_AT_HAND or KNOWN_DATASETS[name].place() != "to be fetched"
    )


def work_behind(outputs: Iterable[str], datasets: Sequence[str]) -> list[Item]:
    """Return all items that outputs need, each once and after what it needs itself."""
    shown = [item for output in outputs for item in OUTPUTS[output](datasets)]
    first = [needed for item in shown for needed in needs_of(item)]
    return list(dict.fromkeys(first + shown))


# The rows of the tables ---------------------------------------------------------------------------


class Row(NamedTuple):
    """A method of the tables."""

    name: str
    key: str
    paper: str | None = None


LEARNED = Row("EIGAC", "eigac-learned", "EIGAC")
GUARDED = Row("EIGAC, guarded", "eigac-guarded")
CLASSICS = (
    Row("GD", "gd", "GD"),
    Row("NAG", "nag", "NAG"),
    Row("IGAHD", "igahd", "IGAHD"),
    Row("EIGAC(default), C = 1", "eigac-c1", "EIGAC(default)"),
    Row("EIGAC(default), C = 4", "eigac-c4"),
    Row("L-BFGS", "lbfgs"),
)
DRAWN = (*CLASSICS, LEARNED)
"""What the figures show."""
ROWS = (*DRAWN, GUARDED)
"""What the tables show."""
RIVALS = tuple(row.key for row in CLASSICS if row.paper)
"""What the paper's win rate compares the learned method with."""


@cache
def printed() -> dict[str, Any]:
    """Return the paper's tables."""
    tables: dict[str, Any] = json.loads((files("ode2opt.study") / "paper_tables.json").read_text())
    return tables


def printed_cell(quantity: str, problem: str, row: Row, dataset: str) -> tuple[float, float] | None:
    """Return mean and standard deviation as the paper prints them."""
    cell = printed()[quantity].get(problem, {}).get(row.paper, {}).get(dataset)
    return None if cell is None else (cell[0], cell[1])
