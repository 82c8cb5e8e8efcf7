"""The classical methods, as the paper compares with them, and scipy's L-BFGS-B as a reference.

Each is a loop around ``oracle.at``.
"""

from __future__ import annotations

from itertools import count
from typing import NoReturn

import numpy as np

from ode2opt.base.arrays import Array, copy
from ode2opt.base.ended import Ended
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages.lbfgs import CORRECTIONS

IGAHD_ALPHA = 6.0


def gradient_descent(oracle: Oracle, x: Array, L: float) -> None:
    """x <- x - g(x)/L."""
    while True:
        g = oracle.at(x)
        g /= -L
        g += x
        x = g


def nesterov(oracle: Oracle, x: Array, L: float) -> None:
    """Nesterov's method for convex functions with momentum (k-1)/(k+2), as printed.

    y_{k+1} = x_k - g(x_k)/L;  x_{k+1} = y_{k+1} + (k-1)/(k+2) (y_{k+1} - y_k), k = 1, 2, ...
    """
    y = copy(x)
    for k in count(1):
        g = oracle.at(x)
        g /= -L
        g += x
        x = g + ((k - 1) / (k + 2)) * (g - y)
        y = g


def nesterov_momenta(K: int) -> np.ndarray:
    """Return mu_0..mu_K of the same method as a schedule, whose first iteration is idle."""
    k = np.arange(K + 1)
    return np.maximum(k - 1, 0) / (k + 2)


def nesterov_restart(oracle: Oracle, x: Array, L: float) -> None:
    """Nesterov's method whose momentum starts anew when <g(x_k), y_{k+1} - y_k> > 0."""
    y, k = copy(x), 1
    while True:
        g = oracle.at(x)
        new = x - g / L
        if float(g @ (new - y)) > 0:
            k = 1
        x = new + ((k - 1) / (k + 2)) * (new - y)
        y, k = new, k + 1


def ogm(oracle: Oracle, x: Array, L: float) -> None:
    """OGM of Kim and Fessler with t_k = (k + 2)/2: half of the bound of ``nag`` at each k.

    With z from x_0: z <- z - 2 t_k g(x_k)/L;  y = x_k - g(x_k)/L;  x_{k+1} = y + (z - y)/t_{k+1}.
    """
    z = copy(x)
    for k in count():
        step = oracle.at(x)
        step /= L
        z -= (k + 2) * step
        y = x - step
        x = y + (z - y) * (2 / (k + 3))


def igahd(oracle: Oracle, x: Array, L: float) -> None:
    """IGAHD of Attouch, Chbani, Fadili and Riahi: two gradients an iteration.

    See docs/mathematics.md, section 2.

    y_k = x_k + (1 - alpha/k)(x_k - x_{k-1}) - beta sqrt(s) (g_k - g_{k-1} + g_{k-1}/k),
    x_{k+1} = y_k - s g(y_k), with s = 1/L and beta = sqrt(s), half of its upper limit. It starts at
    k = alpha with x_{k-1} = x_k, so that no momentum is negative.
    """
    s = 1 / L
    correction = s  # beta sqrt(s)
    previous, previous_g = copy(x), None
    for k in count(int(IGAHD_ALPHA)):
        g = oracle.at(x)
        if previous_g is None:
            previous_g = g
        y = x + (1 - IGAHD_ALPHA / k) * (x - previous)
        y -= correction * (g - previous_g + previous_g / k)
        previous, previous_g = x, g
        x = y - s * oracle.at(y, iterate=False)


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
