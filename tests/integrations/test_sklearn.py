"""The estimators against their namesakes, and under scikit-learn's own checks."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
import sklearn.linear_model
import sklearn.svm
from integrations.recipes import RECIPES, models
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from ode2opt import InputError, Memory, load_dataset, solve
from ode2opt.base.errors import MissingDependencyError
from ode2opt.integrations.sklearn import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    LpRegression,
    PoissonRegressor,
    Ridge,
)
from ode2opt.integrations.sklearn import _require as require
from ode2opt.problems import Logistic

TIGHT = {"tol": 1e-10, "max_iter": 5000}
NEWTON = TIGHT | {"solver": "newton-cholesky"}
"""The namesake's most exact solver: its L-BFGS stops where values differ by rounding."""
ESTIMATORS = [
    LogisticRegression(),
    LogisticRegressionCV(Cs=2, cv=3, tol=1e-9, max_iter=1000),
    Ridge(),
    PoissonRegressor(),
    LpRegression(),
    HuberRegressor(),
    LinearSVC(),
    Lasso(),
    ElasticNet(),
    LassoCV(alphas=5, cv=3, tol=1e-10, max_iter=100_000),
    ElasticNetCV(alphas=5, cv=3, tol=1e-10, max_iter=100_000),
    LogisticRegression(l1_ratio=0.5, max_iter=1000),
    Ridge(positive=True, tol=1e-10),
]
"""As they come; by 3 folds since the checks have classes of 3 rows, tightly for seven digits."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learns_checks_pass_and_none_is_skipped(estimator, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    for found in check_estimator(estimator, on_skip=None, on_fail="raise"):
        assert found["status"] == "passed", found["check_name"]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def a5a(real_data):
    rows = load_dataset("a5a").train
    return scipy.sparse.csr_array(rows.A)[:600], np.asarray(rows.b)[:600]


def weights(y, seed=0):
    return np.random.default_rng(seed).integers(0, 4, len(y)).astype(float)


def agree(ours, theirs, X):
    """Coefficients to 1e-4 relative, the same predictions."""
    for name in ("coef_", "intercept_"):
        a, b = (np.asarray(getattr(fitted, name)) for fitted in (ours, theirs))
        assert a.shape == b.shape
        assert np.linalg.norm(a - b) <= 1e-4 * np.linalg.norm(b)
    if hasattr(theirs, "classes_"):
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    else:
        a, b = ours.predict(X), theirs.predict(X)
        assert np.linalg.norm(a - b) <= 1e-4 * np.linalg.norm(b)


OPTIONS = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "weak": {"C": 30.0},
    "balanced": {"class_weight": "balanced"},
    "class weights": {"class_weight": {0: 3.0}},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", ["cancer", "a5a"])
def test_logistic_coefficients_are_the_namesakes(data, weighted, options, request):
    X, y = request.getfixturevalue(data)
    sample_weight = weights(y) if weighted else None
    theirs = sklearn.linear_model.LogisticRegression(**NEWTON, **options)
    ours = LogisticRegression(**TIGHT, **options).fit(X, y, sample_weight)
    agree(ours, theirs.fit(X, y, sample_weight), X)
    if scipy.sparse.issparse(X):
        agree(LogisticRegression(**TIGHT, **options).fit(X.toarray(), y, sample_weight), theirs, X)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_multinomial_coefficients_are_the_namesakes(options):
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    sample_weight = weights(y)
    theirs = sklearn.linear_model.LogisticRegression(**NEWTON, **options).fit(X, y, sample_weight)
    for rows in (X, scipy.sparse.csr_array(X)):
        ours = LogisticRegression(**TIGHT, **options).fit(rows, y, sample_weight)
        agree(ours, theirs, X)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    warm = LogisticRegression(tol=1e-6, warm_start=True, **options).fit(X, y, sample_weight)
    assert warm.n_iter_[0] > 1
    assert warm.fit(X, y, sample_weight).n_iter_[0] <= 1


@pytest.fixture(scope="module")
def three_digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:150, 10:40] / 16, y[:150]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"refit": False, "scoring": "neg_log_loss"},
        {"use_legacy_attributes": False, "l1_ratios": (0,), "scoring": "balanced_accuracy"},
        {"class_weight": "balanced", "l1_ratios": (0,), "fit_intercept": False},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validation_finds_what_the_namesake_finds(classes, options, three_digits):
    X, y = three_digits
    y = np.array(["a", "b", "c"])[np.minimum(y, classes - 1)]
    options = {"Cs": [10.0, 0.01, 1.0], "cv": 3, **options}
    theirs = sklearn.linear_model.LogisticRegressionCV(**NEWTON, **options)
    theirs.fit(X, y, weights(y))
    ours = LogisticRegressionCV(**TIGHT, **options).fit(X, y, weights(y))
    agree(ours, theirs, X)
    for name in ("C_", "Cs_", "l1_ratios_", "scores_", "coefs_paths_"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert type(a) is type(b)
        assert not isinstance(b, dict) or list(a) == list(b)
        pairs = zip(a.values(), b.values(), strict=True) if isinstance(b, dict) else [(a, b)]
        for one, other in pairs:
            assert np.shape(one) == np.shape(other)
            if name != "l1_ratios_":
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert np.shape(ours.n_iter_) == np.shape(theirs.n_iter_)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-5)


def test_cross_validation_shares_one_memory(three_digits):
    memory = Memory()
    LogisticRegressionCV(Cs=3, cv=3, memory=memory, max_iter=1000).fit(*three_digits)
    assert memory.solves == 3 * 3 + 1


@pytest.mark.exhaustive
def test_folds_run_in_processes(three_digits):
    options = {"Cs": [1e-2, 1e-1, 1.0], "cv": 3, "tol": 1e-8, "max_iter": 1000}
    one, two = (LogisticRegressionCV(n_jobs=n, **options).fit(*three_digits) for n in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_classes_of_one_row_cannot_be_cross_validated():
    X = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match="cannot be greater than the number of members"):
        LogisticRegressionCV(cv=3).fit(X[:3], [0, 1, 2])
    with pytest.raises(InputError, match=r"Fold \d .* one class only"):
        LogisticRegressionCV(cv=3).fit(X, [0] * 5 + [1] + [0] * 6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("columns", [8, 90])
def test_ridge_coefficients_are_the_namesakes(columns, intercept, weighted, sparse, rng):
    X = rng.standard_normal((60, columns)) * (rng.random((60, columns)) < 0.5) + 0.1
    Y = 1e-3 * (X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((60, 2)) + 5)
    rows = scipy.sparse.csr_array(X) if sparse else X
    options = {"fit_intercept": intercept, "tol": 1e-10}
    sample_weight = weights(Y) if weighted else None
    for y, alpha in ((Y[:, 0], 0.3), (Y, 0.3), (Y, [0.1, 2.0])):
        ours = Ridge(alpha, **options).fit(rows, y, sample_weight)
        agree(ours, sklearn.linear_model.Ridge(alpha, **options).fit(X, y, sample_weight), X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_poisson_coefficients_are_the_namesakes(alpha, intercept, weighted, rng):
    X = 0.3 * rng.standard_normal((400, 6)) * (rng.random((400, 6)) < 0.5)
    y = rng.poisson(np.exp(2 + X @ rng.standard_normal(6)))
    sample_weight = weights(y) if weighted else None
    options = {"alpha": alpha, "fit_intercept": intercept}
    theirs = sklearn.linear_model.PoissonRegressor(**NEWTON, **options).fit(X, y, sample_weight)
    for rows in (X, scipy.sparse.csr_array(X)):
        ours = PoissonRegressor(**TIGHT, **options).fit(rows, y, sample_weight)
        agree(ours, theirs, X)
    assert ours.score(X, y, sample_weight) == pytest.approx(theirs.score(X, y, sample_weight))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"epsilon": 2.0, "alpha": 9.0}])
def test_huber_coefficients_and_scale_are_the_namesakes(options, weighted, rng):
    X = rng.standard_normal((150, 4)) * (rng.random((150, 4)) < 0.7)
    y = 30 * (X @ rng.standard_normal(4) + rng.standard_t(1.5, 150) + 2)
    sample_weight = weights(y) if weighted else None
    theirs = sklearn.linear_model.HuberRegressor(**TIGHT, **options).fit(X, y, sample_weight)
    for rows in (X, scipy.sparse.csr_array(X)):
        ours = HuberRegressor(**TIGHT, **options).fit(rows, y, sample_weight)
        agree(ours, theirs, X)
        assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-4)
        np.testing.assert_array_equal(ours.outliers_, theirs.outliers_)
    again = HuberRegressor(tol=1e-8, warm_start=True, **options).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 1


@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"intercept_scaling": 20.0}, {"class_weight": "balanced"}],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_support_vector_coefficients_are_the_namesakes(classes, options, cancer):
    X, y = cancer
    X, y = X[:300], y[:300] + (X[:300, 0] > 0) * (classes == 3)
    sample_weight = weights(y)
    theirs = sklearn.svm.LinearSVC(dual=False, tol=1e-9, C=0.1, max_iter=10_000, **options)
    theirs.fit(X, y, sample_weight)
    for rows in (X, scipy.sparse.csr_array(X)):
        ours = LinearSVC(**TIGHT, C=0.1, **options).fit(rows, y, sample_weight)
        agree(ours, theirs, X)


def test_of_one_column_of_ones_a_power_has_its_own_centre(rng):
    y, ones = rng.exponential(size=60), np.ones((60, 1))
    for p in (2, 20):
        ours = LpRegression(p=p, alpha=0, fit_intercept=False, tol=1e-10).fit(ones, y)
        centre = scipy.optimize.minimize_scalar(
            lambda c, p=p: np.mean((y - c) ** p), bounds=(0, y.max()), options={"xatol": 1e-9}
        )
        assert ours.coef_[0] == pytest.approx(centre.x, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_l4_coefficients_are_scipys(weighted, rng):
    X, y = rng.standard_normal((80, 4)), rng.standard_normal(80) + 3
    w = weights(y) if weighted else np.ones(80)

    def f(x):
        return w @ (X @ x[:-1] + x[-1] - y) ** 4 / (4 * w.sum()) + 0.05 * x[:-1] @ x[:-1]

    ours = LpRegression(alpha=0.1, tol=1e-10).fit(X, y, w if weighted else None)
    found = scipy.optimize.minimize(f, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(np.append(ours.coef_, ours.intercept_), found.x, atol=1e-5)
    again = LpRegression(alpha=0.1, tol=1e-9, warm_start=True).fit(X, y, w).fit(X, y, w)
    assert again.n_iter_ <= 1


def test_labels_may_be_words_and_rows_a_data_frame(cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    words = np.array(["ill", "well"])[y]
    ours = LogisticRegression(**TIGHT).fit(frame, words)
    agree(ours, sklearn.linear_model.LogisticRegression(**TIGHT).fit(frame, words), frame)
    assert list(ours.feature_names_in_) == list(frame.columns)


def test_without_penalty_the_gradient_of_the_log_loss_vanishes(rng):
    X = rng.standard_normal((300, 4))
    y = rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))
    fitted = LogisticRegression(C=np.inf, **TIGHT).fit(X, y)
    error = fitted.predict_proba(X)[:, 1] - y
    np.testing.assert_allclose(X.T @ error, 0, atol=1e-6)


def test_a_warm_start_begins_where_the_last_fit_ended(cancer):
    X, y = cancer
    cold = LogisticRegression(tol=1e-6).fit(X, y)
    warm = LogisticRegression(tol=1e-6, warm_start=True).fit(X, y).sparsify().fit(X, y)
    assert warm.n_iter_[0] < cold.n_iter_[0]
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-4)


def test_sparsify_and_densify(cancer):
    X, y = cancer
    fitted = LogisticRegression().fit(X, y)
    before = fitted.predict(X)
    assert scipy.sparse.issparse(fitted.sparsify().coef_)
    np.testing.assert_array_equal(fitted.predict(X), before)
    assert isinstance(fitted.densify().coef_, np.ndarray)


def test_fits_and_their_clones_share_a_memory(cancer):
    X, y = cancer
    memory = Memory()
    search = GridSearchCV(LogisticRegression(memory=memory), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert memory.solves == 7
    assert search.best_estimator_.memory is memory
    assert clone(search.best_estimator_).memory is memory


def test_a_solver_is_a_name_a_method_or_its_file(cancer, tmp_path):
    X, y = cancer
    memory = Memory()
    solve(Logistic(X, y, l2=1 / len(y), intercept=True), memory=memory)
    method = memory.method()
    method.save(tmp_path / "method.safetensors")
    expected = LogisticRegression(**TIGHT).fit(X, y).coef_
    for solver in ("lbfgs", "newton", method, tmp_path / "method.safetensors"):
        found = LogisticRegression(solver=solver, **TIGHT).fit(X, y)
        np.testing.assert_allclose(found.coef_, expected, rtol=1e-5)
        assert pickle.loads(pickle.dumps(found)).predict(X).shape == y.shape


@pytest.mark.parametrize("ours", [LogisticRegression, PoissonRegressor, Ridge])
def test_the_solvers_of_the_namesake_are_taken_and_find_its_coefficients(ours, cancer):
    """All that its own check of parameters knows, without the intercept: liblinear penalises it."""
    X, y = cancer
    theirs = getattr(sklearn.linear_model, ours.__name__)
    (known,) = (one for one in theirs._parameter_constraints["solver"] if hasattr(one, "options"))
    assert len(known.options) > 1
    for solver in known.options:
        given = {"solver": solver, "fit_intercept": False, "tol": 1e-8, "max_iter": 20_000}
        given |= {"positive": True} if (ours, solver) == (Ridge, "lbfgs") else {}
        expected = theirs(**given).fit(X, y).coef_
        np.testing.assert_allclose(ours(**given).fit(X, y).coef_, expected, rtol=1e-3, atol=1e-4)


def test_folds_share_their_work_whichever_solver_of_the_namesake_is_named(cancer):
    one, other = (
        LogisticRegressionCV(Cs=3, cv=3, scoring="accuracy", solver=solver).fit(*cancer)
        for solver in ("auto", "saga")
    )
    np.testing.assert_array_equal(one.coefs_paths_[1], other.coefs_paths_[1])


def test_the_limit_is_warned_of(cancer):
    with pytest.warns(ConvergenceWarning, match=r"iteration limit .* after 2 iterations"):
        fitted = LogisticRegression(max_iter=2, tol=1e-9).fit(*cancer)
    assert fitted.n_iter_[0] == 2


def test_verbose_says_how_a_fit_went(cancer, capsys):
    LogisticRegression(verbose=1).fit(*cancer)
    assert "[LogisticRegression] Newton's method" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (LogisticRegression("elasticnet", l1_ratio=None), "l1_ratio must be specified"),
        (LogisticRegression(l1_ratio=2), "'l1_ratio' parameter"),
        (LogisticRegression(l1_ratio=1, solver="lbfgs"), "'lbfgs' is for smooth functions"),
        (LogisticRegressionCV(l1_ratios=(0.5, 2)), "numbers between 0 and 1; got"),
        (LogisticRegressionCV(l1_ratios=()), "numbers between 0 and 1; got"),
        (LogisticRegressionCV(l1_ratios=np.array([0.1, np.nan])), "numbers between 0 and 1"),
        (LogisticRegressionCV(penalty="elasticnet"), "numbers between 0 and 1; got"),
        (LogisticRegression(dual=True), "dual=True is liblinear's alone"),
        (LogisticRegression(solver="newtin"), "Unknown solver 'newtin': did you mean 'newton'"),
        (LogisticRegression(solver=Path("none.safetensors")), "none.safetensors"),
        (LogisticRegression(solver="lbfgs", memory=Memory()), "goes with the method 'auto' only"),
        (LinearSVC(penalty="l1"), "The L1 penalty is not smooth"),
        (LinearSVC(loss="hinge"), "The hinge is not smooth"),
        (LinearSVC(multi_class="crammer_singer"), "Crammer and Singer's loss is not here"),
        (Ridge(alpha=[1.0, 2.0]), "do not correspond: 2 != 1"),
        (HuberRegressor(epsilon=0.5), "'epsilon' parameter"),
        (LpRegression(p=3), "p is 3: .* even p"),
        (LogisticRegression(C=-1), "'C' parameter"),
        (LogisticRegression(memory=3), "'memory' parameter"),
    ],
)
def test_what_is_not_here_is_refused_by_name(estimator, said, cancer):
    with pytest.raises((ValueError, OSError), match=said):
        estimator.fit(*cancer)


@pytest.mark.parametrize(
    ("sample_weight", "said"),
    [
        (lambda y: -np.ones(len(y)), "Negative values"),
        (lambda y: np.zeros(len(y)), "zero"),
        (lambda y: np.ones(3), "shape"),
    ],
)
def test_weights_that_are_none_are_refused(sample_weight, said, cancer):
    X, y = cancer
    with pytest.raises(ValueError, match=said):
        LogisticRegression().fit(X, y, sample_weight(y))


def test_one_class_is_refused_and_an_unfitted_model_predicts_nothing(cancer):
    X, y = cancer
    with pytest.raises(InputError, match=r"only one class: np.int64\(1\)"):
        LogisticRegression().fit(X, np.ones(len(y), dtype=int))
    with pytest.raises(NotFittedError):
        LogisticRegression().predict(X)


def test_negative_counts_are_refused():
    with pytest.raises(InputError, match="must not be negative; one is -1"):
        PoissonRegressor().fit(np.eye(3), [1, 2, -1])


def test_an_old_scikit_learn_is_refused():
    require("1.8.dev0")
    require("2.0")
    with pytest.raises(MissingDependencyError, match=r"1\.8 or later, not 1\.7\.2"):
        require("1.7.2")


def test_callbacks_are_refused():
    with pytest.raises(InputError, match="does not call scikit-learn's callbacks"):
        LogisticRegression().set_callbacks(object())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_recipe_gives_the_same_with_either_import_line(recipe):
    ours, theirs = (np.asarray(recipe(models(name))) for name in ("ode2opt", "sklearn"))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
