"""Small solves with one BLAS thread and with all: what ode2opt/base/threads.py calls small.

    python benchmarks/blas_threads.py [--threads 2] [--repeat 10]

Prints, for logistic problems of several sizes, the seconds of a solve whose threads are left alone
over those of the same solve with one thread: wall time (the quickest of all) and CPU time (the
median). Wants a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ode2opt import Logistic, solve
from ode2opt.base import threads as blas_threads

SIZES = [
    (569, 30),
    (1_000, 20),
    (2_000, 100),
    (4_000, 250),
    (20_000, 54),
    (40_000, 54),
    (5_000, 500),
]


def made(N: int, n: int) -> Logistic:
    """Return a logistic problem of N rows and n columns whose labels follow a linear model."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, n))
    z = 2 * A @ rng.standard_normal(n) / np.sqrt(n)
    return Logistic(A, (rng.random(N) < 1 / (1 + np.exp(-z))).astype(float), l2=1e-3)


def seconds(problem: Logistic, largest: int) -> tuple[float, float]:
    """Return wall and CPU seconds of a solve where so many entries are small."""
    blas_threads.SMALL_ENTRIES, before = largest, blas_threads.SMALL_ENTRIES
    began, cpu = time.perf_counter(), time.process_time()
    try:
        solve(problem, tol=1e-6)
    finally:
        blas_threads.SMALL_ENTRIES = before
    return time.perf_counter() - began, time.process_time() - cpu


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=10)
    asked = parser.parse_args()
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    with ThreadpoolController().limit(limits=asked.threads, user_api="blas"):
        for N, n in SIZES:
            problem = made(N, n)
            pairs = [(seconds(problem, 0), seconds(problem, N * n)) for _ in range(asked.repeat)]
            free, single = np.swapaxes(np.array(pairs), 0, 1)
            wall = free[:, 0].min() / single[:, 0].min()
            cpu = np.median(free[:, 1]) / np.median(single[:, 1])
            small = "small" if blas_threads.is_small(N * n, n) else "not small"
            print(f"{N:6} x {n:3} ({small}): wall {wall:5.2f}, CPU {cpu:5.2f}", flush=True)


if __name__ == "__main__":
    main()
