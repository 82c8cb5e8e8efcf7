"""What a report reads of a run: the folder, its metrics, the statistics of its method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError, shown
from ode2opt.base.schema import parse, read
from ode2opt.learning.run_directory import RunDirectory, read_config
from ode2opt.proofs.confidence import Expectation
from ode2opt.solvers.method_file import Method

Metrics = list[dict[str, Any]]
NUMBERS = ("step", "seconds", "stopping_time", "loss", "validation", "P", "Q", "penalty")
RESTART = "restart"  # has its number in the lines of one, and is None in others
SMALLEST = 1e-30
OWN_NAME = "method"  # how a method calls itself in its statistics


def read_run(directory: RunDirectory) -> dict[str, Any]:
    """Return the configuration of a run that has a method."""
    path = directory.path
    if not path.exists():
        raise InputError(f"There is no folder {path}.")
    if not path.is_dir():
        raise InputError(f"{path} is a file; a report is made from the folder of a run.")
    if not directory.config.is_file():
        raise InputError(f"{path} is no training run: it has no config.json.")
    config = read_config(path)
    if not directory.method.exists():
        raise InputError(f"The run in {path} has no method yet: go on with it (train --resume).")
    return config


def part_of(file: Path, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object within a JSON document."""
    part = document.get(name)
    if not isinstance(part, dict):
        raise InputError(f"{file} is damaged: its {name} is {shown(part)}, not an object.")
    return part


def read_metrics(file: Path) -> Metrics:
    """Return the lines of metrics.jsonl, checked."""
    if not file.is_file():
        raise InputError(f"{file} is missing: the run is not whole.")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is damaged: {error}.") from None
    return [_metrics_line(file, i, line) for i, line in enumerate(text.splitlines(), start=1)]


def _metrics_line(file: Path, number: int, text: str) -> dict[str, Any]:
    """Return a line with a number or None under each name that is shown, and the restart."""
    try:
        line = parse(text)
    except InputError as error:
        raise InputError(f"Line {number} of {file} is damaged: {error}") from None
    for name in NUMBERS:
        if name not in line or not isinstance(line[name], int | float | None):
            found = shown(line.get(name, "missing"))
            raise InputError(f"{file} is damaged: {name} of line {number} is {found}.")
    if type(restart := line.setdefault(RESTART, None)) not in (int, type(None)):
        raise InputError(f"{file} is damaged: {RESTART} of line {number} is {shown(restart)}.")
    return line


@dataclass(frozen=True)
class Compared:
    """What a method file says of a method and its baselines (``learning.comparison.summary``).

    Attributes:
        problems: how many problems were solved.
        reached: by name, how many reached the tolerance.
        calls: by name, mean oracle calls.
        seconds: by name, median seconds.
    """

    problems: int
    reached: dict[str, int]
    calls: dict[str, float]
    seconds: dict[str, float]

    def __post_init__(self) -> None:
        names = self.reached.keys()
        if not names == self.calls.keys() == self.seconds.keys() or OWN_NAME not in names:
            raise InputError("they are not of the same methods.")
        numbers = [*self.calls.values(), *self.seconds.values()]
        if not all(SMALLEST < number < 1 / SMALLEST for number in numbers):
            raise InputError("they hold a number of calls or seconds that cannot be.")


def compared(file: Path, method: Method, name: str) -> Compared | None:
    """Return a comparison that a method file holds, checked."""
    found = method.statistics.get(name)
    if found is None:
        return None
    try:
        return read(Compared, part_of(file, method.statistics, name))
    except InputError as error:
        raise InputError(
            f"{file} is no valid method: its statistics are damaged: {error}"
        ) from None


def expected_of(file: Path, method: Method) -> Expectation | None:
    """Return what a method file says of further problems, None where it says nothing."""
    if method.statistics.get("statistical") is None:
        return None
    try:
        return read(Expectation, part_of(file, method.statistics, "statistical"))
    except InputError as error:
        raise InputError(
            f"{file} is no valid method: its statistics are damaged: {error}"
        ) from None
