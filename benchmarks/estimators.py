"""Fits of our estimators against their namesakes' fastest solvers, at equal gradient norms.

    python benchmarks/estimators.py [--only logistic,ridge,cv] [--cells a5a,digits] [--norm 1e-4]
                                    [--repeat 3] [--json FILE] [--record]

A fit has an intercept and C = 1 (alpha = 1 for Ridge, 0.01 for counts). Ours stops at the Euclidean
norm of the gradient of the mean loss plus penalty; a namesake's solver is given a ladder of
tolerances, and the time of the loosest one whose solution has that norm counts. Of each the
quickest of a few fits is taken, in processor seconds on one thread. ``cv`` compares
LogisticRegressionCV (10 values of C, 5 folds) in the same way: by the largest norm of all folds and
values of C; a line more says what the ratio is where both are given the same number as ``tol``,
which the namesake's L-BFGS compares with the largest entry of the gradient, which C each then
chooses, and the best mean score of each. --record keeps the table of
docs/measurements/estimators.md, which has no line of ``cv``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import alone  # noqa: F401 - before numpy
import numpy as np
import scipy.sparse as sp
from data import CELLS, Data, correlated, one_hot, topics
from recording import RECORD, Table, record
from sklearn import linear_model, svm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from ode2opt.integrations import sklearn as ours
from ode2opt.problems import LeastSquares, LinearModel, Logistic, Poisson, Softmax, SquaredHinge

LADDER = tuple(10.0**-k for k in range(1, 13))
MOST = 10_000  # iterations
LARGE = 20_000  # rows
FOLDS = 5
CV_LADDER = (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the norm: tolerances of the namesake
HOPELESS = 30  # times our time: tighter tolerances of such a solver are not tried
WIDE = 5_000  # variables
BRIEF = 0.3  # seconds
NOISE = 0.1
COUNTS_ALPHA = 0.01
NAMES = {
    "logistic": "LogisticRegression", "poisson": "PoissonRegressor", "svc": "LinearSVC",
    "ridge": "Ridge",
}  # fmt: skip


def digits_by_class() -> Data:
    """1,797 x 64, ten classes."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y


MATRICES: dict[str, Callable[[], Data]] = {
    **CELLS,
    "one-hot-sparse": lambda: one_hot(np.random.default_rng(2), 200_000, 100),
    "digits-by-class": digits_by_class,
    "correlated-200": partial(correlated, 50_000, 200),
    "correlated-60": partial(correlated, 20_000, 60),
    "one-hot-80": lambda: one_hot(np.random.default_rng(7), 30_000, 80),
    "topics-15k": partial(topics, 15_000, 20_000, 1),
}
CV_CELLS = ("a5a", "digits-by-class", "correlated-200")
UNSEEN_CV_CELLS = ("phishing", "covtype20k", "correlated-60", "one-hot-80", "topics-15k")
"""Data that no rule of paths was chosen on."""


class Kind(NamedTuple):
    """One estimator: ours, the namesake's solvers, targets from labels, the function minimised."""

    ours: Callable[[float], Any]
    theirs: dict[str, Callable[[float], Any]]
    targets: Callable[[np.ndarray], np.ndarray]
    problem: Callable[[Any, np.ndarray], LinearModel]


def _logistic(X: Any, y: np.ndarray) -> LinearModel:
    kind = Logistic if len(np.unique(y)) == 2 else Softmax
    return kind(X, y, l2=1 / len(y), intercept=True)


def _with_ones(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])


def _solvers(kind: Any, names: Sequence[str], **options: Any) -> dict[str, Callable[[float], Any]]:
    return {
        name: lambda tol, name=name: kind(solver=name, tol=tol, max_iter=MOST, **options)
        for name in names
    }


def _counts(b: np.ndarray) -> np.ndarray:
    return np.random.default_rng(5).poisson(1 + 2 * b).astype(float)


def _noisy(b: np.ndarray) -> np.ndarray:
    return b + NOISE * np.random.default_rng(4).standard_normal(len(b))


KINDS: dict[str, Kind] = {
    "logistic": Kind(
        lambda tol: ours.LogisticRegression(tol=tol, max_iter=MOST),
        _solvers(linear_model.LogisticRegression, ("lbfgs", "newton-cholesky", "newton-cg")),
        lambda b: b,
        _logistic,
    ),
    "ridge": Kind(
        lambda tol: ours.Ridge(tol=tol),
        _solvers(linear_model.Ridge, ("auto", "lsqr", "sparse_cg", "sag")),
        _noisy,
        lambda X, y: LeastSquares(X, y, l2=1 / len(y), intercept=True),
    ),
    "poisson": Kind(
        lambda tol: ours.PoissonRegressor(alpha=COUNTS_ALPHA, tol=tol, max_iter=MOST),
        _solvers(linear_model.PoissonRegressor, ("lbfgs", "newton-cholesky"), alpha=COUNTS_ALPHA),
        _counts,
        lambda X, y: Poisson(X, y, l2=COUNTS_ALPHA, intercept=True),
    ),
    "svc": Kind(
        lambda tol: ours.LinearSVC(tol=tol, max_iter=MOST),
        {
            f"dual={dual}": lambda tol, dual=dual: svm.LinearSVC(
                tol=tol, dual=dual, max_iter=MOST, random_state=0
            )
            for dual in (False, True)
        },
        lambda b: b,
        lambda X, y: SquaredHinge(_with_ones(X), y, l2=1 / len(y)),
    ),
}


class Row(NamedTuple):
    """The seconds of one comparison; ``solver`` is the namesake's that was quickest."""

    kind: str
    cell: str
    rows: int
    ours: float
    theirs: float
    solver: str
    norm: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def timed(model: Any, X: Any, y: np.ndarray, repeat: int) -> tuple[float, Any]:
    """Return the processor seconds of the quickest of a few fits, and the last model.

    Where several are asked for, quick ones are repeated until they have taken BRIEF seconds.
    """
    seconds: list[float] = []
    while len(seconds) < repeat or (repeat > 1 and sum(seconds) < BRIEF):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            model.fit(X, y)
        seconds.append(time.process_time() - began)
    return min(seconds), model


def norm_of(problem: LinearModel, model: Any) -> float:
    """Return the gradient norm of a fit."""
    x = np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)]).T.ravel()
    return float(np.linalg.norm(problem.gradient(x)))


def compare(name: str, cell: str, norm: float, repeat: int) -> Row | None:
    """Return our time to a gradient norm beside the quickest of the namesake's solvers."""
    kind, (X, b) = KINDS[name], MATRICES[cell]()
    y = kind.targets(b)
    problem = kind.problem(X, y)
    start = np.linalg.norm(problem.gradient(np.zeros(problem.n)))
    own = norm / float(start) if name == "ridge" else norm  # Ridge's tol is relative
    mine, model = timed(kind.ours(own), X, y, repeat)
    reached = norm_of(problem, model)
    times = {}
    for solver, make in kind.theirs.items():
        if solver == "newton-cholesky" and problem.n > WIDE:
            continue  # gigabytes for its Hessian
        for tol in LADDER:
            seconds, model = timed(make(tol), X, y, 1)
            if norm_of(problem, model) <= max(norm, reached):
                times[solver] = min(seconds, timed(make(tol), X, y, repeat)[0])
                break
            if seconds > HOPELESS * mine:
                break
    if not times:
        print(f"{name} {cell}: no solver of scikit-learn's reached {norm:g}", file=sys.stderr)
        return None
    best = min(times, key=times.__getitem__)
    return Row(name, cell, len(y), mine, times[best], best, reached)


def largest_norm(model: Any, X: Any, y: np.ndarray) -> float:
    """Return the largest gradient norm on the paths of a cross-validation."""
    labels = np.unique(y, return_inverse=True)[1]
    norms = []
    for path, (train, _) in zip(
        model.coefs_paths_[:, 0], StratifiedKFold(FOLDS).split(X, y), strict=True
    ):
        problem = _logistic(X[train], labels[train])
        for C, coef in zip(model.Cs_, path, strict=True):
            g = problem.penalised(1 / (C * len(train))).gradient(coef.T.ravel())
            norms.append(float(np.linalg.norm(g)))
    return max(norms)


def compare_cv(cell: str, norm: float, repeat: int) -> Row:
    """Return the times of LogisticRegressionCV to a gradient norm on all of its paths."""
    X, y = MATRICES[cell]()
    options = {"Cs": 10, "cv": FOLDS, "max_iter": MOST, "scoring": "accuracy", "l1_ratios": (0.0,)}
    options["use_legacy_attributes"] = False
    mine, model = timed(ours.LogisticRegressionCV(tol=norm, **options), X, y, repeat)
    reached = largest_norm(model, X, y)
    times, same, chosen = {}, {}, [model]
    for solver in ("lbfgs", "newton-cholesky")[: 1 if X.shape[1] > WIDE else 2]:
        for tol in (share * norm for share in CV_LADDER):
            namesake = linear_model.LogisticRegressionCV(solver=solver, tol=tol, **options)
            seconds, model = timed(namesake, X, y, 1)
            same.setdefault(solver, seconds)
            chosen.append(model)
            if largest_norm(model, X, y) <= max(norm, reached):
                times[solver] = seconds
                break
    best = min(times, key=times.__getitem__)
    found = ", ".join(f"C {each.C_:.3g} score {_best_score(each):.4f}" for each in chosen[:2])
    ratio = mine / min(same.values())
    print(
        f"cv        {cell:15} tol {norm:g} of either: ratio {ratio:.2f}; ours and theirs: {found}"
    )
    return Row("cv", cell, len(y), mine, times[best], best, reached)


def _best_score(model: Any) -> float:
    return float(model.scores_.mean(axis=0).max())


def comparisons(
    only: Sequence[str], cells: Sequence[str], norm: float, repeat: int
) -> Iterator[Row]:
    """Go through what was asked for."""
    for name in only:
        for cell in cells:
            if name == "cv" and cell in CV_CELLS + UNSEEN_CV_CELLS:
                yield compare_cv(cell, norm, repeat)
            elif name in KINDS and (name == "logistic" or cell != "digits-by-class"):
                row = compare(name, cell, norm, repeat)
                if row is not None:
                    yield row


def side_by_side(rows: Sequence[Row]) -> Table:
    """Return the page's table: a row for each data set, a column for each estimator."""
    table = Table("data", "rows", *NAMES.values(), quiet=True)
    found = {(row.cell, row.kind): f"{row.ratio:.2f} ({row.solver})" for row in rows}
    for cell, size in {row.cell: row.rows for row in rows if row.kind in NAMES}.items():
        table.add(cell, f"{size:,}", *(found.get((cell, kind), "") for kind in NAMES))
    return table


def main(arguments: Sequence[str] = ()) -> list[Row]:
    """Print a line for each comparison, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join((*KINDS, "cv")))
    parser.add_argument("--cells", default=",".join(MATRICES))
    parser.add_argument("--norm", type=float, default=1e-4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args(arguments)
    asked = options.only.split(","), options.cells.split(",")
    rows = []
    for row in comparisons(*asked, options.norm, options.repeat):
        rows.append(row)
        print(
            f"{row.kind:9} {row.cell:15} {row.rows:7,} rows  ours {row.ours:8.4f} s  "
            f"{row.solver:15} {row.theirs:8.4f} s  ratio {row.ratio:.2f}",
            flush=True,
        )
    large = [row.ratio for row in rows if row.rows >= LARGE and row.kind != "cv"]
    if large:
        print(
            f"{LARGE:,} rows or more: geometric mean {geometric_mean(large):.2f}, "
            f"largest {max(large):.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1))
    if options.record:
        record("estimators", {"seconds": side_by_side(rows)})
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
