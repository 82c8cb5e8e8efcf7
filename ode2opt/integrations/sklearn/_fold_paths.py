"""Logistic regression for all values of C on the rows of each fold; folds share no point."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.metrics import accuracy_score

from ode2opt.base.arrays import Array
from ode2opt.data.preparing import DataRows
from ode2opt.integrations.sklearn._centred import path_of
from ode2opt.integrations.sklearn._fitting import inverse_weight, reachable, total_weight
from ode2opt.integrations.sklearn.logistic import (
    LogisticRegression,
    coefficients,
    elastic,
    log_loss,
    variables,
)
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers import Result
from ode2opt.solvers.shared_preconditioners import SharedPreconditioners


class Judge(NamedTuple):
    """A scorer with what it is given beside the rows of one fold.

    Attributes:
        scorer: scikit-learn's.
        params: what it is given beside the rows.
    """

    scorer: Any
    params: dict[str, Any]

    def __call__(self, model: LogisticRegression, rows: DataRows, first: bool) -> float:
        """Return the score of a model; scikit-learn checks the rows at the first C only."""
        y = model.classes_[rows.b]
        if first:
            return float(self.scorer(model, rows.A, y, **self.params))
        if self._is_accuracy():
            right = _predicted(model, rows.A) == rows.b
            return float(np.average(right, weights=self.params.get("sample_weight")))
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return float(self.scorer(model, rows.A, y, **self.params))

    def _is_accuracy(self) -> bool:
        """Whether this is scikit-learn's accuracy, whose checks take longer than small fits."""
        given = getattr(self.scorer, "_kwargs", None)
        same = getattr(self.scorer, "_score_func", None) is accuracy_score
        return same and given == {} and set(self.params) <= {"sample_weight"}


def _predicted(model: LogisticRegression, X: Array) -> np.ndarray:
    """Return the classes of rows, counted from 0."""
    scores = X @ model.coef_.T + model.intercept_
    return np.argmax(scores, axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0


class FoldPaths(NamedTuple):
    """What was found for some folds.

    Attributes:
        x: variables, by fold, share of L1, C and number.
        scores: by fold, share of L1 and C.
        n_iter: iterations, likewise.
        shared: preconditioners that smooth fits share; None where there are none.
    """

    x: np.ndarray
    scores: np.ndarray
    n_iter: np.ndarray
    shared: SharedPreconditioners | None


def weight_of(rows: DataRows, C: float) -> float:
    """Return the weight of the penalty beside the mean loss."""
    return inverse_weight(C, total_weight(rows.weights, rows.A))


def problem_of(model: LogisticRegression, rows: DataRows) -> LinearModel:
    """Return the problem of some rows, without a penalty."""
    return log_loss(model, rows.A, rows.b, rows.weights, 0.0)


def fold_paths(
    model: LogisticRegression,
    rows: DataRows,
    folds: list[tuple[np.ndarray, np.ndarray]],
    Cs: np.ndarray,
    ratios: np.ndarray,
    judges: list[Judge],
) -> FoldPaths:
    """Fit and score for all of some folds, values of C and shares of L1."""
    smooth = np.count_nonzero(ratios == 0)
    shared = SharedPreconditioners(len(folds)) if model._is_auto() and smooth else None
    found = [
        [_path(model, rows, fold, Cs, float(ratio), judge, shared) for ratio in ratios]
        for fold, judge in zip(folds, judges, strict=True)
    ]
    x, scores, n_iter = (
        np.stack([np.stack([one[k] for one in fold]) for fold in found]) for k in range(3)
    )
    return FoldPaths(x, scores, n_iter, shared)


def _path(
    model: LogisticRegression,
    rows: DataRows,
    fold: tuple[np.ndarray, np.ndarray],
    Cs: np.ndarray,
    ratio: float,
    judge: Judge,
    shared: SharedPreconditioners | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return variables, score and iterations of one fold for every C, the smallest first."""
    train, test = fold
    part, unseen = rows.take(train), rows.take(test)
    problem, order = problem_of(model, part), np.argsort(Cs)
    penalties = np.array([weight_of(part, C) for C in Cs[order]])
    fits = (
        _smooth_fits(model, problem, penalties, shared)
        if ratio == 0
        else _l1_fits(model, problem, penalties, ratio)
    )
    judged = copy.copy(model)
    found = np.zeros((len(Cs), problem.n), dtype=rows.A.dtype)
    scores, n_iter = np.zeros(len(Cs)), np.zeros(len(Cs), dtype=np.int32)
    for k, (i, (x, iterations)) in enumerate(zip(order, fits, strict=True)):
        n_iter[i] = iterations
        judged.coef_, judged.intercept_ = coefficients(model, model.width, x, ratio)
        found[i] = variables(model, judged.coef_, judged.intercept_)
        scores[i] = judge(judged, unseen, first=k == 0)
    return found, scores, n_iter


def _smooth_fits(
    model: LogisticRegression,
    problem: LinearModel,
    penalties: np.ndarray,
    shared: SharedPreconditioners | None,
) -> Iterator[tuple[np.ndarray, int]]:
    """Give variables and iterations for falling l2 penalties."""
    x = None
    for k, l2 in enumerate(penalties):
        result = smooth_fit(model, problem.penalised(float(l2)), k, x, shared)
        x = np.asarray(result.x)
        yield x, result.iterations


def smooth_fit(
    model: LogisticRegression,
    problem: LinearModel,
    k: int,
    x0: Array,
    shared: SharedPreconditioners | None,
) -> Result:
    """Fit with the k-th of the falling penalties, by preconditioners that folds share if any."""
    if shared is None:
        return model._minimise(problem, x0)
    tol = reachable(model.tol, problem)
    found = shared.solve(problem, k, x0, tol=tol, max_iter=model.max_iter)
    return model._report_fit(found, model.tol)


def _l1_fits(
    model: LogisticRegression, problem: LinearModel, penalties: np.ndarray, ratio: float
) -> Iterator[tuple[np.ndarray, int]]:
    """Give variables and iterations for falling penalties with a share of absolute values."""
    tol = reachable(model.tol, problem)
    scales, number = np.unique(penalties[penalties > 0], return_inverse=True)
    x = None
    if len(scales):
        found = path_of(model, problem, elastic(1.0, ratio), scales[::-1], tol)
        for k in len(scales) - 1 - number:
            x = found.x(k)
            yield x, int(found.iterations[k])
    for _ in range(np.count_nonzero(penalties == 0)):
        result = model._minimise(problem, x)
        yield np.asarray(result.x), result.iterations
