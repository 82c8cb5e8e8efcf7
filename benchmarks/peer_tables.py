"""The tables and summaries of the pages from the rows that benchmarks/contest.py measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from recording import Table

Row = dict[str, Any]
LEAD, WITHOUT = "auto", "auto-no-kernels"
USUAL = {"l2": 1e-4, "tol": 1e-6}  # whose milliseconds are shown
LARGE = 20_000  # rows


@dataclass(frozen=True)
class Summary:
    """A method's seconds over those of the fastest peer: geometric means and the worst.

    Attributes:
        large: the mean where there are ``LARGE`` rows or more; None where there are none.
        overall: the mean over all.
        worst: the largest ratio.
        where: data set, l2 and norm of the worst.
        cells: how many ratios there are.
        missed: where the method did not reach the norm though a peer did.
        alone: where no peer reached it in the time that it had.
    """

    large: float | None
    overall: float | None
    worst: float | None
    where: str
    cells: int
    missed: int
    alone: int

    def line(self, name: str) -> str:
        """Return a sentence.

        Args:
            name: of what this is the summary.
        """
        if not self.cells:
            return f"{name}: no ratios."
        return (
            f"{name} / fastest: {shown(self.large)} at {LARGE:,} rows or more, "
            f"{shown(self.overall)} over all {self.cells}, worst {shown(self.worst)} "
            f"({self.where}); missed {self.missed}, no other got there {self.alone}."
        )

    def cells_of_table(self) -> list[Any]:
        """Return what a table of summaries shows."""
        numbers = [None if x is None else shown(x) for x in (self.large, self.overall, self.worst)]
        return [*numbers, self.where, self.cells, self.missed, self.alone]


SUMMARY_COLUMNS = (
    "seconds over those of the fastest", f"{LARGE:,} rows or more", "all", "worst", "where",
    "ratios", "norm missed", "no other got there",
)  # fmt: skip


def summarised(rows: Sequence[Row], method: str, peers: Sequence[str]) -> Summary:
    """Return the means of a method's ratios and the worst.

    Args:
        rows: what was measured.
        method: ours.
        peers: the others.
    """
    ratios = [(ratio_of(row, method, peers), row) for row in rows]
    known = [(ratio, row) for ratio, row in ratios if ratio is not None]
    worst, where = max(known, key=lambda pair: pair[0], default=(None, None))
    return Summary(
        mean(ratio for ratio, row in known if row["rows"] >= LARGE),
        mean(ratio for ratio, _ in known),
        worst,
        f"{where['cell']}, l2 {_power(where['l2'])}, norm {_power(where['tol'])}" if where else "",
        len(known),
        sum(seconds_of(row, method) is None and fastest(row, peers) is not None for row in rows),
        sum(seconds_of(row, method) is not None and fastest(row, peers) is None for row in rows),
    )


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the tables of milliseconds, of ratios and of means.

    Args:
        rows: what was measured: cell, rows, columns, l2, tol, reading and the methods' seconds.
    """
    own = (LEAD, WITHOUT)
    peers = list(dict.fromkeys(name for row in rows for name in row["methods"] if name not in own))
    settings = sorted({(row["tol"], row["l2"]) for row in rows}, key=lambda s: (s[0], -s[1]))
    names = [f"norm {_power(tol)}, l2 {_power(l2)}" for tol, l2 in settings]
    ratios = Table("data", "rows x columns", *names, quiet=True)
    columns = (
        "auto: ms", "without kernels: ms", "fastest other: ms", "readings",
        "auto / fastest: mean", "worst",
    )  # fmt: skip
    milliseconds = Table("data", "rows x columns", *columns, quiet=True)
    for cell in dict.fromkeys(row["cell"] for row in rows):
        found = {(row["tol"], row["l2"]): row for row in rows if row["cell"] == cell}
        size = "{rows:,} x {columns:,}".format(**next(iter(found.values())))
        ratios.add(cell, size, *(_beside(found.get(setting), peers) for setting in settings))
        known = [ratio_of(row, LEAD, peers) for row in found.values()]
        known = [ratio for ratio in known if ratio is not None]
        usual = found.get((USUAL["tol"], USUAL["l2"]))
        middle = mean(known)
        last = (None, None) if middle is None else (shown(middle), shown(max(known)))
        milliseconds.add(cell, size, *_times(usual, peers), *last)
    summary = Table(*SUMMARY_COLUMNS, quiet=True)
    for name, method in (("with kernels", LEAD), ("without kernels", WITHOUT)):
        summary.add(name, *summarised(rows, method, peers).cells_of_table())
    return {"milliseconds": milliseconds, "ratios": ratios, "summary": summary}


def mean(ratios: Any) -> float | None:
    """Return the geometric mean of numbers; None where there are none.

    Args:
        ratios: positive numbers.
    """
    known = list(ratios)
    return math.exp(np.mean(np.log(known))) if known else None


def shown(ratio: float | None) -> str:
    """Return a ratio with two digits after the point, or a dash."""
    return "-" if ratio is None else f"{ratio:.2f}"


def _power(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-")


def seconds_of(row: Row, name: str) -> float | None:
    """Return a method's seconds; None where it failed or is not known."""
    return row["methods"].get(name, {}).get("seconds")


def fastest(row: Row, peers: Sequence[str]) -> tuple[float, str] | None:
    """Return seconds and name of the fastest peer that got there."""
    times = ((seconds_of(row, name), name) for name in peers)
    return min(((s, name) for s, name in times if s is not None), default=None)


def ratio_of(row: Row, method: str, peers: Sequence[str]) -> float | None:
    """Return a method's seconds over those of the fastest peer; None where one is missing."""
    own, best = seconds_of(row, method), fastest(row, peers)
    return None if own is None or best is None else own / best[0]


def _beside(row: Row | None, peers: Sequence[str]) -> str | None:
    """Return how the ratio of the lead to the fastest peer is shown."""
    if row is None or (best := fastest(row, peers)) is None:
        return None
    name = best[1].removeprefix("sklearn-")
    ratio = ratio_of(row, LEAD, peers)
    return f"missed ({name})" if ratio is None else f"{ratio:.2f} ({name})"


def _times(row: Row | None, peers: Sequence[str]) -> list[str | None]:
    """Return the milliseconds of the lead, without kernels, of the fastest peer; the readings."""
    if row is None:
        return [None] * 4
    own = [seconds_of(row, name) for name in (LEAD, WITHOUT)]
    best = fastest(row, peers)
    return [
        *(None if s is None else f"{1e3 * s:.3g}" for s in own),
        f"{1e3 * best[0]:.3g} ({best[1]})" if best else None,
        None if own[0] is None else f"{own[0] / row['reading']:.3g}",
    ]
