"""Solves with a penalty against skglm, celer, scikit-learn, glum and scipy, on one thread.

    python benchmarks/composite_peers.py [--data digits,w3a] [--losses logistic,squares] [--record]

f is the mean loss without an intercept; the penalty is l1 with a share of the critical weight, or
x >= 0. Everyone starts at 0. What counts are CPU seconds of the fit alone, with the loosest own
tolerance at which |x - prox(x - grad f(x))|, computed here, is small enough; nothing that is
compiled is timed. A peer is dropped where a fit that missed took thirty times as long as ours, or
half as long again as the fastest peer. With --record each cell is kept as soon as it is measured
(benchmarks/results/composite_peers.json), and a later run goes on with those that are missing.
`pip install skglm celer glum` brings the packages; one that is missing is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import recording
import scipy.sparse as sp
from data import CELLS, Data, correlated, from_files, text
from recording import RECORD, RESULTS, Table
from scipy.optimize import lsq_linear, minimize, nnls
from sklearn.linear_model import Lasso, LogisticRegression

from ode2opt import L1, LeastSquares, Logistic, NonNegative, solve
from ode2opt.kernels.rows import SWITCH

NAME = "composite_peers"
# No constant of the package has seen these.
DATA: dict[str, Callable[[], Data]] = {
    "breast_cancer": CELLS["breast_cancer"],
    "digits": CELLS["digits"],
    "mushrooms": CELLS["mushrooms"],
    "w3a": lambda: from_files("w3a", "w3a.t", n=300),
    "text-12k": lambda: text(12_000, 40_000),
    "text-20k": lambda: text(20_000, 50_000),
    "correlated-350": lambda: correlated(60_000, 350),
    "correlated-100": lambda: correlated(200_000, 100),
}
SHARES = (0.3, 0.1, 0.01, 0.001)
RESIDUALS = (1e-4, 1e-7)
LADDER = tuple(10.0**-k for k in range(1, 14))
HOPELESS, BEHIND = 30, 1.5  # times our seconds; times those of the fastest peer
FIRST_BOUND, MORE = 20, 5  # iterations of a peer, and the factor by which they grow
SHORT = 0.05  # seconds: shorter fits are repeated
REPEATS = 3
DENSE = 5_000  # columns up to which a Gram matrix is worth its memory
COLUMNS = (
    "data", "size", "loss", "share", "residual", "support", "ours: ms", "without kernels: ms",
    "fastest other: ms", "which", "ours / fastest", "without kernels / fastest", "others: ms",
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One f + h: the mean loss on (A, b), and l1 with a weight, or x >= 0 for None."""

    loss: str
    A: Any
    b: np.ndarray
    weight: float | None

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f, by the arithmetic of this file."""
        z = self.A @ x
        slope = z - self.b if self.loss == "squares" else 1 / (1 + np.exp(-z)) - self.b
        return np.asarray(self.A.T @ slope).ravel() / len(z)

    def residual(self, x: np.ndarray) -> float:
        """Return |x - prox(x - g)|."""
        y = x - self.gradient(x)
        if self.weight is None:
            return float(np.linalg.norm(x - np.maximum(y, 0)))
        return float(np.linalg.norm(x - np.sign(y) * np.maximum(np.abs(y) - self.weight, 0)))


Fit = Callable[[Task, float, int], tuple[np.ndarray, bool]]
"""Task, tolerance of its own, iterations at most: x, and whether it stopped by its tolerance."""


def ours(task: Task, tol: float) -> np.ndarray:
    """Solve by the package."""
    problem = (LeastSquares if task.loss == "squares" else Logistic)(task.A, task.b)
    penalty = NonNegative() if task.weight is None else L1(task.weight)
    return solve(problem, penalty=penalty, tol=tol, max_iter=1_000_000).x


def skglm(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Working sets with coordinate descent and extrapolation; proximal Newton for classes."""
    import skglm as package

    made = package.Lasso if task.loss == "squares" else package.SparseLogisticRegression
    A = task.A.tocsc() if sp.issparse(task.A) else np.asfortranarray(task.A)
    model = made(alpha=task.weight, tol=own, max_iter=bound, fit_intercept=False)
    target = task.b if task.loss == "squares" else 2 * task.b - 1
    model.fit(A, target)
    return np.ravel(model.coef_), int(np.max(model.n_iter_)) < bound


def celer(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Dual extrapolation and working sets."""
    import celer as package

    A = task.A.tocsc() if sp.issparse(task.A) else np.asfortranarray(task.A)
    limits = {"tol": own, "max_iter": bound, "fit_intercept": False}
    if task.loss == "squares":
        model = package.Lasso(alpha=task.weight, **limits).fit(A, task.b)
        return np.ravel(model.coef_), int(np.max(model.n_iter_)) < bound
    model = package.LogisticRegression(C=1 / (task.weight * len(task.b)), **limits)
    model.fit(A, 2 * task.b - 1)
    return np.ravel(model.coef_), bound > FIRST_BOUND  # it does not tell its iterations


def lasso(precompute: bool) -> Fit:
    """Return scikit-learn's coordinate descent."""

    def fit(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
        A = task.A.tocsc() if sp.issparse(task.A) else np.asfortranarray(task.A)
        model = Lasso(
            alpha=task.weight, tol=own, max_iter=bound, fit_intercept=False, precompute=precompute
        ).fit(A, task.b)
        return np.ravel(model.coef_), int(np.max(model.n_iter_)) < bound

    return fit


def classes(solver: str) -> Fit:
    """Return a solver of scikit-learn's LogisticRegression with l1."""

    def fit(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
        model = LogisticRegression(
            l1_ratio=1.0, solver=solver, C=1 / (task.weight * len(task.b)), tol=own,
            max_iter=bound, fit_intercept=False, random_state=0,
        ).fit(task.A, task.b)  # fmt: skip
        return np.ravel(model.coef_), int(np.max(model.n_iter_)) < bound

    return fit


def glum(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Iterated least squares with coordinate descent."""
    from glum import GeneralizedLinearRegressor

    family = "normal" if task.loss == "squares" else "binomial"
    model = GeneralizedLinearRegressor(
        family=family, alpha=task.weight, l1_ratio=1, fit_intercept=False, solver="irls-cd",
        gradient_tol=own, max_iter=bound,
    ).fit(task.A, task.b)  # fmt: skip
    return np.ravel(model.coef_), int(model.n_iter_) < bound


def lbfgsb(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Return the solution by scipy's L-BFGS-B; for l1, of x = u - v with u and v not negative."""
    problem = (LeastSquares if task.loss == "squares" else Logistic)(task.A, task.b)
    n = task.A.shape[1]

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        if task.weight is None:
            value, g = problem.value_and_gradient(x)
            return float(value), g
        value, g = problem.value_and_gradient(x[:n] - x[n:])
        return (
            float(value) + task.weight * float(x.sum()),
            np.concatenate([g + task.weight, task.weight - g]),
        )

    size = n if task.weight is None else 2 * n
    options = {"maxiter": bound, "maxfun": 2 * bound, "gtol": own, "ftol": 0.0}
    found = minimize(
        both, np.zeros(size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * size,
        options=options,
    )  # fmt: skip
    x = found.x if task.weight is None else found.x[:n] - found.x[n:]
    return x, found.nit < bound


def scipy_nnls(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Return the solution by Lawson and Hanson's method, which is exact."""
    return nnls(task.A, task.b, maxiter=100_000)[0], True


def scipy_lsq_linear(task: Task, own: float, bound: int) -> tuple[np.ndarray, bool]:
    """Return the solution by scipy's trust region method for bounds."""
    found = lsq_linear(task.A, task.b, (0, np.inf), tol=own, max_iter=bound)
    return np.maximum(found.x, 0), found.nit < bound


def peers_of(task: Task) -> dict[str, Fit]:
    """Return those that solve a task, likely fastest first."""
    narrow = task.A.shape[1] <= DENSE
    if task.weight is None:
        return {"nnls": scipy_nnls, "lsq_linear": scipy_lsq_linear, "L-BFGS-B": lbfgsb}
    found: dict[str, Fit] = {}
    installed: dict[str, Fit] = {"skglm": skglm, "celer": celer}
    found |= {name: fit for name, fit in installed.items() if find_spec(name)}
    if task.loss == "squares":
        found["Lasso"] = lasso(False)
        if narrow:
            found["Lasso, Gram"] = lasso(True)
    else:
        found["liblinear"] = classes("liblinear")
    if find_spec("glum") and narrow:
        found["glum"] = glum
    if task.loss == "logistic":
        found["saga"] = classes("saga")
    return found | {"L-BFGS-B": lbfgsb}


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds of one call, the least of three where it is short, and its answer."""
    least, answer = math.inf, None
    for _ in range(REPEATS):
        began = time.process_time()
        answer = work()
        least = min(least, time.process_time() - began)
        if least > SHORT:
            break
    return least, answer


def tried(
    task: Task, tol: float, fit: Fit, own: float, first: float, fastest: float
) -> tuple[float | None, float, float]:
    """Go down a peer's ladder from ``own`` on until the residual is reached.

    Returns its seconds, or None; the tolerance that it was reached with; the least residual seen.
    """
    bound, best, most = FIRST_BOUND, math.inf, min(HOPELESS * first, BEHIND * fastest)
    rungs = [one for one in LADDER if one <= own * 1.01]
    while rungs:
        began = time.process_time()
        try:
            x, stopped = fit(task, rungs[0], bound)
        except Exception as error:  # a peer that cannot is not compared with
            print(f"  {type(error).__name__}: {str(error)[:120]}")
            return None, own, best
        took = time.process_time() - began
        found = task.residual(x) if np.isfinite(x).all() else math.inf
        best = min(best, found)
        if found <= tol:
            if took <= SHORT:
                took = min(took, seconds_of(partial(fit, task, rungs[0], bound))[0])
            return took, rungs[0], best
        if took > most:
            return None, rungs[0], best
        if stopped:
            rungs = rungs[1:]
        else:
            bound *= MORE
    return None, own, best


def cells(
    asked: Sequence[str], losses: Sequence[str]
) -> Iterator[tuple[str, str, float | None, Callable[[], Task]]]:
    """Yield data, loss, share of the critical weight, and what makes the task."""
    for name in asked:
        A, b = DATA[name]()
        for loss in losses:
            target = b if loss == "logistic" else b - b.mean()
            top = float(np.abs(Task(loss, A, target, 1.0).gradient(np.zeros(A.shape[1]))).max())
            for share in SHARES:
                yield name, loss, share, lambda: Task(loss, A, target, share * top)  # noqa: B023
        if not sp.issparse(A) and "squares" in losses:
            yield name, "squares, x >= 0", None, lambda: Task("squares", A, b - b.mean(), None)  # noqa: B023


def warm_up(task: Task) -> None:
    """Let everything that is compiled be compiled, on a few rows of the same kind of matrix.

    Our kernels are for large matrices only, so they have a look at the whole one.
    """
    whole = (LeastSquares if task.loss == "squares" else Logistic)(task.A, task.b)
    whole.value_and_gradient(np.zeros(whole.n))
    few = np.sort(np.random.default_rng(0).permutation(len(task.b))[:300])
    columns = slice(0, 2_000)
    A = task.A[few][:, columns]
    small = Task(
        task.loss, A if sp.issparse(A) else np.ascontiguousarray(A), task.b[few], task.weight
    )
    if task.weight is not None:
        top = float(np.abs(small.gradient(np.zeros(A.shape[1]))).max())
        small = Task(small.loss, small.A, small.b, 0.01 * top)
    ours(small, 1e-4)
    for fit in peers_of(small).values():
        try:
            fit(small, 1e-2, 10)
        except Exception as error:
            print(f"  warming up: {type(error).__name__}: {str(error)[:120]}")


def measured(
    name: str, loss: str, share: float | None, task: Task, starts: dict[tuple[Any, ...], float]
) -> Iterator[list[Any]]:
    """Yield a row for each residual that is to be reached."""
    for tol in RESIDUALS:
        first, x = seconds_of(lambda: ours(task, tol))  # noqa: B023
        if not task.residual(x) <= tol * (1 + 1e-6):
            print(f"  OURS MISSED: {task.residual(x):.2e}")
            first = math.nan
        os.environ[SWITCH] = "0"
        plain, other = seconds_of(lambda: ours(task, tol))  # noqa: B023
        del os.environ[SWITCH]
        plain = plain if task.residual(other) <= tol * (1 + 1e-6) else math.nan
        found: dict[str, float] = {}
        for peer, fit in peers_of(task).items():
            own = min(LADDER[0], 10 * starts.get((peer, name, loss, tol), LADDER[0]))
            fastest = min(found.values(), default=math.inf)
            took, reached, _ = tried(task, tol, fit, own, first, fastest)
            if took is not None:
                found[peer], starts[peer, name, loss, tol] = took, reached
        which = min(found, key=lambda one: found[one], default=None)
        best = math.nan if which is None else found[which]
        size = f"{task.A.shape[0]:,} x {task.A.shape[1]:,}{', sparse' * sp.issparse(task.A)}"
        support = int(np.count_nonzero(x))
        slower = [f"{peer} {1e3 * took:.3g}" for peer, took in found.items() if peer != which]
        milliseconds = (_number(1e3 * took) for took in (first, plain, best))
        yield [
            name, size, loss, share, tol, support, *milliseconds, which,
            _number(first / best), _number(plain / best), ", ".join(slower),
        ]  # fmt: skip


def _number(value: float) -> float | None:
    return float(f"{value:.3g}") if math.isfinite(value) else None


def summary(rows: Sequence[Sequence[Any]], quiet: bool = False) -> Table:
    """Return geometric means of ours over the fastest peer's."""
    table = Table("cells", "how many", "with kernels", "without", quiet=quiet)
    for label, chosen in (
        ("tall dense logistic, N n >= 1e7", _is_tall),
        ("logistic", lambda row: row[2] == "logistic"),
        ("squares", lambda row: row[2] == "squares"),
        ("squares, x >= 0", lambda row: row[2] == "squares, x >= 0"),
        ("all", lambda row: True),
    ):
        some = [row for row in rows if chosen(row)]
        table.add(
            label, len(some), _mean([row[10] for row in some]), _mean([row[11] for row in some])
        )
    return table


def _is_tall(row: Sequence[Any]) -> bool:
    if "sparse" in row[1] or row[2] != "logistic":
        return False
    N, n = (int(one.replace(",", "")) for one in row[1].split(" x "))
    return N * n >= 1e7 and N > n


def _mean(ratios: Sequence[float | None]) -> float | None:
    known = [one for one in ratios if one is not None]
    return float(f"{math.exp(sum(map(math.log, known)) / len(known)):.3g}") if known else None


def main(arguments: Sequence[str]) -> None:
    """Measure the cells that are asked for, or those that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--losses", default="logistic,squares")
    parser.add_argument(RECORD, action="store_true")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    names = [name for name in DATA if name in asked.data.split(",")]
    table = Table(*COLUMNS)
    if asked.record:
        table.rows += json.loads((RESULTS / f"{NAME}.json").read_text())["tables"]["cells"]["rows"]
    done = {(row[0], row[2], row[3]) for row in table.rows}
    starts: dict[tuple[Any, ...], float] = {}
    warm = None
    for name, loss, share, make in cells(names, asked.losses.split(",")):
        if (name, loss, share) in done:
            continue
        task = make()
        if warm != (name, loss):
            warm_up(task)
            warm = (name, loss)
        for row in measured(name, loss, share, task, starts):
            table.add(*row)
        if asked.record:
            recording.record(NAME, {"cells": table, "means": summary(table.rows, quiet=True)})
    summary(table.rows)


if __name__ == "__main__":
    main(sys.argv[1:])
