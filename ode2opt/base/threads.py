"""How many threads linear algebra and kernels have, and the threads of kernels themselves.

BLAS shares the work of one product among threads. For a small product that costs more than it
saves, and where other processes want the same cores the threads wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

import ode2opt.base.lapack  # noqa: F401  (SciPy's BLAS is loaded before it is looked for)
from ode2opt.base.errors import InputError
from ode2opt.base.machine import cpu_count

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

VARIABLE = "ODE2OPT_THREADS"
# Each thread reads so many bytes at least. With two threads a gradient of 1.6 MB took 1.52 of the
# time of one, of 4 MB 1.21, of 16 MB 0.71, of 64 MB 0.65: `python benchmarks/kernels.py` on an AMD
# EPYC with 2 cores, which had other work to do.
BYTES_A_THREAD = 4_000_000
_asked: ContextVar[int | None] = ContextVar("threads", default=None)
_pools: dict[int, ThreadPoolExecutor] = {}
_making = threading.Lock()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Say among how many threads kernels of the extra ``fast`` share their rows, in this context.

    Without the context the environment variable ``ODE2OPT_THREADS`` says how many. Without it the
    size does: one thread for each 4 MB of the matrix, at most as many as the process may use
    processors, and as ``OMP_NUM_THREADS`` says where it is set. The result is bit for bit the
    same with every number. BLAS has threads of its own, which this leaves alone; a solve that
    kernels carry has one of them.

    Args:
        count: how many, at least 1; the calling thread is one of them.

    Raises:
        InputError: it is not a whole number of at least 1.

    Examples:
        >>> with ode2opt.threads(2):
        ...     result = solve(problem)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"threads is {count!r}: it must be a whole number of at least 1.")
    token = _asked.set(count)
    try:
        yield
    finally:
        _asked.reset(token)


def thread_count(size: int) -> int:
    """Return how many threads a kernel uses here: those asked for, else as many as pay."""
    asked = _asked.get()
    if asked is not None:
        return asked
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return max(1, min(_most_threads(), size // BYTES_A_THREAD))
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{VARIABLE} is {text!r}: it must be a whole number of at least 1.")
    return int(text)


@cache
def _most_threads() -> int:
    """Return how many processors there are for this process, or what OpenMP may have of them."""
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    most = cpu_count()
    return min(most, int(told)) if told.isdecimal() and int(told) else most


def alone() -> None:
    """Give kernels one thread in the calling thread, which is one of several at work."""
    _asked.set(1)


def shared(work: Callable[[int, int], object], pieces: int, count: int) -> None:
    """Call ``work(first, last)`` for all pieces, a range of them in each thread."""
    count = min(count, pieces)
    if count <= 1:
        work(0, pieces)
        return
    bounds = [pieces * k // count for k in range(count + 1)]
    pool = _pool(count - 1)
    others = [pool.submit(work, bounds[k], bounds[k + 1]) for k in range(1, count)]
    try:
        work(bounds[0], bounds[1])
    finally:
        for each in others:
            each.result()


def _pool(count: int) -> ThreadPoolExecutor:
    """Return the process's threads, made when they are first wanted."""
    with _making:
        if count not in _pools:
            _pools[count] = ThreadPoolExecutor(count, thread_name_prefix="ode2opt-kernel")
        return _pools[count]


def _forget() -> None:
    """Forget the threads: a process that was forked has none of them."""
    global _making
    _making = threading.Lock()
    _pools.clear()
    _most_threads.cache_clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget)
