"""Masked arrays are refused in a sentence that names the way out, wherever arrays enter."""

import numpy as np
import pytest

from ode2opt import (
    L1,
    Box,
    Deconvolution,
    ElasticNet,
    Family,
    GroupL1,
    InputError,
    LeastSquares,
    Logistic,
    Model,
    Parts,
    Quadratic,
    Softmax,
    path,
    solve,
)
from ode2opt.integrations import sklearn as estimators

rng = np.random.default_rng(0)
A, B = rng.standard_normal((20, 3)), rng.standard_normal(20)
Y = (B > 0).astype(float)
X0 = np.ones(3)


def masked(values):
    """The same with one entry hidden."""
    found = np.ma.masked_array(values, mask=np.zeros(np.shape(values), bool))
    found.mask[(0,) * found.ndim] = True
    return found


def model():
    problem = Logistic(A, Y, l2=0.1)
    return Model.of(problem, solve(problem))


PROBLEMS = {
    "A": lambda: LeastSquares(masked(A), B),
    "a list of rows": lambda: LeastSquares([masked(row) for row in A], B),
    "b": lambda: LeastSquares(A, masked(B)),
    "b of numbers for classes": lambda: Softmax(A, masked(np.arange(20) % 3)),
    "b of words": lambda: Logistic(A, masked(np.where(Y > 0, "yes", "no"))),
    "weights": lambda: LeastSquares(A, B, weights=masked(np.abs(B))),
    "offset": lambda: LeastSquares(A, B, offset=masked(B)),
    "Q": lambda: Quadratic(masked(A.T @ A), X0),
    "b of a quadratic": lambda: Quadratic(A.T @ A, masked(X0)),
    "kernel": lambda: Deconvolution(masked(X0), B),
    "b of a convolution": lambda: Deconvolution(X0, masked(B)),
    "rows of a family": lambda: Family.from_arrays("leastsquares", masked(A), B, size=5),
    "labels of parts": lambda: Parts(Logistic, [(A, masked(Y))]),
    "x0": lambda: solve(LeastSquares(A, B), masked(X0)),
    "x0 of a function": lambda: solve(lambda x: x @ x, masked(X0), jac=lambda x: 2 * x),
    "gradient": lambda: solve(lambda x: x @ x, X0, jac=lambda x: masked(2 * x)),
    "weights of l1": lambda: L1(masked(X0)),
    "weights of an elastic net": lambda: ElasticNet(masked(X0), 0.5),
    "lower limits": lambda: Box(masked(X0), 5.0),
    "upper limits": lambda: Box(0.0, masked(X0)),
    "weights of groups": lambda: GroupL1(masked(np.ones(2)), [[0, 1], [2]]),
    "groups": lambda: GroupL1(1.0, [masked(np.array([0, 1])), [2]]),
    "scales of a path": lambda: path(LeastSquares(A, B), L1(1.0), scales=masked(X0)),
    "rows to predict for": lambda: model().predict(masked(A)),
    "rows for probabilities": lambda: model().predict_proba(masked(A)),
    "labels to judge by": lambda: model().quality(A, masked(Y)),
    "weights to judge by": lambda: model().quality(A, Y, masked(np.abs(B))),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_masked_array_is_refused(name):
    with pytest.raises(InputError, match=r"is a masked array.*fill it.*or leave out"):
        PROBLEMS[name]()


CLASSIFIERS = ("LogisticRegression", "LogisticRegressionCV", "LinearSVC")
REGRESSORS = ("Ridge", "PoissonRegressor", "HuberRegressor", "LpRegression", "Lasso", "ElasticNet",
              "LassoCV", "ElasticNetCV")  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFIERS + REGRESSORS)
def test_estimators_refuse_masked_arrays(name):
    y = Y if name in CLASSIFIERS else np.abs(B)
    kind, w = getattr(estimators, name), np.ones(20)
    fitted = kind().fit(A, y)
    asked = [
        lambda: kind().fit(masked(A), y),
        lambda: kind().fit(A, masked(y)),
        lambda: kind().fit(A, y, sample_weight=masked(w)),
        lambda: fitted.score(masked(A), y),
        lambda: fitted.score(A, masked(y)),
        lambda: fitted.score(A, y, sample_weight=masked(w)),
    ]
    for predicted in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(fitted, predicted):
            asked.append(lambda name=predicted: getattr(fitted, name)(masked(A)))
    if hasattr(fitted, "path"):
        asked += [lambda: kind.path(masked(A), y), lambda: kind.path(A, masked(y))]
    for ask in asked:
        with pytest.raises(InputError, match=r"(X|y|sample_weight) is a masked array"):
            ask()
    assert fitted.score(A, y, sample_weight=w) == pytest.approx(fitted.score(A, y))
