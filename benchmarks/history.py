"""The history of benchmarks: one line of JSON a run, and how a run compares with the last one.

A line has the commit, the date (UTC), the machine, the versions and the results, {name: ratio}.
Runs are compared with the last line of the same machine: seconds of another one say nothing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import recording

WORSE = 1.1  # a ratio that grew by more than a tenth is marked; noise is some percent


@dataclass(frozen=True)
class Entry:
    """One run of the benchmarks.

    Attributes:
        commit: the first 12 digits, with "-dirty" where files differ from it; None outside git.
        date: when, to the second, in UTC.
        machine: processor, cores, memory and system.
        versions: of Python and the libraries that are installed.
        results: {name: ratio}, lower is better.
    """

    commit: str | None
    date: str
    machine: str
    versions: dict[str, str]
    results: dict[str, float]


def entry_of(results: Mapping[str, float], root: Path) -> Entry:
    """Return the line for results that were measured here and now, in the clone ``root``."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Entry(commit_of(root), date, recording.machine(), recording.versions(), dict(results))


def read(path: Path) -> list[Entry]:
    """Return all lines of a history, oldest first; a damaged one ends the program by its number."""
    if not path.exists():
        return []
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise SystemExit(
                f"{path}, line {number} is no entry: {error}. Mend or remove it."
            ) from None
    return entries


def append(path: Path, entry: Entry) -> None:
    """Add one line to the end of a history."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(entry)) + "\n")


def last_on(machine: str, entries: list[Entry]) -> Entry | None:
    """Return the last entry of a machine, or None where it has none."""
    return next((entry for entry in reversed(entries) if entry.machine == machine), None)


def comparison(before: Entry | None, now: Entry) -> str:
    """Return a table of both runs with the change in percent, or why there is none."""
    if before is None:
        return "the first run on this machine: nothing to compare with"
    names = dict.fromkeys([*before.results, *now.results])
    width = max(map(len, names), default=0)
    lines = [f"{'':{width}}  {'before':>8}  {'now':>8}"]
    lines += [
        f"{name:{width}}  {_cells(before.results.get(name), now.results.get(name))}"
        for name in names
    ]
    lines.append(f"before: {before.commit} of {before.date}")
    changed = {
        n
        for n in {**before.versions, **now.versions}
        if before.versions.get(n) != now.versions.get(n)
    }
    lines += [
        f"{name} was {before.versions.get(name, 'absent')}, is {now.versions.get(name, 'absent')}"
        for name in sorted(changed)
    ]
    return "\n".join(lines)


def _cells(before: float | None, now: float | None) -> str:
    """Return two numbers and their change; a dash where a run lacks one."""
    shown = [f"{'-' if number is None else format(number, '.3f'):>8}" for number in (before, now)]
    if before and now is not None:
        mark = "  worse" if now > WORSE * before else ""
        shown.append(f"{100 * (now / before - 1):+6.0f}%{mark}")
    return "  ".join(shown)


def commit_of(root: Path) -> str | None:
    """Return the commit of a clone; None where there is no git or no clone."""
    try:
        digits = _git(root, "rev-parse", "--short=12", "HEAD")
        # The history itself is changed by every run.
        changed = _git(
            root, "status", "--porcelain", "--untracked-files=no", "--", ":!*history.jsonl"
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return digits + "-dirty" * bool(changed)


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
