"""What a proof costs: tables learned below a cap on their worst case, beside what is proved anyway.

python benchmarks/certified.py [--problems 30] [--steps 100] [--record] [PROBLEM DATASET METRIC]...

Logistic a5a and w3a and least squares a5a, with and without the preconditioner, shuffled split.
Learned on training rows, measured on fresh test problems: mean oracle calls to 3e-4. Tables with a
cap are monitored and run under the guard, Nesterov's method and OGM run alone with the family's L.
"none" is a table learned in the same way without a cap. Then 200 one-dimensional quadratics and
Huber functions are given to each table alone, at its own L: how many end above where they began.
--record keeps the tables of docs/certificates.md, cell by cell: rows of other cells stay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np
from recording import RECORD, RESULTS, Table, record

from ode2opt import Family, Method, Schedule, solve
from ode2opt.dynamics.proofs.two_step import two_step_rows
from ode2opt.learning.begin import options_for, start_run
from ode2opt.learning.sequence.certified.objective import BarrierObjective
from ode2opt.learning.sequence.certified.run import CertifiedRun
from ode2opt.learning.sequence.certified.training import train_rows
from ode2opt.problems.base import Problem
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
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args()
    named = options.cells
    cells = list(zip(named[::3], named[1::3], named[2::3], strict=True)) or CELLS
    calls, attacked = Table(*COLUMNS), Table("problem", *COLUMNS[4:], quiet=True)
    for problem, dataset, metric in cells:
        family = Family.from_dataset(problem, dataset, split="shuffled")
        name = f"{problem} {dataset}{'' if metric == 'none' else ', preconditioned'}"
        tables = learned(family, metric, options.steps)
        tests = [family.sample([STREAM, i], part="test") for i in range(options.problems)]
        first = tables[0]
        found = [alone(first, tests, one) for one in ("nag", "ogm")]
        found += [mean_calls(tests, "lbfgs"), *(mean_calls(tests, one) for one in tables)]
        calls.add(name, *(f"{one:.1f}" for one in found))
        attacked.add(name, *(str(driven_away(one.table())) for one in tables))
        print("driven away:", *attacked.rows[-1], flush=True)
        if options.record:
            record("certified", with_others({"calls": calls, "adversaries": attacked}))


def with_others(tables: dict[str, Table]) -> dict[str, Table]:
    """Return tables with the rows of the results file for cells that were not run."""
    kept = json.loads((RESULTS / "certified.json").read_text(encoding="utf-8"))["tables"]
    found = {}
    for key, table in tables.items():
        found[key] = Table(*table.columns, quiet=True)
        new = {row[0]: row for row in table.rows}
        old = {row[0]: row for row in kept[key]["rows"]}
        found[key].rows = list((old | new).values())
    return found


def learned(family: Family, metric: str, steps: int) -> list[Method]:
    """Return the tables of all caps, and last one without a cap."""
    found = []
    for cap in CAPS:
        given = {"target": "sequence", "certified": cap, "metric": metric, "steps": steps}
        run = start_run(family, options_for(given | {"horizon": HORIZON}), None, False)
        assert isinstance(run, CertifiedRun)
        found.append(run.run())
    return [*found, uncapped(run, found[-1])]


def uncapped(run: CertifiedRun, method: Method) -> Method:
    """Learn a table as a run does, without its cap."""
    maker = run.maker
    L = run.rho * maker.L
    objective = Uncapped(
        maker.rows, run.cap, run.instances(), L, maker.tol, min(HORIZON, 3 * maker.rows.count)
    )
    *_, last = train_rows(objective, run.options.knots, run.options.steps)
    return method.replace(
        schedule=maker.schedule(last.rows), proof=None, monitored=None, family_scale=L
    )


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


def driven_away(table: Schedule) -> int:
    """Return how many of 200 functions with curvature at most 1 end above where they began."""
    c = np.linspace(0.01, 1.0, 100)
    huber = np.arange(200) >= 100
    c = np.concatenate([c, c])

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.where(huber, np.clip(x, -c, c), c * x)

    def value(x: np.ndarray) -> np.ndarray:
        far = c * np.abs(x) - c**2 / 2
        return np.where(huber, np.where(np.abs(x) <= c, x**2 / 2, far), c * x**2 / 2)

    y, before, g_before = np.ones(200), np.ones(200), np.zeros(200)
    with np.errstate(over="ignore", invalid="ignore"):
        for m, p, q in two_step_rows(table):
            g = gradient(y)
            y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
        return int(np.sum(~(value(y) <= value(np.ones(200)))))


if __name__ == "__main__":
    main()
