"""Two processes learn into one memory: what both have found becomes one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ode2opt.solvers.memory_state import MemoryState

Entry = TypeVar("Entry")


def merged(found: MemoryState, mine: MemoryState, base: MemoryState | None) -> MemoryState:
    """Return what a file knows with what was learned here since ``base`` was read from it.

    The solves made here are added to those of the file as if they had come after them: counts add
    up, means keep the weights that :mod:`ode2opt.solvers.memory_session` gives to new solutions and
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
