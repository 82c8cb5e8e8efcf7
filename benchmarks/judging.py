"""Solvers side by side: each is judged by its time to one Euclidean gradient norm of one f.

Our methods stop at that norm by themselves. A peer with a tolerance of its own is fitted with a
ladder of tolerances, from loose to tight; what counts is the time of the fit alone with the loosest
one whose solution has the norm. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import alone  # noqa: F401 - before numpy
import numpy as np
import peer_tables
import recording
from data import CELLS, Data
from peer_tables import Row
from recording import RECORD, Table
from threadpoolctl import threadpool_limits

from ode2opt import solve
from ode2opt.problems import LinearModel

OWN_METHODS = ("auto", "newton", "lbfgs", "lbfgs-scipy")
LADDER = tuple(10.0**-k for k in range(-1, 13))
FIRST_BOUND = 10  # iterations; more once it is known what one costs
HOPELESS = 30  # times our time: a peer that took so long without success is not tried further
CLEAR = 3  # times our time: a peer so far behind is timed once
LARGE = 20_000  # rows
CLOSE = 1.1
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """One f: mean loss on (A, b) plus l2/2 |x|^2."""

    make: type[LinearModel]
    A: Any
    b: np.ndarray
    l2: float

    def problem(self) -> LinearModel:
        """Return a new problem, as a user would make it."""
        return self.make(self.A, self.b, l2=self.l2)

    @cached_property
    def judge(self) -> LinearModel:
        """The problem that solutions are judged on."""
        return self.problem()

    @property
    def start(self) -> np.ndarray:
        """Zero, where everyone starts."""
        return np.zeros(self.A.shape[1])

    def norm(self, x: np.ndarray) -> float:
        """Return the Euclidean norm of the gradient at ``x``."""
        return float(np.linalg.norm(self.judge.gradient(x)))


Solve = Callable[[Task, float, float], np.ndarray]
"""Task, gradient norm, seconds at most: a solver that stops at the norm. Returns x."""
Fit = Callable[[Task, float, int], tuple[np.ndarray, int]]
"""Task, tolerance of its own, iterations at most. Returns x and the iterations made."""
Both = Callable[[np.ndarray], tuple[Any, np.ndarray]]
"""A function that returns its value and its gradient."""


@dataclass(frozen=True)
class Peer:
    """A package's solver that knows only a tolerance of its own."""

    fit: Fit
    most_columns: float = math.inf


@dataclass(frozen=True)
class Measured:
    """What came out: seconds where the norm was reached, and what it took or why not."""

    seconds: float | None
    norm: float | None
    setting: str

    @classmethod
    def missed(cls, norms: Iterable[float], why: str) -> Measured:
        """Return a failure with the best norm seen."""
        return cls(None, min(filter(math.isfinite, norms), default=None), why)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long one call takes, and its answer."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def ours(name: str) -> Solve:
    """Return one of our methods; making the problem is part of its time."""

    def work(task: Task, tol: float, seconds: float) -> np.ndarray:
        return solve(task.problem(), task.start, method=name, tol=tol, max_seconds=seconds).x

    return work


class Reached(Exception):  # noqa: N818 - no error
    """The gradient is small enough, or the time is up."""


class Watch:
    """A function with its gradient that sees when the norm is first reached, and can stop there."""

    def __init__(
        self,
        both: Callable[[np.ndarray], Any],
        tol: float,
        *,
        stop: bool,
        seconds: float = math.inf,
    ) -> None:
        self.both, self.tol, self.stop = both, tol, stop
        self.until = time.perf_counter() + seconds
        self.calls, self.reached, self.norm = 0, math.inf, math.inf
        self.x: np.ndarray | None = None

    def __call__(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        value, g = self.both(x)
        self.calls += 1
        norm = math.sqrt(float(g @ g))
        if norm < self.norm:
            self.norm, self.x = norm, x.copy()
        if norm <= self.tol:
            self.reached = min(self.reached, self.calls)
        if self.stop and (norm <= self.tol or time.perf_counter() > self.until):
            raise Reached
        return value, g


def judge_solve(work: Solve, task: Task, tol: float, limit: float, repeats: int) -> Measured:
    """Measure a solver that stops at the norm by itself."""
    seconds, x = timed(lambda: work(task, tol, limit))
    norm = task.norm(x)
    if not norm <= tol:
        return Measured.missed([norm], "cut" if seconds > limit else "missed")
    again = [timed(lambda: work(task, tol, limit))[0] for _ in range(repeats - 1)]
    return Measured(median([seconds, *again]), norm, "norm")


@dataclass(frozen=True)
class Rung:
    """One fit of a ladder."""

    seconds: float
    norm: float
    bound: int
    cut: bool


@dataclass
class Ladder:
    """A peer's fits on one task, each tolerance tried once, in about ``limit`` seconds each."""

    peer: Peer
    task: Task
    limit: float
    bound: int = FIRST_BOUND
    rungs: dict[float, Rung] = field(default_factory=dict)

    def judge(self, tol: float, repeats: int, once_above: float = math.inf) -> Measured:
        """Measure the loosest fit that reaches the norm; only once if it is slower than said."""
        if self.task.A.shape[1] > self.peer.most_columns:
            return Measured.missed([], "skipped")
        own = self._loosest(tol)
        if own is None:
            cut = any(rung.cut for rung in self.rungs.values())
            return Measured.missed(
                (r.norm for r in self.rungs.values()), "cut" if cut else "missed"
            )
        rung = self.rungs[own]
        repeats = 1 if rung.seconds > once_above else repeats
        again = [self._fit(own, rung.bound)[0] for _ in range(repeats - 1)]
        return Measured(median([rung.seconds, *again]), rung.norm, f"{own:.1e}")

    def _loosest(self, tol: float) -> float | None:
        """Return the loosest tolerance that reaches the norm, to half a power of ten."""
        for i, own in enumerate(LADDER):
            rung = self._rung(own)
            if rung.norm <= tol:
                between = own * math.sqrt(10)
                return between if i and self._rung(between).norm <= tol else own
            if rung.cut:
                return None
        return None

    def _rung(self, own: float) -> Rung:
        if own not in self.rungs:
            self.rungs[own] = self._climb(own)
        return self.rungs[own]

    def _climb(self, own: float) -> Rung:
        """Fit with more and more iterations until the peer stops by itself or the time is up."""
        while True:
            seconds, (x, iterations) = self._fit(own, self.bound)
            used_up = iterations >= self.bound
            if not used_up or seconds > self.limit / 2:
                cut = used_up or seconds > self.limit
                return Rung(seconds, self.task.norm(x), self.bound, cut)
            self.bound = min(10 * self.bound, math.ceil(self.bound * self.limit / seconds))

    def _fit(self, own: float, bound: int) -> tuple[float, tuple[np.ndarray, int]]:
        return timed(lambda: self.peer.fit(self.task, own, bound))


# A contest over all cells -------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """A loss, what it is fitted to, and the peers that are compared with our methods on it.

    ``tables`` makes those of its results file from the rows that were measured.
    """

    name: str
    make: type[LinearModel]
    solvers: dict[str, Solve]
    fits: dict[str, Peer]
    targets: Callable[[np.ndarray], np.ndarray] = lambda b: b
    tables: Callable[[Sequence[Row], str, Sequence[str]], dict[str, Table]] = peer_tables.tables
    results: str = "peers"

    @property
    def peers(self) -> list[str]:
        """All names but those of our own methods."""
        return [*self.solvers, *self.fits]

    def measure(
        self, task: Task, names: Sequence[str], rows: list[Row], *, limit: float, repeats: int
    ) -> None:
        """Add what the rows of one task, which differ in their norms, do not know yet.

        The first name is the lead, whose time says when a peer is too far behind.
        """
        for name in names:
            if all(name in row["methods"] for row in rows):
                continue
            most = limit
            if name in self.peers:
                most = min(limit, HOPELESS * max(seconds_of(row, names[0]) for row in rows))
            ladder = Ladder(self.fits[name], task, most) if name in self.fits else None
            for row in rows:
                if ladder:
                    clear = CLEAR * seconds_of(row, names[0])
                    found = ladder.judge(row["tol"], repeats, clear)
                else:
                    work = self.solvers.get(name) or ours(name)
                    found = judge_solve(work, task, row["tol"], most, repeats)
                row["methods"][name] = vars(found)

    def warm_up(self, names: Sequence[str]) -> None:
        """Run everything once on a small problem: what is imported on first use is loaded."""
        A, b = CELLS["breast_cancer"]()
        task = Task(self.make, A, self.targets(b), 1e-2)
        self.measure(task, names, [{"tol": 1e-2, "methods": {}}], limit=5.0, repeats=1)


class Record:
    """The rows measured so far, kept in a JSON file where one is named."""

    def __init__(self, path: Path | None, resume: bool) -> None:
        self.path = path
        known = path is not None and resume and path.exists()
        self.rows: list[Row] = json.loads(path.read_text()) if known else []

    def row(self, cell: str, l2: float, tol: float) -> Row:
        """Return the row of a cell, a new one where there is none."""
        place = {"cell": cell, "l2": l2, "tol": tol}
        for row in self.rows:
            if place.items() <= row.items():
                return row
        self.rows.append({**place, "methods": {}})
        return self.rows[-1]

    def save(self) -> None:
        """Write the file anew."""
        if self.path is not None:
            self.path.write_text(json.dumps(self.rows, indent=1) + "\n")


def hold(contest: Contest, arguments: Sequence[str]) -> dict[str, float]:
    """Measure the cells that are asked for, print a table and return the summary."""
    options = _options(contest, arguments)
    names = [*options.methods, *options.peers]
    record = Record(options.json, options.resume)
    load = lru_cache(maxsize=1)(_load)
    own = " | ".join(f"{name} ms" for name in options.methods)
    lead = options.methods[0]
    print(f"| cell | l2 | tol | {own} | best peer | its ms | {lead}/peer | {lead}/fastest |")
    print("|---" * (7 + len(options.methods)) + "|", flush=True)
    done: list[Row] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop early say so at length
        contest.warm_up(names)
        for cell, l2 in ((cell, l2) for cell in options.cells for l2 in options.l2):
            rows = [record.row(cell, l2, tol) for tol in options.tol]
            if any(name not in row["methods"] for row in rows for name in names):
                A, b = load(cell)
                for row in rows:
                    row |= {"rows": A.shape[0], "columns": A.shape[1]}
                task = Task(contest.make, A, contest.targets(b), l2)
                contest.measure(task, names, rows, limit=options.limit, repeats=options.repeats)
                record.save()
            for row in rows:
                print(_line(row, options.methods, options.peers), flush=True)
            done += rows
    if options.record:
        recording.record(contest.results, contest.tables(done, lead, options.peers))
    return _summary(contest.name, done, lead, options.peers, names)


def _load(cell: str) -> Data:
    return CELLS[cell]()


def _options(contest: Contest, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line that both contests share."""

    def words(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[float]:
        return [float(word) for word in words(text)]

    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--cells", type=words, default=list(CELLS), help="of benchmarks/data.py")
    parser.add_argument("--methods", type=words, default=list(OWN_METHODS), help="first: the lead")
    parser.add_argument("--peers", type=words, default=contest.peers, help="what they are against")
    parser.add_argument("--l2", type=numbers, default=[1e-3, 1e-4, 1e-6])
    parser.add_argument("--tol", type=numbers, default=[1e-6, 1e-3], help="gradient norms")
    parser.add_argument("--repeats", type=int, default=3, help="timings of the fit that counts")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of one fit")
    parser.add_argument("--json", type=Path, help="kept up to date after every task")
    parser.add_argument("--resume", action="store_true", help="take what the JSON file has")
    parser.add_argument(RECORD, action="store_true", help="keep the tables of the pages")
    return parser.parse_args(arguments)


def seconds_of(row: Row, name: str) -> float:
    """Return a method's seconds, infinite where it failed or is not known."""
    seconds = row["methods"].get(name, {}).get("seconds")
    return math.inf if seconds is None else seconds


def fastest(row: Row, names: Iterable[str]) -> tuple[float, str]:
    """Return seconds and name of the fastest, or infinity and a dash."""
    return min(((seconds_of(row, name), name) for name in names), default=(math.inf, "-"))


def _ratio(row: Row, lead: str, names: Iterable[str]) -> float:
    """Return the lead's time over that of the fastest: NaN where none of these succeeded."""
    best = fastest(row, names)[0]
    return seconds_of(row, lead) / best if math.isfinite(best) else math.nan


def _milliseconds(row: Row, name: str) -> str:
    seconds = seconds_of(row, name)
    if math.isfinite(seconds):
        return f"{1e3 * seconds:.1f}"
    norm = row["methods"].get(name, {}).get("norm")
    return "-" if norm is None else f"missed ({norm:.0e})"


def _line(row: Row, methods: list[str], peers: list[str]) -> str:
    """Return a row of the table."""
    seconds, best = fastest(row, peers)
    shown = [row["cell"], f"{row['l2']:g}", f"{row['tol']:g}"]
    shown += [_milliseconds(row, name) for name in methods]
    shown += [best, f"{1e3 * seconds:.1f}"] if math.isfinite(seconds) else ["none", "-"]
    shown += [f"{_ratio(row, methods[0], names):.2f}" for names in (peers, [*methods, *peers])]
    return f"| {' | '.join(shown)} |"


def _summary(
    name: str, rows: list[Row], lead: str, peers: list[str], names: list[str]
) -> dict[str, float]:
    """Print and return the means over the rows where a peer reached the norm, and the worst."""
    against = [(row["rows"], _ratio(row, lead, peers)) for row in rows]
    overall = [(_ratio(row, lead, names), row) for row in rows]
    overall = [(ratio, row) for ratio, row in overall if not math.isnan(ratio)]
    worst, where = max(overall, key=lambda pair: pair[0], default=(math.nan, None))
    found = {
        f"{name}_geomean_large": _geometric_mean(r for size, r in against if size >= LARGE),
        f"{name}_geomean_all": _geometric_mean(r for _, r in against),
        f"{name}_within_1_1": float(np.mean([ratio <= CLOSE for ratio, _ in overall] or math.nan)),
        f"{name}_worst": worst,
    }
    print()
    for key, number in found.items():
        print(f"{key}: {number:.3f}")
    if where is not None:
        print(f"worst at {where['cell']}, l2 {where['l2']:g}, tol {where['tol']:g}")
    return {key: round(number, 3) for key, number in found.items()}


def _geometric_mean(ratios: Iterable[float]) -> float:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return float(np.exp(np.mean(np.log(known)))) if known else math.nan
