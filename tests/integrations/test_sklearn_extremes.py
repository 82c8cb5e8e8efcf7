"""The estimators at extreme parameters and on odd input, beside closed forms and namesakes."""

import math
import multiprocessing
import pathlib
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
import sklearn.linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_sparsify_coefficients

from ode2opt import InputError, Memory
from ode2opt.integrations.sklearn import (
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    LpRegression,
    PoissonRegressor,
    Ridge,
)
from ode2opt.integrations.sklearn._fitting import Fitting
from ode2opt.problems.scaled_huber import ScaledHuber

ROWS = 60


@pytest.fixture(params=["narrow", "wide", "sparse and wide"])
def rows(request, rng):
    columns = 4 if request.param == "narrow" else 90
    X = rng.standard_normal((ROWS, columns))
    return scipy.sparse.csr_array(X * (X > 0.5)) if "sparse" in request.param else X


@pytest.mark.parametrize("strength", [1e5, 1e20, 1e300])
def test_under_a_huge_penalty_a_regression_ends_at_the_mean(rows, strength, rng):
    y, weight = 7 + rng.standard_normal(ROWS), rng.uniform(0, 2, ROWS)
    fitted = Ridge(alpha=strength, tol=1e-10).fit(rows, y, weight)
    assert fitted.intercept_ == pytest.approx(np.average(y, weights=weight), rel=20 / strength**0.5)
    np.testing.assert_allclose(fitted.coef_, 0, atol=100 / min(strength, 1e28))
    counts = rng.poisson(9.0, ROWS)
    fitted = PoissonRegressor(alpha=strength, tol=1e-10).fit(rows, counts)
    assert fitted.intercept_ == pytest.approx(math.log(counts.mean()), abs=100 / strength)
    fitted = LpRegression(p=2, alpha=strength, tol=1e-10).fit(rows, y)
    assert fitted.intercept_ == pytest.approx(y.mean(), rel=100 / strength)


@pytest.mark.parametrize("strength", [1e5, 1e20, 1e300])
def test_under_a_huge_penalty_a_classifier_ends_at_the_shares_of_classes(rows, strength):
    y = np.arange(ROWS) % 5
    fitted = LogisticRegression(C=1 / strength, tol=1e-10).fit(rows, y > 0)
    assert fitted.intercept_[0] == pytest.approx(math.log(4), abs=1e4 / strength)
    fitted = LogisticRegression(C=1 / strength, tol=1e-10).fit(rows, np.minimum(y, 2))
    expected = np.log([1, 1, 3])
    np.testing.assert_allclose(fitted.intercept_, expected - expected.mean(), atol=1e4 / strength)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_weights_are_a_huge_penalty(dtype, rng):
    X, y = rng.standard_normal((ROWS, 3)).astype(dtype), np.arange(ROWS) % 3 > 0
    tiny = np.full(ROWS, 1e-300 if dtype == np.float64 else 1e-36)
    fitted = LogisticRegression(tol=1e-5).fit(X, y, tiny)
    assert fitted.intercept_[0] == pytest.approx(math.log(2), rel=1e-3)
    assert Ridge().fit(X, y, tiny).intercept_ == pytest.approx(2 / 3, rel=1e-3)


def test_cross_validation_may_begin_with_a_huge_penalty(rng):
    X, y = rng.standard_normal((ROWS, 3)), np.arange(ROWS) % 3 > 0
    fitted = LogisticRegressionCV(Cs=[1e-300], cv=3, tol=1e-8).fit(X, y)
    assert fitted.intercept_[0] == pytest.approx(math.log(2), rel=1e-5)


def test_the_scaling_of_an_intercept_may_be_any_number(rng):
    """Beyond a limit the intercept is free, below another it is zero."""
    X = rng.standard_normal((ROWS, 3)) + 1
    y = X[:, 0] + rng.standard_normal(ROWS) > 1.5
    free, none = (LinearSVC(intercept_scaling=s, tol=1e-9).fit(X, y) for s in (1e300, 1e-300))
    nearly = LinearSVC(intercept_scaling=1e6, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(free.coef_, nearly.coef_, rtol=1e-6)
    np.testing.assert_allclose(free.intercept_, nearly.intercept_, rtol=1e-6)
    without = LinearSVC(fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(none.coef_, without.coef_, rtol=1e-7)
    assert none.intercept_ == pytest.approx(0, abs=1e-20)
    # The intercept is s times the coefficient of a column of s: for small s both are known.
    small = LinearSVC(intercept_scaling=1e-7, tol=1e-9).fit(X, y)
    s = np.where(y, 1.0, -1.0)
    gap = np.maximum(0, 1 - s * (X @ small.coef_[0]))
    assert small.intercept_[0] == pytest.approx(1e-14 * 2 * np.sum(s * gap), rel=1e-5)


@pytest.mark.parametrize("name", ["", ".", "a.txt", "file", "none.safetensors"])
def test_a_solver_that_is_a_string_is_a_name_and_no_file_is_opened(
    name, rng, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for file in ("a.txt", "file"):
        pathlib.Path(file).write_bytes(b"secret12")
    X, y = rng.standard_normal((9, 2)), np.arange(9) % 2
    with pytest.raises(InputError, match=r"[Ss]olver") as said:
        LogisticRegression(solver=name).fit(X, y)
    assert "secret" not in str(said.value)
    assert "size" not in str(said.value)
    if name.endswith("safetensors"):
        assert "pathlib.Path('none.safetensors')" in str(said.value)


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), Ridge(), LpRegression()])
def test_columns_of_one_name_are_refused_in_a_sentence(estimator, rng):
    X, y = rng.standard_normal((12, 3)), np.arange(12) % 2
    for columns in (["a", "b", "a"], [1, 1, 1]):
        with pytest.raises(InputError, match=r"names of their own.*(2|3) times"):
            estimator.fit(pd.DataFrame(X, columns=columns), y)
    fitted = estimator.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    with pytest.raises(InputError, match=r"'a' \(2 times\)"):
        fitted.predict(pd.DataFrame(X, columns=["a", "b", "a"]))


def test_a_weight_may_be_one_number_for_all_rows(rng):
    X, y = rng.standard_normal((ROWS, 3)), np.arange(ROWS) % 2
    ours, theirs = (
        LogisticRegressionCV(Cs=3, cv=3, tol=1e-9, use_legacy_attributes=False).fit(X, y, weight)
        for weight in (2.0, np.full(ROWS, 2.0))
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    np.testing.assert_allclose(ours.scores_, theirs.scores_)


@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC, HuberRegressor])
def test_a_fit_without_iterations_warns(estimator, rng):
    X, y = rng.standard_normal((ROWS, 3)), np.arange(ROWS) % 2
    with pytest.warns(ConvergenceWarning, match="max_iter=0"):
        estimator(max_iter=0, tol=10.0).fit(X, y)  # the start meets this tolerance


def test_c_is_chosen_by_fewer_folds_where_classes_are_small():
    """As they come; with scikit-learn's own five folds this check cannot pass."""
    with pytest.warns(UserWarning, match="by 3 folds in place of 5"):
        check_sparsify_coefficients("LogisticRegressionCV", LogisticRegressionCV())


def test_folds_that_are_asked_for_are_not_changed(rng):
    X, y = rng.standard_normal((9, 2)), np.arange(9) % 3
    with pytest.raises(ValueError, match="n_splits=5"):
        LogisticRegressionCV(cv=5).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(LogisticRegressionCV(Cs=1, cv=3).fit(X, y).scores_[0]) == 3


def test_weights_and_repeated_rows_are_the_same_to_ridge(rng):
    X, y = rng.standard_normal((ROWS, 5)), rng.standard_normal(ROWS)
    weight = rng.integers(0, 4, ROWS)
    one = Ridge(tol=1e-12).fit(X, y, weight)
    other = Ridge(tol=1e-12).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    theirs = sklearn.linear_model.Ridge().fit(X, y, weight)
    np.testing.assert_allclose(one.coef_, theirs.coef_, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1.35, 1.0000001])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_huber_fits_exactly_what_can_be(epsilon, size, rng):
    """Around an exact fit its function is all but a kink: a norm of the residuals."""
    X = rng.standard_normal((ROWS, 4))
    constant = HuberRegressor(epsilon=epsilon).fit(X, np.full(ROWS, 7.0 * size))
    np.testing.assert_allclose(constant.predict(X), 7.0 * size, rtol=1e-6)
    y = size * (X @ [1, 2, 3, 4] + 7)
    linear = HuberRegressor(epsilon=epsilon, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), y, rtol=1e-6, atol=1e-8 * size)
    assert linear.scale_ < 1e-8 * size


def test_huber_with_the_smallest_epsilon_is_the_least_absolute_deviation(rng):
    X = rng.standard_normal((ROWS, 3))
    y = X @ [1, 2, 3] + 7 + rng.standard_normal(ROWS)
    fitted = HuberRegressor(epsilon=1.0, alpha=0.0, max_iter=1000).fit(X, y)
    ones, eye = np.ones((ROWS, 1)), np.eye(ROWS)
    program = scipy.optimize.linprog(
        np.r_[np.zeros(4), np.ones(2 * ROWS)],
        A_eq=np.hstack([X, ones, eye, -eye]),
        b_eq=y,
        bounds=[(None, None)] * 4 + [(0, None)] * (2 * ROWS),
    )
    assert np.abs(fitted.predict(X) - y).sum() == pytest.approx(program.fun, rel=1e-6)


def test_hubers_function_has_its_derivatives_at_the_least_scale(rng):
    X = rng.standard_normal((ROWS, 3))
    problem = ScaledHuber(X, X @ [1, 2, 3.0]).with_least_scale(5.0)
    x, v = rng.standard_normal((2, 3))
    assert problem.best_scale(problem.scores(x) - problem.b) == 5.0
    change = problem.gradient(x + 1e-6 * v) - problem.gradient(x - 1e-6 * v)
    np.testing.assert_allclose(problem.hvp(x, v), change / 2e-6, rtol=1e-6)
    np.testing.assert_allclose(problem.hessian(x) @ v, problem.hvp(x, v))
    rise = problem.value(x + 1e-6 * v) - problem.value(x - 1e-6 * v)
    assert problem.gradient(x) @ v == pytest.approx(rise / 2e-6, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_of_fewer_dense_rows_than_columns_is_exact(alpha, intercept, rng):
    """Without a penalty it is the solution of smallest norm, as that of least squares."""
    X, Y, weight = (
        rng.standard_normal((20, 35)),
        rng.standard_normal((20, 2)),
        rng.uniform(1, 2, 20),
    )
    options = {"alpha": alpha, "fit_intercept": intercept}
    ours = Ridge(**options).fit(X, Y, weight)
    theirs = sklearn.linear_model.Ridge(**options, solver="svd")
    if not alpha:
        theirs = sklearn.linear_model.LinearRegression(fit_intercept=intercept)
    theirs.fit(X, Y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7, atol=1e-9)
    assert ours.n_iter_.tolist() == [1, 1]


def test_ridge_without_penalty_has_the_smallest_norm_of_repeated_columns(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    ours = Ridge(alpha=0).fit(np.hstack([X, X]), y)
    theirs = sklearn.linear_model.LinearRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, np.tile(theirs.coef_ / 2, 2), rtol=1e-8)


def test_a_target_in_a_column_has_the_namesakes_shapes(rng):
    X, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 1))
    ours, theirs = Ridge().fit(X, y), sklearn.linear_model.Ridge().fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert ours.predict(X).shape == theirs.predict(X).shape


def test_no_penalty_beside_a_c_is_warned_of_as_in_the_namesake(rng):
    X, y = rng.standard_normal((ROWS, 2)), np.arange(ROWS) % 2
    with pytest.warns(UserWarning, match="penalty=None will ignore the C"):
        LogisticRegression(penalty=None, C=4).fit(X, y)


def test_a_copy_of_a_memory_in_a_worker_process_is_told_once(rng, monkeypatch):
    X, y = rng.standard_normal((ROWS, 2)), np.arange(ROWS) % 2
    model = LogisticRegression(memory=Memory())
    model.fit(X, y)  # here it is no copy
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    monkeypatch.setattr(Fitting, "_warned", False)
    there = clone(pickle.loads(pickle.dumps(model)))
    with pytest.warns(
        UserWarning, match="worker process .n_jobs. with a copy of its memory"
    ) as said:
        there.fit(X, y).fit(X, y)
    assert len(said) == 1
    LogisticRegression().fit(X, y)
    monkeypatch.setattr(Fitting, "_warned", False)
    pickle.loads(pickle.dumps(LogisticRegression())).fit(X, y)  # without a memory: nothing to tell
