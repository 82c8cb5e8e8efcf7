"""The tables of docs/measurements/clusters.md from what benchmarks/cost_model.py has measured."""

from __future__ import annotations

import math
from typing import Any

import cost_model
from recording import Table

Kept = dict[str, Any]
ADMM = "ADMM"


def tables(kept: Kept) -> dict[str, Table]:
    """Return all tables of the results file.

    Args:
        kept: the content of benchmarks/cost_model.json.
    """
    return {
        "constants": constants(kept["constants"]),
        "check": check(kept["check"]),
        "rounds": rounds(kept["rounds"]),
        "on-paper": on_paper(kept),
    }


def constants(c: dict[str, float]) -> Table:
    """Return the constants of the formula, named as in it."""
    nano = {"e, dense": "entry_dense", "e, sparse": "entry_sparse", "r": "row", "v": "number"}
    nano["q"] = "byte"
    shown = {name: f"{two(1e9 * c[key])} ns" for name, key in nano.items()}
    shown |= {"a": f"{1e3 * c['round']:.1f} ms", "w": f"{1e3 * c['worker']:.1f} ms"}
    shown |= {"p": f"{1e3 * c['part']:.2f} ms", "m": f"{c['contention']:.2f}"}
    table = Table(*shown, "spread of a round", quiet=True)
    table.add(*shown.values(), f"{c['spread']:.0%}")
    return table


def check(found: list[dict[str, Any]]) -> Table:
    """Return predictions beside measurements."""
    table = Table("rows x columns, workers, parts", "predicted", "measured", "ratio", quiet=True)
    for one in found:
        what = one["what"].replace(" workers", "").replace(" parts", "")
        what = what.replace(" a row", " entries a row").replace(" ms more", " ms of latency")
        times = (f"{1e3 * one[key]:.0f} ms" for key in ("predicted", "measured"))
        table.add(what, *times, f"{one['predicted'] / one['measured']:.2f}")
    return table


def rounds(counted: dict[str, Kept]) -> Table:
    """Return how many rounds each method takes, by the kind of rows."""
    table = Table("rows", "auto", "L-BFGS", "consensus ADMM", quiet=True)
    for kind, found in counted.items():
        own, admm = found["auto"], found[_most_blocks(found)]
        words = f"{own['rounds']}"
        if own["gradients"] > own["rounds"]:
            words += f" rounds, the work of {own['gradients']:.0f} gradients"
        norm = f"{admm['grad_norm']:.0e}".replace("e-0", "e-")
        each = f"{admm['rounds']} rounds of {admm['gradients']:.0f} gradients"
        verb = "there" if admm["reached"] else "not there"
        table.add(kind, words, str(found["L-BFGS"]["rounds"]), f"{verb} after {each}: {norm}")
    return table


def on_paper(kept: Kept) -> Table:
    """Return seconds and core hours of large problems by the formula."""
    names = ("auto", "L-BFGS", ADMM)
    head = f"{ADMM}, {cost_model.MOST} rounds"
    table = Table("problem", "workers", *names[:2], head, quiet=True)
    for kind in cost_model.KINDS:
        for workers in cost_model.FLEETS:
            first = workers == cost_model.FLEETS[0]
            cells = [_cell(kind, name, workers, kept) for name in names]
            cells[0] += " core hours" * (not table.rows)
            table.add(_problem(kind) if first else "", f"{workers:,}", *cells)
    return table


def _cell(kind: Any, name: str, workers: int, kept: Kept) -> str:
    took = cost_model.seconds_on(kind, name, workers, kept, cost_model.NETWORK["latency"])
    return f"{two(took)} s, {two(workers * took / 3600)}"


def _problem(kind: Any) -> str:
    large = kind.large
    columns = f"{large.columns:,}" if large.columns < 1e5 else power(large.columns)
    rest = "dense" if large.per_row is None else f"{large.per_row} entries a row"
    return f"{power(large.rows)} x {columns}, {rest}"


def _most_blocks(found: Kept) -> str:
    return max((key for key in found if key.startswith(ADMM)), key=len)


def power(number: float) -> str:
    """Return a round number as 1e9."""
    return f"{number:.0e}".replace("e+0", "e")


def two(number: float) -> str:
    """Return a positive number with two digits that count: 15,000, 42, 2.5, 0.74."""
    digits = 1 - math.floor(math.log10(number))
    return f"{round(number, digits):,.{max(0, digits)}f}"
