"""Predictions from files are those of scikit-learn, in the classes and numbers of the file."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ode2opt.integrations import sklearn as ours

L2 = 0.01


def as_people_have_it(load, columns, words, seed):
    """Return bundled data with columns of words and missing cells, and the label in words."""
    bunch, rng = load(as_frame=True), np.random.default_rng(seed)
    frame = bunch.data.iloc[:, :columns].copy()
    frame.columns = [name.replace("/", " ") for name in frame.columns]
    for name in frame.columns[:words]:
        frame[name] = pd.qcut(frame[name], 3, labels=["low", "so, so", "high"]).astype(str)
    for name in frame.columns[words:]:
        frame.loc[rng.random(len(frame)) < 0.1, name] = np.nan
    frame["kind of thing"] = bunch.target_names[bunch.target]
    return frame.sample(frac=1, random_state=seed)


def theirs(train, words):
    """Return scikit-learn's pipeline for the same encoding and the same penalty, fitted."""
    X, y = train.drop(columns="kind of thing"), train["kind of thing"]
    encode = ColumnTransformer(
        [
            ("words", OneHotEncoder(), list(X.columns[:words])),
            ("numbers", SimpleImputer(), list(X.columns[words:])),
        ]
    )
    model = LogisticRegression(
        C=1 / (L2 * len(X)), solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    return make_pipeline(encode, model).fit(X, y)


@pytest.mark.parametrize(
    ("load", "problem", "columns", "words"),
    [(load_breast_cancer, "logistic", 8, 2), (load_wine, "softmax", 9, 3)],
)
def test_predictions_from_files_are_those_of_scikit_learns_pipeline(
    run_cli, tmp_path, load, problem, columns, words
):
    """Words, missing cells and decimal commas, as a spreadsheet of Europe writes them."""
    frame = as_people_have_it(load, columns, words, seed=1)
    train, new = frame[: len(frame) // 2], frame[len(frame) // 2 :]
    spreadsheet = {"sep": ";", "decimal": ",", "index": False}
    train.to_csv(tmp_path / "train.csv", **spreadsheet)
    new.drop(columns="kind of thing")[sorted(new.columns[:-1])].to_csv(
        tmp_path / "new.csv", **spreadsheet
    )
    code, told, _ = run_cli(
        "solve", tmp_path / "train.csv", "--problem", problem, "--label", "kind of thing", "--l2",
        L2, "--intercept", "--missing", "mean", "--tol", 1e-9, "--out", tmp_path / "m.safetensors",
    )  # fmt: skip
    assert code == 0
    due = theirs(train, words)
    accuracy = metrics.accuracy_score(train.iloc[:, -1], due.predict(train))
    log_loss = metrics.log_loss(train.iloc[:, -1], due.predict_proba(train))
    assert f"accuracy {accuracy:.4f}, log-loss {log_loss:.4f}" in told
    code, _, err = run_cli(
        "predict", tmp_path / "m.safetensors", tmp_path / "new.csv", "--out",
        tmp_path / "preds.csv", "--proba",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = pd.read_csv(tmp_path / "preds.csv")
    assert list(found.columns) == ["prediction", *(f"proba_{label}" for label in due.classes_)]
    assert list(found["prediction"]) == list(due.predict(new))
    np.testing.assert_allclose(found.iloc[:, 1:], due.predict_proba(new), atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "shown"), [([-1, 1], ["-1", "1"]), ([0.5, 1.5], ["0.5", "1.5"])]
)
def test_classes_are_written_as_they_stood_in_the_file(run_cli, tmp_path, churn, labels, shown):
    churn["left"] = np.where(churn["left"] == "yes", labels[1], labels[0])
    churn.to_csv(tmp_path / "numbers.csv", index=False)
    model = tmp_path / "m.safetensors"
    run_cli(
        "solve", tmp_path / "numbers.csv", "--problem", "squaredhinge", "--l2", L2, "--label",
        "left", "--out", model,
    )  # fmt: skip
    run_cli("predict", model, tmp_path / "numbers.csv", "--out", tmp_path / "preds.csv")
    lines = (tmp_path / "preds.csv").read_text().splitlines()
    assert set(lines[1:]) == set(shown)


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "parts"])
def test_true_and_false_are_predicted_as_such(run_cli, tmp_path, churn, form):
    churn = churn.drop(columns="plan").assign(left=churn["left"] == "yes")
    file, model = tmp_path / f"data.{form}", tmp_path / "m.safetensors"
    if form == "npz":
        np.savez(file, A=churn[["age", "spent"]], b=churn["left"])
    elif form == "parquet":
        churn.to_parquet(file)
    else:
        file.mkdir() if form == "parts" else None
        churn.to_csv(file / "0.csv" if form == "parts" else file, index=False)
    label = [] if form == "npz" else ["--label", "left"]
    run_cli("solve", file, "--problem", "logistic", "--l2", L2, "--out", model, *label)
    new = file / "0.csv" if form == "parts" else file
    run_cli("predict", model, new, "--out", tmp_path / "p.csv", "--proba")
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert list(found.columns) == ["prediction", "proba_False", "proba_True"]
    assert set(found["prediction"]) == {"False", "True"}
    document = json.loads(run_cli("predict", model, new, "--json", "-")[1])
    right = np.mean(np.array(document["predictions"]) == churn["left"])
    assert document["quality"]["accuracy"] == pytest.approx(right)


@pytest.mark.parametrize("problem", ["leastsquares", "poisson", "lpp", "huber"])
def test_numbers_are_predicted_as_scikit_learn_has_them(run_cli, tmp_path, problem):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.assign(target=y).to_csv(tmp_path / "data.csv", index=False)
    power = ["--p", 2] if problem == "lpp" else []
    code, out, _ = run_cli(
        "solve", tmp_path / "data.csv", "--problem", problem, "--l2", L2, "--intercept", "--tol",
        1e-8, "--out", tmp_path / "m.safetensors", "--json", "-", *power,
    )  # fmt: skip
    assert code == 0
    run_cli("predict", tmp_path / "m.safetensors", tmp_path / "data.csv", "--out",
            tmp_path / "preds.csv")  # fmt: skip
    found = pd.read_csv(tmp_path / "preds.csv")["prediction"]
    quality = json.loads(out)["quality"]["fit"]
    assert quality["r2"] == pytest.approx(metrics.r2_score(y, found), rel=1e-6)
    if problem == "poisson":
        due = PoissonRegressor(alpha=L2, tol=1e-10, max_iter=1000).fit(X, y).predict(X)
        assert quality["d2"] == pytest.approx(metrics.d2_tweedie_score(y, found, power=1))
    elif problem != "huber":
        due = Ridge(L2 * len(X)).fit(X, y).predict(X)
    else:
        return
    np.testing.assert_allclose(found, due, rtol=1e-5)


@pytest.mark.parametrize("kind", ["svm", "npz"])
def test_files_without_names_are_predicted_by_the_order_of_columns(
    run_cli, refused, tmp_path, rng, kind
):
    from sklearn.datasets import dump_svmlight_file

    A = rng.standard_normal((80, 4)) * (rng.random((80, 4)) < 0.7)
    b = (A @ [1, -2, 0.5, 1] + 0.3 * rng.standard_normal(80) > 0).astype(float)
    file, model = tmp_path / f"data.{kind}", tmp_path / "m.safetensors"
    if kind == "svm":
        dump_svmlight_file(A, b, str(file), zero_based=False)
    else:
        np.savez(file, A=A, b=b)
    solve = ("solve", file, "--problem", "logistic", "--l2", L2, "--tol", 1e-9)
    assert run_cli(*solve, "--out", model)[0] == 0
    code, out, _ = run_cli("predict", model, file, "--json", "-")
    due = LogisticRegression(C=1 / (L2 * 80), fit_intercept=False, tol=1e-8).fit(A, b).predict(A)
    assert code == 0
    assert json.loads(out)["predictions"] == due.astype(int).tolist()
    np.savez(tmp_path / "wide.npz", A=np.ones((3, 5)), b=np.ones(3))
    refused("5 columns", "predict", model, tmp_path / "wide.npz")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["age", "spent"], "by position."),
        (["age", "y", "spent"], "by position, and 'y' is taken as the label."),
        (["spent", "y"], "by position, 'y' as a feature, too."),
    ],
)
def test_a_model_without_names_says_that_columns_are_taken_by_position(
    run_cli, tmp_path, churn, columns, said
):
    X = churn[["age", "spent"]].to_numpy()
    estimator = ours.LogisticRegression().fit(X, churn["left"])
    estimator.save(tmp_path / "m.safetensors")
    churn.assign(y=churn["left"] == "yes")[columns].to_csv(tmp_path / "new.csv", index=False)
    command = ("predict", tmp_path / "m.safetensors", tmp_path / "new.csv")
    code, out, err = run_cli(*command, "--json", "-")
    assert (code, said in err) == (0, True)  # beside the document
    if "age" in columns:
        assert json.loads(out)["predictions"] == estimator.predict(X).tolist()
    assert said in run_cli(*command)[1]


def test_an_estimators_file_is_a_model(run_cli, tmp_path, churn):
    X = churn[["age", "spent"]]
    estimator = ours.LogisticRegression().fit(X, churn["left"])
    estimator.save(tmp_path / "m.safetensors")
    code, out, _ = run_cli(
        "predict", tmp_path / "m.safetensors", tmp_path / "churn.csv", "--json", "-"
    )
    assert code == 0
    assert json.loads(out)["predictions"] == estimator.predict(X).tolist()
    ours.Ridge().fit(X.to_numpy(), np.column_stack([X["age"], X["spent"]])).save(
        tmp_path / "two.safetensors"
    )
    np.savez(tmp_path / "rows.npz", A=X.to_numpy(), b=np.zeros(len(X)))
    run_cli("predict", tmp_path / "two.safetensors", tmp_path / "rows.npz", "--out",
            tmp_path / "p.csv")  # fmt: skip
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found.columns) == ["prediction_0", "prediction_1"]
    np.testing.assert_allclose(found, X, rtol=1e-2, atol=0.5)
