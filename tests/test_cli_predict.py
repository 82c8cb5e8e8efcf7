"""From a file of rows to predictions for another: solve, predict, coefficients."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn import metrics
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ode2opt import Memory, Model
from ode2opt.integrations import sklearn as ours

L2 = 0.01


def one_sentence(text):
    return text.startswith("Error: ") and "Traceback" not in text and text.count("\n") == 1


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


@pytest.fixture
def churn(tmp_path, rng):
    """A file of rows with a column of words, labels yes and no, and its model."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 120),
            "plan": rng.choice(["basic", "extra"], 120),
            "spent": rng.uniform(0, 90, 120).round(2),
        }
    )
    score = 0.05 * frame["age"] - 0.03 * frame["spent"] + (frame["plan"] == "basic") - 2
    frame["left"] = np.where(score + rng.standard_normal(120) > 0, "yes", "no")
    frame.to_csv(tmp_path / "churn.csv", index=False)
    return frame


@pytest.fixture
def model(run_cli, tmp_path, churn):
    file = tmp_path / "model.safetensors"
    code, _, _ = run_cli(
        "solve", tmp_path / "churn.csv", "--problem", "logistic", "--l2", L2, "--intercept",
        "--label", "left", "--out", file,
    )  # fmt: skip
    assert code == 0
    return file


def test_a_model_file_knows_what_it_is(model):
    found = Model.load(model)
    assert found.problem == "logistic"
    assert found.classes.tolist() == ["no", "yes"]
    assert found.encoding.names == ["age", "spent", "plan=basic", "plan=extra"]
    assert found.encoding.label == "left"
    assert (found.fit.rows, found.fit.l2, found.fit.tol, found.fit.success) == (120, L2, 1e-6, True)
    assert 0.5 < found.fit.quality["fit"].accuracy < 1


def test_predict_prints_one_json_document(run_cli, tmp_path, model, churn):
    code, out, err = run_cli("predict", model, tmp_path / "churn.csv", "--proba", "--json", "-")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert set(document) == {"model", "rows", "predictions", "probabilities", "classes", "quality"}
    assert document["rows"] == 120
    assert document["classes"] == ["no", "yes"]
    p = np.array(document["probabilities"])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert document["predictions"] == np.where(p[:, 1] > 0.5, "yes", "no").tolist()
    right = np.mean(np.array(document["predictions"]) == churn["left"])
    assert document["quality"]["accuracy"] == pytest.approx(right)
    assert document["quality"]["log_loss"] == pytest.approx(
        metrics.log_loss(churn["left"], p), rel=1e-6
    )


def test_predict_shows_the_first_rows_and_how_well_labels_are_predicted(run_cli, tmp_path, model):
    code, out, _ = run_cli("predict", model, tmp_path / "churn.csv")
    assert code == 0
    assert "10 of 120 rows are shown" in out
    assert "On the 120 rows of churn.csv: accuracy" in out


def test_predict_writes_parquet(run_cli, tmp_path, model, churn):
    churn.drop(columns="left").to_parquet(tmp_path / "new.parquet")
    for name in ("p.parquet", "p.csv"):
        code, _, _ = run_cli(
            "predict", model, tmp_path / "new.parquet", "--out", tmp_path / name, "--proba"
        )
        assert code == 0
    one, other = pd.read_parquet(tmp_path / "p.parquet"), pd.read_csv(tmp_path / "p.csv")
    pd.testing.assert_frame_equal(one, other, check_dtype=False)


def test_an_earlier_output_is_replaced_and_other_files_are_not(run_cli, tmp_path, model, churn):
    for name in ("preds.csv", "preds.parquet"):
        command = ("predict", model, tmp_path / "churn.csv", "--out", tmp_path / name)
        assert run_cli(*command)[0] == run_cli(*command)[0] == 0
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    for other in ("mine.csv", "churn.csv"):
        before = (tmp_path / other).read_bytes()
        code, _, err = run_cli("predict", model, tmp_path / "churn.csv", "--out", tmp_path / other)
        assert code == 2
        assert one_sentence(err)
        assert (tmp_path / other).read_bytes() == before


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("predict", "prediction,mine\nyes,1\n"),
        ("predict", "prediction,proba_no,proba_yes,mine\nyes,0,1,1\n"),
        ("predict", "prediction_0,mine\n1,2\n"),
        ("predict", "predictions\n1\n"),
        ("coefficients", "column,coefficient,mine\n(intercept),1,2\n"),
        ("coefficients", "column,coefficient\nage,1\n"),
        ("coefficients", "column,coefficients\n(intercept),1\n"),
        ("coefficients", "column,coefficient"),
    ],
)
def test_a_file_that_is_only_like_ours_is_not_replaced(run_cli, tmp_path, model, command, text):
    file = tmp_path / "like.csv"
    file.write_text(text)
    rows = [tmp_path / "churn.csv"] if command == "predict" else []
    code, _, err = run_cli(command, model, *rows, "--out", file)
    assert (code, "--overwrite" in err, file.read_text()) == (2, True, text)


def test_predictions_and_coefficients_are_replaced_by_those_of_another_model(
    run_cli, tmp_path, model, churn
):
    churn.assign(left=np.arange(120) % 3).to_csv(tmp_path / "three.csv", index=False)
    three = tmp_path / "three.safetensors"
    run_cli("solve", tmp_path / "three.csv", "--problem", "softmax", "--l2", L2, "--label", "left",
            "--out", three)  # fmt: skip
    for which in (model, three, model):
        rows = tmp_path / ("three.csv" if which == three else "churn.csv")
        for more in ([], ["--proba"]):
            assert run_cli("predict", which, rows, "--out", tmp_path / "p.csv", *more)[0] == 0
        assert run_cli("coefficients", which, "--out", tmp_path / "c.csv")[0] == 0


def edited(churn, change):
    frame = churn.drop(columns="left").head(30).copy()
    return change(frame)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="age"), "no column 'age'"),
        (lambda frame: frame.assign(plan="gold"), "'gold', which the model has not seen"),
        (lambda frame: frame.assign(age="old"), "'old', not a number"),
        (lambda frame: frame.assign(age=np.where(frame.index == 3, np.nan, 4)), "missing"),
        (lambda frame: frame.assign(spent=np.inf), "inf"),
        (lambda frame: frame.head(0), "no rows"),
    ],
    ids=["missing column", "unseen word", "word for number", "missing cell", "infinity", "empty"],
)
def test_rows_that_do_not_fit_the_model_are_told(run_cli, tmp_path, model, churn, change, words):
    edited(churn, change).to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run_cli(
        "predict", model, tmp_path / "new.csv", "--out", tmp_path / "preds.csv"
    )
    assert (code, out) == (2, "")
    assert one_sentence(err)
    assert words in err
    assert not (tmp_path / "preds.csv").exists()


def test_columns_are_found_by_name_and_others_are_ignored(run_cli, tmp_path, model, churn):
    churn.head(30).to_csv(tmp_path / "same.csv", index=False)
    other = churn.head(30)[["left", "spent", "plan", "age"]].assign(shoe=44)
    other.to_csv(tmp_path / "other.csv", index=False)
    one, two = (
        json.loads(run_cli("predict", model, tmp_path / f"{name}.csv", "--json", "-")[1])
        for name in ("same", "other")
    )
    assert one["predictions"] == two["predictions"]
    assert "'shoe'" in run_cli("predict", model, tmp_path / "other.csv")[1]


def test_unseen_words_can_count_as_none(run_cli, tmp_path, model, churn):
    edited(churn, lambda frame: frame.assign(plan="gold")).to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run_cli(
        "predict", model, tmp_path / "new.csv", "--unknown", "zero", "--proba", "--json", "-"
    )
    found = Model.load(model)
    scores = churn[["age", "spent"]].head(30) @ found.coef[0, :2] + found.intercept[0]
    assert code == 0
    np.testing.assert_allclose(
        np.array(json.loads(out)["probabilities"])[:, 1], 1 / (1 + np.exp(-scores))
    )


def test_labels_that_are_no_classes_are_said_and_predictions_are_made(
    run_cli, tmp_path, model, churn
):
    churn.assign(left="maybe").to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run_cli("predict", model, tmp_path / "new.csv")
    assert code == 0
    assert "'maybe' is none of the model's classes" in out


def test_rows_that_are_left_out_have_empty_cells(run_cli, tmp_path, churn):
    churn.loc[4, "age"] = np.nan
    churn.to_csv(tmp_path / "holes.csv", index=False)
    run_cli(
        "solve", tmp_path / "holes.csv", "--problem", "logistic", "--l2", L2, "--label", "left",
        "--missing", "drop", "--out", tmp_path / "m.safetensors",
    )  # fmt: skip
    model = tmp_path / "m.safetensors"
    assert Model.load(model).fit.rows == 119
    run_cli("predict", model, tmp_path / "holes.csv", "--out", tmp_path / "preds.csv")
    lines = (tmp_path / "preds.csv").read_text().splitlines()
    assert len(lines) == 121
    assert [i for i, line in enumerate(lines[1:]) if line in ("", '""')] == [4]


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
def test_files_without_names_are_predicted_by_the_order_of_columns(run_cli, tmp_path, rng, kind):
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
    code, _, err = run_cli("predict", model, tmp_path / "wide.npz")
    assert code == 2
    assert one_sentence(err)
    assert "5 columns" in err


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


def test_probabilities_of_a_model_without_are_refused(run_cli, tmp_path, churn):
    model = tmp_path / "m.safetensors"
    run_cli(
        "solve", tmp_path / "churn.csv", "--problem", "squaredhinge", "--l2", L2, "--label",
        "left", "--out", model,
    )  # fmt: skip
    code, _, err = run_cli("predict", model, tmp_path / "churn.csv", "--proba")
    assert code == 2
    assert one_sentence(err)
    assert "squaredhinge has no probabilities" in err


def damaged(file, change):
    with safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["ode2opt-model"])
    save_file(load_file(file), file, metadata={"ode2opt-model": json.dumps(about | change)})


@pytest.mark.parametrize("command", ["predict", "coefficients"])
@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda file: damaged(file, {"version": 9}), "format version 9"),
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "damaged"),
        (lambda file: Memory().save(file), "it is one of a memory"),
        (lambda file: file.write_text("age,plan\n1,2\n"), "no model file"),
        (lambda file: file.unlink(), "There is no model file"),
    ],
    ids=["version", "cut off", "memory", "csv", "nothing"],
)
def test_what_is_no_model_is_told(run_cli, tmp_path, model, command, break_it, words):
    break_it(model)
    more = [tmp_path / "churn.csv"] if command == "predict" else []
    code, _, err = run_cli(command, model, *more)
    assert code == 2
    assert one_sentence(err)
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "preds.txt"], "neither .csv nor .parquet"),
        (["--unknown", "maybe"], "--unknown"),
        (["--out", "nowhere/preds.csv"], "There is no folder"),
    ],
)
def test_wrong_use_of_predict_is_told(run_cli, tmp_path, model, arguments, words):
    code, _, err = run_cli("predict", model, tmp_path / "churn.csv", *arguments)
    assert code == 2
    assert one_sentence(err)
    assert words in err


def test_coefficients_are_named_and_the_largest_come_first(run_cli, tmp_path, model):
    code, out, _ = run_cli("coefficients", model, "--json", "-")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"columns", "intercept", "coefficients", "classes"}
    assert found["columns"] == ["age", "spent", "plan=basic", "plan=extra"]
    np.testing.assert_array_equal(found["coefficients"], Model.load(model).coef[0])
    assert run_cli("coefficients", model, "--out", tmp_path / "c.csv")[0] == 0
    header, intercept, *rows = csv.reader(io.StringIO((tmp_path / "c.csv").read_text()))
    assert header == ["column", "coefficient"]
    assert (intercept[0], float(intercept[1])) == ("(intercept)", found["intercept"])
    sizes = [abs(float(value)) for _, value in rows]
    assert sizes == sorted(sizes, reverse=True)
    named = dict(zip(found["columns"], found["coefficients"], strict=True))
    assert {name: float(value) for name, value in rows} == named
    shown = run_cli("coefficients", model)[1]
    assert "plan=basic" in shown
    assert "Positive scores predict 'yes'" in shown


def test_scaled_columns_have_the_coefficients_of_columns_as_they_are(run_cli, tmp_path, rng):
    A = rng.standard_normal((60, 3)) * [1e3, 1, 1e-2]
    b = A @ [1e-3, 2, 30] + 0.1 * rng.standard_normal(60)
    np.savez(tmp_path / "data.npz", A=A, b=b)
    model = tmp_path / "m.safetensors"
    run_cli(
        "solve", tmp_path / "data.npz", "--problem", "leastsquares", "--scale-columns", "--tol",
        1e-10, "--out", model,
    )  # fmt: skip
    due = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(Model.load(model).coef[0], due, rtol=1e-6)
    np.testing.assert_allclose(Model.load(model).scaling, np.abs(A).max(axis=0))


def test_of_several_classes_each_has_a_column_of_coefficients(run_cli, tmp_path):
    frame = load_wine(as_frame=True).frame.iloc[:, [0, 1, 2, -1]]
    frame.to_csv(tmp_path / "wine.csv", index=False)
    model = tmp_path / "m.safetensors"
    run_cli("solve", tmp_path / "wine.csv", "--problem", "softmax", "--l2", L2, "--out", model)
    found = json.loads(run_cli("coefficients", model, "--json", "-")[1])
    assert np.shape(found["coefficients"]) == (3, 3)
    assert found["classes"] == [0, 1, 2]
    run_cli("coefficients", model, "--out", tmp_path / "c.csv")
    assert (
        (tmp_path / "c.csv")
        .read_text()
        .startswith("column,coefficient_0,coefficient_1,coefficient_2\n")
    )


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
