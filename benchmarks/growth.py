"""How time and memory grow with rows and columns, against the best of scikit-learn.

    python benchmarks/growth.py [--most-rows 1e5] [--most-columns 300] [--plot FILE] [--record]

Logistic regression on correlated dense data, l2 = 1e-4, to a gradient norm of 1e-6, on one thread.
Memory is what a solve adds to the data at its peak, measured in a process of its own (Linux).
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import alone  # noqa: F401 - before numpy
import data
import numpy as np
import scipy.sparse as sp
from contest import Contest, quiet
from judging import Task
from kept import Row
from overhead import peak_added
from peer_tables import fastest, seconds_of
from peers import SCIKIT_LEARN
from recording import RECORD, Table, record

from ode2opt import Logistic, solve

L2, TOL = 1e-4, 1e-6
ROWS = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = (10, 30, 100, 300, 1_000, 3_000)
USUAL_ROWS, USUAL_COLUMNS = 20_000, 100
PEERS = ("sklearn-lbfgs", "sklearn-newton-cholesky", "sklearn-newton-cg")
CONTEST = Contest(Logistic, {}, {name: SCIKIT_LEARN[name] for name in PEERS})
MEMORY_COLUMNS = 1_000  # at least: other memory hides a smaller n x n matrix
SPARSE_ROWS, SPARSE_ENTRIES = 100_000, 100  # entries of a row


@dataclass(frozen=True)
class Timed:
    """Seconds on one size of data."""

    rows: int
    columns: int
    ours: float
    best: float
    name: str

    def line(self) -> str:
        """Return a row of the table."""
        return (
            f"| {self.rows:,} | {self.columns:,} | {self.ours:.4f} | {self.best:.4f} | "
            f"{self.name} | {self.ours / self.best:.2f} |"
        )


def timed(rows: int, columns: int, options: argparse.Namespace) -> Timed:
    """Return our time and that of scikit-learn's best."""
    task = Task(Logistic, *data.correlated(rows, columns), L2)
    row: Row = {"tol": TOL}
    names = [options.method, *PEERS]
    CONTEST.measure(task, names, [row], limit=options.limit, repeats=options.repeats)
    own, best = seconds_of(row, options.method), fastest(row, PEERS)
    if own is None or best is None:
        raise SystemExit(f"{rows:,} x {columns:,}: the gradient norm was not reached in time.")
    return Timed(rows, columns, own, *best)


def dense_memory(columns: int, method: str) -> float:
    """Return the added memory over that of an n x n matrix."""
    A, b = data.correlated(USUAL_ROWS, columns)
    return _added(A, b, method) / (8 * columns**2)


def wide(rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return sparse rows with ten times as many columns, and labels."""
    rng = np.random.default_rng(5)
    columns = 10 * rows
    index = rng.integers(0, columns, (rows, SPARSE_ENTRIES), dtype=np.int32)
    index.sort(axis=1)
    ends = np.arange(0, index.size + 1, SPARSE_ENTRIES, dtype=np.int32)
    A = sp.csr_matrix((rng.standard_normal(index.size), index.ravel(), ends), (rows, columns))
    return A, (rng.random(rows) < 0.5).astype(float)


def size_of(A: sp.csr_matrix) -> int:
    """Return the bytes of a sparse matrix."""
    return int(A.data.nbytes + A.indices.nbytes + A.indptr.nbytes)


def fit_memory(rows: int, solver: str) -> float:
    """Return what a fit with an intercept takes at its peak, rows included, in their bytes."""
    from ode2opt.integrations.sklearn import LogisticRegression

    model = LogisticRegression(solver=solver)
    model.fit(*data.text(500, 5_000))
    A, b = wide(rows)
    return 1 + peak_added(lambda: model.fit(A, b)) / size_of(A)


def sparse_memory(rows: int, method: str) -> float:
    """Return the added memory over that of a sparse matrix with ten times as many columns."""
    A, b = wide(rows)
    return _added(A, b, method) / size_of(A)


def _added(A: sp.csr_matrix | np.ndarray, b: np.ndarray, method: str) -> int:
    """Return the bytes a solve adds at its peak, once everything it uses is loaded."""
    for small in (data.correlated(2_000, 200), data.text(500, 5_000)):
        solve(Logistic(*small, l2=L2), np.zeros(small[0].shape[1]), method=method, tol=TOL)
    start = np.zeros(A.shape[1])
    return peak_added(lambda: solve(Logistic(A, b, l2=L2), start, method=method, tol=TOL))


def in_new_process(measure: Callable[[int, str], float], size: int, method: str) -> float:
    """Return a measure from a process whose memory nothing else has used."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (size, method))


def draw(by_rows: list[Timed], by_columns: list[Timed], method: str, path: Path) -> None:
    """Draw seconds over rows and over columns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    parts = (("rows", by_rows), ("columns", by_columns))
    for axis, (over, series) in zip(axes, parts, strict=True):
        sizes = [getattr(point, over) for point in series]
        axis.loglog(sizes, [point.ours for point in series], "o-", label=method)
        axis.loglog(sizes, [point.best for point in series], "s--", label="best of scikit-learn")
        axis.set_xlabel(over)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(path, dpi=150)


def tables(over_rows: Sequence[Timed], over_columns: Sequence[Timed]) -> dict[str, Table]:
    """Return the page's tables: seconds, and what they are of scikit-learn's best."""
    names = f"{USUAL_COLUMNS} columns, rows:", f"{USUAL_ROWS:,} rows, columns:"
    return {
        "rows": _over("rows", names[0], over_rows),
        "columns": _over("columns", names[1], over_columns),
    }


def _over(size: str, name: str, series: Sequence[Timed]) -> Table:
    table = Table(name, *(f"{getattr(point, size):,}" for point in series), quiet=True)
    table.add("auto, seconds", *(f"{point.ours:.2g}" for point in series))
    table.add("of scikit-learn's best", *(f"{point.ours / point.best:.2f}" for point in series))
    return table


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Print the tables; return the worst ratio of seconds and the memory ratios."""
    options = _options(arguments)
    sizes = [(rows, USUAL_COLUMNS) for rows in ROWS if rows <= options.most_rows]
    split = len(sizes)
    sizes += [(USUAL_ROWS, columns) for columns in COLUMNS if columns <= options.most_columns]
    print(f"| rows | columns | {options.method} s | best s | best of scikit-learn | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    series = []
    with quiet():
        CONTEST.warm_up(*data.correlated(2_000, USUAL_COLUMNS), [options.method, *PEERS])
        for rows, columns in sizes:
            series.append(timed(rows, columns, options))
            print(series[-1].line(), flush=True)
    if options.plot:
        draw(series[:split], series[split:], options.method, options.plot)
    if options.record:
        record("growth", tables(series[:split], series[split:]))
    found = {"growth_worst_ratio": max(point.ours / point.best for point in series)}
    return {key: round(ratio, 3) for key, ratio in (found | _memory(options)).items()}


def _memory(options: argparse.Namespace) -> dict[str, float]:
    """Print and return the memory ratios."""
    found = {}
    print("\n| data | added at the peak |\n|---|---|")
    for n in COLUMNS:
        if MEMORY_COLUMNS <= n <= options.most_columns:
            ratio = in_new_process(dense_memory, n, options.method)
            found[f"growth_memory_dense_{n}"] = ratio
            print(f"| dense, {USUAL_ROWS:,} x {n:,} | {ratio:.2f} of 8 n^2 bytes |", flush=True)
    rows = min(SPARSE_ROWS, options.most_rows)
    ratio = in_new_process(sparse_memory, rows, options.method)
    print(f"| sparse, {rows:,} x {10 * rows:,} | {ratio:.2f} of the matrix |", flush=True)
    fit = in_new_process(fit_memory, rows, options.method)
    print(
        f"| sparse fit with an intercept | {fit:.2f} of the matrix, itself included |", flush=True
    )
    return found | {"growth_memory_sparse": ratio, "growth_memory_fit": fit}


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    def count(text: str) -> int:
        return int(float(text))

    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--most-rows", type=count, default=ROWS[-1])
    parser.add_argument("--most-columns", type=count, default=COLUMNS[-1])
    parser.add_argument("--repeats", type=int, default=3, help="timings of the fit that counts")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one fit")
    parser.add_argument("--plot", type=Path, help="a picture of both curves")
    parser.add_argument(RECORD, action="store_true", help="keep the tables of the pages")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
