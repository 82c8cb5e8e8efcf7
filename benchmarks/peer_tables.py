"""The tables of docs/measurements/solving.md from the rows that benchmarks/judging.py measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from recording import Table

Row = dict[str, Any]
USUAL = {"l2": 1e-4, "tol": 1e-6}  # whose milliseconds are shown


def tables(rows: Sequence[Row], lead: str, peers: Sequence[str]) -> dict[str, Table]:
    """Return the tables of milliseconds and of ratios, a row for each data set.

    Args:
        rows: what was measured: cell, rows, columns, l2, tol and the methods' seconds.
        lead: our method.
        peers: the other methods; those without a result are left out.
    """
    settings = sorted({(row["tol"], row["l2"]) for row in rows}, key=lambda s: (s[0], -s[1]))
    names = [f"norm {tol:.0e}, l2 {l2:.0e}".replace("e-0", "e-") for tol, l2 in settings]
    ratios = Table("data", "rows x columns", *names, quiet=True)
    columns = ("auto: ms", "fastest other: ms", "auto / fastest: mean", "worst")
    milliseconds = Table("data", "rows x columns", *columns, quiet=True)
    for cell in dict.fromkeys(row["cell"] for row in rows):
        own = {(row["tol"], row["l2"]): row for row in rows if row["cell"] == cell}
        size = "{rows:,} x {columns:,}".format(**next(iter(own.values())))
        found = [_beside(own.get(setting), lead, peers) for setting in settings]
        ratios.add(cell, size, *(text for _, text in found))
        known = [ratio for ratio, _ in found if ratio is not None]
        if known:
            usual = own.get((USUAL["tol"], USUAL["l2"]))
            times = _times(usual, lead, peers)
            milliseconds.add(cell, size, *times, f"{_mean(known):.2f}", f"{max(known):.2f}")
    return {"milliseconds": milliseconds, "ratios": ratios}


def means(rows: Sequence[Row], lead: str, peers: Sequence[str]) -> dict[str, Table]:
    """Return a table of one row: the geometric mean of the ratios, a column for each data set."""
    found: dict[str, list[float]] = {}
    for row in rows:
        ratio = _beside(row, lead, peers)[0]
        found.setdefault(row["cell"], []).extend([] if ratio is None else [ratio])
    known = {cell: ratios for cell, ratios in found.items() if ratios}
    table = Table("data", *known, quiet=True)
    table.add("auto / fastest", *(f"{_mean(ratios):.2f}" for ratios in known.values()))
    return {"means": table}


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(np.mean(np.log(ratios)))


def _fastest(row: Row, peers: Sequence[str]) -> tuple[float, str] | None:
    """Return seconds and name of the fastest peer that got there."""
    times = ((row["methods"].get(name, {}).get("seconds"), name) for name in peers)
    return min(((s, name) for s, name in times if s is not None), default=None)


def _beside(row: Row | None, lead: str, peers: Sequence[str]) -> tuple[float | None, str | None]:
    """Return the ratio of the lead to the fastest peer, and how it is shown."""
    best = row and _fastest(row, peers)
    own = row and row["methods"].get(lead, {}).get("seconds")
    if not best or own is None:
        return None, None
    return own / best[0], f"{own / best[0]:.2f} ({best[1].removeprefix('sklearn-')})"


def _times(row: Row | None, lead: str, peers: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the milliseconds of the lead and of the fastest peer."""
    own = row and row["methods"].get(lead, {}).get("seconds")
    best = row and _fastest(row, peers)
    return (
        None if own is None else f"{1e3 * own:.3g}",
        f"{1e3 * best[0]:.3g} ({best[1]})" if best else None,
    )
