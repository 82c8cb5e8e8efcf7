"""How many threads linear algebra has: one while training, one in a solve that has no use for more.

BLAS shares the work of one product among threads. For a small product that costs more than it
saves, and where other processes want the same cores the threads wait for each other.
"""

from __future__ import annotations

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
_in_use = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit NumPy's and SciPy's BLAS to one thread, unless a solve of this process has done so.

    The number of threads belongs to the process. So one user at a time changes it, and restores in
    its own thread what it found; a solve inside a solve, or in another thread, leaves it alone.
    """
    if not _in_use.acquire(blocking=False):
        yield
        return
    before = [(library, library.get_num_threads()) for library in _libraries]
    try:
        for library, _ in before:
            library.set_num_threads(1)
        yield
    finally:
        for library, count in before:
            library.set_num_threads(count)
        _in_use.release()
