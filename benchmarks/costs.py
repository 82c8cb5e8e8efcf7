"""The times that ``auto`` plans with, measured on this machine: CPU time of one thread.

    python benchmarks/costs.py            # print them beside those of the package
    python benchmarks/costs.py --write    # and write them to ode2opt/base/measured_times.json

There is a set for each form of the arithmetic: "numpy", and "kernels" where these are installed
(extra ``fast``). Each is measured in a process of its own. The matrices are random; none is one of
a table of results. Plans need the times within a factor of two or so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import alone  # noqa: F401  (one thread, before numpy)
import numpy as np
import scipy.sparse
from data import one_hot
from recording import origin
from scipy.optimize import nnls

from ode2opt import Logistic, Softmax, kernels, solve
from ode2opt.base import machine
from ode2opt.base.machine import KERNELS, NUMPY
from ode2opt.problems.gram import weighted_gram
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.stages.linear_systems import CholeskyFactor

ROUNDS = 7
LONG = 0.2  # seconds: what takes so long is timed twice
NANO = 1e9
LARGE = ((400_000, 2), (200_000, 20), (200_000, 100), (20_000, 1_000))
FOR_KERNELS = ((300_000, 30), (200_000, 100), (50_000, 300), (20_000, 1_000))
CACHED = ((8, 2), (600, 30), (1_024, 123), (4_000, 100))
SPARSE = ((50_000, 300), (100_000, 1_000))
SIDES = (10, 100, 300, 1_000)
CLASSES = 5
STEPS = 100  # of L-BFGS
Times = dict[str, float]


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def quickest(work: Callable[[], object]) -> float:
    """Return the least of a few timings, in nanoseconds; what is made on first use is left out."""
    work()
    seconds = [seconds_of(work)]
    while len(seconds) < (2 if seconds[0] > LONG else ROUNDS):
        seconds.append(seconds_of(work))
    return NANO * min(seconds)


def fitted(parts: Sequence[Sequence[float]], times: Sequence[float]) -> np.ndarray:
    """Return times of parts, none below zero, whose sums are near measured ones.

    Least squares of relative errors: min over t >= 0 of sum_i ((parts_i . t) / times_i - 1)^2.

    Args:
        parts: for each measurement how often it has each part.
        times: what was measured.

    Example:
        >>> fitted([[1.0, 10.0], [1.0, 100.0]], [12.0, 102.0]).round(6).tolist()
        [2.0, 1.0]
    """
    measured = np.asarray(times, dtype=float)
    return np.asarray(nnls(np.asarray(parts) / measured[:, None], np.ones(len(measured)))[0])


def dense(rows: int, n: int, kind: type[LinearModel] = Logistic, classes: int = 2) -> LinearModel:
    """Return a problem of random dense rows."""
    rng = np.random.default_rng([rows, n])
    b = rng.integers(0, classes, rows)
    b[:classes] = np.arange(classes)
    return kind(rng.standard_normal((rows, n)), b.astype(float))


def evaluation(problem: LinearModel) -> float:
    """Return nanoseconds of value and gradient."""
    x = 0.1 * np.random.default_rng(1).standard_normal(problem.n)
    return quickest(lambda: problem.value_and_gradient(x))


def evaluations() -> Times:
    """Return the times of entries and rows: sums of parts on several shapes.

    With kernels those of large matrices have rows of their own: smaller ones are left to NumPy.
    """
    parts, times = [], []
    for rows, n in (*LARGE, *CACHED):
        entries = [rows * n, 0] if (rows, n) in LARGE else [0, rows * n]
        parts.append([1, rows, *entries, 0])
        times.append(evaluation(dense(rows, n)))
    for rows, n in SPARSE:
        A, b = one_hot(np.random.default_rng(rows), rows, n)
        parts.append([1, rows, 0, 0, A.nnz])
        times.append(evaluation(Logistic(A, b)))
    _, row, entry, cached, sparse = fitted(parts, times)
    if kernels.available():
        shapes = [[1, rows, rows * n] for rows, n in FOR_KERNELS]
        _, row, entry = fitted(shapes, [evaluation(dense(*shape)) for shape in FOR_KERNELS])
    return {
        "entry": entry,
        "cached_entry": cached,
        "sparse_entry": sparse,
        "row": row,
        "further": further(row, entry),
    }


def further(row: float, entry: float) -> float:
    """Return the price of one more score of a row, in times of an entry."""
    rows, n = 200_000, 50
    spent = evaluation(dense(rows, n, Softmax, CLASSES)) - row * rows * CLASSES
    return max(0.0, (spent / (entry * rows * n) - 1) / (CLASSES - 1)) if entry else 0.0


def steps(problem: LinearModel) -> float:
    """Return nanoseconds of a step of L-BFGS, with its evaluation."""

    def one() -> float:
        began = time.process_time()
        result = solve(problem, method="lbfgs", tol=1e-15, max_iter=STEPS, handover="none")
        return (time.process_time() - began) / (result.iterations + 1)

    return NANO * min(one() for _ in range(ROUNDS))


def overheads() -> Times:
    """Return what a step and a Hessian cost whatever the size, and a step by n."""
    few = dense(64, 16)
    few = Logistic(few.A * np.logspace(0, -4, 16), few.b, l2=1e-9)  # takes all steps
    rows, n = 100, 50_000
    places = np.arange(n) % rows, np.arange(n)
    A = scipy.sparse.csr_matrix((np.ones(n), places), (rows, n))
    wide = Logistic(A, np.arange(rows) % 2.0)
    each = steps(few)
    return {
        "correction": max(0.0, (steps(wide) - evaluation(wide) - each) / n),
        "evaluation": each,
        "forming": quickest(lambda: CholeskyFactor(few.hessian(np.zeros(16)) + np.eye(16))),
    }


def factorisations() -> Times:
    """Return the times of factorising and of solving with the factor."""
    factor, back = [], []
    for n in SIDES:
        B = np.random.default_rng(n).standard_normal((n, 2 * n))
        H, g = B @ B.T, np.ones(n)
        kept = CholeskyFactor(H)
        factor.append(quickest(lambda H=H: CholeskyFactor(H)))
        back.append(quickest(lambda kept=kept, g=g: kept(g)))
    _, square, cube = fitted([[1, n**2, n**3] for n in SIDES], factor)
    return {
        "cube": cube,
        "square": square,
        "solve": fitted([[1, n**2] for n in SIDES], back)[1],
    }


def gram() -> Times:
    """Return the times of A^T W A: by dense entries and their products, by pairs of sparse ones."""
    parts, times = [], []
    for rows, n in ((200_000, 50), (100_000, 100), (20_000, 1_000)):
        A, weights = np.random.default_rng(n).random((rows, n)), np.linspace(0.1, 1.0, rows)
        parts.append([rows * n, rows * n * n])
        times.append(quickest(lambda A=A, weights=weights: weighted_gram(A, weights)))
    entry, product = fitted(parts, times)
    rows, n = SPARSE[1]
    A = one_hot(np.random.default_rng(n), rows, n)[0]
    weights, counts = np.linspace(0.1, 1.0, rows), np.diff(A.indptr).astype(float)
    sparse = quickest(lambda: weighted_gram(A, weights))
    return {
        "sparse_product": sparse / float(counts @ counts),
        "dense_product": product,
        "dense_entry": entry,
    }


def measured() -> dict[str, Times]:
    """Return both parts of a set for the form that this process uses."""
    found = {
        "solving": {**evaluations(), **factorisations(), **overheads()},
        "gram": gram(),
    }
    return {
        part: {name: float(f"{time:.3g}") for name, time in times.items()}
        for part, times in found.items()
    }


def measured_apart(form: str) -> dict[str, Times]:
    """Return a set, measured by a process that uses the form."""
    command = [sys.executable, __file__, "--form", form]
    environment = {**os.environ, "ODE2OPT_KERNELS": "on" if form == KERNELS else "off"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    sets: dict[str, Times] = json.loads(done.stdout)
    return sets


def shown(form: str, found: dict[str, Times], kept: dict[str, Times]) -> float:
    """Print a set beside the package's; return the worst factor between them."""
    print(f"\n| {form}: constant | in the package | here |\n|---|---|---|")
    factors = [1.0]
    for part, times in found.items():
        for name, here in times.items():
            ours = kept.get(part, {}).get(name)
            print(f"| {name} | {'-' if ours is None else format(ours, 'g')} | {here:g} |")
            if ours and here:
                factors.append(max(ours / here, here / ours))
    return max(factors)


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Measure, print and write as asked; return the worst factor between package and machine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="write ode2opt/base/measured_times.json"
    )
    parser.add_argument("--form", choices=[NUMPY, KERNELS], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.form:
        print(json.dumps(measured()))
        return {}
    file: Path = machine.FILE
    kept = json.loads(file.read_text(encoding="utf-8"))
    worst = 1.0
    for form in forms():
        found = measured_apart(form)
        worst = max(worst, shown(form, found, kept.get(form, {})))
        kept[form] = {**origin(), **found}
    if options.write:
        file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(f"written to {file.name}")
    return {"costs_worst_factor": worst}


def forms() -> list[str]:
    """Return the forms that this installation has."""
    return [NUMPY, KERNELS] if kernels.available() else [NUMPY]


if __name__ == "__main__":
    main(sys.argv[1:])
