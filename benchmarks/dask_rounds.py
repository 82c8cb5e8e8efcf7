"""What a round over the workers of a cluster costs, and what that makes of a solve.

    python benchmarks/dask_rounds.py [overhead] [small] [tasks] [peers] [outofcore] [faults]
        [--workers 2] [--rows 4e6] [--columns 50] [--gigabytes 12] [--folder FOLDER]
        [--memory-limit 3e9] [--kills 20]

overhead: a gradient through Dask by one through threads of this process; small: a round over 64
parts of 1,000 rows; tasks: rounds of almost no work, by the number of groups; peers: seconds
and rounds to one gradient norm, auto by dask-ml (extra bench) and by scipy's L-BFGS on the same
sums; outofcore: Parquet files larger than the workers' memory, seconds of a pass by those of
reading the files once; faults: solves in which a worker is killed. Prints a line or some for each.
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
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import scipy.optimize
from dask import delayed
from distributed import Client, wait

from ode2opt import Logistic, Parts, solve
from ode2opt.executor import Executor, LocalExecutor
from ode2opt.integrations.dask import DaskExecutor, open_executor
from ode2opt.problems.parts import Block, files_in_parts

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
    with open_executor("local", options.workers, limit) as executor:
        yield executor.client


def seconds(work: Callable[[], Any], times: int = ROUNDS) -> float:
    """Return the median time of some calls after a first one."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return median(found)


def a_gradient(sources: list[Made], executor: Executor) -> float:
    """Return the seconds of a gradient."""
    problem, x = (
        Parts(Logistic, sources, executor=executor, l2=L2),
        np.full(sources[0].columns, 0.01),
    )
    return seconds(lambda: problem.gradient(x))


def overhead(client: Client, options: argparse.Namespace) -> None:
    sources = made(int(options.rows), options.columns, 4 * options.workers)
    through = a_gradient(sources, DaskExecutor(client))
    own = a_gradient(sources, LocalExecutor(threads=options.workers))
    print(
        f"overhead: {options.rows:,.0f} x {options.columns} in {len(sources)} parts: "
        f"{1e3 * through:.1f} ms by Dask, {1e3 * own:.1f} ms by threads, ratio {through / own:.2f}"
    )


def small(client: Client, options: argparse.Namespace) -> None:
    sources = made(SMALL_PARTS * SMALL_ROWS, options.columns, SMALL_PARTS)
    through, own = (
        a_gradient(sources, one) for one in (DaskExecutor(client), LocalExecutor(threads=1))
    )
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
    """Fit the seconds of a round to a + b times its groups, each held by a task of Dask's."""
    found = {
        count: a_gradient([Apart(i, 2, 2) for i in range(count)], DaskExecutor(client))
        for count in TASKS
    }
    b, a = np.polyfit(list(found), list(found.values()), 1)
    told = ", ".join(f"{count}: {1e3 * took:.1f} ms" for count, took in found.items())
    print(f"tasks: rounds of {told}; about {1e3 * a:.1f} ms and {1e3 * b:.2f} ms a group")


def peers(client: Client, options: argparse.Namespace) -> None:
    """Have others solve; then solve to the gradient norm that each of them has reached."""
    sources = made(int(options.rows), options.columns, 4 * options.workers)
    problem = Parts(Logistic, sources, executor=DaskExecutor(client), l2=L2)
    X, y = (client.persist(array) for array in _arrays(sources))
    wait([X, y])
    problem.gradient(np.zeros(problem.n))  # workers have loaded what they need
    for name, solver, tolerances in PEERS:
        work = partial(_coefficients, X, y, solver, tolerances)
        _tell(name, problem, *_timed(client, work))
    _tell("scipy's L-BFGS on our sums", problem, *_by_scipy(problem))


PEERS = [
    ("dask-ml's admm", "admm", {"max_iter": 20}),
    ("dask-ml's lbfgs", "lbfgs", {}),
    ("dask-ml's lbfgs, exact", "lbfgs", {"tol": 1e-3, "max_iter": 1_000}),
]


def _arrays(sources: list[Made]) -> tuple[Any, Any]:
    """Return the rows as Dask arrays, a block for each part."""
    import dask.array as da

    N, n = sources[0].rows, sources[0].columns
    blocks = [delayed(source.read)() for source in sources]
    return (
        da.concatenate([da.from_delayed(block.A, (N, n), float) for block in blocks]),
        da.concatenate([da.from_delayed(block.b, (N,), float) for block in blocks]),
    )


def _coefficients(X: Any, y: Any, solver: str, tolerances: dict[str, Any]) -> np.ndarray:
    """Return what dask-ml (its solvers are dask-glm's) finds for the same problem."""
    from dask_ml.linear_model import LogisticRegression

    model = LogisticRegression(
        solver=solver, C=1 / (L2 * len(X)), fit_intercept=False,
        solver_kwargs={"normalize": False}, **tolerances,
    )  # fmt: skip
    return model.fit(X, y).coef_


def _timed(client: Client, work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, int]:
    """Return what was found, the seconds and how often the workers were asked."""
    rounds, get = 0, client.get

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return get(*args, **options)

    client.get = counted
    began = time.perf_counter()
    try:
        found = work()
    finally:
        client.get = get
    return found, time.perf_counter() - began, rounds


def _by_scipy(problem: Parts) -> tuple[np.ndarray, float, int]:
    before, began = problem.passes, time.perf_counter()
    exact = {"gtol": TOL / np.sqrt(problem.n), "ftol": 0.0, "maxiter": 10_000, "maxfun": 10_000}
    found = scipy.optimize.minimize(
        problem.value_and_gradient, np.zeros(problem.n), jac=True, method="L-BFGS-B", options=exact
    )
    return found.x, time.perf_counter() - began, problem.passes - before


def _tell(name: str, problem: Parts, x: np.ndarray, theirs: float, rounds: int) -> None:
    norm = float(np.linalg.norm(problem.gradient(x)))
    before, began = problem.passes, time.perf_counter()
    ours = solve(problem, tol=norm)
    took = time.perf_counter() - began
    print(
        f"peers: {problem.N:,} x {problem.n}: {name} {theirs:.2f} s in {rounds} rounds, to norm "
        f"{norm:.1e}; auto {took:.2f} s in {problem.passes - before} rounds "
        f"({ours.method}); ratio {took / theirs:.2f}"
    )


def outofcore(client: Client, options: argparse.Namespace) -> None:
    """Solve on more rows than the workers have memory for."""
    with tempfile.TemporaryDirectory(prefix="ode2opt-") as own:
        folder = options.folder or Path(own)
        count = _write_files(client, folder, options)
        files = files_in_parts(folder, label="y")
        once = seconds(lambda: client.gather(client.map(_read_only, files, pure=False)), times=1)
        problem = Parts(Logistic, files, executor=DaskExecutor(client), labels=True, l2=L2)
        began = time.perf_counter()
        result = solve(problem, tol=TOL)
        each = (time.perf_counter() - began) / problem.passes
    peak = sum(client.run(_peak).values())
    print(
        f"outofcore: {options.gigabytes:g} GB in {count} files, workers limited to "
        f"{options.memory_limit / 1e9:g} GB: {result.status.name.lower()} after "
        f"{problem.passes} passes of {each:.2f} s, reading once takes {once:.2f} s, ratio "
        f"{each / once:.2f}; peak memory of all workers {peak / 1e9:.2f} GB"
    )


def _write_files(client: Client, folder: Path, options: argparse.Namespace) -> int:
    """Have the files written that a folder lacks; return how many there are."""
    rows = int(options.gigabytes * 1e9 / 8 / (options.columns + 1))
    count = max(4 * options.workers, int(options.gigabytes * 1e9 / FILE))
    folder.mkdir(parents=True, exist_ok=True)
    lacking = {
        folder / f"{source.seed:04}.parquet": source
        for source in made(rows, options.columns, count)
    }
    lacking = {path: source for path, source in lacking.items() if not path.exists()}
    client.gather(client.map(_write, list(lacking), list(lacking.values())))
    return count


def _write(path: Path, source: Made) -> None:
    import pyarrow
    import pyarrow.parquet

    block = source.read()
    columns = {f"x{j}": block.A[:, j] for j in range(block.A.shape[1])} | {"y": block.b}
    part = path.with_name(f".{path.name}")
    pyarrow.parquet.write_table(pyarrow.table(columns), part, compression="none")
    part.rename(path)


def _read_only(source: Any) -> int:
    return len(source.read())


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def faults(client: Client, options: argparse.Namespace) -> None:
    """Kill a worker at a random time of a solve, again and again."""
    sources, goal = made(40_000, 20, 16), {"method": "newton", "tol": 1e-9}
    due = solve(Parts(Logistic, sources, l2=L2), **goal)
    undisturbed = solve(
        Parts(Logistic, sources, executor=DaskExecutor(client), l2=L2), **goal
    ).seconds
    rng, right, slowest = np.random.default_rng(0), 0, 0.0
    for _ in range(options.kills):
        with started(options) as own:
            problem = Parts(Logistic, sources, executor=DaskExecutor(own), l2=L2)
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
    parser.add_argument("--folder", type=Path, help="where the files of outofcore stay")
    parser.add_argument("--memory-limit", type=float, default=3e9, help="bytes of all workers")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    for name in options.studies or STUDIES:
        limit = int(options.memory_limit) if name == "outofcore" else None
        with started(options, limit) as client:
            STUDIES[name](client, options)


if __name__ == "__main__":
    main()
