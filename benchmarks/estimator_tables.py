"""The tables of docs/measurements/estimators.md from the rows of benchmarks/estimators.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from peer_tables import LARGE, mean, shown
from recording import Table

NAMES = {
    "logistic": "LogisticRegression", "poisson": "PoissonRegressor", "svc": "LinearSVC",
    "ridge": "Ridge",
}  # fmt: skip


class Row(NamedTuple):
    """The seconds of one comparison; ``solver`` is the namesake's that was quickest.

    ``same`` is the ratio at the same number as ``tol``, which only ``cv`` has. ``theirs`` is None
    where no solver of the namesake reached the norm.
    """

    kind: str
    cell: str
    rows: int
    ours: float
    theirs: float | None
    solver: str
    norm: float
    same: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs


def side_by_side(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the page's tables: a row for each data set, and the means of each estimator."""
    seconds = Table("data", "rows", *NAMES.values(), quiet=True)
    found = {
        (row.cell, row.kind): None if row.ratio is None else f"{row.ratio:.2f} ({row.solver})"
        for row in rows
    }
    for cell, size in {row.cell: row.rows for row in rows if row.kind in NAMES}.items():
        seconds.add(cell, f"{size:,}", *(found.get((cell, kind), "") for kind in NAMES))
    summary = Table("estimator", f"{LARGE:,} rows or more", "all", "worst", "where", quiet=True)
    for kind, name in NAMES.items():
        summary.add(name, *_means([row for row in rows if row.kind == kind]))
    summary.add("all four", *_means([row for row in rows if row.kind in NAMES]))
    return {"seconds": seconds, "summary": summary}


def _means(rows: Sequence[Row]) -> list[str | None]:
    """Return the geometric means of the ratios, the worst and its data set."""
    known = {row: row.ratio for row in rows if row.ratio is not None}
    large = mean(ratio for row, ratio in known.items() if row.rows >= LARGE)
    worst = max(known, key=known.__getitem__, default=None)
    means = [None if x is None else shown(x) for x in (large, mean(known.values()))]
    return [*means, worst and shown(worst.ratio), worst and worst.cell]


def cross_validation(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the page's table of LogisticRegressionCV."""
    table = Table(
        "data", "rows", "at equal gradient norms", "at the same number as `tol`", quiet=True
    )
    for row in rows:
        if row.kind == "cv":
            ratios = [None if x is None else shown(x) for x in (row.ratio, row.same)]
            table.add(row.cell, f"{row.rows:,}", *ratios)
    return {"ratios": table}
