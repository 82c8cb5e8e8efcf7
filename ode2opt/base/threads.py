"""How many threads linear algebra has: one while training, one in a solve that has no use for more.

BLAS shares the work of one product among threads. For a small product that costs more than it
saves, and where other processes want the same cores the threads wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

import ode2opt.base.lapack  # noqa: F401  (SciPy's BLAS is loaded before it is looked for)
from ode2opt.base.pool import threads

# A solve is small where its matrix has at most so many entries (16 MB) and a Hessian so many rows.
# `python benchmarks/blas_threads.py` measures solves around these sizes with one thread and more.
SMALL_ENTRIES = 2_000_000
SMALL_SIDE = 500


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the thread pools of BLAS and OpenMP to one thread each, and kernels to the calling one.

    A limit holds for the libraries that are loaded; SciPy's BLAS is, by ``ode2opt.base.lapack``.
    """
    with threadpool_limits(1), threads(1):
        yield


def is_small(entries: int, side: int) -> bool:
    """Whether threads would not help with a matrix."""
    return entries <= SMALL_ENTRIES and side <= SMALL_SIDE


# NumPy's and SciPy's BLAS, which solves use, are loaded by now. What others load later is theirs:
# to look for libraries again takes as long as half a small solve.
_libraries: Any = ThreadpoolController().select(user_api="blas").lib_controllers
_changing = threading.Lock()
_users = 0
_before: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit NumPy's and SciPy's BLAS to one thread as long as any solve of this process wants it.

    The number of threads belongs to the process, so that the last user restores what the first one
    found: with more threads halfway through a solve its sums would round in another way. Where BLAS
    is built on OpenMP each thread has a number of its own, which it restores itself.
    """
    global _users
    with _changing:
        own = [library.get_num_threads() for library in _libraries]
        if not _users:
            _before[:] = own
        _users += 1
        _set_threads([1] * len(own), own)
    try:
        yield
    finally:
        with _changing:
            _users -= 1
            ones = [1] * len(own)
            shared = ones if _users else _before
            chosen = zip(map(_is_openmp, _libraries), own, shared, strict=True)
            _set_threads([mine if each else ours for each, mine, ours in chosen], ones)


def _set_threads(counts: list[int], now: list[int]) -> None:
    """Set the number of each library where it is another one now, from any thread.

    From 3.8 on threadpoolctl obeys one thread alone, the first that asked, until it is set free.
    """
    for library, count, found in zip(_libraries, counts, now, strict=True):
        if count == found:
            continue
        set_free = getattr(library, "clear_controlling_thread", lambda force: None)
        set_free(force=True)
        library.set_num_threads(count)
        set_free(force=True)


def _is_openmp(library: Any) -> bool:
    return getattr(library, "threading_layer", "") == "openmp"


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_changing.acquire,
        after_in_parent=_changing.release,
        after_in_child=_changing.release,
    )
