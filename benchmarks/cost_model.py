"""The cost model of docs/measurements/clusters.md: constants, six checks, what it says of more.

    python benchmarks/cost_model.py [constants] [check] [rounds] [paper] [--record]

constants: measured with 1 and 2 workers; check: seconds of a round, predicted and measured, in six
configurations, two of them with added latency; rounds: how many auto, L-BFGS and consensus ADMM
take on small problems of two kinds; paper: seconds and core hours on 10, 100 and 1,000 workers, and
docs/pictures/scaling-out.svg. What is measured is kept in benchmarks/cost_model.json, and with
--record, where all is measured anew, in the tables of the page.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import recording
import scipy.sparse as sp
from consensus import Found, by_lbfgs, by_newton, consensus
from dask_rounds import L2, TOL, Made

from ode2opt import Logistic, Parts, solve
from ode2opt.executor import LocalExecutor
from ode2opt.integrations.dask import DaskExecutor, open_executor
from ode2opt.integrations.dask.workers import FEW
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN
from ode2opt.problems.parts import Block
from ode2opt.problems.parts.problem import LARGEST_SAMPLE

KEPT = Path(__file__).with_suffix(".json")
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "scaling-out.svg"
TIMES = 11  # rounds a measurement: the median counts
NUMBER = 8  # bytes
NETWORK = {"latency": 5e-4, "bandwidth": 1.25e9}  # of a cluster: seconds a way, bytes a second
FLEETS = (10, 100, 1_000)
WITHIN = 0.3
MOST = 300  # rounds of ADMM
SAMPLE_GRADIENTS = 80  # of a sample's solves and Hessian, about
NOT_WORTH = 0.8  # of the seconds: where twice the workers leave more of them, they are not worth it
GREY = "#808080"  # reads on white and on black
LOOKS = {"auto": ("#56B4E9", "o"), "L-BFGS": ("#E69F00", "s"), "ADMM": ("#CC79A7", "^")}


@dataclass(frozen=True)
class Sparse(Made):
    """Rows of so many numbers at random places, made wherever they are needed.

    With a ``skew`` above 1 the first columns have more of them, as words of a text.
    """

    per_row: int = 20
    skew: float = 1.0

    @property
    def bytes(self) -> int:
        return 12 * self.rows * self.per_row

    def read(self) -> Block:
        rng = np.random.default_rng(self.seed)
        places = rng.random((self.rows, self.per_row)) ** self.skew
        columns = np.sort((self.columns * places).astype(np.int32), axis=1)
        values = rng.standard_normal(columns.size)
        ends = np.arange(0, columns.size + 1, self.per_row, dtype=np.int32)
        A = sp.csr_array((values, columns.ravel(), ends), shape=(self.rows, self.columns))
        A.sum_duplicates()
        truth = np.random.default_rng(0).standard_normal(self.columns)
        noise = rng.standard_normal(self.rows) * math.sqrt(self.per_row)
        return Block(A, (A @ truth + noise > 0).astype(float))


@dataclass(frozen=True)
class Size:
    """A problem on workers: ``per_row`` entries a row, all columns where it is None."""

    rows: float
    columns: int
    workers: int
    parts: int
    per_row: int | None = None
    latency: float = 0.0
    skew: float = 1.0

    def sources(self) -> list[Made]:
        each = int(self.rows) // self.parts
        if self.per_row is None:
            return [Made(i + 1, each, self.columns) for i in range(self.parts)]
        more = (each, self.columns, self.per_row, self.skew)
        return [Sparse(i + 1, *more) for i in range(self.parts)]

    def __str__(self) -> str:
        kind = "" if self.per_row is None else f", {self.per_row} a row"
        late = f", {1e3 * self.latency:g} ms more" if self.latency else ""
        size = f"{self.rows:,.0f} x {self.columns:,}{kind}"
        return f"{size}, {self.workers} workers, {self.parts} parts{late}"


class Late(Logistic):
    """A loss whose parts answer late, as over a slow network."""

    delay = 0.0

    def value_and_gradient(self, x: Any) -> Any:
        time.sleep(self.delay)
        return super().value_and_gradient(x)


def late(delay: float) -> type[Logistic]:
    return type("Late", (Late,), {"delay": delay})


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    with open_executor("local", workers) as executor:
        yield executor.client


def a_round(client: Any, size: Size) -> list[float]:
    """Return the seconds of some rounds of value and gradient, after the first two."""
    kind = late(size.latency) if size.latency else Logistic
    problem = Parts(kind, size.sources(), executor=DaskExecutor(client), l2=L2)
    x, found = np.full(problem.n, 0.01), []
    for _ in range(TIMES + 2):
        began = time.perf_counter()
        problem.value_and_gradient(x)
        found.append(time.perf_counter() - began)
    return found[2:]


# Constants ---------------------------------------------------------------------------------------

WIDE = 200_000  # columns
DENSE, NARROW, SPARSE = (2e5, 100), (8e5, 10), (2e5, 10_000, 20)


def constants() -> dict[str, float]:
    """Return what a round costs, from runs with 1 and 2 workers."""
    with cluster(1) as client:
        one = median(a_round(client, Size(2, 2, 1, 1)))
        many = median(a_round(client, Size(128, 2, 1, 64)))
        wide = median(a_round(client, Size(2, WIDE, 1, 1, per_row=2)))
        wide_parts = median(a_round(client, Size(32, WIDE, 1, 16, per_row=2)))
        both = a_round(client, Size(*DENSE, 1, 4))
        dense, narrow = median(both), median(a_round(client, Size(*NARROW, 1, 4)))
        sparse = median(a_round(client, Size(SPARSE[0], SPARSE[1], 1, 4, per_row=SPARSE[2])))
    with cluster(2) as client:
        two = median(a_round(client, Size(4, 2, 2, 2)))
        double = median(a_round(client, Size(2 * DENSE[0], DENSE[1], 2, 8)))
    worker = max(0.0, two - one)
    number = max(0.0, (wide_parts - wide) / 15 / WIDE)
    byte = max(0.0, (wide - one) - number * WIDE) / (2 * NUMBER * WIDE)
    part = max(0.0, (many - one) / 63)
    of_dense, of_narrow = (dense - one - 3 * part) / DENSE[0], (narrow - one - 3 * part) / NARROW[0]
    entry = (of_dense - of_narrow) / (DENSE[1] - NARROW[1])
    row = max(0.0, of_narrow - NARROW[1] * entry)
    left = sparse - one - 3 * part - SPARSE[1] * (4 * number + 2 * NUMBER * byte)
    return {
        "entry_dense": entry, "entry_sparse": (left / SPARSE[0] - row) / SPARSE[2], "row": row,
        "contention": (double - two) / (dense - one), "round": max(0.0, one - worker),
        "worker": worker, "part": part, "number": number, "byte": byte,
        "spread": stdev(both) / mean(both),
    }  # fmt: skip


def asked(workers: int) -> list[int]:
    """Return how many workers one asks on each level of a round."""
    levels = []
    while workers > 0:
        levels.append(min(FEW, workers))
        workers = -(-workers // FEW) - 1
    return levels


def predicted(size: Size, c: dict[str, float], network: dict[str, float] | None = None) -> float:
    """Return the seconds of a round.

    With a network, workers are machines of their own that do not share memory, as many are as slow
    as the spread has it, and messages take its latency and bandwidth.
    """
    entries = size.columns if size.per_row is None else size.per_row
    entry = c["entry_dense"] if size.per_row is None else c["entry_sparse"]
    share, own = size.rows / size.workers, max(1.0, size.parts / size.workers)
    work = share * (entries * entry + c["row"]) + own * (c["part"] + c["number"] * size.columns)
    levels, byte, way = asked(size.workers), c["byte"], size.latency
    if network is None:
        work *= c["contention"] if size.workers > 1 else 1.0
    else:
        work *= 1 + c["spread"] * math.sqrt(2 * math.log(max(2, size.workers)))
        byte += 1 / network["bandwidth"]
        way += 2 * network["latency"] * len(levels)
    message = c["worker"] + byte * 2 * NUMBER * size.columns
    return work + c["round"] + sum(levels) * message + way


SIX = [
    Size(6e5, 50, 1, 4),
    Size(1.2e6, 50, 2, 8),
    Size(2e5, 200, 2, 16),
    Size(5e5, 20_000, 2, 8, per_row=20),
    Size(4e5, 50, 2, 2, latency=5e-3),
    Size(2e5, 50_000, 2, 2, per_row=20, latency=20e-3),
]


def check(c: dict[str, float]) -> list[dict[str, Any]]:
    """Return the six configurations with seconds, predicted and measured."""
    found = []
    for workers in sorted({size.workers for size in SIX}):
        with cluster(workers) as client:
            for size in (size for size in SIX if size.workers == workers):
                took = median(a_round(client, size))
                found.append({"what": str(size), "predicted": predicted(size, c), "measured": took})
    return found


# Rounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of problem: how it is scaled down to count rounds, and how large it is on paper."""

    name: str
    small: Size
    large: Size
    blocks: tuple[int, ...]


KINDS = [
    Kind("dense", Size(5e4, 100, 1, 100), Size(1e9, 100, 1, 1), (10, 100)),
    Kind("sparse", Size(1e5, 6_000, 1, 10, 100, skew=4.0), Size(1e8, 100_000, 1, 1, 100), (10,)),
]


def rounds_of(kind: Kind) -> dict[str, Any]:
    """Return the rounds of each method to the tolerance, and their work in gradients.

    A Hessian is a round of many gradients' work; ADMM's gradients are those of a round.
    """
    sources = kind.small.sources()
    read = [source.read() for source in sources]
    problem = Parts(Logistic, [(one.A, one.b) for one in read], executor=LocalExecutor(), l2=L2)
    found: dict[str, Any] = {}
    for name, method in (("auto", "auto"), ("L-BFGS", "lbfgs")):
        before, result = problem.passes, solve(problem, method=method, tol=TOL)
        assert result.success, name
        rounds = problem.passes - before
        found[name] = {"rounds": rounds, "gradients": result.oracle_calls, "how": result.method}
    local = by_newton if kind.small.per_row is None else by_lbfgs
    for count in kind.blocks:
        groups = np.array_split(np.arange(len(read)), count)
        blocks = [_joined([read[i] for i in group]) for group in groups]
        seen: Found = consensus(blocks, problem, local, TOL, MOST)
        found[f"ADMM, {count} blocks"] = vars(seen) | {"reached": seen.grad_norm <= TOL}
    return found


def _joined(blocks: list[Block]) -> Logistic:
    stacked = sp.vstack if sp.issparse(blocks[0].A) else np.concatenate
    A = stacked([one.A for one in blocks])
    return Logistic(A.tocsr() if sp.issparse(A) else A, np.concatenate([one.b for one in blocks]))


# On paper ----------------------------------------------------------------------------------------


def seconds_on(kind: Kind, name: str, workers: int, kept: dict[str, Any], way: float) -> float:
    """Return the seconds of a solve by a method; ADMM's blocks are the workers' rows."""
    c, counted = kept["constants"], kept["rounds"][kind.name]
    large, network = kind.large, NETWORK | {"latency": way}
    size = Size(large.rows, large.columns, workers, workers, large.per_row)
    each = predicted(size, c, network)
    none = predicted(Size(0, large.columns, workers, workers, large.per_row), c, network)
    if name != "ADMM":
        seen = counted[name]
        client = on_client(kind, c) if name == "auto" else 0.0
        return client + seen["rounds"] * none + seen["gradients"] * (each - none)
    seen = counted[max((key for key in counted if key.startswith("ADMM")), key=len)]
    return seen["rounds"] * (none + seen["gradients"] * (each - none))


def on_client(kind: Kind, c: dict[str, float]) -> float:
    """Return the seconds of auto on the client, at most: the largest sample, brought and solved."""
    columns = kind.large.columns
    if columns > LARGEST_DENSE_HESSIAN:
        return 0.0
    rows = LARGEST_SAMPLE / (NUMBER * columns)
    solving = SAMPLE_GRADIENTS * rows * (columns * c["entry_dense"] + c["row"])
    return LARGEST_SAMPLE / NETWORK["bandwidth"] + solving


def last_worthwhile(kind: Kind, name: str, kept: dict[str, Any], way: float) -> int:
    """Return the number of workers from which on twice as many are not worth it."""
    workers = 1
    while workers < 10**6:
        now, twice = (seconds_on(kind, name, w, kept, way) for w in (workers, 2 * workers))
        if twice > NOT_WORTH * now:
            break
        workers *= 2
    return workers


def paper(kept: dict[str, Any]) -> None:
    """Print the tables and draw the picture."""
    for kind in KINDS:
        print(f"{kind.name}: {kind.large.rows:,.0f} x {kind.large.columns:,}")
        for name in LOOKS:
            told = []
            for workers in FLEETS:
                ways = (NETWORK["latency"], 10 * NETWORK["latency"])
                took, slow = (seconds_on(kind, name, workers, kept, way) for way in ways)
                hours = workers * took / 3600
                told.append(f"{workers:,}: {took:,.1f} s, {hours:,.2g} core hours ({slow:,.1f} s)")
            last = last_worthwhile(kind, name, kept, NETWORK["latency"])
            print(f"  {name}: {'; '.join(told)}; worthwhile up to {last:,} workers")
    draw(kept)


def draw(kept: dict[str, Any]) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    fleets = 2 ** np.arange(1, 15)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ode2opt"}):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        for axes, kind in zip(figure.subplots(1, 2), KINDS, strict=True):
            for name, (colour, marker) in LOOKS.items():
                way = NETWORK["latency"]
                took = [seconds_on(kind, name, int(w), kept, way) for w in fleets]
                axes.loglog(fleets, took, color=colour, label=name)
                last = last_worthwhile(kind, name, kept, way)
                if last <= fleets[-1]:
                    axes.plot(last, seconds_on(kind, name, last, kept, way), marker, color=colour)
            size = f"{kind.large.rows:.0e} x {kind.large.columns:,}"
            axes.set_title(f"{size}, {kind.name}", color=GREY)
            axes.set_xlabel("workers", color=GREY)
            axes.tick_params(which="both", colors=GREY)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["left", "bottom"]].set_color(GREY)
        figure.axes[0].set_ylabel("seconds", color=GREY)
        named, place = figure.axes[0].get_legend_handles_labels(), "outside upper right"
        figure.legend(*named, frameon=False, labelcolor=GREY, loc=place, ncols=3)
        figure.savefig(PICTURE, transparent=True, metadata={"Date": None})


def told(c: dict[str, float]) -> str:
    nano = ", ".join(f"{name} {1e9 * c[name]:.3g} ns" for name in
                     ("entry_dense", "entry_sparse", "row", "number", "byte"))  # fmt: skip
    milli = ", ".join(f"{name} {1e3 * c[name]:.3g} ms" for name in ("round", "worker", "part"))
    return f"{nano}; {milli}; contention {c['contention']:.2f}, spread {c['spread']:.3f}"


STUDIES = ("constants", "check", "rounds", "paper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument(recording.RECORD, action="store_true", help="after all studies")
    options = parser.parse_args()
    studies = options.studies or STUDIES
    if options.record and set(studies) != set(STUDIES):
        parser.error("--record keeps what one run has measured: leave out the names of studies.")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if "constants" in studies:
        kept["constants"] = constants()
        print(f"constants: {told(kept['constants'])}")
    if "check" in studies:
        kept["check"] = check(kept["constants"])
        for one in kept["check"]:
            ratio = one["predicted"] / one["measured"]
            sign = "" if abs(ratio - 1) <= WITHIN else ", not within 30%"
            print(
                f"check: {one['what']}: predicted {1e3 * one['predicted']:.1f} ms, measured "
                f"{1e3 * one['measured']:.1f} ms, ratio {ratio:.2f}{sign}"
            )
    if "rounds" in studies:
        kept["rounds"] = {kind.name: rounds_of(kind) for kind in KINDS}
        for kind in KINDS:
            print(f"rounds: {kind.small}: {json.dumps(kept['rounds'][kind.name])}")
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    if "paper" in studies:
        paper(kept)
    if options.record:
        from cost_tables import tables  # which imports this module

        recording.record("cost_model", tables(kept))


if __name__ == "__main__":
    main()
