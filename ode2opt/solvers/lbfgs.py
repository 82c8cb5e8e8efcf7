"""L-BFGS by scipy, stopped on the same Euclidean gradient norm as every other method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ode2opt.problems._arrays import Array, copy
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Evaluation, Run, Stop

CORRECTIONS = 10
Evaluate = Callable[[np.ndarray], Evaluation]


def lbfgs(
    run: Run,
    x: Array,
    metric: Operator | None = None,
    scale: float = 1.0,
    first: Evaluation | None = None,
) -> None:
    """Run scipy's L-BFGS-B; every evaluation of value and gradient is an iteration.

    In a metric it minimises f(x + r S y) over y. scipy's first trial has length one in y, so
    r = |S^T g(x)| / scale makes the first trial x - M g(x) / scale. ``first`` is the evaluation at
    ``x`` where it is known.
    """
    run.accept_non_finite = True  # scipy's line search steps back by itself
    first, base = first or _evaluate(run, x), copy(x)
    if metric is None:
        known = iter([first])
        _minimise(run, lambda point: next(known, None) or _evaluate(run, point), x)
    slope = metric.root_transposed(run.problem.xp.asarray(first[1], dtype=run.problem.dtype))
    r = math.sqrt(float(slope @ slope)) / scale

    def in_metric(y: np.ndarray) -> Evaluation:
        xp, dtype = run.problem.xp, run.problem.dtype
        at_start = not np.any(y)
        point = base + r * metric.root(xp.asarray(y, dtype=dtype))
        value, g = first if at_start else _evaluate(run, point)
        pulled = r * metric.root_transposed(xp.asarray(g, dtype=dtype))
        return value, np.asarray(pulled, dtype=np.float64)

    _minimise(run, in_metric, np.zeros(run.problem.n))


def _evaluate(run: Run, point: Array) -> Evaluation:
    problem = run.problem
    here = problem.xp.asarray(point, dtype=problem.dtype)
    if not bool(problem.xp.all(problem.xp.isfinite(here))):  # scipy's memory has underflowed
        raise Stop(Status.LINE_SEARCH)
    return run.evaluate(here)


def _minimise(run: Run, evaluate: Evaluate, start: Array) -> NoReturn:
    from scipy.optimize import minimize

    options = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": run.max_iter + 1, "maxfun": run.max_iter + 1}
    minimize(
        evaluate, np.asarray(start, dtype=np.float64), jac=True, method="L-BFGS-B", options=options
    )
    raise Stop(Status.LINE_SEARCH)
