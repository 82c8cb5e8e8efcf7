"""What a round over the workers of a cluster costs, and what that makes of a solve.

    python benchmarks/dask_rounds.py [overhead] [small] [tasks] [peers] [outofcore] [faults]
        [--workers 2] [--rows 4e6] [--columns 50] [--gigabytes 12] [--memory-limit 3e9] [--kills 20]

overhead: a gradient through Dask by one through threads of this process; small: a round over 64
parts of 1,000 rows; tasks: rounds of almost no work, by the number of their tasks; peers: seconds
and rounds to one gradient norm, auto by scipy's L-BFGS on the same sums; outofcore: Parquet files
larger than the workers' memory, seconds of a pass by those of reading the files once; faults:
solves in which a worker is killed. Prints one line each.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import scipy.optimize
from distributed import Client

from ode2opt import Logistic, Parts, solve
from ode2opt.integrations.dask import Cluster, opened
from ode2opt.problems.parts import Block, Engine, Threads, files_in_parts

L2, TOL = 1e-4, 1e-6
ROUNDS = 15
SMALL_PARTS, SMALL_ROWS = 64, 1_000
FILE = 2e7  # bytes of a Parquet file, about
TASKS = (2, 4, 16, 64)


@dataclass(frozen=True)
class Made:
    """Rows made from a seed wherever they are needed: correlated columns, labels of both kinds."""

    seed: int
    rows: int
    columns: int

    @property
    def name(self) -> str:
        return f"seed {self.seed}"

    @property
    def bytes(self) -> int:
        return 8 * self.rows * self.columns

    def read(self) -> Block:
        rng = np.random.default_rng(self.seed)
        mixed = np.random.default_rng(0).standard_normal((self.columns, self.columns))
        A = rng.standard_normal((self.rows, self.columns)) @ mixed
        noise = 3 * np.sqrt(self.columns) * rng.standard_normal(self.rows)
        return Block(A, (A @ np.linspace(-1, 1, self.columns) + noise > 0).astype(float))


def made(rows: int, columns: int, parts: int) -> list[Made]:
    """Return parts of equal numbers of rows."""
    return [Made(i + 1, rows // parts, columns) for i in range(parts)]


@contextmanager
def started(options: argparse.Namespace, limit: int | None = None) -> Iterator[Client]:
    """Give the client of a cluster of processes of its own."""
    with opened("local", options.workers, limit) as engine:
        yield engine.client


def seconds(work: Callable[[], Any], times: int = ROUNDS) -> float:
    """Return the median time of some calls after a first one."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return median(found)


def a_gradient(sources: list[Made], engine: Engine) -> float:
    """Return the seconds of a gradient."""
    problem, x = Parts(Logistic, sources, engine=engine, l2=L2), np.full(sources[0].columns, 0.01)
    return seconds(lambda: problem.gradient(x))


def overhead(client: Client, options: argparse.Namespace) -> None:
    sources = made(int(options.rows), options.columns, 4 * options.workers)
    through = a_gradient(sources, Cluster(client))
    own = a_gradient(sources, Threads(threads=options.workers))
    print(
        f"overhead: {options.rows:,.0f} x {options.columns} in {len(sources)} parts: "
        f"{1e3 * through:.1f} ms by Dask, {1e3 * own:.1f} ms by threads, ratio {through / own:.2f}"
    )


def small(client: Client, options: argparse.Namespace) -> None:
    sources = made(SMALL_PARTS * SMALL_ROWS, options.columns, SMALL_PARTS)
    through, own = (a_gradient(sources, engine) for engine in (Cluster(client), Threads(threads=1)))
    print(
        f"small: {SMALL_PARTS} parts of {SMALL_ROWS:,} rows: {1e3 * through:.1f} ms a round, "
        f"{1e3 * own:.1f} ms on one thread"
    )


class Apart(Made):
    """Rows that say they are too many to be held with others."""

    @property
    def bytes(self) -> int:
        return 1 << 40


def tasks(client: Client, options: argparse.Namespace) -> None:
    """Fit the seconds of a round to a + b times its tasks."""
    found = {
        count: a_gradient([Apart(i, 2, 2) for i in range(count)], Cluster(client))
        for count in TASKS
    }
    b, a = np.polyfit(list(found), list(found.values()), 1)
    told = ", ".join(f"{count}: {1e3 * took:.1f} ms" for count, took in found.items())
    print(f"tasks: rounds of {told}; about {1e3 * a:.1f} ms and {1e3 * b:.2f} ms a task")


def peers(client: Client, options: argparse.Namespace) -> None:
    sources = made(int(options.rows), options.columns, 4 * options.workers)
    problem = Parts(Logistic, sources, engine=Cluster(client), l2=L2)
    began = time.perf_counter()
    ours = solve(problem, tol=TOL)
    took, rounds = time.perf_counter() - began, problem.engine.passes
    goal, begun, before = ours.grad_norm, time.perf_counter(), rounds
    tolerances = {"gtol": max(goal, TOL) / np.sqrt(problem.n), "ftol": 0.0, "maxiter": 10_000}
    theirs = scipy.optimize.minimize(
        problem.value_and_gradient, np.zeros(problem.n), jac=True, method="L-BFGS-B",
        options=tolerances | {"maxfun": 10_000},
    )  # fmt: skip
    other = time.perf_counter() - begun
    norm = np.linalg.norm(theirs.jac)
    print(
        f"peers: {options.rows:,.0f} x {options.columns} to {TOL:g}: auto {took:.2f} s in {rounds} "
        f"rounds ({ours.method}); scipy's L-BFGS {other:.2f} s in {problem.engine.passes - before} "
        f"rounds, to {norm:.1e}; ratio {took / other:.2f}"
    )


def outofcore(client: Client, options: argparse.Namespace) -> None:
    """Solve on more rows than the workers have memory for."""
    rows = int(options.gigabytes * 1e9 / 8 / (options.columns + 1))
    count = max(4 * options.workers, int(options.gigabytes * 1e9 / FILE))
    with tempfile.TemporaryDirectory(prefix="ode2opt-") as folder:
        for source in made(rows, options.columns, count):
            _write(Path(folder) / f"{source.seed:04}.parquet", source.read())
        began = time.perf_counter()
        files = files_in_parts(folder, "y")
        for reading in client.map(_read_only, files):
            reading.result()
        once = time.perf_counter() - began
        problem = Parts(Logistic, files, engine=Cluster(client), labels=True, l2=L2)
        began = time.perf_counter()
        result = solve(problem, tol=TOL)
        each = (time.perf_counter() - began) / problem.engine.passes
    peak = sum(client.run(_peak).values())
    print(
        f"outofcore: {options.gigabytes:g} GB in {count} files, workers limited to "
        f"{options.memory_limit / 1e9:g} GB: {result.status.name.lower()} after "
        f"{problem.engine.passes} passes of {each:.2f} s, reading once takes {once:.2f} s, ratio "
        f"{each / once:.2f}; peak memory of all workers {peak / 1e9:.2f} GB"
    )


def _write(path: Path, block: Block) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {f"x{j}": block.A[:, j] for j in range(block.A.shape[1])} | {"y": block.b}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="none")


def _read_only(source: Any) -> int:
    return len(source.read())


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def faults(client: Client, options: argparse.Namespace) -> None:
    """Kill a worker at a random time of a solve, again and again."""
    sources, goal = made(40_000, 20, 16), {"method": "newton", "tol": 1e-9}
    due = solve(Parts(Logistic, sources, l2=L2), **goal)
    undisturbed = solve(Parts(Logistic, sources, engine=Cluster(client), l2=L2), **goal).seconds
    rng, right, slowest = np.random.default_rng(0), 0, 0.0
    for _ in range(options.kills):
        with started(options) as own:
            problem = Parts(Logistic, sources, engine=Cluster(own), l2=L2)
            victim = int(rng.choice(list(own.run(os.getpid).values())))
            timer = threading.Timer(rng.random() * undisturbed, os.kill, (victim, signal.SIGKILL))
            timer.start()
            found = solve(problem, **goal)
            timer.join()
        slowest = max(slowest, found.seconds)
        right += bool(np.linalg.norm(found.x - due.x) <= 1e-8 * np.linalg.norm(due.x))
    print(
        f"faults: {right} of {options.kills} right answers, a worker killed at a random time of "
        f"a solve; {undisturbed:.1f} s undisturbed, the slowest {slowest:.1f} s"
    )


STUDIES = {study.__name__: study for study in (overhead, small, tasks, peers, outofcore, faults)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=float, default=4e6)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--gigabytes", type=float, default=12.0)
    parser.add_argument("--memory-limit", type=float, default=3e9, help="bytes of all workers")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    for name in options.studies or STUDIES:
        limit = int(options.memory_limit) if name == "outofcore" else None
        with started(options, limit) as client:
            STUDIES[name](client, options)


if __name__ == "__main__":
    main()
