"""scipy's L-BFGS-B, stopped on the same Euclidean gradient norm: the independent reference."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.ended import Ended
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages.lbfgs import CORRECTIONS


def lbfgs_scipy(oracle: Oracle, x: Array) -> NoReturn:
    """Run scipy's L-BFGS-B; every evaluation of value and gradient is an iteration."""
    from scipy.optimize import minimize

    oracle.log("scipy's L-BFGS-B")

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.all(np.isfinite(point)):  # scipy's memory has underflowed
            raise Stop(Ended.LINE_SEARCH)
        here = oracle.begin(point.copy()) if oracle.k < 0 else oracle.evaluate(point.copy())
        return here.value, here.g

    options = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": oracle.max_iter + 1, "maxfun": oracle.max_iter + 1}
    start = np.asarray(x).astype(np.float64)
    minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    raise Stop(Ended.LINE_SEARCH)
