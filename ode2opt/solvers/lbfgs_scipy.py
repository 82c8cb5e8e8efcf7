"""scipy's L-BFGS-B, stopped on the same Euclidean gradient norm: the independent reference."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.solvers.result import Status
from ode2opt.solvers.session import Session, Stop
from ode2opt.solvers.stages.lbfgs import CORRECTIONS


def lbfgs_scipy(session: Session, x: Array) -> NoReturn:
    """Run scipy's L-BFGS-B; every evaluation of value and gradient is an iteration."""
    from scipy.optimize import minimize

    session.log("scipy's L-BFGS-B")

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.all(np.isfinite(point)):  # scipy's memory has underflowed
            raise Stop(Status.LINE_SEARCH)
        here = session.begin(point.copy()) if session.k < 0 else session.evaluate(point.copy())
        return here.value, here.g

    options = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": session.max_iter + 1, "maxfun": session.max_iter + 1}
    start = np.asarray(x).astype(np.float64)
    minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    raise Stop(Status.LINE_SEARCH)
