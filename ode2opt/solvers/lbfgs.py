"""L-BFGS by scipy, stopped on the same Euclidean gradient norm as every other method."""

from __future__ import annotations

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Run, Stop

CORRECTIONS = 10


def lbfgs(run: Run, x: Array) -> None:
    """Run scipy's L-BFGS-B; every evaluation of value and gradient is an iteration."""
    from scipy.optimize import minimize

    problem = run.problem
    run.accept_non_finite = True  # scipy's line search steps back by itself

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.xp.asarray(point, dtype=problem.dtype)
        value, g = problem.value_and_gradient(here)
        run.calls += 1
        run.observe(here, g)
        return float(value), np.asarray(g, dtype=np.float64)

    options = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": run.max_iter + 1, "maxfun": run.max_iter + 1}
    minimize(
        evaluate, np.asarray(x, dtype=np.float64), jac=True, method="L-BFGS-B", options=options
    )
    raise Stop(Status.LINE_SEARCH)
