"""Regression with an L1 penalty: scikit-learn's Lasso and elastic net, our solvers."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Number
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.utils import metadata_routing
from sklearn.utils.validation import check_array

from ode2opt.base.arrays import Array, is_dask, refuse_masked
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._centred import (
    CentredRows,
    RegressionFit,
    along,
    alpha_grid,
    fit_of,
    largest_slope,
    weighted,
)
from ode2opt.integrations.sklearn._fitting import (
    FLOATS,
    Fitting,
    regression_rows,
)


@dataclass(eq=False, repr=False)
class ElasticNet(Fitting, linear_model.ElasticNet):
    """Least squares with L1 and l2 penalties; see :class:`sklearn.linear_model.ElasticNet`.

    Minimises half the weighted mean of squares plus
    alpha (l1_ratio |coef|_1 + (1 - l1_ratio)/2 |coef|^2), by target where there are several, until
    the residual |x - prox(x - g)| is ``tol`` times the largest entry of the gradient at
    coefficients that are all zero; x are the coefficients for columns divided by one number.

    Args:
        alpha: the penalty's weight; not negative, 1 by default.
        l1_ratio: the share of absolute values, from 0 to 1; 0.5 by default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        precompute: as in the namesake, without effect.
        max_iter: at most this many iterations; 1,000 by default.
        copy_X: as in the namesake, without effect: rows are never written to.
        tol: the share of the gradient that may be left (the namesake: a duality gap); 1e-4 by
            default.
        warm_start: whether to start from the last fit's coefficients; False by default.
        positive: whether no coefficient may be negative; False by default.
        random_state: as in the namesake, without effect.
        selection: as in the namesake, without effect.
        solver: "auto" (the default), or another method of ``solve`` for penalties.

    Examples:
        >>> ElasticNet(alpha=0.1, l1_ratio=0.9).fit(X, y).sparse_coef_
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"check_input": metadata_routing.UNUSED}
    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5
    precompute: Any = False
    max_iter: int | None = 1000
    copy_X: bool = True
    warm_start: bool = False
    positive: bool = False
    random_state: Any = None
    selection: str = "cyclic"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Array, y: Array, sample_weight: Array = None, check_input: bool = True
    ) -> ElasticNet:
        """Fit to rows.

        Args:
            X: the rows: an array, a SciPy sparse matrix or a data frame; Dask's arrays and frames.
            y: the target of each row, or several columns of them.
            sample_weight: the weight of each row, not negative; 1 by default.
            check_input: as in the namesake, without effect: rows are always checked.

        Returns:
            self.
        """
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0 there is no penalty: Ridge(alpha=0) solves that directly.",
                stacklevel=2,
            )
        X, y, weights = target_rows(self, X, y, sample_weight)
        rows = CentredRows(X, weights, self.fit_intercept)
        targets = [y] if y.ndim == 1 else list(y.T)
        before = self._last_coefficients(len(targets))
        fits = [
            self._one(rows, b, float(self.alpha), float(self.l1_ratio), start)
            for b, start in zip(targets, before, strict=True)
        ]
        found = [np.append(fit.coef, [fit.intercept] * self.fit_intercept) for fit in fits]
        self._set_coefficients(found, X.dtype, y.ndim)
        gaps = np.array([fit.gap for fit in fits]).astype(X.dtype, copy=False)
        counts = [fit.iterations for fit in fits]
        one = len(fits) == 1
        self.dual_gap_ = gaps[0] if one else gaps
        self.n_iter_ = counts[0] if one else counts
        return self

    def _last_coefficients(self, targets: int) -> list[np.ndarray | None]:
        """Return the last fit's coefficients of each target for a warm start."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return [None] * targets
        return list(np.atleast_2d(np.asarray(self.coef_)))

    def _one(
        self, rows: CentredRows, y: np.ndarray, alpha: float, l1_ratio: float, coef: Array = None
    ) -> RegressionFit:
        """Fit one target, starting at coefficients (by default 0)."""
        whole = weighted(rows.penalty(l1_ratio, self.positive), alpha)
        penalty = whole if self.positive or whole.pieces().l1 else None
        problem, mean = rows.problem(y, 0.0 if penalty else whole.pieces().l2)
        x0 = None if coef is None else rows.variables(coef).astype(str(problem.dtype))
        tol = self.tol * largest_slope(problem)
        result = self._minimise(problem, x0, tol=tol, penalty=penalty)
        return fit_of(rows, problem, penalty, result, mean)

    @staticmethod
    def path(
        X: Array,
        y: Array,
        *,
        l1_ratio: float = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        coef_init: Any = None,
        return_n_iter: bool = False,
        positive: bool = False,
        tol: float = 1e-4,
        max_iter: int = 1000,
        **unused: Any,
    ) -> tuple[Any, ...]:
        """Return fits for falling weights without an intercept; see the namesake's ``enet_path``.

        Args:
            X: the rows; where there is to be an intercept, centred ones.
            y: the target of each row.
            l1_ratio: the share of absolute values; 0.5 by default.
            eps: the smallest weight by the largest; 0.001 by default.
            alphas: the weights, or how many; 100 by default.
            coef_init: as in the namesake, without effect: the first fit starts at 0.
            return_n_iter: whether iterations are returned, too.
            positive: whether no coefficient may be negative; False by default.
            tol: as of the estimator.
            max_iter: at most this many iterations for one weight.
            unused: other parameters of the namesake, without effect.

        Returns:
            The weights, falling; coefficients, a column a weight; duality gaps; iterations if asked
            for.
        """
        model = ElasticNet(
            l1_ratio=l1_ratio, fit_intercept=False, positive=positive, tol=tol, max_iter=max_iter
        )
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        X = check_array(X, accept_sparse="csr", dtype=FLOATS)
        y = check_array(y, dtype=X.dtype.type, ensure_2d=False)
        if y.ndim != 1:
            raise InputError("Several targets that share their columns are not here: give one.")
        rows = CentredRows(X, None, False)
        if alphas is None or isinstance(alphas, Integral):
            found = alpha_grid(rows, y, l1_ratio, positive, int(alphas or 100), eps)
        else:
            found = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        fits = along(model, rows, y, found, l1_ratio)
        coefs = np.stack([fit.coef for fit in fits], axis=1).astype(X.dtype, copy=False)
        answer = (found, coefs, np.array([fit.gap for fit in fits]))
        return (*answer, [fit.iterations for fit in fits]) if return_n_iter else answer


@dataclass(eq=False, repr=False)
class Lasso(ElasticNet, linear_model.Lasso):
    """Least squares with an L1 penalty; see :class:`sklearn.linear_model.Lasso`.

    It is :class:`ElasticNet` with ``l1_ratio=1``.

    Args:
        alpha: the penalty's weight; not negative, 1 by default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        precompute: as in the namesake, without effect.
        copy_X: as in the namesake, without effect: rows are never written to.
        max_iter: at most this many iterations; 1,000 by default.
        tol: the share of the gradient that may be left (the namesake: a duality gap); 1e-4 by
            default.
        warm_start: whether to start from the last fit's coefficients; False by default.
        positive: whether no coefficient may be negative; False by default.
        random_state: as in the namesake, without effect.
        selection: as in the namesake, without effect.
        solver: "auto" (the default), or another method of ``solve`` for penalties.

    Examples:
        >>> Lasso(alpha=0.1).fit(X, y).sparse_coef_
    """

    l1_ratio: float = field(default=1.0, init=False)

    @staticmethod
    def path(X: Array, y: Array, **options: Any) -> tuple[Any, ...]:
        """Return fits for falling weights without an intercept; see the namesake's ``lasso_path``.

        Args:
            X: the rows; where there is to be an intercept, centred ones.
            y: the target of each row.
            options: those of :meth:`ElasticNet.path`.
        """
        return ElasticNet.path(X, y, **{**options, "l1_ratio": 1.0})


def target_rows(
    estimator: Any, X: Array, y: Array, sample_weight: Array
) -> tuple[Array, np.ndarray, np.ndarray | None]:
    """Return rows, one or several targets, and weights, checked; one number is no weight."""
    given = None if isinstance(sample_weight, Number) else sample_weight
    X, y, weights = regression_rows(estimator, X, y, given, several=True)
    y = y.astype(X.dtype) if is_dask(y) else check_array(y, dtype=X.dtype.type, ensure_2d=False)
    return X, y, weights
