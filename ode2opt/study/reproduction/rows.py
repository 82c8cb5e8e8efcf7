"""The rows of the study's tables, and what the paper prints for them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A method of the tables.

    Attributes:
        name: what the tables call it.
        key: what results call it.
        paper: the paper's name of the row, None where the paper has none.
    """

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
