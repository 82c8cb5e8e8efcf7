"""No fold knows the rows of another: on labels without any signal every score is at chance."""

import numpy as np
import pytest
import scipy.sparse
from data import topics
from sklearn.base import clone
from sklearn.linear_model import LogisticRegressionCV as NamesakeCV
from sklearn.model_selection import GridSearchCV, cross_val_score

from ode2opt import Family, InputError, Logistic, Memory, Method, solve
from ode2opt.base.errors import Ode2OptError
from ode2opt.integrations.sklearn import (
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    LpRegression,
    PoissonRegressor,
    Ridge,
)

FOLDS = 4
ERRORS = 4  # standard errors that a score at chance may be away from one half


def dense(rng, rows, columns):
    return rng.standard_normal((rows, columns))


def sparse(rng, rows, columns):
    return scipy.sparse.random(rows, columns, density=0.01, random_state=rng, format="csr")


PROBLEMS = {  # rows and columns: wide ones can be fitted exactly, whatever their labels are
    "sparse, wide": (sparse, 600, 3_000),
    "sparse, wider": (sparse, 400, 6_000),
    "sparse, tall": (sparse, 1_200, 300),
    "dense, wide": (dense, 300, 400),
    "dense, tall": (dense, 1_200, 60),
}


def noise(name):
    """Return rows with labels that have nothing to do with them."""
    make, rows, columns = PROBLEMS[name]
    rng = np.random.default_rng([7, rows, columns])
    return make(rng, rows, columns), rng.permutation(np.arange(rows) % 2)


def by_memory(X, y, jobs):
    model = LogisticRegression(C=1e4, memory=Memory(), max_iter=1_000)
    return cross_val_score(model, X, y, cv=FOLDS, n_jobs=jobs)


def by_path(X, y, jobs):
    model = LogisticRegressionCV(
        Cs=[1e-2, 1e2, 1e4], cv=FOLDS, n_jobs=jobs, max_iter=1_000, use_legacy_attributes=False
    )
    return model.fit(X, y).scores_


def by_path_with_memory(X, y, jobs):
    model = LogisticRegressionCV(
        Cs=[1e-2, 1e4], cv=FOLDS, n_jobs=jobs, memory=Memory(), max_iter=1_000,
        use_legacy_attributes=False,
    )  # fmt: skip
    return model.fit(X, y).scores_


def by_search(X, y, jobs):
    model = LogisticRegression(memory=Memory(), max_iter=1_000)
    search = GridSearchCV(model, {"C": [1.0, 1e4]}, cv=FOLDS, n_jobs=jobs).fit(X, y)
    return np.stack([search.cv_results_[f"split{k}_test_score"] for k in range(FOLDS)])


@pytest.mark.filterwarnings("ignore:This fit runs in a worker process")
@pytest.mark.parametrize(
    "jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)], ids="jobs={}".format
)
@pytest.mark.parametrize("scores", [by_memory, by_path, by_path_with_memory, by_search])
@pytest.mark.parametrize("name", PROBLEMS)
def test_labels_without_signal_are_predicted_at_chance(name, scores, jobs):
    X, y = noise(name)
    found = np.asarray(scores(X, y, jobs))
    error = 0.5 / np.sqrt(len(y) / FOLDS)
    assert np.max(np.abs(found - 0.5)) <= ERRORS * error


def estimators():
    counts = np.random.default_rng(3).poisson(3, 120).astype(float)
    return [
        (LogisticRegression(tol=10.0), np.arange(120) % 2),
        (LogisticRegression(tol=10.0), np.arange(120) % 3),
        (LinearSVC(tol=10.0), np.arange(120) % 2),
        (Ridge(tol=1e3), counts),
        (LpRegression(tol=1e9), counts),
        (PoissonRegressor(tol=1e3), counts),
    ]


@pytest.mark.parametrize(("model", "y"), estimators(), ids=lambda value: type(value).__name__)
def test_a_fit_that_may_stop_at_once_stays_at_its_start_whatever_a_memory_has_seen(model, y, rng):
    """A tolerance that every point meets leaves the start: no solution of other rows."""
    X, memory = rng.standard_normal((120, 4)), Memory()
    fresh = clone(model).fit(X, y)
    clone(model).set_params(memory=memory, tol=1e-6, max_iter=10_000).fit(X, y)
    assert memory.solves > 0
    after = clone(model).set_params(memory=memory).fit(X, y)
    np.testing.assert_array_equal(after.coef_, fresh.coef_)


def test_the_start_of_a_learned_method_is_no_start_of_a_fit(rng):
    X, y = rng.standard_normal((120, 4)), np.arange(120) % 2
    memory = Memory()
    solve(Logistic(X, y, l2=1 / 120, intercept=True), memory=memory)
    method = memory.method()
    assert isinstance(method, Method)
    assert np.any(method.start)
    fitted = LogisticRegression(solver=method, tol=10.0).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, 0)


@pytest.mark.parametrize("order", [1, -1])
def test_fits_in_any_order_with_or_without_a_memory_agree_to_the_tolerance(order, rng):
    """Strong convexity: two points of gradient norm tol are at most 2 tol / l2 apart."""
    tol, C, rows = 1e-6, 0.1, 300
    X, y = rng.standard_normal((rows, 8)), rng.integers(0, 2, rows)
    parts = list(np.array_split(np.arange(rows), 3))
    memory = Memory()
    for part in parts[::order]:
        rest = np.setdiff1d(np.arange(rows), part)
        options = {"C": C, "tol": tol, "fit_intercept": False}
        alone = LogisticRegression(**options).fit(X[rest], y[rest])
        shared = LogisticRegression(memory=memory, **options).fit(X[rest], y[rest])
        l2 = 1 / (C * len(rest))
        assert np.linalg.norm(alone.coef_ - shared.coef_) <= 2 * tol / l2


def test_a_solve_that_shares_rows_takes_a_memorys_preconditioner_and_not_its_point():
    family = Family.from_dataset("logistic", "digits", l2=1e-4)
    memory = Memory()
    for i in range(4):
        solve(family.sample(i), memory=memory, tol=1e-6)
    problem = family.sample(9)
    start = solve(problem, memory=memory, tol=1e-6, start_from_memory=False, max_iter=0)
    np.testing.assert_array_equal(start.x, 0)
    found = solve(problem, memory=memory, tol=1e-6, start_from_memory=False)
    assert "solved problem" in found.method  # L-BFGS in the metric of ... solved problems
    assert "mean" not in found.method
    assert found.oracle_calls < 0.5 * solve(problem, method="lbfgs", tol=1e-6).oracle_calls


@pytest.mark.parametrize(
    "size", [(2_000, 3_000), pytest.param((15_000, 20_000), marks=pytest.mark.exhaustive)]
)
def test_cross_validation_of_texts_chooses_the_namesakes_penalty(size):
    """Texts of two topics as tf-idf; C is chosen at the default tolerances of both."""
    X, y = topics(*size, seed=1)
    options = {"cv": 3, "scoring": "accuracy", "l1_ratios": (0,), "use_legacy_attributes": False}
    ours = LogisticRegressionCV(**options).fit(X, y)
    theirs = NamesakeCV(max_iter=1_000, **options).fit(X, y)
    steps = np.log10([ours.C_, theirs.C_]) / (8 / 9)  # ten values between 1e-4 and 1e4
    assert abs(steps[0] - steps[1]) < 1.01
    np.testing.assert_allclose(ours.scores_.max(), theirs.scores_.max(), atol=0.02)


def test_huber_with_a_memory_is_the_one_without(rng):
    X = rng.standard_normal((200, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.standard_t(2, 200)
    memory = Memory()
    alone = HuberRegressor(tol=1e-6).fit(X, y)
    for _ in range(2):
        shared = HuberRegressor(tol=1e-6, memory=memory).fit(X, y)
    np.testing.assert_allclose(shared.coef_, alone.coef_, atol=1e-4)


def test_the_file_of_a_memory_is_shared_by_fits_and_keeps_what_they_learn(tmp_path, rng):
    X, y = rng.standard_normal((120, 4)), np.arange(120) % 2
    file = tmp_path / "memory.safetensors"
    cross_val_score(LogisticRegression(memory=str(file)), X, y, cv=3)
    LogisticRegression(memory=file).fit(X, y)
    assert Memory.load(file).solves == 4
    with pytest.raises(InputError, match="This memory is of Logistic problems with 5 variables"):
        Ridge(memory=file).fit(X, y)
    assert Memory.load(file).solves == 4


@pytest.mark.exhaustive
def test_processes_share_the_file_of_a_memory_and_no_solve_is_lost(tmp_path, rng):
    X, y = rng.standard_normal((120, 4)), np.arange(120) % 2
    file = tmp_path / "memory.safetensors"
    cross_val_score(LogisticRegression(memory=file), X, y, cv=8, n_jobs=2)
    assert Memory.load(file).solves == 8


@pytest.mark.parametrize("wrong", ["", "no/such/folder/memory", __file__])
def test_what_is_no_file_of_a_memory_is_told_in_a_sentence(wrong, rng):
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    with pytest.raises(Ode2OptError, match=r"\.$"):
        LogisticRegression(memory=wrong).fit(X, y)
