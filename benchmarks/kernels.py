"""Value and gradient of dense matrices by NumPy and by a kernel, beside one reading of the matrix.

    python benchmarks/kernels.py [--repeat 9] [--record]

Prints milliseconds of CPU, the least of some rounds on one thread: NumPy's form, the kernel's, and
``A.sum()``, which reads the matrix once. Kernels are timed for every size here, also where
``ode2opt.kernels.rows`` leaves a matrix to NumPy, which the last column says. Then the least wall
time of the kernel with one thread and with two. The extra `fast` is needed. Threads of BLAS: set
OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from recording import RECORD, Table, record

from ode2opt import Logistic, Softmax, threads
from ode2opt.kernels import rows
from ode2opt.problems.linear_model import LinearModel

SIZES = [
    (200_000, 100),
    (100_000, 300),
    (44_837, 300),
    (26_147, 123),
    (10_000, 2_000),
    (2_000, 10_000),
    (200_000, 50),
    (400_000, 30),
    (1_000_000, 10),
    (569, 30),
]
BY_COLUMNS = [(200_000, 100), (100_000, 300), (20_000, 1_000), (400_000, 30)]
CLASSES = [
    (200_000, 50, 3),
    (200_000, 50, 5),
    (200_000, 100, 5),
    (200_000, 100, 10),
    (60_000, 784, 10),
    (100_000, 100, 30),
]
SHARED = [(1_000, 50), (2_000, 100), (5_000, 100), (20_000, 100), (80_000, 100)]
ROUNDS, PAUSE = 40, 0.2  # seconds: other work on the machine leaves a core free now and then


def milliseconds(work: Callable[[], object], repeat: int) -> float:
    """Return the least CPU time of a call, each of which is preceded by one that is not timed."""
    times = []
    for _ in range(repeat):
        work()
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


@contextmanager
def kernels(form: str) -> Iterator[None]:
    """Switch kernels on for every size, or off."""
    limits, every = (rows.FEWEST_BYTES, rows.COLUMNS), {8: (0, 10_000), 4: (0, 10_000)}
    rows.FEWEST_BYTES, rows.COLUMNS = 0, {"C": every, "F": every}
    os.environ[rows.SWITCH] = form
    try:
        yield
    finally:
        rows.FEWEST_BYTES, rows.COLUMNS = limits
        del os.environ[rows.SWITCH]


def measured(N: int, n: int, order: str, dtype: type, repeat: int) -> list[object]:
    """Return a row of the table."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, n)).astype(dtype, order=order)
    problem = Logistic(A, rng.integers(0, 2, N).astype(dtype))
    used = "kernel" if rows.is_worth_it(A) else "NumPy"
    layout = "rows" if order == "C" else "columns"
    return [f"{N:,} x {n:,}", layout, dtype.__name__, *in_both_forms(problem, repeat), used]


def with_classes(N: int, n: int, classes: int, dtype: type, repeat: int) -> list[object]:
    """Return a row of the table of several classes."""
    A = np.random.default_rng(0).standard_normal((N, n)).astype(dtype)
    problem = Softmax(A, np.arange(N) % classes)
    used = "kernel" if problem.has_kernel else "NumPy"
    return [f"{N:,} x {n:,}", classes, dtype.__name__, *in_both_forms(problem, repeat), used]


def in_both_forms(problem: LinearModel, repeat: int) -> list[str]:
    """Return milliseconds of NumPy, kernel and one reading, and the kernel's over both."""
    x = (0.1 * np.random.default_rng(1).standard_normal(problem.n)).astype(problem.dtype)
    times = []
    for form in ("off", "on"):
        with kernels(form):
            times.append(milliseconds(lambda: problem.value_and_gradient(x), repeat))
    times.append(milliseconds(problem.A.sum, repeat))
    ratios = [times[1] / times[0], times[1] / times[2]]
    return [f"{each:.3g}" for each in times] + [f"{ratio:.2f}" for ratio in ratios]


def wall(problem: Logistic, x: np.ndarray) -> float:
    """Return the least wall time of a few gradients, in milliseconds."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        problem.gradient(x)
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def shared(table: Table) -> None:
    """Add rows with one thread and with two, measured in turns."""
    rng, problems = np.random.default_rng(0), []
    for N, n in SHARED:
        A = rng.standard_normal((N, n))
        problems.append(Logistic(A, rng.integers(0, 2, N).astype(float)))
    least = np.full((len(SHARED), 2), np.inf)
    with kernels("on"):
        for _ in range(ROUNDS):
            for k, problem in enumerate(problems):
                for count in (1, 2):
                    with threads(count):
                        found = wall(problem, np.full(problem.n, 0.1))
                    least[k, count - 1] = min(found, least[k, count - 1])
            time.sleep(PAUSE)
    for (N, n), (one, two) in zip(SHARED, least, strict=True):
        size = f"{8e-6 * N * n:.3g}"
        table.add(f"{N:,} x {n:,}", size, f"{one:.3g}", f"{two:.3g}", f"{two / one:.2f}")


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument(RECORD, action="store_true")
    asked = parser.parse_args()
    if not rows.available():
        raise SystemExit("There are no kernels: install the extra `fast`.")
    table = Table(
        "dense", "by", "numbers", "NumPy: ms", "kernel: ms", "one reading: ms",
        "kernel / NumPy", "kernel / reading", "in use",
    )  # fmt: skip
    for order, sizes in (("C", SIZES), ("F", BY_COLUMNS)):
        for N, n in sizes:
            for dtype in (np.float64, np.float32):
                table.add(*measured(N, n, order, dtype, asked.repeat))
    several = Table(
        "dense rows", "classes", "numbers", "NumPy: ms", "kernel: ms", "one reading: ms",
        "kernel / NumPy", "kernel / reading", "in use",
    )  # fmt: skip
    for N, n, classes in CLASSES:
        for dtype in (np.float64, np.float32):
            several.add(*with_classes(N, n, classes, dtype, asked.repeat))
    sharing = Table("dense rows", "MB", "one thread: ms", "two: ms", "two / one")
    shared(sharing)
    if asked.record:
        record("kernels", {"milliseconds": table, "classes": several, "threads": sharing})


if __name__ == "__main__":
    main()
