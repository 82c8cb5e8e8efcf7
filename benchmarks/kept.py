"""Rows that a benchmark has measured, kept in a file, so that an interrupted run can go on.

A file belongs to a machine, to versions, to threads and to the code of the package. Rows of another
one are not mixed with new ones: they are measured again. Where only the code of the package has
changed, the old rows still tell which peers are far behind, and by which settings.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import recording
from alone import THREADS

import ode2opt

Row = dict[str, Any]


@cache
def code_of_the_package() -> str:
    """Return a hash of the package's Python files."""
    folder = Path(ode2opt.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def circumstances() -> dict[str, Any]:
    """Return what must be the same for two measurements to stand in one table."""
    return {
        "machine": recording.machine(),
        "versions": recording.versions(),
        "threads": THREADS,
        "code": code_of_the_package(),
    }


class KeptRows:
    """The rows measured so far, in a JSON file where one is named.

    Args:
        path: the file; None keeps nothing.
        now: the circumstances of this run, by default as they are.
    """

    def __init__(self, path: Path | None, now: Mapping[str, Any] | None = None) -> None:
        self.path, self.now = path, dict(circumstances() if now is None else now)
        self.rows: list[Row] = []
        self.before: list[Row] = []  # rows that were measured with other code of the package
        self.loads: list[float] = []
        if path is not None and path.exists():
            kept = read(path)
            then = kept.get("circumstances", {})
            if then == self.now:
                self.rows, self.loads = kept["rows"], kept["loads"]
            elif {**then, "code": ""} == {**self.now, "code": ""}:
                self.before = kept["rows"]
                print(f"{path.name} is of other code: measured again.")
            else:
                print(f"{path.name} is of other versions or another machine: measured again.")

    def row(self, **place: Any) -> Row:
        """Return the row of a place, a new one where there is none.

        Args:
            place: the fields that tell rows apart.
        """
        found = _find(self.rows, place)
        if found is None:
            found = dict(place)
            self.rows.append(found)
        return found

    def earlier(self, **place: Any) -> Row | None:
        """Return the row of a place as it was measured with other code of the package.

        Args:
            place: the fields that tell rows apart.
        """
        return _find(self.before, place)

    def save(self, complete: bool = False) -> None:
        """Write the file anew, whole or not at all.

        Args:
            complete: nothing more is to be measured.
        """
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        if not complete and hasattr(os, "getloadavg"):  # Windows has none
            self.loads.append(round(os.getloadavg()[0], 1))
        whole = {"circumstances": self.now, "date": date, "complete": complete}
        whole |= {"loads": self.loads, "rows": self.rows}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        new.replace(self.path)


def _find(rows: Sequence[Row], place: Mapping[str, Any]) -> Row | None:
    return next((row for row in rows if place.items() <= row.items()), None)


def read(path: Path) -> dict[str, Any]:
    """Return what a file holds; nothing, and a sentence, where it is damaged.

    Args:
        path: the file.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(found[name], list) for name in ("rows", "loads")):
            return found
    except (ValueError, KeyError, TypeError):
        pass
    print(f"{path.name} is damaged.")
    return {}
