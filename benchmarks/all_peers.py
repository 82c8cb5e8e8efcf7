"""Everything that is measured beside other people's solvers, into results files: ``make peers``.

    python benchmarks/all_peers.py [--only twelve,a5a] [--quick] [--fresh] [--partial]

Each data set of each part is measured in a process of its own. What is done is kept in build/peers,
so that a run that was interrupted goes on with the same command; rows of other code, versions or
machines are measured again. A part whose data sets are all there is written to benchmarks/results,
and `make tables` puts it into the pages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import alone
import estimator_tables
import kept
import peer_tables
import recording
from contest import CELLS, UNSEEN, refuse_unknown
from estimators import KINDS, MATRICES, UNSEEN_CV_CELLS
from recording import RESULTS, Table

FOLDER = Path(__file__).parents[1] / "build" / "peers"
ESTIMATOR_CELLS = tuple(cell for cell in MATRICES if cell not in UNSEEN_CV_CELLS or cell in CELLS)
CODE = ["ode2opt/solvers", "ode2opt/kernels", "benchmarks/contest.py", "benchmarks/judging.py"]
MORE_CODE = {"estimators.py": ["ode2opt/integrations/sklearn"]}  # by script
QUICK = ("breast_cancer", "phishing")
QUICK_OPTIONS = {"peers.py": ("--l2", "1e-4", "--repeats", "1"), "estimators.py": ("--repeat", "1")}
QUICK_OPTIONS["ridge_peers.py"] = QUICK_OPTIONS["peers.py"]

Rows = Sequence[dict[str, Any]]


def _of_estimators(rows: Rows) -> dict[str, Table]:
    return estimator_tables.side_by_side([estimator_tables.Row(**row) for row in rows])


def _of_cv(rows: Rows) -> dict[str, Table]:
    return estimator_tables.cross_validation([estimator_tables.Row(**row) for row in rows])


@dataclass(frozen=True)
class Part:
    """A script, the data sets that it is run on, how many threads it has, and its results file."""

    title: str
    about: str
    script: str
    cells: tuple[str, ...]
    threads: str
    results: str
    tables: Callable[[Rows], dict[str, Table]] = peer_tables.tables
    options: tuple[str, ...] = ()


def _parts() -> dict[str, Part]:
    """Return all parts by name: each for one thread, and then for all."""
    logistic = (
        "Logistic regression without intercept, from 0, to the same gradient norm: auto beside the "
        "fastest of scipy, scikit-learn, glum and Snap ML"
    )
    some = {
        "unseen": Part(
            "five unseen", f"{logistic}, on data that no constant was chosen on.",
            "peers.py", tuple(UNSEEN), "one", "unseen_peers",
        ),
        "twelve": Part("twelve", f"{logistic}.", "peers.py", tuple(CELLS), "one", "peers"),
        "ridge": Part(
            "least squares",
            "Least squares: auto beside the fastest of scikit-learn's Ridge and scipy's lsqr.",
            "ridge_peers.py", tuple(CELLS), "one", "ridge_peers",
        ),
        "estimators": Part(
            "estimators", "Our estimators beside the fastest solver of their namesakes.",
            "estimators.py", ESTIMATOR_CELLS, "one", "estimators", _of_estimators,
            ("--only", ",".join(KINDS)),
        ),
        "cv": Part(
            "LogisticRegressionCV", "LogisticRegressionCV beside its namesake's fastest solver.",
            "estimators.py", UNSEEN_CV_CELLS, "one", "cross_validation", _of_cv, ("--only", "cv"),
        ),
    }  # fmt: skip
    both = {}
    for name, part in some.items():
        both[name] = part
        both[f"{name}-threads"] = replace(part, threads="all", results=f"{part.results}_threads")
    return both


PARTS = _parts()


def chosen(only: Sequence[str], quick: bool) -> dict[str, tuple[str, ...]]:
    """Return the data sets of each part that is to be measured.

    Args:
        only: names of parts, of data sets, or of both; all where nothing is named.
        quick: take no more than the data sets of ``QUICK``.
    """
    every = list(dict.fromkeys(cell for part in PARTS.values() for cell in part.cells))
    refuse_unknown("--only", only, [*PARTS, *every])
    names = [name for name in PARTS if name in only] or list(PARTS)
    cells = [cell for cell in only if cell in every] or every
    if quick and not set(only) & set(every):
        cells = list(QUICK)
    found = {name: tuple(c for c in PARTS[name].cells if c in cells) for name in names}
    if not any(found.values()):
        raise SystemExit(f"--only: {', '.join(names)}: there is no {', '.join(cells)} in it.")
    return {name: own for name, own in found.items() if own}


def command(part: Part, cell: str, path: Path, quick: bool) -> list[str]:
    """Return the command that measures one data set."""
    script = str(Path(__file__).parent / part.script)
    more = QUICK_OPTIONS[part.script] if quick else ()
    return [sys.executable, script, *part.options, "--cells", cell, "--json", str(path), *more]


def run(
    work: Mapping[str, Sequence[str]], folder: Path, quick: bool, ran: Callable[..., Any]
) -> list[str]:
    """Measure one data set after the other; return those whose process failed.

    Args:
        work: the data sets by part.
        folder: where rows are kept.
        quick: with fewer settings.
        ran: what runs a command: ``subprocess.run``.
    """
    failed, began = [], time.monotonic()
    for name, cells in work.items():
        for cell in cells:
            minutes = (time.monotonic() - began) / 60
            print(f"\n{name}: {cell} ({minutes:.0f} minutes so far)", flush=True)
            line = command(PARTS[name], cell, folder / name / f"{cell}.json", quick)
            variables = {key: text for key, text in os.environ.items() if key not in alone.NAMES}
            variables[alone.VARIABLE] = PARTS[name].threads
            if ran(line, env=variables).returncode:
                failed.append(f"{name}: {cell}")
    return failed


@dataclass
class Found:
    """A part's rows, the loads under which they were measured, and incomplete data sets."""

    rows: list[dict[str, Any]]
    loads: list[float]
    missing: list[str]


def found_of(name: str, folder: Path) -> Found:
    """Return what is kept of a part and was measured with this code on this machine.

    Args:
        name: the part.
        folder: where rows are kept.
    """
    part, found = PARTS[name], Found([], [], [])
    now = kept.circumstances() | {"threads": part.threads}
    for cell in part.cells:
        path = folder / name / f"{cell}.json"
        cell_file = kept.read(path) if path.exists() else {}
        if cell_file.get("circumstances") == now:
            found.rows += cell_file["rows"]
            found.loads += cell_file["loads"]
        if cell_file.get("circumstances") != now or not cell_file.get("complete"):
            found.missing.append(cell)
    return found


def machine_of(name: str, loads: Sequence[float]) -> str:
    """Return the machine with threads and load: more load than threads is other people's work.

    Args:
        name: the part.
        loads: averages of a minute, while it was measured.
    """
    threads = "one thread" if PARTS[name].threads == "one" else "all threads"
    load = f", load average {min(loads):.0f} to {max(loads):.0f}" if loads else ""
    return f"{recording.machine()}, {threads}{load}"


def told(name: str, tables: Mapping[str, Table]) -> list[str]:
    """Return the lines that sum a part up.

    Args:
        name: the part.
        tables: its tables; that of the summary is told, or that of the ratios.
    """
    part = PARTS[name]
    threads = "one thread" if part.threads == "one" else "all threads"
    table = tables.get("summary") or tables["ratios"]
    return [
        f"{part.title}, {threads}, {row[0]}: "
        + ", ".join(
            f"{c} {'-' if x is None else x}"
            for c, x in zip(table.columns[1:], row[1:], strict=True)
        )
        for row in table.rows
    ]


def finish(folder: Path, partial: bool, results: Path | None = RESULTS) -> None:
    """Print what the parts say, and write the results files of those that are complete.

    Args:
        folder: where rows are kept.
        partial: write those that are not complete, too.
        results: where results files are; None writes nothing.
    """
    print()
    for name, part in PARTS.items():
        found = found_of(name, folder)
        if not found.rows:
            continue
        tables = part.tables(found.rows)
        print("\n".join(told(name, tables)))
        if found.missing:
            print(f"{name}: not measured in full with this code: {', '.join(found.missing)}.")
        if results is not None and (partial or not found.missing):
            own = {
                "about": part.about,
                "command": "make peers",
                "machine": machine_of(name, found.loads),
                "code": [*CODE, *MORE_CODE.get(part.script, []), f"benchmarks/{part.script}"],
            }
            recording.record(part.results, tables, results, own)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure what is asked for and sum it up; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="parts and data sets, with commas between them")
    parser.add_argument("--quick", action="store_true", help="two small data sets; no pages")
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    parser.add_argument("--partial", action="store_true", help="write incomplete parts, too")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where rows are kept")
    options = parser.parse_args(arguments)
    work = chosen([word for word in options.only.split(",") if word], options.quick)
    folder = options.folder / "quick" if options.quick else options.folder
    if options.fresh:
        for name, cells in work.items():
            for cell in cells:
                (folder / name / f"{cell}.json").unlink(missing_ok=True)
    try:
        failed = run(work, folder, options.quick, subprocess.run)
    except KeyboardInterrupt:
        print("\nInterrupted. What is done is kept: the same command goes on.")
        return 130
    finish(folder, options.partial, None if options.quick else RESULTS)
    for each in failed:
        print(f"{each} failed: see above.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
