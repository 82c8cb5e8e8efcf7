"""Proximal Newton on rows: some of the rows first, and the columns that matter."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.penalties import Penalty, Pieces, Separable
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.composite.newton import newton
from ode2opt.solvers.composite.quadratic_models import (
    NARROW,
    is_by_columns,
    sampled_rows,
    working_set,
)
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.stages.subsample import Subsamples

# Tuned on a5a, phishing, covtype20k and made data (docs/measurements/penalties.md).
ROWS_PER_COLUMN = (4, 16)  # of the samples that are solved first
NOISE = 0.3  # of the sampling error of a sample's gradient: more exact is wasted
PART = 0.5  # of all variables: a larger working set is all of them
SOLVED = 0.1  # of the residual: a working set is not solved further
INSIDE = 0.5  # of the tolerance: nor further than this
ROUNDS = 40  # of working sets
STEPS = 100  # of Newton on a sample or a working set


class ProximalNewton(Stage):
    """Proximal Newton; for a separable penalty on samples of rows and working sets of columns."""

    name = "proximal-newton"

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log("proximal Newton")
        problem = oracle.problem
        on_host = isinstance(problem, LinearModel) and isinstance(problem.b, np.ndarray)
        if not on_host or oracle.penalty.pieces() is None:
            return newton(oracle, point)
        assert isinstance(problem, LinearModel)
        by_columns = is_by_columns(problem)
        if by_columns:
            outcome = newton(oracle, point, "hasty")
            if outcome.ended is not Ended.CHEAPER or outcome.point is None:
                return outcome
            point = outcome.point
        elif not problem.quadratic:
            point = _after_samples(oracle, problem, point)
        outcome = _by_working_sets(oracle, problem, point)
        if not by_columns or outcome.ended is not Ended.MANY_VARIABLES or outcome.point is None:
            return outcome
        return newton(oracle, outcome.point, "patient")


def _after_samples(oracle: Oracle, problem: LinearModel, point: Evaluated) -> Evaluated:
    """Return the point that samples of rows lead to; the given one where that is no lower."""
    sizes = [count * problem.n for count in ROWS_PER_COLUMN]
    sizes = [size for size in sizes if size <= problem.largest_sample()]
    if not sizes:
        return point
    x = point.x
    for part in Subsamples(oracle, problem).of(sizes):
        error = NOISE * part.gradient_error(part.xp.asarray(x, dtype=part.dtype))
        share = part.N / problem.N
        x = _solved(oracle, part, oracle.penalty, x, max(error, oracle.tol), share)
    found = oracle.evaluate(x)
    return found if found.value <= point.value else point


def _by_working_sets(oracle: Oracle, problem: LinearModel, here: Evaluated) -> Outcome:
    """Solve for the variables that move or should, then look at all of them again."""
    pieces = oracle.penalty.pieces()
    assert pieces is not None
    pieces = pieces.each(problem.n)
    whole = (problem.sparse and problem.n <= NARROW) or sampled_rows(problem)
    for _ in range(0 if whole else ROUNDS):
        chosen = working_set(oracle.penalty, pieces, here)
        if len(chosen) >= PART * problem.n:
            break
        part = problem.with_columns(chosen[chosen < problem.columns])
        penalty = Separable(Pieces(*(one[chosen] for one in pieces)))
        x, tol = here.x.copy(), max(INSIDE * oracle.tol, SOLVED * here.norm)
        share = part.entries() / max(1, problem.entries())
        x[chosen] = _solved(oracle, part, penalty, here.x[chosen], tol, share)
        new = oracle.evaluate(x)
        if not (new.value < here.value or new.norm < here.norm):
            return Outcome(Ended.LINE_SEARCH, here)
        here = new
        if (outcome := oracle.judge(here)) is not None:
            return outcome
    return newton(oracle, here)


def _solved(
    oracle: Oracle,
    part: RowModel,
    penalty: Penalty,
    x: np.ndarray,
    tol: float,
    share: float,
) -> np.ndarray:
    """Return the solution on some rows or columns, or the nearest that proximal Newton comes."""
    left = oracle.max_seconds - oracle.seconds
    inner = Oracle(Objective(part, penalty), tol=tol, max_iter=STEPS, max_seconds=left)
    with suppress(Stop):
        start = inner.begin_if_finite(x)
        if start is None:  # what fits fewer rows may overflow on these
            return x
        if isinstance(part, LinearModel) and part.n == oracle.problem.n:
            _by_working_sets(inner, part, start)
        else:
            newton(inner, start)
    oracle.charge(inner.calls * share)
    oracle.check_time()
    return x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)
