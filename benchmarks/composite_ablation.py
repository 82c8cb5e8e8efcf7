"""What each part of proximal Newton is worth: CPU seconds without it, over those with it.

    python benchmarks/composite_ablation.py [--record]

l1 with 0.3, 0.1, 0.01 and 0.001 of the critical weight, residuals of 1e-4 and 1e-7; the geometric
mean over these. The constants of the package were chosen on these data.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import recording
from composite_peers import RESIDUALS, SHARES
from data import CELLS, Data, correlated, one_hot, text
from recording import RECORD, Table

from ode2opt import L1, LeastSquares, Logistic, solve
from ode2opt.solvers.stages import model_descent, proximal_newton, quadratic_models

NAME = "composite_ablation"
DATA: dict[str, Callable[[], Data]] = {
    "a5a": CELLS["a5a"],
    "phishing": CELLS["phishing"],
    "covtype20k": CELLS["covtype20k"],
    "correlated 20,000 x 200": lambda: correlated(20_000, 200),
    "correlated 3,000 x 500": lambda: correlated(3_000, 500),
    "one-hot 40,000 x 300": lambda: one_hot(np.random.default_rng(11), 40_000, 300),
    "text 5,000 x 15,000": lambda: text(5_000, 15_000),
}


def rules(**changed: Any) -> tuple[Any, str, Any]:
    """Return other rules of proximal Newton."""
    return proximal_newton, "RULES", proximal_newton.RULES._replace(**changed)


def models(**changed: Any) -> tuple[Any, str, Any]:
    """Return other rules of quadratic models."""
    return quadratic_models, "MODELS", quadratic_models.MODELS._replace(**changed)


VARIANTS: dict[str, list[tuple[Any, str, Any]]] = {
    "no samples first": [rules(rows_per_column=())],
    "Hessian of all rows, each step": [models(cheap=math.inf)],
    "no BFGS": [models(curved=math.inf)],
    "no working sets": [rules(part=0.0)],
    "no sparse columns": [models(narrow=10**9)],
    "no steps on the face": [(model_descent, "_newton_on_face", lambda *given: None)],
}
MOST_SECONDS = 10.0
REPEATS = 2


@contextmanager
def without(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Change names of modules for a while."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def seconds(problem: Any, top: float) -> list[float]:
    """Return the CPU seconds of each solve, the least of two."""
    found = []
    for share in SHARES:
        for tol in RESIDUALS:
            least = math.inf
            for _ in range(REPEATS):
                began = time.process_time()
                solve(problem, penalty=L1(share * top), tol=tol, max_seconds=MOST_SECONDS)
                least = min(least, time.process_time() - began)
            found.append(least)
    return found


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def main(arguments: Sequence[str]) -> None:
    """Measure all variants."""
    table = Table("data", "loss", "auto: ms", *VARIANTS)
    for name, make in DATA.items():
        A, b = make()
        for loss in ("logistic", "squares"):
            problem = Logistic(A, b) if loss == "logistic" else LeastSquares(A, b - b.mean())
            top = float(np.abs(problem.gradient(np.zeros(problem.n))).max())
            seconds(problem, top)  # everything is compiled
            base = seconds(problem, top)
            ratios = []
            for changes in VARIANTS.values():
                with without(changes):
                    found = seconds(problem, top)
                ratios.append(f"{mean([a / b for a, b in zip(found, base, strict=True)]):.2f}")
            table.add(name, loss, f"{1e3 * mean(base):.3g}", *ratios)
    if RECORD in arguments:
        recording.record(NAME, {"variants": table})


if __name__ == "__main__":
    main(sys.argv[1:])
