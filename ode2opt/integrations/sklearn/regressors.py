"""Regression: squares, counts, even powers; scikit-learn's estimators, our solvers."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.linear_model._base import LinearModel as TheirLinearModel
from sklearn.metrics import d2_tweedie_score
from sklearn.utils._param_validation import Interval

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.integrations.sklearn._exact_ridge import exact_ridge
from ode2opt.integrations.sklearn._fitting import (
    Remembering,
    quotient,
    refuse_masked_targets,
    regression_rows,
    total_weight,
)
from ode2opt.penalties import NonNegative
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.losses import LeastSquares, Lpp, Poisson
from ode2opt.problems.scaled_huber import ScaledHuber
from ode2opt.solvers import Method, Result


@dataclass(eq=False, repr=False)
class Ridge(Remembering, linear_model.Ridge):
    """Least squares with an l2 penalty; see :class:`sklearn.linear_model.Ridge`.

    Minimises the sum of weighted squares plus alpha |coef|^2, by target where there are several,
    until the gradient norm is ``tol`` times that of coefficients that are all zero.

    Args:
        alpha: the penalty's weight, or one for each target; not negative, 1 by default.
        fit_intercept: whether there is an unpenalised intercept; True by default.
        copy_X: as in the namesake, without effect: rows are never written to.
        max_iter: at most this many iterations; no limit by default.
        tol: the share of the gradient norm that may be left; 1e-4 by default.
        solver: "auto" (the default), another built-in name, a :class:`Method` or its file as a
            ``Path``.
        positive: whether no coefficient may be negative; False by default. The residual
            |x - prox(x - g)| is then what ``tol`` is about.
        random_state: as in the namesake, without effect.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file. None
            by default.
    """

    alpha: Any = 1.0
    _: KW_ONLY
    copy_X: bool = True
    max_iter: int | None = None
    positive: bool = False
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> Ridge:
        X, y, weights = regression_rows(self, X, y, sample_weight, several=True)
        columns = [y] if y.ndim == 1 else list(y.T)
        total = total_weight(weights, X)
        alphas = self._penalties(len(columns))
        l2 = [quotient(alpha, total) for alpha in alphas]
        exact = exact_ridge(X, weights, self.fit_intercept) if self._at_once(X, alphas) else None
        fits = [
            self._one(
                LeastSquares(X, b, l2=c, weights=weights, intercept=self.fit_intercept),
                None if exact is None else exact.variables(b, alpha),
            )
            for b, alpha, c in zip(columns, alphas, l2, strict=True)
        ]
        self._set_coefficients([fit.x for fit in fits], X.dtype, y.ndim)
        self.n_iter_ = np.array([fit.iterations for fit in fits], dtype=np.int32)
        self.solver_ = fits[0].method if exact is None else "exact"
        return self

    def _penalised_solver(self) -> str | Method:
        """Return the method for positive coefficients: "auto" for the namesake's "lbfgs", too."""
        chosen = super()._penalised_solver()
        return "auto" if isinstance(chosen, str) and chosen == "lbfgs" else chosen

    def _at_once(self, X: Array, alphas: np.ndarray) -> bool:
        """Whether to factorise: dense rows that are few, or a penalty of zero."""
        few = X.shape[0] <= X.shape[1]
        return not self.positive and self._is_auto() and (few or bool(np.any(alphas == 0)))

    def _one(self, problem: LinearModel, exact: np.ndarray | None) -> Result:
        """Fit one target; an exact solution is checked, and counts as an iteration."""
        return self._minimise(
            problem,
            exact,
            tol=absolute_tol(self.tol, problem),
            spent=int(exact is not None),
            penalty=limits_of(self),
        )

    def _penalties(self, targets: int) -> np.ndarray:
        alpha = np.ravel(np.asarray(self.alpha, dtype=np.float64))
        if len(alpha) not in (1, targets):
            raise InputError(
                f"Number of targets and number of penalties do not correspond: {len(alpha)} != "
                f"{targets}; give one alpha, or one for each target."
            )
        return np.broadcast_to(alpha, targets)


@dataclass(eq=False, repr=False, kw_only=True)
class PoissonRegressor(Remembering, linear_model.PoissonRegressor):
    """Poisson regression of counts; see :class:`sklearn.linear_model.PoissonRegressor`.

    Minimises half the weighted mean deviance plus alpha/2 |coef|^2 until the gradient norm is at
    most ``tol``.

    Args:
        alpha: the penalty's weight.
        fit_intercept: whether there is an unpenalised intercept.
        solver: "auto", another built-in name, a :class:`Method` or its file as a ``Path``.
        max_iter: at most this many iterations.
        tol: the Euclidean norm of the gradient to reach (the namesake: its largest entry).
        warm_start: whether to start from the last fit's coefficients.
        verbose: whether a line says how a fit went.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file.
        positive: whether no coefficient may be negative (the namesake has no such parameter).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "positive": ["boolean"],
    }

    alpha: float = 1.0
    warm_start: bool = False
    verbose: int = 0
    positive: bool = False

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> PoissonRegressor:
        X, y, weights = regression_rows(self, X, y, sample_weight)
        problem = Poisson(
            X, y, l2=quotient(self.alpha, 1.0), weights=weights, intercept=self.fit_intercept
        )
        x0, mean = last_fit(self), float(np.average(y, weights=weights))
        if x0 is None and self.fit_intercept and mean > 0:
            x0 = np.append(np.zeros(X.shape[1]), math.log(mean))
        return keep(self, self._minimise(problem, x0, penalty=limits_of(self)), X)

    def predict(self, X: Array) -> Array:
        """Return the expected counts, exp(X coef + intercept).

        Args:
            X: the rows; for Dask's array or frame the result is computed when it is asked for.
        """
        return self._for_rows("predict", lambda X: np.exp(self._linear_predictor(X)), X)

    def score(self, X: Array, y: Array, sample_weight: Array = None) -> float:
        """Return D^2, the share of the deviance that is explained.

        Args:
            X: the rows.
            y: their counts.
            sample_weight: the weight of each row; 1 by default.
        """
        refuse_masked_targets(y, sample_weight)
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


@dataclass(eq=False, repr=False, kw_only=True)
class HuberRegressor(Remembering, linear_model.HuberRegressor):
    """Regression robust against outliers; see :class:`sklearn.linear_model.HuberRegressor`.

    Minimises the namesake's function of coefficients and scale, divided by the sum of the weights,
    until the gradient norm by the coefficients, at the best scale, is at most ``tol``.

    Args:
        epsilon: residuals in scales from which on a row is an outlier.
        max_iter: at most this many iterations.
        alpha: weight of |coef|^2 beside the sum of losses.
        warm_start: whether to start from the last fit's coefficients.
        fit_intercept: whether there is an unpenalised intercept.
        tol: the Euclidean norm of the mean's gradient (the namesake: the sum's largest entry).
        solver: "auto", another built-in name, a :class:`Method` or its file as a ``Path``.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file.
    """

    epsilon: float = 1.35
    alpha: float = 0.0001
    warm_start: bool = False
    tol: float = 1e-5

    _dask_lacks = "its scale is found from all residuals together"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> HuberRegressor:
        X, y, weights = regression_rows(self, X, y, sample_weight)
        problem = ScaledHuber(
            X,
            y,
            delta=self.epsilon,
            l2=quotient(2 * self.alpha, total_weight(weights, X)),
            weights=weights,
            intercept=self.fit_intercept,
        )
        x, spent = last_fit(self), 0
        if x is None:
            x, spent = self._approach(problem)
        keep(self, self._minimise(problem, x, spent=spent), X)
        found = np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_
        residuals = problem.scores(found) - problem.b
        self.scale_ = problem.best_scale(residuals)
        self.outliers_ = np.abs(residuals) > self.epsilon * self.scale_
        return self

    def _approach(
        self, problem: ScaledHuber, roughly: float = 1e-2
    ) -> tuple[np.ndarray | None, int]:
        """Return where to begin, and the iterations that it took to come there.

        Rows that are fitted exactly, or an epsilon near 1, have a best scale near 0, around which
        the function is all but a kink. So the scale is bounded from below, first by the size of
        the residuals and then by a third of that each time, until the bound does not matter. On the
        way a share ``roughly`` of the gradient norm at zero is enough.
        """
        x: Any = None
        spent = 0
        tol = max(self.tol, absolute_tol(roughly, problem))
        scale = float(np.sqrt(np.mean(np.square(problem.b))))
        while scale > problem.least_scale and spent < self.max_iter:
            scale = max(problem.least_scale, scale / 3)
            bounded = problem.with_least_scale(scale)
            result = self._solve_quietly(bounded, x, tol=tol, max_iter=self.max_iter - spent)
            x, spent = np.asarray(result.x), spent + result.iterations
            if result.success and problem.best_scale(problem.scores(x) - problem.b) > scale:
                break
        return x, spent


@dataclass(eq=False, repr=False, kw_only=True)
class LpRegression(Remembering, RegressorMixin, TheirLinearModel, BaseEstimator):
    """Regression with an even power of residuals as loss: the larger p, the nearer to the maximum.

    Minimises the weighted mean of |residual|^p / p plus alpha/2 |coef|^2 until the gradient norm is
    ``tol`` times that of coefficients that are all zero.

    Args:
        p: an even whole number, 2 or more.
        alpha: the penalty's weight.
        fit_intercept: whether there is an unpenalised intercept.
        solver: "auto", another built-in name, a :class:`Method` or its file as a ``Path``.
        max_iter: at most this many iterations.
        tol: what is left of the gradient norm.
        warm_start: whether to start from the last fit's coefficients.
        verbose: whether a line says how a fit went.
        memory: a :class:`Memory`, or the path of its file, that fits of problems like this one
            share, clones included: its preconditioner, never a point. Processes share a file.

    Examples:
        >>> LpRegression(p=8).fit(X, y).predict(X)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Integral, 2, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    p: int = 4
    alpha: float = 1e-4
    max_iter: int | None = 1000
    tol: float = 1e-6
    warm_start: bool = False
    verbose: int = 0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> LpRegression:
        X, y, weights = regression_rows(self, X, y, sample_weight)
        l2 = quotient(self.alpha, 1.0)
        problem = Lpp(X, y, p=self.p, l2=l2, weights=weights, intercept=self.fit_intercept)
        tol = absolute_tol(self.tol, problem)
        return keep(self, self._minimise(problem, last_fit(self), tol=tol), X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def limits_of(estimator: Any) -> NonNegative | None:
    """Return the limits of coefficients that must not be negative."""
    return NonNegative() if estimator.positive else None


def absolute_tol(tol: float, problem: LinearModel) -> float:
    """Return an absolute tolerance: a share of the gradient norm at zero coefficients."""
    g = problem.gradient(np.zeros(problem.n, dtype=problem.dtype))
    return tol * (float(np.linalg.norm(g)) or 1.0)


def last_fit(estimator: Any) -> np.ndarray | None:
    """Return the variables of the last fit for a warm start; None where there is none."""
    if not estimator.warm_start or not hasattr(estimator, "coef_"):
        return None
    coef = estimator.coef_
    return np.append(coef, estimator.intercept_) if estimator.fit_intercept else coef


def keep(estimator: Any, result: Result, X: Array) -> Any:
    """Set what was found for one target; returns the estimator."""
    estimator._set_coefficients([result.x], X.dtype)
    estimator.n_iter_ = result.iterations
    return estimator
