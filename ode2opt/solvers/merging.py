"""Two processes learn into one memory: what both have found becomes one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ode2opt.solvers.known import LOOKS, MEANS, RECENT, TRIES, Known

Entry = TypeVar("Entry")


def merged(found: Known, mine: Known, base: Known | None) -> Known:
    """Return what a file knows with what was learned here since ``base`` was read from it.

    The solves made here are added to those of the file as if they had come after them: counts add
    up, means keep the weights that :mod:`ode2opt.solvers.recall` gives to new solutions and
    Hessians, lists of costs are continued. Where the solves here have made the memory forget what
    it knew (problems have changed), the rest of the file's knowledge is forgotten, too.

    Args:
        found: what the file holds now.
        mine: what is known here.
        base: what the file held when it was read; None where all of ``mine`` is new to it.
    """
    base = base or Known(mine.kind, mine.n)
    solves = mine.solves - base.solves
    if solves == 0:
        return found
    if _equal(found, base):
        return mine
    if mine.solved - base.solved != solves:  # forgotten on the way: see Recall
        return replace(mine, solves=found.solves + solves)
    joined = replace(
        found,
        tol=mine.tol,
        solves=found.solves + solves,
        recent=(*found.recent, *appended(base.recent, mine.recent))[-RECENT:],
        alone=(*found.alone, *appended(base.alone, mine.alone))[-RECENT:],
        starts=(*found.starts, *appended(base.starts, mine.starts))[-TRIES:],
        surprises=mine.surprises,
        solved=found.solved + solves,
        mean=_mean(
            (found.mean, found.solved), (mine.mean, solves), (base.mean, base.solved), MEANS
        ),
    )
    return _with_curvature(joined, mine, base)


def _with_curvature(known: Known, mine: Known, base: Known) -> Known:
    """Return what is known with the Hessians, or the metric, that were found here."""
    if mine.metric is not base.metric:
        return replace(known, metric=mine.metric, looks=mine.looks)
    looks = mine.looks - base.looks
    if mine.hessian is None or looks == 0:
        return known
    hessian, floor = (
        _mean(
            (getattr(known, name), known.looks),
            (getattr(mine, name), looks),
            (getattr(base, name), base.looks),
            LOOKS,
        )
        for name in ("hessian", "floor")
    )
    assert floor is not None
    assert mine.floor is not None
    floor = np.maximum(floor, np.finfo(float).eps * mine.floor)  # what rounding may take away
    return replace(known, hessian=hessian, floor=floor, looks=known.looks + looks).with_inverse()


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


def _equal(one: Known, other: Known) -> bool:
    """Whether two are the same: nobody has written in between."""
    same = (one.solves, one.solved, one.looks) == (other.solves, other.solved, other.looks)
    if one.mean is None or other.mean is None:
        return same and one.mean is other.mean
    return same and np.array_equal(one.mean, other.mean)
