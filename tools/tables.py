"""Write the tables of the pages from ``benchmarks/results/*.json``: ``make tables``.

    python tools/tables.py            # write them
    python tools/tables.py --check    # exit with 1 and name the pages that do not agree

A page says where a table goes. It may choose rows, by their first cells, and columns, by name:

    <!-- table peers/seconds; rows: a5a, w3a.t; columns: data, auto: ms -->
    <!-- end -->

    <!-- origin peers -->
    <!-- end -->

The origin is one line: the command, the machine, the versions and the date of the measurement.
Each page with a table of a file has its origin. What stands between the marks is overwritten.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = "benchmarks/results"
MARK = re.compile(r"<!-- (table|origin) (.*?) -->\n.*?<!-- end -->", re.DOTALL)
ORIGIN = ("command", "machine", "versions", "date")
FIELDS = {"about", *ORIGIN, "code", "tables"}
UNKNOWN = "not recorded"

Result = dict[str, Any]


class TableError(Exception):
    """A results file or a mark that cannot be read; the sentence says which and why."""


def read_results(folder: Path) -> dict[str, Result]:
    """Return the results files of a folder by name, each with all of its fields."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        missing = FIELDS - set(result)
        if missing:
            raise TableError(f"{path.name} has no field {', '.join(sorted(missing))}.")
        for name, table in result["tables"].items():
            if any(len(row) != len(table["columns"]) for row in table["rows"]):
                raise TableError(f"{path.name}: a row of {name} is not as long as its columns.")
        found[path.stem] = result
    return found


def written(page: str, results: dict[str, Result]) -> str:
    """Return the text of a page with its tables and origins made anew."""

    def fill(match: re.Match[str]) -> str:
        kind, words = match.groups()
        lines = _table(words, results) if kind == "table" else _origin(words, results)
        return "\n".join([f"<!-- {kind} {words} -->", "", *lines, "", "<!-- end -->"])

    marks = MARK.findall(page)
    used = {words.partition("/")[0] for kind, words in marks if kind == "table"}
    told = {words for kind, words in marks if kind == "origin"}
    if used - told:
        raise TableError(f"There is no mark <!-- origin {min(used - told)} -->.")
    return MARK.sub(fill, page)


def _table(words: str, results: dict[str, Result]) -> list[str]:
    """Return the lines of a table: "FILE/TABLE", and the rows and columns that are chosen."""
    place, *choices = words.split("; ")
    file, _, name = place.partition("/")
    try:
        table = results[file]["tables"][name]
    except KeyError:
        raise TableError(f"There is no table {place} in {RESULTS}.") from None
    chosen = dict(choice.split(": ", 1) for choice in choices)
    if chosen.keys() - {"rows", "columns"}:
        raise TableError(f"{place}: choose rows and columns, not {', '.join(chosen)}.")
    columns = _places(table["columns"], chosen.get("columns"), place)
    rows = _places([row[0] for row in table["rows"]], chosen.get("rows"), place)
    shown = [[_cell(table["rows"][i][j]) for j in columns] for i in rows]
    header = [_cell(table["columns"][j]) for j in columns]
    return [_line(header), "|---" * len(header) + "|", *map(_line, shown)]


def _places(names: Sequence[str], wanted: str | None, place: str) -> list[int]:
    """Return where the wanted names are, in the order wanted; all where nothing is said."""
    if wanted is None:
        return list(range(len(names)))
    found = []
    for name in wanted.split(", "):
        if name not in names:
            raise TableError(f"{place} has no row or column {name!r}.")
        found.append(names.index(name))
    return found


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _origin(file: str, results: dict[str, Result]) -> list[str]:
    """Return the line that says where numbers come from."""
    if file not in results:
        raise TableError(f"There is no file {file}.json in {RESULTS}.")
    command, machine, versions, date = (results[file][key] for key in ORIGIN)
    if isinstance(versions, dict):
        versions = ", ".join(f"{name} {number}" for name, number in versions.items())
    ran = "" if command == UNKNOWN else f"`{command}`. "
    return [f"*{ran}Machine: {machine}. Versions: {versions}. Date: {date}.*"]


def pages(root: Path) -> list[Path]:
    """Return the pages that may hold tables."""
    return sorted([root / "README.md", *root.glob("docs/**/*.md")])


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write the pages, or check them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Tables of the pages from results files.")
    parser.add_argument("--check", action="store_true", help="write nothing, name what differs")
    check = parser.parse_args(arguments).check
    results, stale = read_results(root / RESULTS), []
    for page in pages(root):
        old = page.read_text(encoding="utf-8")
        try:
            new = written(old, results)
        except TableError as error:
            print(f"{page.relative_to(root)}: {error}")
            return 1
        if new != old:
            stale.append(page)
            if not check:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        verb = "differs from the results files; run `make tables`" if check else "written"
        print(f"{page.relative_to(root)}: {verb}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
