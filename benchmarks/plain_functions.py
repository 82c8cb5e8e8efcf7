"""Calls that plain functions take, against scipy's L-BFGS-B.

    python benchmarks/plain_functions.py [--methods auto,lbfgs]

The functions are given as in scipy, one call for value and gradient, so that a method knows nothing
else about them. A wrapper counts the calls up to the first one with a gradient norm of at most
1e-6. Rosenbrock's function is not convex: its row is there for the status, not for the ratio.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import alone  # noqa: F401 - before numpy
import data
import numpy as np
from judging import Both, Reached, Watch
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits

from ode2opt import solve

TOL = 1e-6
MOST_CALLS = 20_000
Made = tuple[Both, np.ndarray]


def linear_model(
    A: np.ndarray, l2: float, loss: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> Made:
    """Return mean loss plus l2/2 |x|^2, given losses and slopes of the scores, and zero."""

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = loss(A @ x)
        return values.mean() + 0.5 * l2 * (x @ x), A.T @ slopes / len(A) + l2 * x

    return both, np.zeros(A.shape[1])


def huber() -> Made:
    """Huber regression with one outlier in twenty rows."""
    rng = np.random.default_rng(0)
    A, _ = data.correlated(2_000, 50)
    y = A @ rng.standard_normal(50) + rng.standard_normal(2_000)
    y[::20] += 20 * rng.standard_normal(100)

    def loss(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = z - y
        slope = np.clip(r, -1.35, 1.35)
        return slope * (r - slope / 2), slope

    return linear_model(A, 0.0, loss)


def poisson() -> Made:
    """Poisson regression."""
    rng = np.random.default_rng(1)
    A, _ = data.correlated(2_000, 50)
    counts = rng.poisson(np.exp(A @ rng.standard_normal(50) / 10))

    def loss(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rate = np.exp(z)
        return rate - counts * z, rate - counts

    return linear_model(A, 1e-4, loss)


def squared_hinge() -> Made:
    """A linear support vector machine, its hinge squared."""
    A, b = data.breast_cancer()
    sign = 2 * b - 1

    def loss(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        short = np.maximum(0.0, 1 - sign * z)
        return short**2, -2 * sign * short

    return linear_model(A, 1e-3, loss)


def digits_softmax() -> Made:
    """Ten classes of digits, 640 unknowns."""
    A, digit = load_digits(return_X_y=True)
    A, seen = A / 16, np.eye(10)[digit]

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        Z = A @ x.reshape(64, 10)
        value = (logsumexp(Z, axis=1) - (Z * seen).sum(axis=1)).mean()
        slopes = A.T @ (softmax(Z, axis=1) - seen) / len(A)
        return value + 0.5e-4 * (x @ x), slopes.ravel() + 1e-4 * x

    return both, np.zeros(640)


def log_sum_exp() -> Made:
    """A smooth largest of 400 affine functions."""
    rng = np.random.default_rng(2)
    A, c = rng.standard_normal((400, 50)), rng.standard_normal(400)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = A @ x - c
        return logsumexp(z), A.T @ softmax(z)

    return both, np.zeros(50)


def quadratic(eigenvalues: np.ndarray) -> Made:
    """A quadratic with these eigenvalues in a random basis.

    It is written around its minimum, 0: else rounding in the values ends L-BFGS-B too early.
    """
    rng = np.random.default_rng(3)
    n = len(eigenvalues)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H, solution = (Q * eigenvalues) @ Q.T, rng.standard_normal(n)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        away = x - solution
        g = H @ away
        return 0.5 * (away @ g), g

    return both, np.zeros(n)


def rosenbrock() -> Made:
    """Ten unknowns from the usual start; not convex."""
    return lambda x: (rosen(x), rosen_der(x)), np.tile([-1.2, 1.0], 5)


SPREAD = np.logspace(-6, 0, 100)
CLUSTERS = np.repeat([1e-6, 1e-3, 1.0], [45, 45, 10]) * np.linspace(0.9, 1.0, 100)
CONVEX: dict[str, Callable[[], Made]] = {
    "Huber regression": huber,
    "Poisson regression": poisson,
    "softmax, digits": digits_softmax,
    "squared hinge": squared_hinge,
    "log-sum-exp": log_sum_exp,
    "quadratic 1e6, spread": lambda: quadratic(SPREAD),
    "quadratic 1e6, clusters": lambda: quadratic(CLUSTERS),
}
OTHER = {"Rosenbrock": rosenbrock}


def scipy_calls(made: Made) -> float:
    """Return the calls of L-BFGS-B to the tolerance, infinite where it does not get there."""
    watch = Watch(made[0], TOL, stop=True)
    options = {"maxcor": 10, "ftol": 0.0, "gtol": 0.0, "maxiter": MOST_CALLS, "maxfun": MOST_CALLS}
    with suppress(Reached):
        minimize(watch, made[1], jac=True, method="L-BFGS-B", options=options)
    return watch.reached


def our_calls(made: Made, method: str) -> tuple[float, str]:
    """Return the calls of one of our methods to the tolerance, and its status."""
    watch = Watch(made[0], TOL, stop=False)
    result = solve(watch, made[1], jac=True, method=method, tol=TOL, max_iter=MOST_CALLS)
    return watch.reached, result.status.name.lower()


def line(name: str, made: Made, methods: list[str]) -> tuple[str, dict[str, float]]:
    """Return a row of the table, and the ratio of each method."""
    theirs = scipy_calls(made)
    shown: list[Any] = [name, theirs]
    ratios = {}
    for method in methods:
        calls, status = our_calls(made, method)
        ratios[method] = calls / theirs
        shown += [calls, f"{ratios[method]:.2f}", status]
    return f"| {' | '.join(map(str, shown))} |", ratios


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Print the table; return the worst ratio of each method on the convex functions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", type=lambda text: text.split(","), default=["auto", "lbfgs"])
    methods = parser.parse_args(arguments).methods
    head = " | ".join(f"{method} | ratio | status" for method in methods)
    print(f"| function | L-BFGS-B calls | {head} |")
    print("|---" * (2 + 3 * len(methods)) + "|")
    worst = dict.fromkeys(methods, 0.0)
    for name, make in (CONVEX | OTHER).items():
        text, ratios = line(name, make(), methods)
        print(text, flush=True)
        if name in CONVEX:
            worst = {method: max(worst[method], ratios[method]) for method in methods}
    return {f"functions_worst_{method}": round(ratio, 3) for method, ratio in worst.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
