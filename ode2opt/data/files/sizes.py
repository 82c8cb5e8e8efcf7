"""How many columns a file may have."""

from __future__ import annotations

from pathlib import Path

from ode2opt.base.errors import InputError

ALWAYS_ALLOWED_COLUMNS = 2**21  # a larger file may have as many as it has bytes


def check_columns(count: int, path: Path) -> None:
    """Refuse more columns than a file of this size can mean: each costs memory in a solve."""
    if count > max(ALWAYS_ALLOWED_COLUMNS, path.stat().st_size):
        raise InputError(f"{path} has an index of {count:,}: more columns than can be meant.")
