"""Fits of our estimators against their namesakes' fastest solvers, at equal gradient norms.

    python benchmarks/estimators.py [--only logistic,ridge,cv] [--cells a5a,digits] [--norm 1e-4]
                                    [--repeat 3] [--json FILE]

A fit has an intercept and C = 1 (alpha = 1 for Ridge, 0.01 for counts). Ours stops at the Euclidean
norm of the gradient of the mean loss plus penalty; a namesake's solver is given a ladder of
tolerances, and the time of the loosest one whose solution has that norm counts. A solver that takes
thirty times ours, or half as long again as the quickest so far, is not followed further. Each fit
is run before it is timed; then ours and the quickest take turns, and medians count
(benchmarks/alone.py says which seconds). ``cv`` compares LogisticRegressionCV (10 values of C, 5
folds) in the same way, by one fit each: by the largest norm of all folds and values of C; a line
more says what the ratio is where both are given the same number as ``tol``, which the namesake's
L-BFGS compares with the largest entry of the gradient, which C each then chooses, and the best mean
score of each. `make peers` runs this for all data sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from alone import clock  # isort: skip - before numpy
import numpy as np
import scipy.sparse as sp
from contest import FEW_ROWS, refuse_unknown
from data import CELLS, Data, correlated, one_hot, topics
from estimator_tables import Row
from judging import timing
from kept import KeptRows
from sklearn import linear_model, svm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from ode2opt.integrations import sklearn as ours
from ode2opt.problems import LeastSquares, LinearModel, Logistic, Poisson, Softmax, SquaredHinge

LADDER = tuple(10.0**-k for k in range(1, 13))
MOST = 10_000  # iterations
FOLDS = 5
CV_LADDER = (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the norm: tolerances of the namesake
HOPELESS = 30  # times our time: tighter tolerances of such a solver are not tried
RIVAL = 1.5  # times the quickest's first time: who is slower takes no part in the rounds
OURS = "ours"
BEHIND = 1.5  # times the quickest namesake so far: the same
WIDE = 5_000  # variables
NOISE = 0.1
COUNTS_ALPHA = 0.01


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


def timed(model: Any, X: Any, y: np.ndarray) -> tuple[float, Any]:
    """Return the seconds of a fit, and the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        began = clock()
        model.fit(X, y)
        return clock() - began, model


def norm_of(problem: LinearModel, model: Any) -> float:
    """Return the gradient norm of a fit."""
    x = np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)]).T.ravel()
    return float(np.linalg.norm(problem.gradient(x)))


def compare(name: str, cell: str, norm: float, repeat: int) -> Row:
    """Return our time to a gradient norm beside the quickest of the namesake's solvers."""
    kind, (X, b) = KINDS[name], MATRICES[cell]()
    y = kind.targets(b)
    problem = kind.problem(X, y)
    start = np.linalg.norm(problem.gradient(np.zeros(problem.n)))
    own = norm / float(start) if name == "ridge" else norm  # Ridge's tol is relative
    timed(kind.ours(own), X, y)  # what is compiled on first use is there afterwards
    mine, model = timed(kind.ours(own), X, y)
    reached = norm_of(problem, model)
    rivals: dict[str, tuple[float, Any]] = {}
    for solver, make in kind.theirs.items():
        if solver == "newton-cholesky" and problem.n > WIDE:
            continue  # gigabytes for its Hessian
        few = max(1, len(y) // FEW_ROWS)
        timed(make(LADDER[0]), X[::few], y[::few])
        best = min((seconds for seconds, _ in rivals.values()), default=np.inf)
        for tol in LADDER:
            seconds, model = timed(make(tol), X, y)
            if norm_of(problem, model) <= max(norm, reached):
                rivals[solver] = seconds, make(tol)
                break
            if seconds > min(HOPELESS * mine, BEHIND * best):
                break
    if not rivals:
        print(f"{name} {cell}: no solver of scikit-learn's reached {norm:g}", file=sys.stderr)
        return Row(name, cell, len(y), mine, None, "", reached)
    best = min(seconds for seconds, _ in rivals.values())
    models = {solver: model for solver, (s, model) in rivals.items() if s <= RIVAL * best}
    models[OURS] = kind.ours(own)
    times = {rival: [] for rival in models}
    for _ in range(repeat):
        for rival, model in models.items():
            times[rival].append(timing(partial(timed, model, X, y)))
    mine = median(times.pop(OURS))
    theirs, solver = min((median(each), rival) for rival, each in times.items())
    return Row(name, cell, len(y), mine, theirs, solver, reached)


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


def compare_cv(cell: str, norm: float) -> Row:
    """Return the times of LogisticRegressionCV to a gradient norm on all of its paths."""
    X, y = MATRICES[cell]()
    options = {"Cs": 10, "cv": FOLDS, "max_iter": MOST, "scoring": "accuracy", "l1_ratios": (0.0,)}
    options["use_legacy_attributes"] = False
    mine, model = timed(ours.LogisticRegressionCV(tol=norm, **options), X, y)
    reached = largest_norm(model, X, y)
    times, same, chosen = {}, {}, [model]
    for solver in ("lbfgs", "newton-cholesky")[: 1 if X.shape[1] > WIDE else 2]:
        for tol in (share * norm for share in CV_LADDER):
            namesake = linear_model.LogisticRegressionCV(solver=solver, tol=tol, **options)
            seconds, model = timed(namesake, X, y)
            same.setdefault(solver, seconds)
            chosen.append(model)
            if largest_norm(model, X, y) <= max(norm, reached):
                times[solver] = seconds
                break
    best = min(times, key=times.__getitem__, default="")
    found = ", ".join(f"C {each.C_:.3g} score {_best_score(each):.4f}" for each in chosen[:2])
    ratio = mine / min(same.values())
    print(
        f"cv        {cell:15} tol {norm:g} of either: ratio {ratio:.2f}; ours and theirs: {found}"
    )
    return Row("cv", cell, len(y), mine, times.get(best), best, reached, ratio)


def _best_score(model: Any) -> float:
    return float(model.scores_.mean(axis=0).max())


def comparisons(only: Sequence[str], cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return the kinds and data sets that go together."""
    for cell in cells:
        for kind in only:
            if kind == "cv":
                if cell in CV_CELLS + UNSEEN_CV_CELLS:
                    yield kind, cell
            elif kind == "logistic" or cell != "digits-by-class":
                yield kind, cell


def main(arguments: Sequence[str] = ()) -> list[Row]:
    """Print a line for each comparison, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join((*KINDS, "cv")))
    parser.add_argument("--cells", default=",".join(MATRICES))
    parser.add_argument("--norm", type=float, default=1e-4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="kept up to date after every comparison")
    options = parser.parse_args(arguments)
    only, cells = options.only.split(","), options.cells.split(",")
    refuse_unknown("--only", only, (*KINDS, "cv"))
    refuse_unknown("--cells", cells, MATRICES)
    kept, rows = KeptRows(options.json), []
    for kind, cell in comparisons(only, cells):
        fields = kept.row(kind=kind, cell=cell)
        if "ours" not in fields:
            found = (
                compare_cv(cell, options.norm)
                if kind == "cv"
                else compare(kind, cell, options.norm, options.repeat)
            )
            fields |= found._asdict()
            kept.save()
        row = Row(**fields)
        rows.append(row)
        theirs = "-" if row.theirs is None else f"{row.theirs:8.4f} s  ratio {row.ratio:.2f}"
        print(
            f"{row.kind:9} {row.cell:15} {row.rows:7,} rows  ours {row.ours:8.4f} s  "
            f"{row.solver:15} {theirs}",
            flush=True,
        )
    kept.save(complete=True)
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
