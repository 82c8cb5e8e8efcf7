"""Logistic regression: scikit-learn's estimator, our solvers."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from ode2opt.base.arrays import Array, is_dask
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._fitting import (
    Remembering,
    inverse_weight,
    product,
    row_weights,
    total_weight,
    validated,
)
from ode2opt.integrations.sklearn._in_parts import (
    class_counts,
    labels_in_parts,
    rows_in_parts,
    taken,
)
from ode2opt.penalties import Pieces, Separable
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.logistic import Logistic
from ode2opt.problems.softmax import Softmax


@dataclass(eq=False, repr=False)
class LogisticRegression(Remembering, linear_model.LogisticRegression):
    """Logistic regression with l2 or L1 penalties; see the namesake in scikit-learn.

    Of more than two classes it is multinomial. Minimises the weighted mean loss plus
    (l1_ratio |coef|_1 + (1 - l1_ratio)/2 |coef|^2) / (C W), W the sum of the weights, which has the
    namesake's minimiser, until its gradient norm is at most ``tol``; with an L1 penalty the
    residual |x - prox(x - g)|.

    Args:
        penalty: "l2", "l1", "elasticnet" or None. Deprecated, as in the namesake.
        C: inverse of the penalty's weight; positive, 1 by default; infinity is no penalty.
        l1_ratio: the share of absolute values in the penalty, from 0 (the default, l2 alone) to 1.
        dual: False (the default); True is refused.
        tol: the Euclidean norm of the gradient, or the residual, to reach (the namesake: the
            gradient's largest entry); 1e-4 by default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        intercept_scaling: as in the namesake, without effect.
        class_weight: weights by class, "balanced" or None (the default).
        random_state: as in the namesake, without effect.
        solver: "auto" (the default), another built-in name, a :class:`Method` or its file as a
            ``Path``.
        max_iter: at most this many iterations; 100 by default.
        verbose: whether a line says how a fit went; 0 by default.
        warm_start: whether to start from the last fit's coefficients; False by default.
        n_jobs: as in the namesake, without effect.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file. None
            by default.

    Examples:
        >>> LogisticRegression(C=0.1).fit(X, y).predict_proba(X)
    """

    penalty: str | None = "deprecated"
    _: KW_ONLY
    C: float = 1.0
    l1_ratio: float | None = 0.0
    dual: bool = False
    intercept_scaling: float = 1
    class_weight: Any = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> LogisticRegression:
        refuse_dual(self.dual)
        ratio = _share_of_l1(self.penalty, self.l1_ratio)
        X, labels, weights = classification_rows(self, X, y, sample_weight)
        weights = product(weights, class_weights(self, labels, weights))
        C = np.inf if self.penalty is None else self.C
        if self.penalty is None and self.C != 1.0:
            warnings.warn("Setting penalty=None will ignore the C parameter.", stacklevel=2)
        weight = inverse_weight(C, total_weight(weights, X))
        l2, penalty = (weight, None) if not ratio * weight else (0.0, elastic(weight, ratio))
        problem = log_loss(self, X, labels, weights, l2)
        result = self._minimise(problem, self._last_fit(), penalty=penalty)
        self.coef_, self.intercept_ = coefficients(
            self, problem.width, np.asarray(result.x).astype(X.dtype, copy=False), ratio
        )
        self.n_iter_ = np.array([result.iterations], dtype=np.int32)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class, in the order of ``classes_``.

        Args:
            X: the rows; for Dask's array or frame the result is computed when it is asked for.
        """
        return self._for_rows("predict_proba", super().predict_proba, X)

    def predict_log_proba(self, X: Array) -> Array:
        """Return the logarithm of the probability of each class.

        Args:
            X: the rows, as in :meth:`predict_proba`.
        """
        return self._for_rows("predict_log_proba", super().predict_log_proba, X)

    def decision_function(self, X: Array) -> Array:
        """Return the scores of rows; of two classes, one score that is positive for the second.

        Args:
            X: the rows, as in :meth:`predict_proba`.
        """
        return self._for_rows("decision_function", super().decision_function, X)

    def _last_fit(self) -> np.ndarray | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        self.densify()
        return variables(self, self.coef_, self.intercept_)


def refuse_dual(dual: bool) -> None:
    """Refuse the namesake's dual."""
    if dual:
        raise InputError("dual=True is liblinear's alone: use dual=False.")


def _share_of_l1(penalty: str | None, l1_ratio: float | None) -> float:
    """Return the share of absolute values, as the namesake reads its two parameters."""
    if penalty == "elasticnet" and l1_ratio is None:
        raise InputError("l1_ratio must be specified when penalty is elasticnet.")
    ratio = 0.0 if l1_ratio is None else float(l1_ratio)
    if penalty in ("deprecated", "elasticnet"):
        return ratio
    if 0 < ratio < 1:
        warnings.warn(
            f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got "
            f"(penalty={penalty})",
            stacklevel=4,
        )
    if (penalty == "l2" and l1_ratio != 0) or (penalty == "l1" and l1_ratio != 1):
        warnings.warn(
            f"Inconsistent values: penalty={penalty} with l1_ratio={l1_ratio}. penalty is "
            f"deprecated. Please use l1_ratio only.",
            stacklevel=4,
        )
    return float(penalty == "l1")


def elastic(weight: float, ratio: float) -> Separable:
    """Return the penalty weight (ratio |x|_1 + (1 - ratio)/2 |x|^2)."""
    return Separable(Pieces(l1=ratio * weight, l2=(1 - ratio) * weight))


def classification_rows(
    estimator: Any, X: Array, y: Array, sample_weight: Array
) -> tuple[Array, np.ndarray, np.ndarray | None]:
    """Return rows, labels counted from 0 and weights, checked; sets ``classes_`` of the
    estimator.
    """
    if is_dask(X):
        X, y, weights = rows_in_parts(estimator, X, y, sample_weight)
        labels = labels_in_parts(estimator, X, y)
    else:
        X, y = validated(estimator, X, y)
        weights = row_weights(sample_weight, X)
        check_classification_targets(y)
        estimator.classes_, labels = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise InputError(
            f"There must be at least 2 classes, but the data has only one class: "
            f"{estimator.classes_[0]!r}."
        )
    return X, labels, weights


def class_weights(
    estimator: Any, labels: np.ndarray, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return the weight that each row has by its class; None where all are one."""
    if estimator.class_weight is None:
        return None
    classes, asked = estimator.classes_, estimator.class_weight
    if is_dask(labels):
        counts = class_counts(labels, weights, len(classes)) if asked == "balanced" else None
        found = compute_class_weight(asked, classes=classes, y=classes, sample_weight=counts)
        return taken(np.asarray(found), labels)
    found = compute_class_weight(asked, classes=classes, y=classes[labels], sample_weight=weights)
    return np.asarray(found)[labels]


def log_loss(
    estimator: Any, X: Array, labels: np.ndarray, weights: np.ndarray | None, l2: float
) -> LinearModel:
    """Return the problem of a fit: :class:`Logistic` for two classes, :class:`Softmax` for more."""
    classes, intercept = len(estimator.classes_), estimator.fit_intercept
    if classes == 2:
        return Logistic(X, labels, l2=l2, weights=weights, intercept=intercept)
    return Softmax(X, labels, classes=classes, l2=l2, weights=weights, intercept=intercept)


def variables(estimator: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return coefficients and intercepts as the variables of a fit's problem."""
    rows = [coef.T, intercept[None, :]] if estimator.fit_intercept else [coef.T]
    return np.concatenate(rows).ravel()


def coefficients(
    estimator: Any, width: int, x: np.ndarray, l1_ratio: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``coef_`` and ``intercept_``, a row for each class; their mean over classes is zero.

    With an L1 penalty that is so of the intercepts alone: it decides about the coefficients.
    """
    V = x.reshape(-1, width)
    if width > 1:
        free = np.arange(len(V)) >= len(V) - bool(estimator.fit_intercept)
        V = V - np.where(free | (l1_ratio == 0), V.mean(axis=1), 0)[:, None].astype(V.dtype)
    if estimator.fit_intercept:
        return V[:-1].T.copy(), V[-1].copy()
    return V.T.copy(), np.zeros(width, dtype=V.dtype)
