"""How far power iteration is from dense eigenvalues; --record keeps the table of docs/curvature.md.

python benchmarks/curvature_error.py [--record]
"""

from __future__ import annotations

import sys

import jax
import numpy as np
from recording import RECORD, Table, record

from ode2opt import Family
from ode2opt.paper import DefaultCoefficients, PowerIteration, double, to_jax
from ode2opt.proofs.following import iterates

DATASETS = ("mushrooms", "a5a", "w3a", "phishing", "covtype20k", "separable", "gaussian")
COLUMNS = ("problem", "dataset", "cold, mean", "cold, worst", "warm, mean", "warm, worst")
INSTANCES, K, EVERY = 3, 300, 15


@double
def ratios(problem, K: int = K, every: int = EVERY) -> tuple[np.ndarray, np.ndarray]:
    """Return estimate / truth along a run of eigac-c1, cold and warm-started."""
    x0, L = problem.start()
    schedule = DefaultCoefficients(1.0).schedule(K, L)
    twin, power = to_jax(problem), PowerIteration()
    points = iterates((schedule.a, schedule.c, schedule.d), twin, jax.numpy.asarray(x0))
    start = power.start(twin)
    cold = jax.jit(lambda x: power(twin, x, start).curvature)
    first = PowerIteration(200)(twin, points[0], start).z

    def step(z, x):
        estimate = power(twin, x, z)
        return estimate.z, estimate.curvature

    warm = jax.jit(lambda xs: jax.lax.scan(step, first, xs)[1])(points)
    chosen = range(0, K, every)
    truth = np.array(
        [np.linalg.eigvalsh(problem.hessian(np.asarray(points[k])))[-1] for k in chosen]
    )
    colds = np.array([float(cold(points[k])) for k in chosen])
    return colds / truth, np.asarray(warm)[::every][: len(truth)] / truth


def gaussian(kind: str, rows: int = 20_000, n: int = 30) -> Family:
    """Return a family without a dominant direction, where power iteration is at its slowest."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((rows, n))
    return Family.from_arrays(kind, A, (rng.random(rows) < 0.5).astype(float), size=200)


def main() -> None:
    """Print one row a cell: mean and worst of estimate / truth."""
    table = Table(*COLUMNS)
    for kind in ("logistic", "lpp"):
        for dataset in DATASETS:
            family = gaussian(kind) if dataset == "gaussian" else Family.from_dataset(kind, dataset)
            runs = [ratios(family.sample([1, i])) for i in range(INSTANCES)]
            cold, warm = (np.concatenate([run[i] for run in runs]) for i in range(2))
            numbers = (cold.mean(), cold.min(), warm.mean(), warm.min())
            table.add(kind, dataset, *(f"{n:.4f}" for n in numbers))
    if RECORD in sys.argv:
        record("curvature_error", {"ratios": table})


if __name__ == "__main__":
    main()
