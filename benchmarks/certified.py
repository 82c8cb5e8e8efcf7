"""What a proof costs: tables learned below a cap on their worst case, beside what is proved anyway.

python benchmarks/certified.py [--problems 100] [--steps 36] [--tables DIR] [--record]
                               [PROBLEM DATASET METRIC]...

Logistic a5a and w3a and least squares a5a, with and without the preconditioner, shuffled split.
Learned on training rows, measured on fresh test problems: mean oracle calls to 3e-4. Tables with a
cap are monitored and run under the guard, Nesterov's method and OGM run alone with the family's L.
"none" is a table learned in the same way without a cap. Then each table alone, without monitoring
and guard, on functions as smooth as the family's problems: the worst case of f(y_N) - f* over all
functions after 20 and 40 steps, by the chain of matrix inequalities, and how many of 200 functions
drive it away (adversaries.py). "none" divides by what it was learned at, rho L, and so is attacked
twice: by functions as smooth as the family's (L), and as its own scale (rho L). Seconds are those
of the processor for learning. It needs the extra ``test``.
--record keeps the tables of docs/certificates.md, cell by cell: rows of other cells stay.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from adversaries import driven_away
from recording import RECORD, RESULTS, Table, record

from ode2opt import Family, Method, solve
from ode2opt.base.errors import Ode2OptError
from ode2opt.learning.begin import options_for, start_run
from ode2opt.learning.sequence.certified.objective import BarrierObjective
from ode2opt.learning.sequence.certified.run import CertifiedStage
from ode2opt.learning.sequence.certified.training import train_rows
from ode2opt.problems.base import Problem
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.table import two_step_rows
from ode2opt.solvers import METHODS

CELLS = [
    (problem, dataset, metric)
    for problem, dataset in (("logistic", "a5a"), ("logistic", "w3a"), ("leastsquares", "a5a"))
    for metric in ("auto", "none")
]
CAPS = (1.0, 2.0, 5.0, 10.0)
TOL, HORIZON, MOST = 3e-4, 400, 5_000
STREAM = 9  # of seeds, beside those of training
COLUMNS = ("problem", "Nesterov", "OGM", "L-BFGS", *(f"cap {cap:g}" for cap in CAPS), "none")
ATTACKED = (*COLUMNS[4:], "none (own scale)")


class Uncapped(BarrierObjective):
    """The count alone: no rows are beyond the cap."""

    def __call__(self, learned: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        """Return the mean soft count and its derivative.

        Args:
            learned: the rows.
            mu: not used.
        """
        count, slope = self.count(learned)
        known = np.isfinite(count) and np.all(np.isfinite(slope))
        return (count, slope) if known else (np.inf, 0 * learned)


def main() -> None:
    """Learn, measure and attack each table; print a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--steps", type=int, default=36)
    parser.add_argument("--tables", type=Path, help="keep learned tables here, and take them")
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args()
    named = options.cells
    cells = list(zip(named[::3], named[1::3], named[2::3], strict=True)) or CELLS
    tables = {"calls": Table(*COLUMNS), "seconds": Table("problem", *COLUMNS[4:], quiet=True)} | {
        key: Table("problem", *ATTACKED, quiet=True)
        for key in ("adversaries", "worst20", "worst40")
    }
    for problem, dataset, metric in cells:
        family = Family.from_dataset(problem, dataset, split="shuffled")
        name = f"{problem} {dataset}{'' if metric == 'none' else ' (preconditioned)'}"
        kept = options.tables and options.tables / f"{problem}-{dataset}-{metric}"
        found, seconds = kept_or_learned(family, metric, options.steps, kept)
        tests = [family.sample([STREAM, i], part="test") for i in range(options.problems)]
        calls = [alone(found[0], tests, one) for one in ("nag", "ogm")]
        calls += [mean_calls(tests, "lbfgs"), *(mean_calls(tests, one) for one in found)]
        tables["calls"].add(name, *(f"{one:.1f}" for one in calls))
        tables["seconds"].add(name, *(f"{one:.0f}" for one in seconds))
        for key, cells_of in attacks(found).items():
            tables[key].add(name, *cells_of)
        for key, table in tables.items():
            print(f"{key}:", *table.rows[-1], sep=" | ", flush=True)
        if options.record:
            record("certified", with_others(tables))


def kept_or_learned(
    family: Family, metric: str, steps: int, folder: Path | None
) -> tuple[list[Method], list[float]]:
    """Return the tables of a family and the processor's seconds that each took to learn."""
    names = [f"{column.replace(' ', '')}.safetensors" for column in COLUMNS[4:]]
    if folder is not None and (folder / "seconds.json").exists():
        seconds = json.loads((folder / "seconds.json").read_text())
        return [Method.load(folder / name) for name in names], seconds
    found, seconds = learned(family, metric, steps)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, method in zip(names, found, strict=True):
            method.save(folder / name)
        (folder / "seconds.json").write_text(json.dumps(seconds))
    return found, seconds


def with_others(tables: dict[str, Table]) -> dict[str, Table]:
    """Return tables with the rows of the results file for cells that were not run."""
    kept = json.loads((RESULTS / "certified.json").read_text(encoding="utf-8"))["tables"]
    found = {}
    for key, table in tables.items():
        found[key] = Table(*table.columns, quiet=True)
        new = {row[0]: row for row in table.rows}
        old = {row[0]: row for row in kept.get(key, {"rows": []})["rows"]}
        found[key].rows = list((old | new).values())
    return found


def learned(family: Family, metric: str, steps: int) -> tuple[list[Method], list[float]]:
    """Return the tables of all caps and last one without a cap, and the seconds of each."""
    found, times = [], [time.process_time()]
    for cap in CAPS:
        given = {"target": "sequence", "certified": cap, "metric": metric, "steps": steps}
        run = start_run(family, options_for(given | {"horizon": HORIZON}), None, False)
        found.append(run.run())
        times.append(time.process_time())
    assert isinstance(run.stage, CertifiedStage)
    found.append(uncapped(run.stage, found[-1]))
    times.append(time.process_time())
    return found, np.diff(times).tolist()


def uncapped(run: CertifiedStage, method: Method) -> Method:
    """Learn a table as a run does, without its cap."""
    maker = run.maker
    L = run.learned_at
    objective = Uncapped(
        maker.rows, run.cap, run.instances(), L, maker.tol, min(HORIZON, 3 * maker.rows.count)
    )
    rows = maker.rows.first()
    for step in train_rows(objective, run.options.knots, run.options.steps):
        rows = step.rows
    return method.replace(schedule=maker.schedule(rows), proof=None, monitored=None, family_scale=L)


def alone(method: Method, tests: Sequence[Problem], name: str) -> float:
    """Return the calls of a classical method at the family's L, in the same preconditioner."""
    build = METHODS[name].schedule
    assert build is not None
    table = method.replace(schedule=build(MOST), proof=None, monitored=None)
    return mean_calls(tests, table, "none")


def mean_calls(tests: Sequence[Problem], method: str | Method, handover: str = "guard") -> float:
    """Return the mean oracle calls to the tolerance; infinity where it is not reached."""
    results = [
        solve(
            one, one.start().x0, method=method, tol=TOL, max_iter=MOST, handover=handover,
        )
        for one in tests
    ]  # fmt: skip
    return float(np.mean([one.oracle_calls if one.success else np.inf for one in results]))


def rows_at(method: Method, L: float) -> np.ndarray:
    """Return the rows of a table, divided by its own scale, in units of 1/L."""
    assert method.family_scale is not None
    return two_step_rows(method.table()) * [1.0, L / method.family_scale, L / method.family_scale]


def attacks(found: Sequence[Method]) -> dict[str, list[str]]:
    """Return the rows of the attacks: all tables at the family's L, the last at its own, too."""
    L, own = found[0].family_scale, found[-1].family_scale
    assert L is not None
    assert own is not None
    attacked = [*((one, L) for one in found), (found[-1], own)]
    return {
        "adversaries": [adversaries(*one) for one in attacked],
        "worst20": [worst(*one, 20) for one in attacked],
        "worst40": [worst(*one, 40) for one in attacked],
    }


def worst(method: Method, L: float, steps: int) -> str:
    """Return the worst case of f(y_N) - f* over L-smooth functions, in L |x0 - x*|^2."""
    try:
        return f"{worst_case(rows_at(method, L), steps).tau:.3g}"
    except Ode2OptError:  # it grows beyond the solver's precision
        return "beyond the solver"


def adversaries(method: Method, L: float) -> str:
    """Return how many of 200 functions drive the table away, and how high the highest goes."""
    count, total, most = driven_away(rows_at(method, L))
    return f"{count} of {total} ({most:.2g})"


if __name__ == "__main__":
    main()
