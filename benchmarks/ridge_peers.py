"""Least squares with l2/2 |x|^2 against scikit-learn's Ridge and scipy's lsqr.

    python benchmarks/ridge_peers.py [--cells a5a,text-20k] [--methods auto] [--l2 1e-4]

The matrices are those of benchmarks/peers.py, and the same contest; targets are the centred labels
with a little noise. `make peers` runs this for all data sets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import contest
import numpy as np
from contest import Contest
from judging import Fit, Peer, Task
from kept import Row
from peers import DENSE_HESSIAN
from scipy.sparse.linalg import lsqr
from sklearn.linear_model import Ridge

from ode2opt import LeastSquares

NOISE = 0.1


def targets(b: np.ndarray) -> np.ndarray:
    """Return centred labels with noise."""
    return b - b.mean() + NOISE * np.random.default_rng(4).standard_normal(len(b))


def ridge(solver: str) -> Fit:
    """Return a solver of Ridge, whose alpha is N l2; a direct one makes no iterations."""

    def fit(task: Task, own: float, bound: int) -> tuple[np.ndarray, int]:
        model = Ridge(
            alpha=len(task.b) * task.l2,
            fit_intercept=False,
            solver=solver,
            tol=own,
            max_iter=bound,
            random_state=0,
        ).fit(task.A, task.b)
        return model.coef_, int(np.max(model.n_iter_ or 0))

    return fit


def scipy_lsqr(task: Task, own: float, bound: int) -> tuple[np.ndarray, int]:
    """Fit by lsqr, whose damp is the root of N l2."""
    damp = np.sqrt(len(task.b) * task.l2)
    answer = lsqr(task.A, task.b, damp=damp, atol=own, btol=own, conlim=0, iter_lim=bound)
    return answer[0], int(answer[2])


FITS: dict[str, Peer] = {
    "ridge-cholesky": Peer(ridge("cholesky"), most_columns=DENSE_HESSIAN),
    "ridge-lsqr": Peer(ridge("lsqr")),
    "ridge-sag": Peer(ridge("sag")),
    "scipy-lsqr": Peer(scipy_lsqr),
}


def main(arguments: Sequence[str] = ()) -> list[Row]:
    """Hold the contest."""
    return contest.hold(Contest(LeastSquares, {}, FITS, targets), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
