"""Lasso and elastic net with their weight by cross-validation: a path of weights for every fold."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import check_scalar
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._centred import CentredRows, along, alpha_grid
from ode2opt.integrations.sklearn._fitting import Fitting
from ode2opt.integrations.sklearn.lasso import ElasticNet, Lasso, target_rows


@dataclass(eq=False, repr=False, kw_only=True)
class _PathCV(Fitting):
    """What :class:`LassoCV` and :class:`ElasticNetCV` share.

    For every fold the weights are gone through from the largest to the smallest, each fit starting
    at the fold's own solution for the one before: a fold's solutions depend on its own rows and on
    ``tol``.
    """

    eps: float = 1e-3
    alphas: Any = 100
    precompute: Any = "auto"
    max_iter: int | None = 1000
    copy_X: bool = True
    cv: Any = None
    verbose: Any = False
    n_jobs: int | None = None
    positive: bool = False
    random_state: Any = None
    selection: str = "cyclic"

    _dask_lacks = "its folds are rows of one array"
    _one_fit: ClassVar[type[ElasticNet]]

    def _ratios(self) -> np.ndarray:
        """Return the shares of absolute values to choose from."""
        return np.ones(1)

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
        X, y, weights = target_rows(self, X, y, sample_weight)
        if y.ndim > 1 and y.shape[1] > 1:
            raise InputError(
                f"For multi-task outputs, use scikit-learn's MultiTask{type(self).__name__}: this "
                f"one takes one target."
            )
        y = column_or_1d(y, warn=True)
        split: Any = {}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params)
            split = routed.splitter.split
        folds = list(check_cv(self.cv).split(X, y, **split))
        ratios = self._ratios()
        grids = [self._grid(X, y, weights, float(ratio)) for ratio in ratios]
        shared = ("fit_intercept", "max_iter", "tol", "positive", "solver")
        model = self._one_fit(**{name: getattr(self, name) for name in shared})
        run = delayed(_errors)
        found = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer="processes")(
            run(model, X, y, weights, fold, grid, float(ratio))
            for ratio, grid in zip(ratios, grids, strict=True)
            for fold in folds
        )
        errors = np.reshape(found, (len(ratios), len(folds), -1))
        best, k = np.unravel_index(np.argmin(errors.mean(axis=1)), errors[:, 0].shape)
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        self.alpha_ = grids[best][k]
        several = len(ratios) > 1 and isinstance(self.alphas, Integral)
        self.alphas_ = np.asarray(grids) if several else np.asarray(grids[0])
        model.alpha, model.l1_ratio = float(self.alpha_), float(ratios[best])
        model.fit(X, y, weights)
        if hasattr(self, "l1_ratio"):
            self.l1_ratio_ = model.l1_ratio
        for name in ("coef_", "intercept_", "dual_gap_", "n_iter_"):
            setattr(self, name, getattr(model, name))
        return self

    def _grid(
        self, X: Array, y: np.ndarray, weights: np.ndarray | None, l1_ratio: float
    ) -> np.ndarray:
        """Return the weights for one share of absolute values, falling."""
        alphas = self.alphas
        if not isinstance(alphas, Integral):
            for index, alpha in enumerate(alphas):
                check_scalar(alpha, f"alphas[{index}]", Real, min_val=0.0)
            return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        if l1_ratio == 0:
            raise InputError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a "
                "grid by providing your estimator with the appropriate `alphas=` argument."
            )
        rows = CentredRows(X, weights, self.fit_intercept)
        return alpha_grid(rows, y, l1_ratio, self.positive, int(alphas), self.eps)


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
class LassoCV(_PathCV, linear_model.LassoCV):
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
    _one_fit = Lasso


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNetCV(_PathCV, linear_model.ElasticNetCV):
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
    _one_fit = ElasticNet

    l1_ratio: Any = 0.5

    def _ratios(self) -> np.ndarray:
        return np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
