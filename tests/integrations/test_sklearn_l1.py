"""Estimators with L1 penalties and limits: against their namesakes."""

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import sklearn.linear_model as theirs
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import ode2opt
from ode2opt import InputError
from ode2opt.integrations import sklearn as ours
from ode2opt.integrations.sklearn import _centred

TIGHT = {"tol": 1e-9, "max_iter": 100_000}
THEIRS = {"tol": 1e-14, "max_iter": 1_000_000}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y, np.random.default_rng(0).integers(0, 4, len(y)).astype(float)


def sparse_rows(X):
    """A sixth of the entries, so that they stay sparse."""
    found = scipy.sparse.csr_array(np.where(np.abs(X) > 0.06, X, 0))
    assert 0.1 < found.nnz / X.size < _centred.FULL
    return found


ROWS = {"plain": lambda X: X, "other units": lambda X: 1000 * X + 5, "sparse": sparse_rows}
OPTIONS = [
    {"alpha": 0.1},
    {"alpha": 0.01, "fit_intercept": False},
    {"alpha": 0.1, "positive": True},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
def test_coefficients_are_the_namesakes(name, rows, options, weighted, diabetes):
    X, y, w = diabetes
    X, w = ROWS[rows](X), w if weighted else None
    mine = getattr(ours, name)(**options, **TIGHT).fit(X, y, w)
    due = getattr(theirs, name)(**options, **THEIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        due.fit(X, y, w)
    np.testing.assert_allclose(
        mine.coef_, due.coef_, rtol=1e-6, atol=1e-6 * np.abs(due.coef_).max()
    )
    assert mine.intercept_ == pytest.approx(due.intercept_, rel=1e-6)
    assert (mine.sparse_coef_ != scipy.sparse.csr_array(mine.coef_[None])).nnz == 0
    assert mine.dual_gap_ >= excess(mine, due, X, y, w) - 1e-9
    assert isinstance(mine.n_iter_, int)


def excess(mine, due, X, y, w):
    """By how much the objective of one is above that of the other."""
    w = np.ones(len(y)) if w is None else w

    def objective(model):
        misfit = np.average((y - X @ model.coef_ - model.intercept_) ** 2, weights=w) / 2
        c, ratio = model.coef_, getattr(model, "l1_ratio", 1.0)
        return misfit + model.alpha * (ratio * abs(c).sum() + (1 - ratio) / 2 * (c @ c))

    return objective(mine) - objective(due)


def test_the_gap_bounds_a_rough_fit(diabetes):
    X, y, _ = diabetes
    for rows in (X, sparse_rows(X)):
        best = theirs.Lasso(0.05, **THEIRS).fit(rows, y)
        rough = ours.Lasso(0.05, tol=0.05, solver="fista").fit(rows, y)
        assert 0 < excess(rough, best, rows, y, None) <= rough.dual_gap_ < np.var(y) / 2


def test_several_targets_single_precision_and_a_warm_start(diabetes):
    X, y, _ = diabetes
    Y = np.column_stack([y, -2 * y + X[:, 0]])
    mine = ours.ElasticNet(0.1, **TIGHT).fit(X, Y)
    due = theirs.ElasticNet(0.1, **THEIRS).fit(X, Y)
    np.testing.assert_allclose(mine.coef_, due.coef_, atol=1e-5)
    assert (mine.coef_.shape, mine.intercept_.shape, len(mine.n_iter_)) == ((2, 10), (2,), 2)
    single = ours.Lasso(0.1).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, ours.Lasso(0.1).fit(X, y).coef_, rtol=0.01, atol=1)
    warm = ours.Lasso(0.1, warm_start=True, tol=1e-6, solver="fista").fit(X, y)
    assert warm.n_iter_ > 5
    assert warm.fit(X, y).n_iter_ == 0


def test_no_penalty_and_squares_alone_are_solved_as_smooth_problems(diabetes):
    X, y, _ = diabetes
    with pytest.warns(UserWarning, match="With alpha=0 there is no penalty"):
        plain = ours.Lasso(0.0, **TIGHT).fit(X, y)
    np.testing.assert_allclose(plain.coef_, theirs.LinearRegression().fit(X, y).coef_, rtol=1e-6)
    squares = ours.ElasticNet(0.1, l1_ratio=0.0, **TIGHT).fit(X, y)
    due = theirs.Ridge(0.1 * len(y), tol=1e-12).fit(X, y)
    np.testing.assert_allclose(squares.coef_, due.coef_, rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_paths_are_the_namesakes(diabetes, positive, sparse):
    X, y, _ = diabetes
    X, y = sparse_rows(X) if sparse else X - X.mean(axis=0), y - y.mean()
    options = {"alphas": 7, "eps": 0.01, "positive": positive}
    mine = ours.Lasso.path(X, y, **options, **TIGHT, return_n_iter=True)
    due = theirs.lasso_path(X, y, **options, **THEIRS)
    np.testing.assert_allclose(mine[0], due[0], rtol=1e-9)
    np.testing.assert_allclose(mine[1], due[1], atol=1e-4)
    assert len(mine[2]) == len(mine[3]) == 7
    with pytest.raises(InputError, match="Several targets"):
        ours.ElasticNet.path(X, np.column_stack([y, y]))


CHOICES = [
    ("LassoCV", {"alphas": 12, "eps": 0.01}),
    ("LassoCV", {"alphas": [3.0, 0.3, 0.03, 0.0], "positive": True}),
    ("ElasticNetCV", {"alphas": 8, "l1_ratio": [0.3, 0.9], "fit_intercept": False}),
    ("ElasticNetCV", {"alphas": [1.0, 0.1, 0.1], "l1_ratio": [0.0, 0.5]}),
]


@pytest.mark.filterwarnings("ignore:With alpha=0", "ignore:Coordinate descent without")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "options"), CHOICES, ids=str)
def test_the_penalty_that_cross_validation_chooses_is_the_namesakes(
    name, options, weighted, diabetes
):
    X, y, w = diabetes
    X, w = sparse_rows(X) if weighted else X, w if weighted else None
    mine = getattr(ours, name)(cv=3, tol=1e-8, max_iter=10_000, **options).fit(X, y, w)
    due = getattr(theirs, name)(cv=3, tol=1e-9, max_iter=100_000, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        due.fit(X, y, w)
    np.testing.assert_allclose(mine.alphas_, due.alphas_, rtol=1e-9)
    np.testing.assert_allclose(mine.mse_path_, due.mse_path_, rtol=1e-5)
    assert mine.mse_path_.shape == due.mse_path_.shape
    assert mine.alpha_ == pytest.approx(due.alpha_)
    assert getattr(mine, "l1_ratio_", None) == getattr(due, "l1_ratio_", None)
    np.testing.assert_allclose(mine.coef_, due.coef_, rtol=1e-4, atol=1e-3)


def test_a_fold_knows_its_own_rows_alone(diabetes, monkeypatch):
    """Every problem of a path is of one fold's rows, and starts at nothing or at its own path."""
    X, y, _ = diabetes
    folds, seen = list(KFold(4).split(X)), []

    def watching(problem, penalty, **options):
        seen.append((problem.N, options.get("x0")))
        return ode2opt.path(problem, penalty, **options)

    monkeypatch.setattr(_centred, "path", watching)
    together = ours.LassoCV(alphas=[1.0, 0.1], cv=folds).fit(X, y)
    assert seen == [(len(train), None) for train, _ in folds]
    for k in (3, 1):  # any fold alone, in any order, gives the same numbers
        alone = ours.LassoCV(alphas=[1.0, 0.1], cv=[folds[k]]).fit(X, y)
        np.testing.assert_array_equal(alone.mse_path_, together.mse_path_[:, k])


def test_targets_without_signal_are_predicted_no_better_than_by_their_mean():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((120, 300)), rng.standard_normal(120)
    found = ours.LassoCV(alphas=8, cv=4).fit(X, y)
    assert found.mse_path_.mean(axis=1).min() > 0.9 * np.var(y)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200, :8], y[:200]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_logistic_coefficients_are_the_namesakes(l1_ratio, intercept, weighted, cancer):
    X, y = cancer
    w = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    options = {"l1_ratio": l1_ratio, "C": 0.3, "fit_intercept": intercept}
    mine = ours.LogisticRegression(**options, tol=1e-9, max_iter=10_000).fit(X, y, w)
    rows = scipy.sparse.csr_array(X)
    same = ours.LogisticRegression(**options, tol=1e-9, max_iter=10_000).fit(rows, y, w)
    saga = theirs.LogisticRegression(**options, solver="saga", tol=1e-11, max_iter=100_000)
    due = saga.fit(X, y, w)
    for one in (mine, same):
        np.testing.assert_allclose(one.coef_, due.coef_, atol=1e-6)
        np.testing.assert_allclose(one.intercept_, due.intercept_, atol=1e-6)
    assert np.any(mine.coef_ == 0) == (l1_ratio == 1)


def test_several_classes_keep_their_zeros():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"l1_ratio": 1.0, "C": 0.5}
    mine = ours.LogisticRegression(**options, tol=1e-9, max_iter=20_000).fit(X, y)
    saga = theirs.LogisticRegression(**options, solver="saga", tol=1e-12, max_iter=100_000)
    due = saga.fit(X, y)
    np.testing.assert_allclose(mine.predict_proba(X), due.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(mine.coef_, due.coef_, atol=1e-5)
    assert np.count_nonzero(mine.coef_ == 0) == np.count_nonzero(due.coef_ == 0) > 2
    assert mine.intercept_.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_penalty_by_its_old_name(cancer):
    new = ours.LogisticRegression(l1_ratio=1.0, C=0.3, max_iter=1000).fit(*cancer)
    with pytest.warns(UserWarning, match="Inconsistent values: penalty=l1"):
        old = ours.LogisticRegression(penalty="l1", C=0.3, max_iter=1000).fit(*cancer)
    np.testing.assert_array_equal(old.coef_, new.coef_)
    with (
        pytest.warns(UserWarning, match="l1_ratio parameter is only used"),
        pytest.warns(UserWarning, match="Inconsistent values: penalty=l2"),
    ):
        ours.LogisticRegression(penalty="l2", l1_ratio=0.5).fit(*cancer)
    free = ours.LogisticRegression(l1_ratio=1.0, C=np.inf, max_iter=1000).fit(*cancer)
    np.testing.assert_allclose(
        free.coef_, ours.LogisticRegression(C=np.inf, max_iter=1000).fit(*cancer).coef_, rtol=1e-3
    )


@pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("refit", [True, False])
def test_cross_validation_over_shares_is_the_namesakes(cancer, new, refit):
    X, y = cancer
    ratios = np.array([0.0, 0.5, 1.0])
    options = {"Cs": [0.03, 0.3, 0.2], "l1_ratios": ratios, "cv": 3, "refit": refit}
    options |= {"use_legacy_attributes": not new, "scoring": "neg_log_loss"}
    mine = ours.LogisticRegressionCV(**options, tol=1e-8, max_iter=10_000).fit(X, y)
    saga = theirs.LogisticRegressionCV(**options, solver="saga", tol=1e-9, max_iter=50_000)
    due = saga.fit(X, y)
    for name in ("C_", "l1_ratio_", "l1_ratios_", "Cs_"):
        np.testing.assert_allclose(getattr(mine, name), getattr(due, name))
    np.testing.assert_allclose(mine.coef_, due.coef_, atol=1e-4)
    pick = (lambda found: found) if new else (lambda found: found[1])
    for name in ("scores_", "coefs_paths_"):
        one, other = pick(getattr(mine, name)), pick(getattr(due, name))
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert mine.n_iter_.shape == due.n_iter_.shape


def test_coefficients_that_may_not_be_negative(diabetes):
    X, y, w = diabetes
    mine = ours.Ridge(0.1, positive=True, tol=1e-9).fit(X, y, w)
    due = theirs.Ridge(0.1, positive=True, tol=1e-12, max_iter=100_000).fit(X, y, w)
    np.testing.assert_allclose(mine.coef_, due.coef_, atol=1e-3)
    exact = scipy.optimize.nnls(X, y)[0]
    nothing = ours.Ridge(0.0, positive=True, fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(nothing.coef_, exact, atol=1e-4)
    counts = np.random.default_rng(2).poisson(np.exp(3 * X[:, 2] - 3 * X[:, 3]))
    poisson = ours.PoissonRegressor(alpha=1e-3, positive=True, tol=1e-8, max_iter=10_000)
    poisson.fit(X, counts)
    assert poisson.coef_.min() == 0
    assert poisson.coef_[2] > 0
    g = X.T @ (poisson.predict(X) - counts) / len(y) + 1e-3 * poisson.coef_
    np.testing.assert_allclose(np.minimum(poisson.coef_, g), 0, atol=1e-7)


def test_a_fit_that_stops_early_warns(diabetes):
    X, y, _ = diabetes
    with pytest.warns(ConvergenceWarning, match="Lasso did not converge.*residual"):
        ours.Lasso(0.01, max_iter=2, tol=1e-9, solver="fista").fit(X, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours.LassoCV(alphas=[0.02, 0.01], max_iter=2, tol=1e-9, cv=2, solver="fista").fit(X, y)
    said = [str(one.message) for one in told if one.category is ConvergenceWarning]
    assert len(said) == 3  # two folds and the last fit
    assert "did not converge for 2 of 2 weights" in said[0]


BAD = {
    "'alpha' parameter": lambda X, y: ours.Lasso(-1.0).fit(X, y),
    "'l1_ratio' parameter": lambda X, y: ours.ElasticNet(l1_ratio=2).fit(X, y),
    "Negative values": lambda X, y: ours.Lasso().fit(X, y, -np.ones(len(y))),
    "is for smooth functions": lambda X, y: ours.Lasso(solver="lbfgs").fit(X, y),
    "For multi-task outputs": lambda X, y: ours.LassoCV().fit(X, np.column_stack([y, y])),
    "not supported for l1_ratio=0": lambda X, y: ours.ElasticNetCV(l1_ratio=0).fit(X, y),
    "alphas": lambda X, y: ours.LassoCV(alphas=[-1.0]).fit(X, y),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_told_in_a_sentence(sentence, diabetes):
    with pytest.raises(ValueError, match=sentence):
        BAD[sentence](*diabetes[:2])


def test_folds_of_dasks_rows_are_refused_in_a_sentence(diabetes):
    dask = pytest.importorskip("dask.array")
    X, y, _ = diabetes
    with pytest.raises(InputError, match=r"does not take Dask's arrays, because its folds"):
        ours.LassoCV().fit(dask.from_array(X), y)


def test_data_that_tell_nothing(diabetes):
    X, y, _ = diabetes
    nothing = ours.Lasso(0.1).fit(np.zeros((5, 2)), np.arange(5.0))
    assert (nothing.coef_.tolist(), nothing.intercept_, nothing.dual_gap_) == ([0, 0], 2, 0)
    constant = ours.LassoCV(alphas=3, cv=2).fit(np.column_stack([X, np.ones(len(X))]), 0 * y + 3)
    assert not constant.coef_.any()
    assert constant.intercept_ == 3
