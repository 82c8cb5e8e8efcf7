"""Logistic regression against scipy, scikit-learn, glum and Snap ML.

    python benchmarks/peers.py [--cells a5a,text-20k] [--l2 1e-4] [--tol 1e-6] [--json FILE]

f is the mean loss plus l2/2 |x|^2, without an intercept, from x = 0. benchmarks/contest.py says how
time is taken, benchmarks/alone.py how many threads there are. `pip install '.[peers]'` brings the
packages; one that is missing is left out. `make peers` runs this for all data sets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec

import contest
import numpy as np
from alone import THREADS
from contest import Contest
from judging import Fit, Peer, Reached, Solve, Task, Watch
from kept import Row
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from ode2opt import Logistic
from ode2opt.base.machine import cpu_count

DENSE_HESSIAN = 3_000  # columns up to which an n x n matrix is worth its memory


def scipy_with_products(method: str) -> Solve:
    """Return a method of scipy that uses Hessian-vector products, stopped as soon as it may be."""

    def work(task: Task, tol: float, seconds: float) -> np.ndarray:
        problem = task.problem()
        watch = Watch(problem.value_and_gradient, tol, stop=True, seconds=seconds)
        never = {"xtol": 0.0} if method == "Newton-CG" else {"gtol": 0.0}
        options = {"maxiter": 100_000, **never}
        with suppress(Reached):
            minimize(watch, task.start, jac=True, hessp=problem.hvp, method=method, options=options)
        return watch.x

    return work


def scikit_learn(solver: str) -> Fit:
    """Return a solver of LogisticRegression, whose C is 1/(N l2)."""

    def fit(task: Task, own: float, bound: int) -> tuple[np.ndarray, int]:
        model = LogisticRegression(
            solver=solver,
            C=1 / (len(task.b) * task.l2),
            fit_intercept=False,
            tol=own,
            max_iter=bound,
            random_state=0,
        ).fit(task.A, task.b)
        return model.coef_.ravel(), int(model.n_iter_.max())

    return fit


def glum(task: Task, own: float, bound: int) -> tuple[np.ndarray, int]:
    """Fit by glum: least squares again and again, or L-BFGS where columns are many."""
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="binomial",
        alpha=task.l2,
        l1_ratio=0,
        fit_intercept=False,
        solver="irls-ls" if task.A.shape[1] <= DENSE_HESSIAN else "lbfgs",
        gradient_tol=own,
        max_iter=bound,
    ).fit(task.A, task.b)
    return model.coef_, int(model.n_iter_)


def snap(dual: bool) -> Fit:
    """Return Snap ML's coordinate descent; its regularizer is N l2."""

    def fit(task: Task, own: float, bound: int) -> tuple[np.ndarray, int]:
        from snapml import LogisticRegression as SnapRegression

        model = SnapRegression(
            regularizer=len(task.b) * task.l2,
            fit_intercept=False,
            dual=dual,
            tol=own,
            max_iter=bound,
            n_jobs=1 if THREADS == "one" else cpu_count(),
            random_state=0,
        ).fit(task.A, task.b)
        return np.ravel(model.coef_), int(model.n_iter_)

    return fit


SCIPY: dict[str, Solve] = {name: scipy_with_products(name) for name in ("Newton-CG", "trust-ncg")}
SCIKIT_LEARN: dict[str, Peer] = {
    "sklearn-newton-cholesky": Peer(scikit_learn("newton-cholesky"), most_columns=DENSE_HESSIAN),
    "sklearn-lbfgs": Peer(scikit_learn("lbfgs")),
    "sklearn-newton-cg": Peer(scikit_learn("newton-cg")),
    "sklearn-liblinear": Peer(scikit_learn("liblinear")),
    "sklearn-saga": Peer(scikit_learn("saga")),
}
OPTIONAL: dict[str, dict[str, Peer]] = {
    "glum": {"glum": Peer(glum)},
    "snapml": {"snapml-dual": Peer(snap(True)), "snapml-primal": Peer(snap(False))},
}


def main(arguments: Sequence[str] = ()) -> list[Row]:
    """Hold the contest."""
    fits: dict[str, Peer] = {}
    for package, peers in OPTIONAL.items():
        if find_spec(package):
            fits |= peers
        else:
            print(f"{package} is not installed and left out.")
    return contest.hold(Contest(Logistic, SCIPY, fits | SCIKIT_LEARN), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
