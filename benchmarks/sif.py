"""The scipy adapter on the unconstrained problems of the CUTEst collection, beside L-BFGS-B.

    pip install 'ode2opt[bench,learn]'
    python benchmarks/sif.py [--only ROSENBR,...] [--tol 1e-6] [--seconds 20] [--record]

The problems are sif2jax's with up to 1,000 variables, most of them not convex. Both methods are run
through ``scipy.optimize.minimize`` from the collection's start point; what counts is how often
value and gradient were asked for, up to the first point whose gradient has at most the norm
``tol``. A status is true if it says that the tolerance was reached just where the gradient at the
answer, taken anew, has such a norm. --record keeps the tables of
docs/scipy.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any, NamedTuple

import alone  # noqa: F401 - before numpy
import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from recording import RECORD, Table, record
from scipy.optimize import minimize

from ode2opt.integrations.scipy import minimizer

MOST_VARIABLES = 1_000
MOST_EVALUATIONS = 20_000
TARGET = 1.2

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Over(Exception):  # noqa: N818 - the way a run ends
    """Too many evaluations, or too long."""


class Counted:
    """A function that counts, and keeps when its gradient was first small enough."""

    def __init__(self, function: Function, tol: float, seconds: float) -> None:
        self.function, self.tol = function, tol
        self.until = time.perf_counter() + seconds
        self.calls, self.reached = 0, math.inf

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self.calls >= MOST_EVALUATIONS or time.perf_counter() > self.until:
            raise Over
        self.calls += 1
        value, g = self.function(x)
        if np.linalg.norm(g) <= self.tol:
            self.reached = min(self.reached, self.calls)
        return value, g


class Row(NamedTuple):
    """One problem: evaluations to the tolerance of both (infinity: not reached), and our status."""

    name: str
    n: int
    ours: float
    theirs: float
    status: str
    true: bool


def problems() -> Iterator[tuple[str, np.ndarray, Function]]:
    """Go through the collection: name, start point, value with gradient, compiled."""
    import sif2jax

    jax.config.update("jax_enable_x64", True)
    for problem in sif2jax.unconstrained_minimisation_problems:
        if problem.num_variables() > MOST_VARIABLES:
            continue
        start = ravel_pytree(problem.y0)
        yield (
            str(problem.name),
            np.asarray(start[0], dtype=np.float64),
            _compiled(problem, start[1]),
        )


def _compiled(problem: Any, shaped: Callable[[Any], Any]) -> Function:
    both = jax.jit(jax.value_and_grad(lambda x: problem.objective(shaped(x), problem.args)))

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = both(x)
        return float(value), np.asarray(g, dtype=np.float64)

    return function


def compare(name: str, x0: np.ndarray, function: Function, tol: float, seconds: float) -> Row:
    """Solve one problem in both ways."""
    function(x0)  # compiled
    theirs = Counted(function, tol, seconds)
    options = {"maxiter": MOST_EVALUATIONS, "maxfun": MOST_EVALUATIONS, "ftol": 0.0}
    try:
        gtol = tol / math.sqrt(len(x0))  # of the largest entry
        minimize(theirs, x0, jac=True, method="L-BFGS-B", options=options | {"gtol": gtol})
    except Over:
        pass
    ours = Counted(function, tol, 2 * seconds)
    limits = {"maxiter": MOST_EVALUATIONS, "max_seconds": seconds}
    try:
        found = minimize(ours, x0, jac=True, method=minimizer("auto"), tol=tol, options=limits)
    except Over:
        return Row(name, len(x0), math.inf, theirs.reached, "none: cut off", False)
    norm = float(np.linalg.norm(function(found.x)[1]))
    status, true = found.message, found.success == (norm <= tol)
    return Row(name, len(x0), ours.reached, theirs.reached, status, true)


def shown(calls: float) -> str:
    """Return a number of evaluations, or a dash."""
    return f"{calls:.0f}" if math.isfinite(calls) else "-"


def summary(rows: Sequence[Row], tol: float) -> list[str]:
    """Return the sentences under the table."""
    theirs = [row for row in rows if math.isfinite(row.theirs)]
    both = [row for row in theirs if math.isfinite(row.ours)]
    lost = [row.name for row in theirs if not math.isfinite(row.ours)]
    won = [row.name for row in rows if math.isfinite(row.ours) and not math.isfinite(row.theirs)]
    lines = [
        f"{len(rows)} problems; {sum(row.true for row in rows)} end with a true status.",
        f"L-BFGS-B reaches {tol:g} on {len(theirs)}, ode2opt on {len(both) + len(won)}; "
        f"L-BFGS-B alone on {', '.join(lost) or 'none'}; "
        f"ode2opt alone on {', '.join(won) or 'none'}.",
    ]
    if both:
        mean = geometric_mean(row.ours / row.theirs for row in both)
        lines.append(
            f"Evaluations beside L-BFGS-B's, geometric mean over the {len(both)} problems of both: "
            f"{mean:.2f} (target: at most {TARGET})."
        )
    return lines


def tables(rows: Sequence[Row], tol: float) -> dict[str, Table]:
    """Return the page's tables: what the problems come to, and each of them."""
    ours, theirs = ({row.name for row in rows if math.isfinite(row[i])} for i in (2, 3))
    both = [row for row in rows if row.name in ours & theirs]
    mean = geometric_mean(row.ours / row.theirs for row in both) if both else math.nan
    found = Table("what", "ode2opt", "L-BFGS-B", quiet=True)
    found.add("problems", len(rows), len(rows))
    found.add(f"gradient norm {tol:g} reached", len(ours), len(theirs))
    found.add("reached by this one alone", len(ours - theirs), len(theirs - ours))
    found.add("status true", sum(row.true for row in rows), None)
    ratio = f"evaluations on the {len(both)} of both, geometric mean of the ratio"
    found.add(ratio, f"{mean:.2f}", "1.00")
    each = Table("problem", "variables", "ode2opt", "L-BFGS-B", "status", quiet=True)
    for row in rows:
        each.add(row.name, row.n, _count(row.ours), _count(row.theirs), row.status)
    return {"summary": found, "problems": each}


def _count(calls: float) -> int | None:
    return int(calls) if math.isfinite(calls) else None


def main(arguments: Sequence[str] = ()) -> list[Row]:
    """Print a line for each problem and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args(arguments)
    chosen = set(filter(None, options.only.split(",")))
    rows = []
    for name, x0, function in problems():
        if chosen and name not in chosen:
            continue
        row = compare(name, x0, function, options.tol, options.seconds)
        rows.append(row)
        print(
            f"{row.name:12} {row.n:5}  ours {shown(row.ours):>6}  L-BFGS-B {shown(row.theirs):>6}  "
            f"{'' if row.true else 'UNTRUE: '}{row.status}",
            flush=True,
        )
    print(*summary(rows, options.tol), sep="\n")
    if options.record:
        record("scipy", tables(rows, options.tol))
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
