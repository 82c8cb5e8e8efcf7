"""scipy's L-BFGS-B on a hostile problem: what ours is compared with."""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.optimize
from fuzz.exact import Case


class Arrived(Exception):  # noqa: N818  (the way a reference ends)
    """scipy is there."""


class Reference:
    """scipy's L-BFGS-B on a case; it runs as far as it is asked for.

    Attributes:
        evaluations: how many it needed, infinity where it did not arrive.
        norm: the smallest gradient norm that it saw.
        seconds: CPU seconds of its last run.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.tried, self.evaluations = case, 0, math.inf
        self.norm, self.seconds = math.inf, 0.0

    def within(self, most: int) -> float:
        """Return the evaluations that it needs, infinity if more than ``most``."""
        if self.tried < most and self.evaluations == math.inf:
            self.tried = most
            self._run(most)
        return self.evaluations if self.evaluations <= most else math.inf

    def _run(self, most: int) -> None:
        problem, count, began = self.case.problem, 0, time.process_time()

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal count
            if not np.all(np.isfinite(x)):
                raise FloatingPointError
            count += 1
            value, g = problem.value_and_gradient(problem.xp.asarray(x, dtype=problem.dtype))
            g = np.asarray(g).astype(np.float64)
            norm = float(np.linalg.norm(g))
            if not math.isfinite(float(value)):  # a gradient beyond a wall says nothing
                return float(value), g
            self.norm = min(norm, self.norm)
            if norm <= self.case.tol:
                raise Arrived
            return float(value), g

        options = {"maxcor": 10, "ftol": 0.0, "gtol": 0.0, "maxls": 40}
        options |= {"maxiter": most, "maxfun": most}
        x0 = np.asarray(self.case.x0).astype(np.float64)
        try:
            with np.errstate(all="ignore"):
                scipy.optimize.minimize(evaluate, x0, jac=True, method="L-BFGS-B", options=options)
        except Arrived:
            self.evaluations = count
        except FloatingPointError:
            pass
        self.seconds = time.process_time() - began
