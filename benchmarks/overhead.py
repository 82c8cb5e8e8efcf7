"""What one EIGAC iteration costs, in gradients: dense, and sparse with its peak memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse

from ode2opt import Logistic, Problem, Schedule, solve


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def iteration_over_gradient(problem: Problem, iterations: int, rounds: int) -> float:
    """Return the median over rounds of (time of an EIGAC iteration) / (time of a gradient).

    An iteration's time is that of a long run less that of a short one, so that set-up cancels;
    gradients are timed right between them, at the points such a run visits.
    """
    x0 = np.zeros(problem.n)
    step = 1e-3

    def run(K: int) -> None:
        schedule = Schedule.heavy_ball(step, 0.9, K + 1)
        result = solve(problem, x0, method=schedule, tol=1e-15, max_iter=K)
        assert not result.handovers  # else other iterations were timed

    def gradients() -> None:
        for _ in range(iterations):
            problem.gradient(x0)

    ratios = []
    for _ in range(rounds):
        short, alone, long = (
            seconds_of(w) for w in (lambda: run(1), gradients, lambda: run(iterations + 1))
        )
        ratios.append((long - short) / alone)
    return median(ratios)


def dense() -> float:
    """1,024 x 123, the shape of the paper's a5a problems."""
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((1_024, 123)), rng.integers(0, 2, 1_024))
    return iteration_over_gradient(problem, iterations=400, rounds=31)


def lbfgs(method: str, rounds: int = 15) -> float:
    """Return the median time of an evaluation by L-BFGS, in gradients, on the same shape."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1_024, 123)) * np.logspace(0, -2, 123)
    problem, x0 = Logistic(A, rng.integers(0, 2, 1_024)), np.zeros(123)
    ratios = []
    for _ in range(rounds):
        result = solve(problem, x0, method=method, tol=1e-15, max_iter=200, handover="none")
        alone = seconds_of(lambda: [problem.gradient(x0) for _ in range(200)]) / 200
        ratios.append(result.seconds / (result.iterations + 1) / alone)
    return median(ratios)


def sparse(rows: int = 20_000, columns: int = 1_000_000, entries: int = 500) -> tuple[float, float]:
    """Return the time ratio, and the peak memory of a solve over the size of the matrix."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, columns, (rows, entries), dtype=np.int32)
    indices.sort(axis=1)
    A = scipy.sparse.csr_array(
        (
            rng.standard_normal(rows * entries),
            indices.reshape(-1),
            np.arange(0, rows * entries + 1, entries, dtype=np.int32),
        ),
        shape=(rows, columns),
    )
    b = rng.integers(0, 2, rows).astype(float)
    del indices
    matrix = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    added = peak_added(lambda: solve(Logistic(A, b), method="eigac-c2", tol=1e-15, max_iter=20))
    ratio = iteration_over_gradient(Logistic(A, b), iterations=10, rounds=5)
    return ratio, (matrix + added) / matrix


def peak_added(work: Callable[[], object]) -> int:
    """Return the bytes by which one call raises the memory in use at its peak (Linux)."""
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before is not there for the taking
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # start the peak anew
    work()
    return max(0, _memory("VmHWM") - before)


def _memory(field: str) -> int:
    """Return a field of /proc/self/status (Linux) in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def main() -> dict[str, float]:
    """Print and return the ratios."""
    sparse_ratio, memory = sparse()
    results = {
        "eigac_overhead_dense": dense(),
        "eigac_overhead_sparse": sparse_ratio,
        "sparse_memory_ratio": memory,
        "lbfgs_overhead": lbfgs("lbfgs"),
        "lbfgs_scipy_overhead": lbfgs("lbfgs-scipy"),
    }
    for name, ratio in results.items():
        print(f"{name}: {ratio:.3f}")
    return results


if __name__ == "__main__":
    main()
