"""Fit the estimators to adversarial data beside their namesakes, and judge the solutions.

Run `python tests/fuzz/soak_estimators.py --count K [--first SEED]`. Each seed makes rows of odd
shape and scale (wide, repeated or constant columns, sparse, single precision), targets (constant,
exact, rare classes), weights (zero, tiny, huge, one number) and parameters at their extremes. A fit
is broken where it raises anything but an error of bad input that the namesake also raises, gives
numbers that are not finite, or has an objective above the namesake's by more than the tolerances
explain. The exit code is 1 where a fit is broken.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import sklearn.linear_model
import sklearn.svm

from ode2opt.integrations import sklearn as ours

STRENGTHS = (1e-8, 1e-2, 1.0, 1e2, 1e4)
EXTREMES = (1e-300, 1e8, 1e300)
"""Not for LinearSVC: as its C they leave liblinear without an end."""
MOST = 1e28  # the largest penalty that is told from larger ones
SLACK = 1e-3  # of the objective: both have tolerances
ROUNDING = 1e-9  # of the mean square of the targets
FLAT = 1e-5  # of a classifier's objective: where classes are apart it goes to 0 with tol


class Case(NamedTuple):
    """One fit: the estimator's name, its parameters, rows, targets, weights."""

    name: str
    options: dict[str, Any]
    X: Any
    y: np.ndarray
    weight: Any


def make_rows(rng: np.random.Generator) -> np.ndarray:
    """Return rows of odd shape, with scales of columns from 1e-4 to 1e4."""
    N, n = int(rng.integers(6, 60)), int(rng.integers(1, 80))
    X = rng.standard_normal((N, n)) * 10 ** rng.uniform(-2, 2, n if rng.random() < 0.3 else 1)
    if rng.random() < 0.3:
        X[:, rng.integers(n)] = rng.choice([0.0, 1.0, 1e3])
    if rng.random() < 0.3:
        X[:, rng.integers(n)] = X[:, rng.integers(n)]
    if rng.random() < 0.2:
        X[rng.integers(N)] = X[rng.integers(N)]
    return X


def make_weight(rng: np.random.Generator, N: int) -> Any:
    """Return no weights, one number, whole numbers with zeros, tiny or huge ones."""
    kinds = [None, 2.0, rng.integers(0, 3, N) + (np.arange(N) < 4), np.full(N, 1e-9)]
    return kinds[rng.integers(len(kinds))] if rng.random() < 0.6 else None


def make_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([22, seed])
    name = str(rng.choice(["LogisticRegression", "LinearSVC", "Ridge", "HuberRegressor"]))
    name = "PoissonRegressor" if rng.random() < 0.15 else name
    X = make_rows(rng)
    N, n = X.shape
    line = X @ rng.standard_normal(n) / np.sqrt(n) + rng.choice([0.0, 1.0]) * rng.standard_normal(N)
    classes = name in ("LogisticRegression", "LinearSVC")
    strength = float(rng.choice(STRENGTHS if name == "LinearSVC" else STRENGTHS + EXTREMES))
    if classes:
        y = np.arange(N) % int(rng.integers(2, 4)) if rng.random() < 0.5 else (line > 0) * 1
        y[:2] = 0, 1
        options = {"C": strength, "fit_intercept": bool(rng.random() < 0.8)}
    elif name == "PoissonRegressor":
        y, options = rng.poisson(3.0, N), {"alpha": strength}
    else:
        y = line if rng.random() < 0.6 else np.full(N, float(rng.choice([0.0, 7.0, -1e6])))
        options = {"alpha": strength}
        if name == "HuberRegressor":
            options["epsilon"] = float(rng.choice([1.0000001, 1.35, 5.0]))
    sparse = rng.random() < 0.3
    return Case(name, options, scipy.sparse.csr_array(X) if sparse else X, y, make_weight(rng, N))


def fitted(home: Any, case: Case) -> Any:
    """Return a fitted estimator, or the error that it raised."""
    extra = {"max_iter": 2_000, "tol": 1e-7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = getattr(home, case.name)(**case.options, **extra)
            return model.fit(case.X, case.y, sample_weight=case.weight)
        except Exception as error:
            return error


def objective(model: Any, case: Case) -> float:
    """Return the namesake's function at a fitted model, divided by the sum of the weights."""
    N = case.X.shape[0]
    w = np.ones(N) if case.weight is None else np.broadcast_to(case.weight, N).astype(float)
    coef = np.atleast_2d(model.coef_).astype(float)
    penalty = case.options.get("alpha", 1.0)
    with np.errstate(all="ignore"):
        loss, square = LOSSES[case.name](model, case, w), float(np.sum(coef * coef))
        if "C" in case.options:
            penalty = 0.5 / case.options["C"]
        penalty = min(penalty, MOST)
        if case.name == "LinearSVC" and case.options["fit_intercept"]:
            square += float(np.sum(np.square(model.intercept_)))
        if case.name == "PoissonRegressor":
            return loss / w.sum() + 0.5 * penalty * square
        return (loss + (penalty * square if square else 0.0)) / w.sum()


def _of_classes(model: Any, case: Case, w: np.ndarray) -> float:
    scores = model.decision_function(case.X)
    if scores.ndim == 1:
        signs = np.where(case.y == model.classes_[1], 1, -1)
        if case.name == "LinearSVC":
            return float(w @ np.maximum(0, 1 - signs * scores) ** 2)
        return float(w @ np.logaddexp(0, -signs * scores))
    own = model.classes_ == case.y[:, None]
    if case.name == "LinearSVC":
        return float(w @ np.sum(np.maximum(0, 1 - np.where(own, 1, -1) * scores) ** 2, axis=1))
    return float(w @ (np.logaddexp.reduce(scores, axis=1) - scores[own]))


def _of_squares(model: Any, case: Case, w: np.ndarray) -> float:
    return float(w @ np.square(model.predict(case.X) - case.y))


def _of_huber(model: Any, case: Case, w: np.ndarray) -> float:
    """At the best of many scales, the smallest alike for both."""
    r, epsilon = np.abs(model.predict(case.X) - case.y), case.options["epsilon"]
    least = 1e-9 * (np.abs(case.y).max() or 1.0)
    scales = np.geomspace(least, max(r.max(), least) * 2, 400)[:, None]
    inside = np.where(r < epsilon * scales, r * r / scales, 0.0)
    outside = np.where(r < epsilon * scales, 0.0, 2 * epsilon * r - scales * epsilon**2)
    return float(np.min((scales + inside + outside) @ w))


def _of_counts(model: Any, case: Case, w: np.ndarray) -> float:
    mean = model.predict(case.X)
    return float(w @ (mean - case.y * np.log(np.maximum(mean, 1e-300))))


LOSSES: dict[str, Callable[[Any, Case, np.ndarray], float]] = {
    "LogisticRegression": _of_classes,
    "LinearSVC": _of_classes,
    "Ridge": _of_squares,
    "HuberRegressor": _of_huber,
    "PoissonRegressor": _of_counts,
}


def judged(case: Case) -> str:
    """Return "ok", or how a fit is broken."""
    home = sklearn.svm if case.name == "LinearSVC" else sklearn.linear_model
    mine, theirs = fitted(ours, case), fitted(home, case)
    if isinstance(mine, Exception):
        return "ok" if isinstance(theirs, ValueError) else f"raised {type(mine).__name__}: {mine}"
    if not np.all(np.isfinite(mine.coef_)) or not np.all(np.isfinite(mine.intercept_)):
        return "not finite"
    if isinstance(theirs, Exception):
        return "ok"
    one, other = objective(mine, case), objective(theirs, case)
    rounding = ROUNDING * float(np.mean(np.square(case.y.astype(float))))
    rounding = FLAT if "C" in case.options else rounding
    if one <= other + SLACK * abs(other) + rounding or not np.isfinite(other):
        return "ok"
    return f"objective {one:.6g}, the namesake's {other:.6g}"


def soak(seeds: range) -> list[tuple[int, str, dict[str, Any], str]]:
    """Return the broken fits of some seeds."""
    found = []
    for seed in seeds:
        case = make_case(seed)
        if (said := judged(case)) != "ok":
            found.append((seed, case.name, case.options, said))
    return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    broken = soak(range(options.first, options.first + options.count))
    for found in broken:
        print(*found)
    print(f"{options.count} fits, {len(broken)} broken: {dict(Counter(b[1] for b in broken))}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
