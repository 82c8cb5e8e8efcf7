"""Logistic regression with C by cross-validation: a path of penalties for every fold."""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.data.preparing import DataRows
from ode2opt.integrations.sklearn._fitting import (
    Fitting,
    Remembering,
    product,
    refuse_masked_targets,
)
from ode2opt.integrations.sklearn._fold_paths import (
    Judge,
    fold_paths,
    problem_of,
    smooth_fit,
    weight_of,
)
from ode2opt.integrations.sklearn.logistic import (
    LogisticRegression,
    class_weights,
    classification_rows,
    coefficients,
    elastic,
    refuse_dual,
)
from ode2opt.solvers.shared_preconditioners import SharedPreconditioners

WARN = StrOptions({"warn"})


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegressionCV(Remembering, linear_model.LogisticRegressionCV):
    """:class:`LogisticRegression` with the best C; see the namesake in scikit-learn.

    For every fold the values of C are gone through from strong to weak penalties, each fit starting
    at the fold's own solution for the C before. With the solver "auto" the folds share the
    preconditioners that the first one forms (docs/mathematics.md, section 14), never a point: a
    fold's solutions depend on its own rows and on ``tol``. With ``n_jobs`` the folds are dealt out
    to processes, each of which forms its own preconditioners.

    With an L1 penalty a fold's path is one of :func:`ode2opt.path`.

    Args:
        Cs: the values of C, or how many between 1e-4 and 1e4; 10 by default.
        l1_ratios: shares of absolute values in the penalty to choose from, each from 0 to 1; by
            default 0 alone.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        cv: the folds, as in the namesake. By default there are 5, or as many as the largest class
            has rows where these are fewer (with a warning).
        dual: False (the default); True is refused.
        penalty: "l2", "l1" or "elasticnet". Deprecated, as in the namesake.
        scoring: as in the namesake; "warn" is its old behaviour, without the warning.
        solver: as in :class:`LogisticRegression`; "auto" by default.
        tol: as in :class:`LogisticRegression`; 1e-4 by default.
        max_iter: at most this many iterations of each fit; 100 by default.
        class_weight: weights by class, "balanced" or None (the default).
        n_jobs: processes that share the folds; None (the default) is one.
        verbose: how much is printed; 0 by default.
        refit: whether the last fit is to all rows, with the best C; True by default.
        intercept_scaling: as in the namesake, without effect.
        random_state: as in the namesake, without effect.
        use_legacy_attributes: as in the namesake; "warn" is its old behaviour, without the warning.
        memory: a :class:`Memory`, or the path of its file, whose preconditioner all fits share
            instead; no fit starts at a solution of another fold. None by default.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l1_ratios": ["array-like", None, WARN],
        "use_legacy_attributes": ["boolean", WARN],
    }

    Cs: Any = 10
    l1_ratios: Any = "warn"
    cv: Any = None
    dual: bool = False
    penalty: str | None = "deprecated"
    scoring: Any = "warn"
    class_weight: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    refit: bool = True
    intercept_scaling: float = 1.0
    random_state: Any = None
    use_legacy_attributes: bool | str = "warn"

    _dask_lacks = "its folds are rows of one array"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Array, y: Array, sample_weight: Array = None, **params: Any
    ) -> LogisticRegressionCV:
        """Fit to rows with labels, choosing C by cross-validation.

        Args:
            X: the rows: an array, a SciPy sparse matrix or a data frame.
            y: the label of each row.
            sample_weight: the weight of each row, not negative; 1 by default.
            params: for the splitter and the scorer, as in the namesake.

        Returns:
            self.

        Raises:
            InputError: if a fold has training rows of one class only.
        """
        refuse_dual(self.dual)
        ratios = self._ratios()
        X, labels, weights = classification_rows(self, X, y, sample_weight)
        routed = self._routed(weights, params)
        weights = product(weights, class_weights(self, labels, weights))
        rows, y = DataRows(X, labels, weights), self.classes_[labels]
        cv = _default_folds(labels) if self.cv is None else self.cv
        folds = list(check_cv(cv, y, classifier=True).split(X, y, **routed[0]))
        _check_folds(labels, folds)
        many = isinstance(self.Cs, Integral)
        Cs = np.logspace(-4, 4, self.Cs) if many else np.asarray(self.Cs, dtype=np.float64)
        model, scorer = self._model(), _with_all_classes(self._get_scorer(), self.classes_)
        judges = [Judge(scorer, _check_method_params(X, routed[1], test)) for _, test in folds]
        run = delayed(fold_paths)
        found = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer="processes")(
            run(model, rows, [folds[i] for i in part], Cs, ratios, [judges[i] for i in part])
            for part in np.array_split(
                np.arange(len(folds)), min(len(folds), effective_n_jobs(self.n_jobs))
            )
        )
        paths, scores, n_iter = (
            np.concatenate(parts) for parts in zip(*(part[:3] for part in found), strict=True)
        )
        of_ratio, of_C = self._best(scores)
        mean = paths[np.arange(len(folds)), of_ratio, of_C].mean(axis=0)
        if self.refit:
            best = int(of_C[0]), float(ratios[of_ratio[0]])
            mean = self._refit(model, rows, Cs, best, mean, found[0].shared)
        ratio = float(np.mean(ratios[of_ratio]))
        self.coef_, self.intercept_ = coefficients(self, model.width, mean, ratio)
        self.Cs_ = Cs
        self._keep(paths, scores, n_iter, float(np.mean(Cs[of_C])), ratio)
        return self

    def _ratios(self) -> np.ndarray:
        """Return the shares of absolute values, as the namesake reads its two parameters."""
        given = None if isinstance(self.l1_ratios, str) else self.l1_ratios
        if given is None and self.penalty == "elasticnet":
            raise InputError(
                "l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios=None)"
            )
        if given is not None and self.penalty in ("l1", "l2"):
            warnings.warn(
                f"l1_ratios parameter is only used when penalty is 'elasticnet'. Got "
                f"(penalty={self.penalty})",
                stacklevel=4,
            )
        count = 1 if given is None else len(given)
        if self.penalty in ("l1", "l2"):
            return np.full(count, float(self.penalty == "l1"))
        try:
            ratios = np.zeros(1) if given is None else np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            ratios = np.full(count, np.nan)
        if not count or not np.all((ratios >= 0) & (ratios <= 1)):
            raise InputError(
                f"l1_ratios must be an array-like of numbers between 0 and 1; got "
                f"(l1_ratios={given!r})"
            )
        return ratios

    def _best(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the best share and C for each fold; of equals, the smallest C."""
        by_C = np.swapaxes(scores, 1, 2)
        judged = np.broadcast_to(by_C.sum(axis=0), by_C.shape) if self.refit else by_C
        best = judged.reshape(len(scores), -1).argmax(axis=1)
        of_C, of_ratio = np.unravel_index(best, by_C.shape[1:])
        return of_ratio, of_C

    def _refit(
        self,
        model: LogisticRegression,
        rows: DataRows,
        Cs: np.ndarray,
        best: tuple[int, float],
        mean: np.ndarray,
        shared: SharedPreconditioners | None,
    ) -> np.ndarray:
        """Return the variables of a fit to all rows, from the mean of the folds' solutions.

        ``best`` is the number of C and the share of absolute values.
        """
        problem, (number, ratio) = problem_of(model, rows), best
        weight = weight_of(rows, Cs[number])
        if ratio * weight > 0:
            result = model._minimise(problem, mean, penalty=elastic(weight, ratio))
        else:
            k = int(np.argsort(Cs).tolist().index(number))
            result = smooth_fit(model, problem.penalised(weight), k, mean, shared)
        return np.asarray(result.x)

    def decision_function(self, X: Array) -> Array:
        """Return the scores of rows: one number each, or one for each class.

        Args:
            X: the rows.
        """
        return self._for_rows("decision_function", super().decision_function, X)

    def score(  # type: ignore[override]
        self, X: Array, y: Array, *, sample_weight: Array = None, **score_params: Any
    ) -> float:
        """Return how well rows are predicted, by ``scoring``.

        Args:
            X: the rows.
            y: their labels.
            sample_weight: the weight of each row; 1 by default.
            score_params: what the scorer gets besides.
        """
        refuse_masked_targets(y, sample_weight)
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        found: float = super(Fitting, self).score(X, y, **given, **score_params)
        return found

    def _model(self) -> LogisticRegression:
        """Return the estimator that stands for one fit."""
        shared = ("fit_intercept", "tol", "max_iter", "solver", "memory")
        model = LogisticRegression(**{name: getattr(self, name) for name in shared})
        model.verbose = max(0, self.verbose - 1)
        model.classes_ = self.classes_
        model.width = 1 if len(self.classes_) == 2 else len(self.classes_)
        return model

    def _routed(self, sample_weight: Array, params: dict[str, Any]) -> tuple[Any, Any]:
        """Return what goes to the splitter and to the scorer."""
        _raise_for_params(params, self, "fit")
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return routed.splitter.split, routed.scorer.score
        return {}, {} if sample_weight is None else {"sample_weight": sample_weight}

    def _keep(
        self, paths: np.ndarray, scores: np.ndarray, n_iter: np.ndarray, C: float, ratio: float
    ) -> None:
        """Set what was found on the way, in the namesake's new or its old shapes."""
        self.C_: Any
        self.l1_ratio_: Any
        self.scores_: Any
        self.coefs_paths_: Any
        given = None if isinstance(self.l1_ratios, str) else self.l1_ratios
        self.l1_ratios_ = np.asarray([None] if given is None else given)
        width = len(self.coef_)
        paths = paths.reshape(*scores.shape, -1, width)  # folds, shares, Cs, columns, classes
        if self.use_legacy_attributes is False:
            self.C_, self.l1_ratio_ = C, ratio
            self.coefs_paths_ = np.swapaxes(paths, 3, 4)
            self.scores_, self.n_iter_ = scores, n_iter
            return
        names = self.classes_[-width:]
        self.C_, self.l1_ratio_ = np.full(width, C), np.full(width, ratio)
        paths, scores, n_iter = (np.swapaxes(one, 1, 2) for one in (paths, scores, n_iter))
        if given is None:
            paths, scores, n_iter = paths[:, :, 0], scores[:, :, 0], n_iter[:, :, 0]
        self.scores_, self.n_iter_ = dict.fromkeys(names, scores), n_iter[None]
        self.coefs_paths_ = {name: paths[..., k] for k, name in enumerate(names)}


def _with_all_classes(scorer: Any, classes: np.ndarray) -> Any:
    """Return a scorer that knows all classes: the test rows of a fold may lack one."""
    known = inspect.signature(getattr(scorer, "_score_func", lambda: None)).parameters
    if "labels" not in known:
        return scorer
    more: dict[str, Any] = {"labels": classes}
    if len(classes) == 2 and "pos_label" in known:
        more["pos_label"] = classes[1]
    scorer = copy.copy(scorer)
    scorer._kwargs = more | scorer._kwargs
    return scorer


def _default_folds(labels: np.ndarray, usual: int = 5) -> int:
    """Return the number of folds where none is given: 5, fewer where no class has 5 rows."""
    most = int(np.bincount(labels).max())
    if not 1 < most < usual:
        return usual
    warnings.warn(
        f"No class has {usual} rows, so that C is chosen by {most} folds in place of {usual}.",
        UserWarning,
        stacklevel=4,
    )
    return most


def _check_folds(labels: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Refuse folds whose training rows are of one class only."""
    for k, (train, _) in enumerate(folds):
        if np.all(labels[train] == labels[train[0]]):
            raise InputError(
                f"Fold {k} of the cross-validation has training rows of one class only: use fewer "
                f"folds, or folds that are stratified."
            )
