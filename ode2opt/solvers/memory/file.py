"""The file of a memory: how it is written and read, and how several processes add to one."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ode2opt.base.arrays import as_count, as_positive
from ode2opt.base.errors import InputError
from ode2opt.base.record import MEMORY, Arrays
from ode2opt.base.schema import read as read_fields
from ode2opt.base.storage import FileLock, check_folder_of, real_path, sweep_abandoned
from ode2opt.solvers.memory.state import MemoryState
from ode2opt.solvers.method_header import load_metric, save_metric
from ode2opt.solvers.metric import Metric

Entry = TypeVar("Entry")
ARRAYS = ("mean", "hessian", "floor")
ASYMMETRY = 1e-8  # of the largest entry of a Hessian: more is no rounding
WAIT = 30.0  # seconds: others have the file for the time that it takes to read and write it


def write(path: str | Path, known: MemoryState | None) -> None:
    """Write what a memory knows; a crash or a full disk leaves what was there.

    What killed writers have left in the folder is removed.
    """
    arrays: dict[str, np.ndarray] = {}
    header: _Empty | _MemoryHeader = _Empty(MEMORY.version, known is None)
    if known is not None:
        arrays = {k: getattr(known, k) for k in ARRAYS if getattr(known, k) is not None}
        header = _MemoryHeader(
            **vars(header),
            metric=save_metric(known.metric, arrays),
            **{name: getattr(known, field) for name, field in _FIELDS.items()},
        )
    MEMORY.write(path, arrays, asdict(header))
    sweep_abandoned(real_path(path).parent)


def read(path: str | Path) -> MemoryState | None:
    """Return what the memory in a file knows; None of an empty one."""
    return MEMORY.read(path, _known)


def update(
    path: Path,
    mine: MemoryState | None,
    bases: Mapping[str, MemoryState | None],
    wait: float = WAIT,
) -> tuple[Path, MemoryState | None]:
    """Add to a file what was learned since it was read."""
    check_folder_of(path)
    for file in _places(path, mine):
        with _lock_of(file, wait):
            fitting, found = _found(file, mine)
            if not fitting:
                continue
            if found is None or mine is None:
                known = found if mine is None else mine
            else:
                known = merged(found, mine, bases.get(os.path.realpath(file)))
            write(file, known)
        if file != path:
            warnings.warn(
                f"{path} holds another memory or something else now: what was learned is in "
                f"{file}.",
                stacklevel=3,
            )
        return file, known
    raise AssertionError("there is no end of places")


def _places(path: Path, mine: MemoryState | None) -> Iterator[Path]:
    """Give the file, then names beside it for a memory of another kind."""
    yield path
    about = "empty" if mine is None else f"{mine.kind.lower()}-{mine.n}"
    for number in count(1):
        end = "" if number == 1 else f"-{number}"
        yield path.with_name(f"{path.stem}-{about}{end}{path.suffix}")


def _lock_of(path: Path, wait: float) -> FileLock:
    real = Path(os.path.realpath(path))  # all names of a file have one lock
    busy = f"{path} is in use by another process for {wait:g} seconds now: try again."
    return FileLock(real.with_name(f".{real.name}.lock"), busy, wait)


def _found(file: Path, mine: MemoryState | None) -> tuple[bool, MemoryState | None]:
    """Return whether a file may be written to by a memory, and what is in it."""
    if not file.exists():
        return True, None
    try:
        found = read(file)
    except InputError:
        return False, None
    same = found is None or mine is None or (found.kind, found.n) == (mine.kind, mine.n)
    return same, found


_FIELDS = {
    "kind": "kind",
    "n": "n",
    "tol": "tol",
    "solves": "solves",
    "recent": "calls_with_memory",
    "alone": "calls_without_memory",
    "surprises": "slow_in_a_row",
    "solved": "solutions",
    "looks": "hessians",
    "starts": "mean_was_better",
}
"""The names in a file, which stay what they were, and those of a state."""


@dataclass(frozen=True)
class _Empty:
    """The description in the file of a memory, and all there is in that of an empty one."""

    version: int | None
    empty: bool


@dataclass(frozen=True)
class _MemoryHeader(_Empty):
    """The description in the file of a memory that has learned; its arrays are beside it."""

    kind: str
    n: int
    tol: float
    solves: int
    recent: tuple[float, ...]
    alone: tuple[float, ...]
    surprises: int
    solved: int
    looks: int
    starts: tuple[bool, ...]
    metric: str | None = None

    def __post_init__(self) -> None:
        as_count(self.n, "n")
        for name in ("solves", "surprises", "solved", "looks"):
            as_count(getattr(self, name), name, least=0)
        for number in (self.tol, *self.recent, *self.alone):
            as_positive(number, "one of its numbers")


def _known(arrays: Arrays, about: dict[str, Any]) -> MemoryState | None:
    if about.get("empty") is True:
        read_fields(_Empty, about)
        return None
    header = read_fields(_MemoryHeader, about)
    n = header.n
    shapes = {"mean": (n,), "hessian": (n, n), "floor": (n,)}
    found = {name: arrays.take(name, shapes[name]) for name in ARRAYS if name in arrays}
    metric = load_metric(header.metric, arrays)
    if metric is not None and metric.n != n:
        raise InputError(f"its metric has {metric.n} variables, not {n}.")
    _check_whole(header, found, metric)
    rest: dict[str, Any] = {to: getattr(header, name) for name, to in _FIELDS.items()} | found
    with np.errstate(all="ignore"):  # what overflows is refused
        known = MemoryState(metric=metric, **rest).with_inverse()
    if known.inverse is not None and not np.all(np.isfinite(known.inverse)):
        raise InputError("its Hessian has no finite inverse.")
    return known


def _check_whole(
    header: _MemoryHeader, found: dict[str, np.ndarray], metric: Metric | None
) -> None:
    """Refuse parts that do not belong together."""
    if header.solves and not (
        "mean" in found and header.solved and (header.recent or header.alone)
    ):
        raise InputError(f"it has {header.solves} solves, but no solution or no costs of them.")
    if ("hessian" in found) != ("floor" in found):
        raise InputError("it has a Hessian without floor, or a floor without Hessian.")
    if ("hessian" in found or metric is not None) != (header.looks > 0):
        raise InputError(f"it has {header.looks} looks, which does not fit its metric.")
    if "floor" in found and not np.all(found["floor"] > 0):
        raise InputError("its floor is not positive.")
    if "hessian" in found and not _symmetric(found["hessian"]):
        raise InputError("its Hessian is not symmetric.")


def _symmetric(H: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        difference = np.abs(H - H.T)
    return bool(np.max(difference) <= ASYMMETRY * np.max(np.abs(H)))


def merged(found: MemoryState, mine: MemoryState, base: MemoryState | None) -> MemoryState:
    """Return what a file knows with what was learned here since ``base`` was read from it.

    The solves made here are added to those of the file as if they had come after them: counts add
    up, means keep the weights that :mod:`ode2opt.solvers.memory.use` gives to new solutions and
    Hessians, lists of costs are continued. Where the solves here have made the memory forget what
    it knew (problems have changed), the rest of the file's knowledge is forgotten, too.
    """
    base = base or MemoryState(mine.kind, mine.n)
    solves = mine.solves - base.solves
    if solves == 0:
        return found
    if _equal(found, base):
        return mine
    if mine.solutions - base.solutions != solves:  # forgotten on the way: see MemorySession
        return replace(mine, solves=found.solves + solves)
    options = mine.options
    joined = replace(
        found,
        tol=mine.tol,
        solves=found.solves + solves,
        calls_with_memory=_continued("calls_with_memory", found, mine, base, options.recent),
        calls_without_memory=_continued("calls_without_memory", found, mine, base, options.recent),
        mean_was_better=_continued("mean_was_better", found, mine, base, options.start_trials),
        slow_in_a_row=mine.slow_in_a_row,
        solutions=found.solutions + solves,
        mean=_mean(
            (found.mean, found.solutions),
            (mine.mean, solves),
            (base.mean, base.solutions),
            options.mean_of,
        ),
        options=options,
    )
    return _with_curvature(joined, mine, base)


def _continued(
    name: str, found: MemoryState, mine: MemoryState, base: MemoryState, most: int
) -> tuple[Any, ...]:
    """Return a list of the file with what was added to it here, the last ``most`` entries."""
    return (*getattr(found, name), *appended(getattr(base, name), getattr(mine, name)))[-most:]


def _with_curvature(known: MemoryState, mine: MemoryState, base: MemoryState) -> MemoryState:
    """Return what is known with the Hessians, or the metric, that were found here."""
    if mine.metric is not base.metric:
        return replace(known, metric=mine.metric, hessians=mine.hessians)
    new = mine.hessians - base.hessians
    if mine.hessian is None or new == 0:
        return known
    hessian, floor = (
        _mean(
            (getattr(known, name), known.hessians),
            (getattr(mine, name), new),
            (getattr(base, name), base.hessians),
            mine.options.hessians_of,
        )
        for name in ("hessian", "floor")
    )
    assert floor is not None
    assert mine.floor is not None
    floor = np.maximum(floor, np.finfo(float).eps * mine.floor)  # what rounding may take away
    joined = replace(known, hessian=hessian, floor=floor, hessians=known.hessians + new)
    return joined.with_inverse()


Mean = tuple[np.ndarray | None, int]
"""A mean, and how many it is of."""


def _mean(found: Mean, mine: Mean, base: Mean, window: int) -> np.ndarray | None:
    """Return the mean of what was found, continued by what was added to ``base`` here."""
    (total, before), (now, new), (was, had) = found, mine, base
    if now is None:
        return total
    added = now if was is None else was + (now - was) / _share(had, new, window)
    return added if total is None else total + _share(before, new, window) * (added - total)


def _share(before: int, new: int, window: int) -> float:
    """Return the weight of ``new`` members in a running mean; each has 1/window at least."""
    return 1 - math.prod(1 - 1 / min(before + k, window) for k in range(1, new + 1))


def appended(before: tuple[Entry, ...], after: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return what was added at the end of a list of which only the last entries are kept.

    Examples:
        >>> appended((1, 2, 3), (2, 3, 4))
        (4,)
    """
    overlaps = range(min(len(before), len(after)), 0, -1)
    kept = next((k for k in overlaps if before[-k:] == after[:k]), 0)
    return after[kept:]


def _equal(one: MemoryState, other: MemoryState) -> bool:
    """Whether two are the same: nobody has written in between."""
    same = (one.solves, one.solutions, one.hessians) == (
        other.solves,
        other.solutions,
        other.hessians,
    )
    if one.mean is None or other.mean is None:
        return same and one.mean is other.mean
    return same and np.array_equal(one.mean, other.mean)
