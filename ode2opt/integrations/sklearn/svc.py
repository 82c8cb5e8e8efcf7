"""Linear support vector classification with the squared hinge: their estimator, our solvers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.base import _fit_context

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._fitting import (
    Remembering,
    inverse_weight,
    product,
    quotient,
    total_weight,
    without_intercept,
)
from ode2opt.integrations.sklearn.logistic import class_weights, classification_rows
from ode2opt.problems.losses import SquaredHinge


@dataclass(eq=False, repr=False)
class LinearSVC(Remembering, svm.LinearSVC):
    """Support vector classification with the squared hinge; see :class:`sklearn.svm.LinearSVC`.

    As in the namesake the intercept is the coefficient of a column of ``intercept_scaling`` (which
    is not made) and penalised like the others; of more than two classes, each is told from all
    others. Minimises the weighted mean loss plus |coef|^2 / (2 C W), W the sum of the weights,
    until its gradient norm is at most ``tol``.

    Args:
        penalty: "l2" (the default); L1 is refused.
        loss: "squared_hinge" (the default); the hinge is refused.
        dual: as in the namesake, without effect: the minimiser is the same.
        tol: the Euclidean norm of the gradient to reach (liblinear's is relative); 1e-4 by default.
        C: inverse of the penalty's weight; positive, 1 by default.
        multi_class: "ovr" (the default); Crammer and Singer's is refused.
        fit_intercept: whether there is an intercept; True by default.
        intercept_scaling: the entry of the intercept's column; the larger, the less it is
            penalised. 1 by default.
        class_weight: weights by class, "balanced" or None (the default).
        verbose: whether a line says how a fit went; 0 by default.
        random_state: as in the namesake, without effect.
        max_iter: at most this many iterations; 1,000 by default.
        solver: "auto" (the default), another built-in name, a :class:`Method` or its file as a
            ``Path``.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file. None
            by default.
    """

    penalty: str = "l2"
    loss: str = "squared_hinge"
    _: KW_ONLY
    dual: bool | str = "auto"
    C: float = 1.0
    multi_class: str = "ovr"
    intercept_scaling: float = 1
    class_weight: Any = None
    verbose: int = 0
    random_state: Any = None
    max_iter: int | None = 1000

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> LinearSVC:
        self._refuse()
        X, labels, weights = classification_rows(self, X, y, sample_weight)
        of_class = class_weights(self, labels, weights)
        several = len(self.classes_) > 2
        fits = [
            self._one(X, labels == k, product(weights, _of_one(of_class, labels == k, several)))
            for k in (range(len(self.classes_)) if several else [1])
        ]
        coef = np.stack([x for x, _ in fits]).astype(X.dtype, copy=False)
        self.coef_, intercept = without_intercept(coef, self.fit_intercept)
        self.intercept_ = intercept if self.fit_intercept else 0.0
        self.n_iter_ = max(iterations for _, iterations in fits)
        return self

    def decision_function(self, X: Array) -> Array:
        """Return the scores of rows; of two classes, one score that is positive for the second.

        Args:
            X: the rows; for Dask's array or frame the result is computed when it is asked for.
        """
        return self._for_rows("decision_function", super().decision_function, X)

    def _one(
        self, X: Array, positive: np.ndarray, weights: np.ndarray | None, largest_l2: float = 1e12
    ) -> tuple[np.ndarray, int]:
        """Tell one class from the others; return the variables and the iterations.

        An intercept with a larger penalty changes no score, and is found after the rest.
        """
        l2 = inverse_weight(self.C, total_weight(weights, X))
        scaling = self.intercept_scaling
        intercept_l2 = quotient(quotient(l2, scaling), scaling) if self.fit_intercept else 0.0
        pinned = intercept_l2 > largest_l2
        problem = SquaredHinge(
            X,
            positive,
            l2=l2,
            weights=weights,
            intercept=self.fit_intercept and not pinned,
            intercept_l2=intercept_l2,
        )
        result = self._minimise(problem)
        x = np.asarray(result.x)
        if pinned:  # its penalty alone decides: one step from zero is all
            slopes = problem._as_shares(problem.slope(problem.scores(x)))
            x = np.append(x, -float(np.sum(slopes)) / intercept_l2)
        return x, result.iterations

    def _refuse(self) -> None:
        """Refuse options of the namesake that are not offered here."""
        if self.penalty == "l1":
            raise InputError("The L1 penalty is not smooth and not here: use penalty='l2'.")
        if self.loss == "hinge":
            raise InputError("The hinge is not smooth and not here: use loss='squared_hinge'.")
        if self.multi_class == "crammer_singer":
            raise InputError("Crammer and Singer's loss is not here: use multi_class='ovr'.")


def _of_one(of_class: np.ndarray | None, positive: np.ndarray, several: bool) -> np.ndarray | None:
    """Return class weights for one class against several: as in liblinear the others weigh 1."""
    return np.where(positive, of_class, 1.0) if several and of_class is not None else of_class
