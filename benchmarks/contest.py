"""Solvers side by side on one f after the other.

First each solver is run until it is known what takes it to the norm. Who takes thirty times as long
as ours, or half as long again as the fastest peer so far, is not followed further. Then those that
may be the fastest are timed in turn, three rounds, so that what else a machine does falls on all of
them; medians count. Nothing is compiled or imported while a clock runs: all were run before. Who
was left behind in an earlier run, with other code of ours alone, is not searched for again.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from alone import THREADS  # isort: skip - before numpy
import numpy as np
import peer_tables
from data import CELLS, Data
from judging import NO_KERNELS, Ladder, Measured, Peer, Solve, Task, judge_solve, ours, timing
from kept import KeptRows, Row
from threadpoolctl import threadpool_limits
from unseen import UNSEEN

from ode2opt.problems import LinearModel

DATA: dict[str, Callable[[], Data]] = {**CELLS, **UNSEEN}
OWN_METHODS = ("auto", f"auto{NO_KERNELS}")
HOPELESS = 30  # times our time: a peer that took so long without success is not tried further
BEHIND = 1.5  # times the time of the fastest peer so far: the same
RIVAL = 1.3  # times the fastest peer's first time: who is slower takes no part in the rounds
FEW_ROWS = 2_000  # of the data, to run everything once


@dataclass(frozen=True)
class Contest:
    """A loss, what it is fitted to, and the peers that are compared with our methods on it."""

    make: type[LinearModel]
    solvers: dict[str, Solve]
    fits: dict[str, Peer]
    targets: Callable[[np.ndarray], np.ndarray] = lambda b: b

    @property
    def peers(self) -> list[str]:
        """All names but those of our own methods."""
        return [*self.solvers, *self.fits]

    def measure(
        self,
        task: Task,
        names: Sequence[str],
        rows: list[Row],
        *,
        limit: float,
        repeats: int,
        earlier: Sequence[Row | None] = (),
    ) -> None:
        """Fill the rows of one task, which differ in their norms.

        The first name is the lead, whose time says when a peer is too far behind. ``earlier`` are
        the same rows as measured with other code of the package.
        """
        before = list(earlier) or [None] * len(rows)
        found: list[dict[str, Measured]] = [{} for _ in rows]
        for name in names:
            most = self._patience(name, names[0], found, limit)
            ladder = Ladder(self.fits[name], task, most) if name in self.fits else None
            work = self.solvers.get(name) or ours(name)
            for row, so_far, old in zip(rows, found, before, strict=True):
                so_far[name] = (
                    self._remembered(ladder, name, row["tol"], old) or ladder.judge(row["tol"])
                    if ladder
                    else judge_solve(work, task, row["tol"], most)
                )
        for row, so_far in zip(rows, found, strict=True):
            row["methods"] = {name: measured.kept() for name, measured in so_far.items()}
            self._rounds(task, row, so_far, repeats)

    def _remembered(
        self, ladder: Ladder, name: str, tol: float, old: Row | None
    ) -> Measured | None:
        """Return what is known of a peer, whose own code has not changed, from an earlier row.

        One that was far behind the fastest peer is left behind. One that was not is fitted with the
        settings that took it to the norm.
        """
        then = old and old["methods"].get(name)
        if not then:
            return None
        best = peer_tables.fastest(old, list(self.fits))
        if then["seconds"] is None or then["seconds"] > BEHIND * best[0]:
            return Measured(None, then["norm"], "behind")
        return ladder.repeat(tol, then["own"], then["bound"])

    def _patience(
        self, name: str, lead: str, found: Sequence[dict[str, Measured]], limit: float
    ) -> float:
        """Return the seconds that one run of a solver may take."""
        if name not in self.peers:
            return limit
        ends = []
        for so_far in found:
            others = [_seconds(each) for peer, each in so_far.items() if peer in self.peers]
            best = min(others, default=math.inf)
            ends.append(min(HOPELESS * _seconds(so_far[lead]), BEHIND * best))
        return min(limit, max(ends))

    def _rounds(self, task: Task, row: Row, found: dict[str, Measured], repeats: int) -> None:
        """Time the reading of the data, our methods and the fastest peers, in turn."""
        best = min((_seconds(found[name]) for name in found if name in self.peers), default=0.0)
        works: dict[str, Callable[[], object]] = {
            name: each.again
            for name, each in found.items()
            if each.again and (name not in self.peers or _seconds(each) <= RIVAL * best)
        }
        times: dict[str, list[float]] = {name: [] for name in works}
        readings = []
        for _ in range(repeats):
            readings.append(timing(task.read))
            for name, again in works.items():
                times[name].append(timing(again))
        row["reading"] = median(readings)
        for name, each in times.items():
            row["methods"][name]["seconds"] = median(each)

    def warm_up(self, A: Any, b: np.ndarray, names: Sequence[str]) -> None:
        """Run everything once on some of the rows, and our methods on all of them.

        What is imported or compiled on first use, for this kind of matrix, is there afterwards.
        """
        step = max(1, A.shape[0] // FEW_ROWS)
        few = Task(self.make, A[::step], self.targets(b[::step]), 1e-2)
        self.measure(few, names, [{"tol": 1e-2}], limit=5.0, repeats=1)
        whole = Task(self.make, A, self.targets(b), 1e-2)
        for name in names:
            if name not in self.peers:
                judge_solve(ours(name), whole, 1e-3, 60.0)


def _seconds(measured: Measured) -> float:
    return math.inf if measured.seconds is None else measured.seconds


@contextmanager
def quiet() -> Iterator[None]:
    """Limit BLAS and OpenMP where the benchmark has one thread, and ignore warnings."""
    with threadpool_limits(1) if THREADS == "one" else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop early say so at length
        yield


def hold(contest: Contest, arguments: Sequence[str]) -> list[Row]:
    """Measure the cells that are asked for, print them and a summary; return the rows."""
    options = _options(contest, arguments)
    names, lead = [*options.methods, *options.peers], options.methods[0]
    kept = KeptRows(options.json)
    load = lru_cache(maxsize=1)(_load)
    print(f"| data | l2 | norm | {' | '.join(f'{name}: ms' for name in options.methods)} "
          f"| fastest other: ms | {lead} / fastest | readings |")  # fmt: skip
    print("|---" * (6 + len(options.methods)) + "|", flush=True)
    done: list[Row] = []
    warm = None
    with quiet():
        for cell, l2 in ((cell, l2) for cell in options.cells for l2 in options.l2):
            places = [{"cell": cell, "l2": l2, "tol": tol} for tol in options.tol]
            rows = [kept.row(**place) for place in places]
            if not all(set(names) <= row.get("methods", {}).keys() for row in rows):
                A, b = load(cell)
                if warm != cell:
                    contest.warm_up(A, b, names)
                    warm = cell
                for row in rows:
                    row |= {"rows": A.shape[0], "columns": A.shape[1]}
                task = Task(contest.make, A, contest.targets(b), l2)
                limits = {"limit": options.limit, "repeats": options.repeats}
                earlier = [kept.earlier(**place) for place in places]
                contest.measure(task, names, rows, **limits, earlier=earlier)
                kept.save()
            for row in rows:
                print(_line(row, options.methods, options.peers), flush=True)
            done += rows
    kept.save(complete=True)
    for method in options.methods:
        print(peer_tables.summarised(done, method, options.peers).line(method))
    return done


def _load(cell: str) -> Data:
    return DATA[cell]()


def _options(contest: Contest, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line that both contests share."""

    def words(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[float]:
        return [float(word) for word in words(text)]

    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--cells", type=words, default=list(CELLS), help="data sets")
    parser.add_argument("--methods", type=words, default=list(OWN_METHODS), help="first: the lead")
    parser.add_argument("--peers", type=words, default=contest.peers, help="what they are against")
    parser.add_argument("--l2", type=numbers, default=[1e-3, 1e-4, 1e-6])
    parser.add_argument("--tol", type=numbers, default=[1e-6, 1e-3], help="gradient norms")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of timing")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of one fit")
    parser.add_argument(
        "--json", type=Path, help="rows are kept here, and those of the same code not run again"
    )
    options = parser.parse_args(arguments)
    refuse_unknown("--cells", options.cells, DATA)
    refuse_unknown("--peers", options.peers, contest.peers)
    return options


def refuse_unknown(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """End the program with a sentence if a name is not known.

    Args:
        option: what the names were given to.
        names: the names.
        known: those there are.
    """
    known = list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"{option}: there is no {name!r}; there are {', '.join(known)}.")


def _line(row: Row, methods: Sequence[str], peers: Sequence[str]) -> str:
    """Return a row of the printed table."""
    best = peer_tables.fastest(row, peers)
    ratio = peer_tables.ratio_of(row, methods[0], peers)
    own = peer_tables.seconds_of(row, methods[0])
    shown = [row["cell"], f"{row['l2']:g}", f"{row['tol']:g}"]
    shown += [_milliseconds(row, name) for name in methods]
    shown.append("-" if best is None else f"{1e3 * best[0]:.3g} ({best[1]})")
    shown.append("-" if ratio is None else f"{ratio:.2f}")
    shown.append("-" if own is None else f"{own / row['reading']:.3g}")
    return f"| {' | '.join(shown)} |"


def _milliseconds(row: Row, name: str) -> str:
    seconds = peer_tables.seconds_of(row, name)
    if seconds is not None:
        return f"{1e3 * seconds:.3g}"
    norm = row["methods"].get(name, {}).get("norm")
    return "-" if norm is None else f"missed ({norm:.0e})"
