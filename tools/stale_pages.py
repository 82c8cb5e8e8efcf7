"""Say which pages and results are older than the code they speak of: ``make stale``.

A page speaks of the files whose paths it names, of the modules that its programs import, and of the
scripts that it tells to run. A results file (benchmarks/results) lists its code. Dates are those of
the last commits, and of results the end of the day on which they were measured.

What is printed is a hint to read a page, or to measure, again, so the exit code is always 0.
The pages under docs/api and docs/reference are made from the code itself and left out.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = re.compile(r"\b((?:ode2opt|benchmarks|tools)/[\w/]+(?:\.py)?)\b")
MADE_FROM_CODE = ("docs/api/", "docs/reference/")
MODULES = re.compile(r"\bode2opt(?:\.\w+)+")
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def spoken_of(text: str, root: Path = ROOT) -> set[str]:
    """Return the files and folders of the repository that a text names, as paths or modules."""
    found = {path for path in PATHS.findall(text) if (root / path).exists()}
    for module in MODULES.findall(text):
        parts = module.split(".")
        while len(parts) > 1:  # the last words may be names in a module
            place = "/".join(parts)
            if (root / f"{place}.py").is_file():
                found.add(f"{place}.py")
                break
            if (root / place).is_dir():
                found.add(place)
                break
            parts.pop()
    return found


def committed(path: str, root: Path = ROOT) -> int:
    """Return when a path was last committed, in seconds; 0 where it never was."""
    command = ["git", "log", "-1", "--format=%ct", "--", path]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return int(done.stdout or 0)


def end_of(date: str) -> int:
    """Return the end of the last day that a text names, in seconds; 0 where it names none."""
    days = DAY.findall(date)
    if not days:
        return 0
    last = datetime.datetime.fromisoformat(f"{max(days)}T23:59:59+00:00")
    return int(last.timestamp())


def newer_code(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the pages and results files with code that was committed after them."""
    spoken = {
        str(page.relative_to(root)): spoken_of(page.read_text(encoding="utf-8"), root)
        for page in sorted([root / "README.md", *root.glob("docs/**/*.md")])
    }
    spoken = {page: paths for page, paths in spoken.items() if not page.startswith(MADE_FROM_CODE)}
    every = {path for paths in spoken.values() for path in paths} | set(spoken)
    measured = {}
    for file in sorted(root.glob("benchmarks/results/*.json")):
        name, result = str(file.relative_to(root)), json.loads(file.read_text("utf-8"))
        spoken[name] = set(result["code"])
        measured[name] = end_of(result["date"])
        every |= spoken[name]
    dates = {path: committed(path, root) for path in every} | measured
    return {
        page: newer
        for page, paths in spoken.items()
        if (newer := sorted(path for path in paths if dates[path] > dates[page]))
    }


def main() -> None:
    """Print a line for each page that is older than its code."""
    found = newer_code()
    for page, newer in found.items():
        print(f"{page} is older than {', '.join(newer)}")
    if not found:
        print("No page is older than the code it speaks of.")


if __name__ == "__main__":
    main()
