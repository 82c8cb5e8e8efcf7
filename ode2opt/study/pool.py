"""Who works through the instances of a benchmark or the items of a study."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from ode2opt.problems._arrays import as_count

QUIET = "ignore:resource_tracker"  # who cleans up after a worker that Ctrl-C ended, and says so
REPLACED = "A worker stopped while some jobs"  # by another: what it had compiled took much memory
Shared = TypeVar("Shared")
Item = TypeVar("Item")
Found = TypeVar("Found")


class Pool(Protocol):
    """Those who work."""

    def each(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        ordered: bool = True,
    ) -> Iterator[Found]:
        """Yield ``work(shared, item)`` for each item, in their order or as they are done."""


class Processes:
    """So many processes of this machine; one is this process itself."""

    def __init__(self, jobs: int) -> None:
        self.jobs = as_count(jobs, "jobs")

    def each(
        self,
        work: Callable[[Shared, Item], Found],
        shared: Shared,
        items: Sequence[Item],
        ordered: bool = True,
    ) -> Iterator[Found]:
        """Yield the answers; each process has one thread for linear algebra."""
        jobs = min(self.jobs, len(items))
        if jobs < 2:
            yield from (work(shared, item) for item in items)
            return
        from joblib import Parallel, delayed, parallel_config

        if QUIET not in sys.warnoptions:
            sys.warnoptions.append(QUIET)  # handed on to the processes
        warnings.filterwarnings("ignore", REPLACED)
        order = "generator" if ordered else "generator_unordered"
        with parallel_config("loky", inner_max_num_threads=1):
            parallel = Parallel(n_jobs=jobs, return_as=order, batch_size=1)
        yield from parallel(delayed(_deaf)(work, shared, item) for item in items)


def _deaf(work: Callable[[Shared, Item], Found], shared: Shared, item: Item) -> Found:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    return work(shared, item)
