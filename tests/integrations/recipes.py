"""Ten recipes as scikit-learn's users write them; only the import line of the models differs.

    python tests/integrations/recipes.py sklearn
    python tests/integrations/recipes.py ode2opt

print the same numbers.
"""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import StackingClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

TIGHT = {"tol": 1e-8, "max_iter": 5000}


def models(package):
    """The estimators of either import line."""
    if package == "sklearn":
        from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
        from sklearn.svm import LinearSVC
    else:
        from ode2opt.integrations.sklearn import (
            LinearSVC,
            LogisticRegression,
            PoissonRegressor,
            Ridge,
        )
    return SimpleNamespace(
        LogisticRegression=LogisticRegression,
        PoissonRegressor=PoissonRegressor,
        Ridge=Ridge,
        LinearSVC=LinearSVC,
    )


def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:300, :8]
    return (X - X.mean()) / X.std(), y[:300]


def people(rows=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.lognormal(10, 1, rows),
            "town": rng.choice(["Bonn", "Leeds", "Lyon"], rows),
        }
    )
    return frame, np.where(frame["age"] + 20 * (frame["town"] == "Lyon") > 50, "yes", "no")


def pipeline_on_a_data_frame(m):
    frame, y = people()
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["town"])
    )
    model = make_pipeline(columns, m.LogisticRegression(C=0.5, **TIGHT)).fit(frame, y)
    return model.predict_proba(frame)


def grid_search(m):
    X, y = cancer()
    search = GridSearchCV(m.LogisticRegression(**TIGHT), {"C": [0.01, 1.0]}, cv=3).fit(X, y)
    return [search.best_params_["C"], search.best_score_, *search.cv_results_["mean_test_score"]]


def cross_validation(m):
    X, y = load_digits(return_X_y=True)
    return cross_val_score(m.Ridge(alpha=10.0), X[:300], y[:300], cv=4)


def calibration(m):
    X, y = cancer()
    return CalibratedClassifierCV(m.LinearSVC(C=0.1, **TIGHT), cv=3).fit(X, y).predict_proba(X)


def stacking(m):
    X, y = cancer()
    base = [("bayes", GaussianNB()), ("linear", m.LogisticRegression(C=0.1, **TIGHT))]
    final = m.LogisticRegression(**TIGHT)
    return StackingClassifier(base, final_estimator=final, cv=3).fit(X, y).predict_proba(X)


def importance(m):
    X, y = cancer()
    model = m.LogisticRegression(C=0.1, **TIGHT).fit(X, y)
    return permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean


def clones_and_pickles(m):
    X, y = load_digits(n_class=3, return_X_y=True)
    model = clone(m.LogisticRegression(C=0.02, **TIGHT)).fit(X[:200], y[:200])
    return pickle.loads(pickle.dumps(model)).predict_log_proba(X[200:300])


def frames_out(m):
    X, y = cancer()
    model = make_pipeline(StandardScaler(), m.LogisticRegression(C=0.1, **TIGHT))
    model.set_output(transform="pandas").fit(X, y)
    assert list(model[-1].feature_names_in_) == list(X.columns)
    return model[-1].coef_


def routed_weights(m):
    X, y = cancer()
    weights = np.where(np.arange(len(y)) % 3, 1.0, 3.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = m.LogisticRegression(C=0.1, **TIGHT).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        found = cross_validate(model, X, y, cv=3, params={"sample_weight": weights})
    return found["test_score"]


def dependence(m):
    X, _ = cancer()
    counts = np.random.default_rng(1).poisson(np.exp(0.5 * X.iloc[:, 0]))
    model = m.PoissonRegressor(alpha=0.1, **TIGHT).fit(X, counts)
    return partial_dependence(model, X, [0], grid_resolution=10)["average"]


RECIPES = [
    pipeline_on_a_data_frame,
    grid_search,
    cross_validation,
    calibration,
    stacking,
    importance,
    clones_and_pickles,
    frames_out,
    routed_weights,
    dependence,
]

if __name__ == "__main__":
    for recipe in RECIPES:
        print(recipe.__name__, np.round(np.ravel(recipe(models(sys.argv[1])))[:6], 4))
