"""Keep what a benchmark prints in ``benchmarks/results``, with machine, versions and date.

    python benchmarks/trained.py --record      # then: make tables

A script prints its rows by a ``Table`` and hands all tables of its results file to ``record``.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ode2opt.base.machine import cpu_count, physical_memory

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "ode2opt",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "jax",
    "glum",
    "snapml",
    "sif2jax",
    "skglm",
    "celer",
    "osqp",
    "daqp",
    "piqp",
    "clarabel",
)
SHORT = re.compile(r'\[\s+((?:"(?:[^"\\]|\\.)*"|null|-?[\d.e+-]+)(?:,\s+|\s+(?=\])))+\]')
RECORD = "--record"


class Table:
    """Columns and rows; each row is printed as Markdown as soon as it is added.

    Args:
        columns: the names of the columns.
        quiet: print nothing.

    Examples:
        >>> table = Table("data", "seconds")
        | data | seconds |
        |---|---|
        >>> table.add("a5a", "0.1")
        | a5a | 0.1 |
    """

    def __init__(self, *columns: str, quiet: bool = False) -> None:
        self.columns, self.quiet = list(columns), quiet
        self.rows: list[list[Any]] = []
        self._print(columns)
        if not quiet:
            print("|---" * len(columns) + "|", flush=True)

    def add(self, *cells: object) -> None:
        """Add a row: texts, numbers, or None for what was not measured or not reached."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns.")
        self.rows.append(list(cells))
        self._print(cells)

    def _print(self, cells: Sequence[object]) -> None:
        if not self.quiet:
            print("| " + " | ".join("-" if c is None else str(c) for c in cells) + " |", flush=True)


def record(
    name: str,
    tables: Mapping[str, Table],
    folder: Path = RESULTS,
    instead: Mapping[str, Any] | None = None,
) -> Path:
    """Put tables into a results file, with where and when they were measured.

    Args:
        name: the file's name: what it is about and which code it measures stay. A new one needs
            these two in ``instead``.
        tables: all tables of the file, since one machine and one date stand for all of them.
        folder: where the file is.
        instead: what to say of command, machine, versions or date, where ``origin`` is not it;
            of a new file also what it is about, and its code.

    Returns:
        The path of the file.

    Raises:
        ValueError: a table of the file is missing, or one is not in the file.
    """
    path = folder / f"{name}.json"
    own = dict(instead or {})
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else own
    known = result.get("tables", tables)
    if set(tables) != set(known):
        raise ValueError(f"{path.name} has the tables {', '.join(known)}.")
    result |= origin() | own
    result["tables"] = {
        key: {"columns": tables[key].columns, "rows": tables[key].rows} for key in known
    }
    path.write_text(_one_row_a_line(result) + "\n", encoding="utf-8")
    print(f"written to {path.name}; `make tables` puts it into the pages")
    return path


def origin() -> dict[str, Any]:
    """Return what the program was, where it ran, with which versions, and when.

    Folders of this machine (absolute paths) are called DIR.
    """
    words = ["DIR" if Path(word).is_absolute() else word for word in sys.argv[1:] if word != RECORD]
    script = Path(sys.argv[0]).name
    return {
        "command": " ".join(["python", f"benchmarks/{script}", *words]),
        "machine": machine(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def machine() -> str:
    """Return processor, cores, memory and system."""
    return (
        f"{_processor()}, {cpu_count()} cores, {physical_memory() / 2**30:.0f} GB, "
        f"{platform.system()}"
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")  # Linux; elsewhere platform knows
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _one_row_a_line(result: Mapping[str, Any]) -> str:
    """Return JSON with a line for each row of a table, so that a change is easily read."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    return SHORT.sub(lambda match: _joined(match.group()), text)


def _joined(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False)
