"""The constants that ``auto`` plans with, measured anew on this machine, one thread.

    python benchmarks/costs.py

Prints the times of ode2opt/solvers/costs.py and ode2opt/problems/gram.py beside what this machine
shows. Plans need them within a factor of two or so.
"""

from __future__ import annotations

from collections.abc import Callable

import alone  # noqa: F401  (one thread, before numpy)
import numpy as np
import scipy.sparse
from data import one_hot
from overhead import seconds_of

from ode2opt import Logistic
from ode2opt.problems import gram
from ode2opt.solvers import costs
from ode2opt.solvers.stages.cholesky import CholeskyFactor

ROUNDS = 7
NANO = 1e9


def quickest(work: Callable[[], object]) -> float:
    """Return the least of a few timings, in nanoseconds."""
    work()
    return NANO * min(seconds_of(work) for _ in range(ROUNDS))


def dense(rows: int, n: int) -> tuple[float, float]:
    """Return nanoseconds of value and gradient, and of the Hessian."""
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((rows, n)), rng.integers(0, 2, rows).astype(float))
    x = 0.1 * rng.standard_normal(n)
    weights = problem.bend(problem.A @ x)
    return (
        quickest(lambda: problem.value_and_gradient(x)),
        quickest(lambda: gram.weighted_gram(problem.A, weights)),
    )


def sparse(rows: int, n: int) -> tuple[float, float, float, float]:
    """Return nanoseconds of value and gradient and of the Hessian, non-zeros and pairs of them."""
    A, b = one_hot(np.random.default_rng(0), rows, n)
    problem, weights = Logistic(A, b), np.linspace(0.1, 1.0, rows)
    counts = np.diff(scipy.sparse.csr_matrix(A).indptr).astype(float)
    x = np.full(n, 0.1)
    return (
        quickest(lambda: problem.value_and_gradient(x)),
        quickest(lambda: gram.weighted_gram(problem.A, weights)),
        float(A.nnz),
        float(counts @ counts),
    )


def factorised(n: int) -> tuple[float, float]:
    """Return nanoseconds of a factorisation and of a solve."""
    B = np.random.default_rng(0).standard_normal((n, 2 * n))
    H, g = B @ B.T, np.ones(n)
    factor = CholeskyFactor(H)
    return quickest(lambda: CholeskyFactor(H)), quickest(lambda: factor(g))


def measured() -> dict[str, tuple[float, float]]:
    """Return by name the constant in the code and what this machine shows."""
    rows, n = 200_000, 100
    large, hessian = dense(rows, n)
    cached, _ = dense(1_024, 123)
    _, wide_hessian = dense(20_000, 1_000)
    sparse_both, sparse_hessian, entries, pairs = sparse(50_000, 300)
    factor, solve = factorised(1_000)
    single, z = Logistic(np.ones((rows, 1)), np.ones(rows)), np.linspace(-3.0, 3.0, rows)
    row = quickest(lambda: single.loss_and_slope(z)) / rows
    product = wide_hessian / (20_000 * 1_000 * 1_000)
    return {
        "entry": (costs.TIMES.entry, (large - row * rows) / (rows * n)),
        "cached_entry": (costs.TIMES.cached_entry, (cached - row * 1_024) / (1_024 * 123)),
        "sparse_entry": (costs.TIMES.sparse_entry, (sparse_both - row * 50_000) / entries),
        "row": (costs.TIMES.row, row),
        "DENSE_PRODUCT": (gram.DENSE_PRODUCT, product),
        "DENSE_ENTRY": (gram.DENSE_ENTRY, hessian / (rows * n) - product * n),
        "SPARSE_PRODUCT": (gram.SPARSE_PRODUCT, sparse_hessian / pairs),
        "cube": (costs.TIMES.cube, factor / 1_000**3),
        "solve": (costs.TIMES.solve, solve / 1_000**2),
    }


def main() -> dict[str, float]:
    """Print the table; return the worst factor between a constant and this machine."""
    print("| constant | in the code, ns | here, ns |\n|---|---|---|")
    found = measured()
    for name, (ours, here) in found.items():
        print(f"| {name} | {ours:g} | {here:.3g} |")
    worst = max(max(ours / here, here / ours) for ours, here in found.values() if here > 0)
    return {"costs_worst_factor": worst}


if __name__ == "__main__":
    main()
