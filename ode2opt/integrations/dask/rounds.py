"""A round: a question goes to the workers, and the sums of what their parts answer come back.

It goes past the scheduler's queue of tasks, which takes longer for one than a small round in all.
The client asks a few workers; each of these passes the question on to a few others, works on its
own parts, and adds up. A worker that is gone is left out: the client sees which answers lack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from distributed.core import clean_exception
from distributed.protocol.pickle import dumps

from ode2opt.problems.parts.held import Ask, Held
from ode2opt.problems.parts.sums import Sums

FEW = 8  # workers that one asks: more would wait for each other's answers
Team = Sequence[tuple[str, Sequence[str]]]
"""Workers' addresses with the keys of what they hold; the first leads."""
Found = dict[tuple[int, int], Any]


def teams(workers: Team, most: int = FEW) -> dict[str, Team]:
    """Return neighbouring workers in at most so many teams, by the addresses of who leads."""
    size = -(-len(workers) // most)
    parted = [workers[i : i + size] for i in range(0, len(workers), size or 1)]
    return {team[0][0]: team for team in parted}


async def answered(ask: Ask, count: int, led: Mapping[str, Team], dask_worker: Any) -> Found:
    """Return the sums that this worker and its team have found, of ``count`` parts in all."""
    (_, keys), *others = led[dask_worker.contact_address]
    below = teams(others)
    passed = [_passed_on(dask_worker, leader, ask, count, below) for leader in below]
    found = await asyncio.gather(_own(dask_worker, keys, ask, count), *passed)
    sums = Sums(count)
    for part in found:
        await _in_thread(dask_worker, sums.take, part)
    return sums.found


async def _passed_on(
    worker: Any, leader: str, ask: Ask, count: int, led: Mapping[str, Team]
) -> Found:
    args = dumps((ask, count, {leader: led[leader]}))
    try:
        answer = await worker.rpc(leader).run(function=dumps(answered), args=args)
    except OSError:
        return {}
    if answer["status"] == "error":
        _, error, trace = clean_exception(**answer)
        assert error is not None
        raise error.with_traceback(trace)
    return answer["result"]


async def _own(worker: Any, keys: Sequence[str], ask: Ask, count: int) -> Found:
    """Ask what this worker holds, in as many threads as it has."""
    sums, lock = Sums(count), Lock()

    def add(held: Held) -> None:
        for i in held.numbers:
            answer = held.ask(i, ask)
            with lock:
                sums.add(answer, i)

    async def ask_some(left: Iterator[str]) -> None:
        for key in left:
            await _in_thread(worker, add, worker.data[key])

    left = iter([key for key in keys if key in worker.data])
    await asyncio.gather(*(ask_some(left) for _ in range(worker.state.nthreads)))
    return sums.found


async def _in_thread(worker: Any, work: Any, *args: Any) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(worker.executors["default"], work, *args)
