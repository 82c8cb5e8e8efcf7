"""What a report reads of a run: its folder, its metrics, and what its method's file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ode2opt.base.errors import InputError, shown
from ode2opt.base.schema import parse, read
from ode2opt.learning import Options, make_options
from ode2opt.learning.comparison import CURVES
from ode2opt.learning.config import read_config
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.solvers.method_file import Method

Metrics = list[dict[str, Any]]
NUMBERS = ("step", "seconds", "stopping_time", "loss", "validation", "P", "Q", "penalty")
RESTART = "restart"  # has its number in the lines of one, and is None in others
OWN_NAME = "method"  # how a method calls itself in its statistics
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Compared:
    """What a method file says of a method and its baselines (``learning.comparison.summary``).

    By name: how many problems reached the tolerance, mean oracle calls, median seconds.
    """

    problems: int
    reached: dict[str, int]
    calls: dict[str, float]
    seconds: dict[str, float]

    def __post_init__(self) -> None:
        names = self.reached.keys()
        if not names == self.calls.keys() == self.seconds.keys() or OWN_NAME not in names:
            raise InputError("they are not of the same methods.")
        if not all(1e-30 < one < 1e30 for one in (*self.calls.values(), *self.seconds.values())):
            raise InputError("they hold a number of calls or seconds that cannot be.")


@dataclass(frozen=True)
class GradientCurve:
    """The gradient norms of a solve, and after how many oracle calls each was seen."""

    calls: tuple[float, ...]
    norms: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.calls) != len(self.norms):
            raise InputError(f"there are {len(self.calls)} calls and {len(self.norms)} norms.")


class Run(NamedTuple):
    """A training run as its folder has it; ``file`` is that of its method."""

    file: Path
    config: dict[str, Any]
    method: Method
    options: Options
    metrics: Metrics
    restarts: Metrics

    @property
    def cap(self) -> float | None:
        """The cap of a certified run, None for any other run."""
        return getattr(self.options, "certified", None)

    def statistic(self, name: str, kind: type[Kind]) -> Kind | None:
        """Return a part of what the method file says it was measured at; None without it."""
        if self.method.statistics.get(name) is None:
            return None
        try:
            return read(kind, part_of(self.file, self.method.statistics, name))
        except InputError as error:
            what = "is no valid method: its statistics are damaged"
            raise InputError(f"{self.file} {what}: {error}") from None

    def curves(self) -> dict[str, GradientCurve]:
        """Return gradient norms on one fresh problem, by method."""
        if self.method.statistics.get(CURVES) is None:
            return {}
        found = part_of(self.file, self.method.statistics, CURVES)
        return {name: self._curve(name, found) for name in found}

    def _curve(self, name: str, found: Mapping[str, Any]) -> GradientCurve:
        try:
            return read(GradientCurve, part_of(self.file, found, name))
        except InputError as error:
            what = f"is no valid method: its curve of {name}"
            raise InputError(f"{self.file} {what}: {error}") from None


def read_run(path: Path) -> Run:
    """Return the run of a folder that has a method."""
    directory = RunDirectory(path)
    if not path.exists():
        raise InputError(f"There is no folder {path}.")
    if not path.is_dir():
        raise InputError(f"{path} is a file; a report is made from the folder of a run.")
    if not directory.config.is_file():
        raise InputError(f"{path} is no training run: it has no config.json.")
    config = read_config(path)
    if not directory.method.exists():
        raise InputError(f"The run in {path} has no method yet: go on with it (train --resume).")
    method, lines = Method.load(directory.method), _read_metrics(directory.metrics)
    metrics = [line for line in lines if line[RESTART] is None]
    restarts = [line for line in lines if line[RESTART] is not None]
    options = make_options(config["options"])
    return Run(directory.method, config, method, options, metrics, restarts)


def part_of(file: Path, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object within a JSON document."""
    part = document.get(name)
    if not isinstance(part, dict):
        raise InputError(f"{file} is damaged: its {name} is {shown(part)}, not an object.")
    return part


def _read_metrics(file: Path) -> Metrics:
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
    line.setdefault(RESTART, None)
    for name in (*NUMBERS, RESTART):
        found = line.get(name, "missing")
        if not isinstance(found, int | None if name == RESTART else int | float | None):
            raise InputError(f"{file} is damaged: {name} of line {number} is {shown(found)}.")
    return line
