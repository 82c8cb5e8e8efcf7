"""Lasso and elastic net with their weight by cross-validation: a path of weights for every fold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral, Number, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import check_scalar
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, column_or_1d

from ode2opt.base.arrays import Array, is_dask
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._centred import CentredRows, along, alpha_grid
from ode2opt.integrations.sklearn._fitting import Fitting, row_weights, validated
from ode2opt.integrations.sklearn.lasso import ElasticNet, Lasso
from ode2opt.solvers import Method


class PathCV(Fitting):
    """What :class:`LassoCV` and :class:`ElasticNetCV` share.

    For every fold the weights are gone through from the largest to the smallest, each fit starting
    at the fold's own solution for the one before: a fold's solutions depend on its own rows and on
    ``tol``.
    """

    memory = None
    _dask_lacks = "its folds are rows of one array"

    def _model(self) -> ElasticNet:
        """Return the estimator that stands for one fit."""
        raise NotImplementedError

    def _ratios(self) -> np.ndarray:
        """Return the shares of absolute values to choose from."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None, **params: Any) -> Any:
        """Fit to rows, choosing the penalty by cross-validation.

        Args:
            X: the rows: an array, a SciPy sparse matrix or a data frame.
            y: the target of each row.
            sample_weight: the weight of each row, not negative; 1 by default.
            params: for the splitter, as in the namesake.

        Returns:
            self.
        """
        _raise_for_params(params, self, "fit")
        X, y, weights = self._rows_of(X, y, sample_weight)
        split: Any = {}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params)
            split = routed.splitter.split
        folds = list(check_cv(self.cv).split(X, y, **split))  # type: ignore[attr-defined]
        ratios = self._ratios()
        grids = [self._grid(X, y, weights, float(ratio)) for ratio in ratios]
        model, run = self._model(), delayed(_errors)
        found = Parallel(
            n_jobs=self.n_jobs,  # type: ignore[attr-defined]
            verbose=self.verbose,  # type: ignore[attr-defined]
            prefer="processes",
        )(
            run(model, X, y, weights, fold, grid, float(ratio))
            for ratio, grid in zip(ratios, grids, strict=True)
            for fold in folds
        )
        errors = np.reshape(found, (len(ratios), len(folds), -1))
        best, k = np.unravel_index(np.argmin(errors.mean(axis=1)), errors[:, 0].shape)
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        self.alpha_ = grids[best][k]
        several = len(ratios) > 1 and isinstance(self.alphas, Integral)  # type: ignore[attr-defined]
        self.alphas_ = np.asarray(grids) if several else np.asarray(grids[0])
        self._refit(model, X, y, weights, float(self.alpha_), float(ratios[best]))
        return self

    def _rows_of(
        self, X: Array, y: Array, sample_weight: Array
    ) -> tuple[Array, np.ndarray, np.ndarray | None]:
        """Return rows, one target and weights, checked."""
        name = type(self).__name__
        if is_dask(X):
            raise InputError(
                f"{name} does not take Dask's arrays, because {self._dask_lacks}: give it NumPy's."
            )
        X, y = validated(self, X, y, multi_output=True, y_numeric=True)
        if y.ndim > 1 and y.shape[1] > 1:
            raise InputError(
                f"For multi-task outputs, use scikit-learn's MultiTask{name}: this one takes one "
                f"target."
            )
        y = check_array(column_or_1d(y, warn=True), dtype=X.dtype.type, ensure_2d=False)
        given = None if isinstance(sample_weight, Number) else sample_weight
        return X, y, row_weights(given, X)

    def _grid(
        self, X: Array, y: np.ndarray, weights: np.ndarray | None, l1_ratio: float
    ) -> np.ndarray:
        """Return the weights for one share of absolute values, falling."""
        alphas, eps = self.alphas, self.eps  # type: ignore[attr-defined]
        if not isinstance(alphas, Integral):
            for index, alpha in enumerate(alphas):
                check_scalar(alpha, f"alphas[{index}]", Real, min_val=0.0)
            return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        if l1_ratio == 0:
            raise InputError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a "
                "grid by providing your estimator with the appropriate `alphas=` argument."
            )
        rows = CentredRows(X, weights, self.fit_intercept)  # type: ignore[attr-defined]
        return alpha_grid(rows, y, l1_ratio, self.positive, int(alphas), eps)  # type: ignore[attr-defined]

    def _refit(
        self,
        model: ElasticNet,
        X: Array,
        y: np.ndarray,
        weights: np.ndarray | None,
        alpha: float,
        l1_ratio: float,
    ) -> None:
        """Fit to all rows with the penalty that was chosen."""
        model.alpha, model.l1_ratio = alpha, l1_ratio
        model.fit(X, y, weights)
        for name in ("coef_", "intercept_", "dual_gap_", "n_iter_"):
            setattr(self, name, getattr(model, name))


def _errors(
    model: ElasticNet,
    X: Array,
    y: np.ndarray,
    weights: np.ndarray | None,
    fold: tuple[np.ndarray, np.ndarray],
    alphas: np.ndarray,
    l1_ratio: float,
) -> np.ndarray:
    """Return the mean squared error on the rows held back, for every weight."""
    train, test = fold
    own, others = (None, None) if weights is None else (weights[train], weights[test])
    rows = CentredRows(X[train], own, model.fit_intercept)
    fits = along(model, rows, y[train], alphas, l1_ratio)
    coefs = np.stack([fit.coef for fit in fits], axis=1)
    residuals = X[test] @ coefs + [fit.intercept for fit in fits] - y[test, None]
    return np.average(residuals**2, axis=0, weights=others)


@dataclass(eq=False, repr=False, kw_only=True)
class LassoCV(PathCV, linear_model.LassoCV):
    """:class:`Lasso` with the best weight; see :class:`sklearn.linear_model.LassoCV`.

    For every fold the weights are gone through from the largest to the smallest, each fit starting
    at the fold's own solution for the one before; folds share no point.

    Args:
        eps: the smallest weight by the largest; 0.001 by default.
        alphas: the weights, or how many from the least one at which all coefficients are 0; 100 by
            default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        precompute: as in the namesake, without effect.
        max_iter: at most this many iterations of each fit; 1,000 by default.
        tol: as in :class:`Lasso`; 1e-4 by default.
        copy_X: as in the namesake, without effect.
        cv: the folds, as in the namesake; 5 by default.
        verbose: how much is printed; False by default.
        n_jobs: processes that share the folds; None (the default) is one.
        positive: whether no coefficient may be negative; False by default.
        random_state: as in the namesake, without effect.
        selection: as in the namesake, without effect.
        solver: "auto" (the default), or another method of ``solve`` for penalties.

    Examples:
        >>> LassoCV(cv=5).fit(X, y).alpha_
    """

    path = staticmethod(Lasso.path)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.LassoCV._parameter_constraints,
        "solver": Fitting._own_constraints["solver"],
    }

    eps: float = 1e-3
    alphas: Any = 100
    fit_intercept: bool = True
    precompute: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-4
    copy_X: bool = True
    cv: Any = None
    verbose: Any = False
    n_jobs: int | None = None
    positive: bool = False
    random_state: Any = None
    selection: str = "cyclic"
    solver: str | os.PathLike[str] | Method = "auto"

    def _model(self) -> ElasticNet:
        return _one_fit(Lasso, self)

    def _ratios(self) -> np.ndarray:
        return np.ones(1)


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNetCV(PathCV, linear_model.ElasticNetCV):
    """:class:`ElasticNet` with the best penalty; see :class:`sklearn.linear_model.ElasticNetCV`.

    For every fold and share the weights are gone through from the largest to the smallest, each fit
    starting at the fold's own solution for the one before; folds share no point.

    Args:
        l1_ratio: the share of absolute values, or several to choose from; 0.5 by default.
        eps: the smallest weight by the largest; 0.001 by default.
        alphas: the weights, or how many from the least one at which all coefficients are 0; 100 by
            default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        precompute: as in the namesake, without effect.
        max_iter: at most this many iterations of each fit; 1,000 by default.
        tol: as in :class:`ElasticNet`; 1e-4 by default.
        cv: the folds, as in the namesake; 5 by default.
        copy_X: as in the namesake, without effect.
        verbose: how much is printed; 0 by default.
        n_jobs: processes that share the folds; None (the default) is one.
        positive: whether no coefficient may be negative; False by default.
        random_state: as in the namesake, without effect.
        selection: as in the namesake, without effect.
        solver: "auto" (the default), or another method of ``solve`` for penalties.

    Examples:
        >>> ElasticNetCV(l1_ratio=[0.5, 0.9, 1.0]).fit(X, y).l1_ratio_
    """

    path = staticmethod(ElasticNet.path)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.ElasticNetCV._parameter_constraints,
        "solver": Fitting._own_constraints["solver"],
    }

    l1_ratio: Any = 0.5
    eps: float = 1e-3
    alphas: Any = 100
    fit_intercept: bool = True
    precompute: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-4
    cv: Any = None
    copy_X: bool = True
    verbose: Any = 0
    n_jobs: int | None = None
    positive: bool = False
    random_state: Any = None
    selection: str = "cyclic"
    solver: str | os.PathLike[str] | Method = "auto"

    def _model(self) -> ElasticNet:
        return _one_fit(ElasticNet, self)

    def _ratios(self) -> np.ndarray:
        return np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))

    def _refit(
        self,
        model: ElasticNet,
        X: Array,
        y: np.ndarray,
        weights: np.ndarray | None,
        alpha: float,
        l1_ratio: float,
    ) -> None:
        self.l1_ratio_ = l1_ratio
        super()._refit(model, X, y, weights, alpha, l1_ratio)


def _one_fit(kind: type[ElasticNet], chooser: Any) -> ElasticNet:
    """Return the estimator of one fit, with the parameters of the one that chooses."""
    shared = ("fit_intercept", "max_iter", "tol", "positive", "solver")
    return kind(**{name: getattr(chooser, name) for name in shared})
