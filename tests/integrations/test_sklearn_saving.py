"""Estimators in model files: after load they predict the same; what cannot be is told."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from ode2opt import InputError, Logistic, Memory, Model, solve
from ode2opt.integrations import sklearn as ours

X, Y = load_iris(return_X_y=True, as_frame=True)
WORDS = np.array(["a", "b", "c"])[Y]
ESTIMATORS = {
    "two classes": (ours.LogisticRegression(C=0.5), Y > 0),
    "three classes": (ours.LogisticRegression(class_weight={"a": 2.0, "b": 1, "c": 1}), WORDS),
    "no penalty": (ours.LogisticRegression(C=np.inf, fit_intercept=False), Y == 1),
    "by cross-validation": (ours.LogisticRegressionCV(Cs=[0.01, 0.1], cv=2), Y > 0),
    "margin": (ours.LinearSVC(), WORDS),
    "margin of two": (ours.LinearSVC(fit_intercept=False), Y > 1),
    "squares": (ours.Ridge(memory=Memory()), Y),
    "two targets": (ours.Ridge([1.0, 2.0]), np.column_stack([Y, 2 * Y])),
    "counts": (ours.PoissonRegressor(fit_intercept=False), Y),
    "outliers": (ours.HuberRegressor(), Y),
    "powers": (ours.LpRegression(p=6), Y),
    "zeros": (ours.Lasso(0.1), Y),
    "zeros by cross-validation": (ours.ElasticNetCV(alphas=3, cv=2), Y),
}


@pytest.mark.parametrize("rows", [X, X.to_numpy(np.float32)], ids=["frame", "float32"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_predicts_the_same_after_load(name, rows, tmp_path):
    estimator, y = ESTIMATORS[name]
    estimator.fit(rows, y)
    estimator.save(tmp_path / "model.safetensors")
    for again in (ours.load(tmp_path / "model.safetensors"),
                  type(estimator).load(tmp_path / "model.safetensors")):  # fmt: skip
        assert type(again) is type(estimator)
        found, due = again.predict(rows), estimator.predict(rows)
        assert found.dtype == due.dtype
        np.testing.assert_array_equal(found, due)
        attributes = ("coef_", "intercept_", "n_iter_", "n_features_in_", "dual_gap_")
        for attribute in filter(partial(hasattr, estimator), attributes):
            one, other = getattr(again, attribute), getattr(estimator, attribute)
            assert np.shape(one) == np.shape(other)
            np.testing.assert_array_equal(one, other)
        if isinstance(rows, pd.DataFrame):
            assert list(again.feature_names_in_) == list(X.columns)
        else:
            assert not hasattr(again, "feature_names_in_")


def test_parameters_are_kept_so_that_a_fit_can_be_repeated(tmp_path):
    estimator, y = ESTIMATORS["three classes"]
    estimator.fit(X, y).save(tmp_path / "m")
    again = ours.load(tmp_path / "m")
    assert again.get_params() == estimator.get_params()
    np.testing.assert_array_equal(again.fit(X, y).coef_, estimator.coef_)


def test_infinity_is_a_parameter_and_a_memory_is_left_behind(tmp_path):
    for memory in (Memory(), tmp_path / "memory", str(tmp_path / "memory")):
        ours.LogisticRegression(C=np.inf, memory=memory).fit(X, Y > 0).save(tmp_path / "m")
        again = ours.load(tmp_path / "m")
        assert (again.C, again.memory) == (np.inf, None)


def test_the_file_is_a_model_that_predicts_the_same(tmp_path):
    for name in ("three classes", "margin", "counts", "two targets"):
        estimator, y = ESTIMATORS[name]
        estimator.fit(X, y).save(tmp_path / "m")
        found, due = Model.load(tmp_path / "m").predict(X.to_numpy()), estimator.predict(X)
        assert np.array_equal(found, due) or np.allclose(found, due)
    assert Model.load(tmp_path / "m").encoding.names == list(X.columns)


def test_what_is_no_saved_estimator_is_told(tmp_path):
    with pytest.raises(NotFittedError):
        ours.Ridge().save(tmp_path / "m")
    ours.Ridge().fit(X, Y).save(tmp_path / "m")
    with pytest.raises(InputError, match="holds a Ridge, not a LinearSVC"):
        ours.LinearSVC.load(tmp_path / "m")
    problem = Logistic(X.to_numpy(), Y > 0, l2=0.1)
    Model.of(problem, solve(problem)).save(tmp_path / "m")
    with pytest.raises(InputError, match=r"ode2opt\.Model\.load reads it"):
        ours.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "Lars", "Unknown estimator 'Lars'"),
        ("name", 3, "not a text"),
        ("parameters", {"depth": 3}, "no parameter 'depth'"),
        ("parameters", {"memory": "elsewhere.safetensors"}, "no parameter 'memory' to be read"),
        ("parameters", {"alpha": {"number": "1"}}, "nothing reads"),
        ("parameters", {"alpha": {"pairs": [[[], 1]]}}, "nothing reads"),
        ("attributes", {"coef_": 3}, "attribute 'coef_' that nothing reads"),
        ("attributes", {"n_iter_": ["many"]}, "n_iter_ is not made of numbers"),
        ("flat_coef", "yes", "flat_coef"),
        ("more", 1, "more"),
    ],
)
def test_a_damaged_estimator_is_told(field, value, words, tmp_path):
    file = tmp_path / "m"
    ours.Ridge().fit(X, Y).save(file)
    with safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["ode2opt-model"])
    about["estimator"][field] = value
    save_file(load_file(file), file, metadata={"ode2opt-model": json.dumps(about)})
    with pytest.raises(InputError, match=words):
        ours.load(file)
