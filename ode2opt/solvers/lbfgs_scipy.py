"""scipy's L-BFGS-B, stopped on the same Euclidean gradient norm: the independent reference."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ode2opt.problems._arrays import Array
from ode2opt.solvers.lbfgs import CORRECTIONS
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Run, Stop


def lbfgs_scipy(run: Run, x: Array) -> NoReturn:
    """Run scipy's L-BFGS-B; every evaluation of value and gradient is an iteration."""
    from scipy.optimize import minimize

    run.tell("scipy's L-BFGS-B")

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.all(np.isfinite(point)):  # scipy's memory has underflowed
            raise Stop(Status.LINE_SEARCH)
        here = run.begin(point.copy()) if run.k < 0 else run.evaluate(point.copy())
        return here.value, here.g

    options = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": run.max_iter + 1, "maxfun": run.max_iter + 1}
    start = np.asarray(x).astype(np.float64)
    minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    raise Stop(Status.LINE_SEARCH)
