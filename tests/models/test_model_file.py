"""The model file: what was fitted predicts the same after it was read, and bad files are told."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn import linear_model
from sklearn.datasets import load_iris

from ode2opt import (
    Guard,
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Memory,
    Method,
    Model,
    Parts,
    Poisson,
    Softmax,
    SquaredHinge,
    solve,
)
from ode2opt.data.encoding import ColumnEncoding, TableEncoding

X, Y = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])
KEY = "ode2opt-model"
PROBLEMS = {
    "logistic": lambda: Logistic(X, Y > 0, l2=0.01, intercept=True),
    "softmax": lambda: Softmax(X, Y, l2=0.01, intercept=True),
    "squaredhinge": lambda: SquaredHinge(X, Y > 0, l2=0.01),
    "poisson": lambda: Poisson(X, Y, l2=0.01, intercept=True),
    "leastsquares": lambda: LeastSquares(X, Y, l2=0.01, intercept=True),
    "lpp": lambda: Lpp(X, Y, p=6, l2=0.01),
    "huber": lambda: Huber(X, Y, delta=0.5, l2=0.01),
}


@pytest.fixture
def file(tmp_path):
    """The file of a model of three classes with names of columns."""
    names = ("a", "b", "c", "d")
    encoding = TableEncoding(4, tuple(map(ColumnEncoding, names)), header=(*names, "y"),
                             named=True, label="y")  # fmt: skip
    problem = PROBLEMS["softmax"]()
    model = Model.of(problem, solve(problem), classes=WORDS, encoding=encoding, tol=1e-6)
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_predicts_the_same_after_it_was_read(name, tmp_path):
    problem = PROBLEMS[name]()
    model = Model.of(problem, solve(problem), tol=1e-6)
    model.save(tmp_path / "model.safetensors")
    again = Model.load(tmp_path / "model.safetensors")
    assert repr(again) == repr(model)
    assert again.problem == name
    assert again.options == model.options
    assert (again.fit.tol, again.fit.rows, again.fit.l2, again.fit.success) == (1e-6, 150, 0.01, 1)
    assert again.fit.grad_norm <= 1e-6
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    scores = problem.scores(solve(problem).x)
    np.testing.assert_allclose(again.scores(X), scores, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_predictions_are_scikit_learns(intercept):
    l2, options = 0.01, {"fit_intercept": intercept, "tol": 1e-10, "max_iter": 10_000}
    problem = Softmax(X, Y, l2=l2, intercept=intercept)
    model = Model.of(problem, solve(problem, tol=1e-10), classes=WORDS)
    theirs = linear_model.LogisticRegression(C=1 / (l2 * len(X)), **options).fit(X, WORDS[Y])
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    problem = Poisson(X, Y, l2=l2, intercept=intercept)
    model = Model.of(problem, solve(problem, tol=1e-10))
    theirs = linear_model.PoissonRegressor(alpha=l2, **options).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-5)


def test_two_classes_have_two_probabilities():
    problem = PROBLEMS["logistic"]()
    model = Model.of(problem, solve(problem), classes=["no", "yes"])
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.scores(X))))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X) == "yes", p[:, 1] > 0.5)


def test_a_margin_has_no_probabilities():
    problem = PROBLEMS["squaredhinge"]()
    with pytest.raises(InputError, match="squaredhinge has no probabilities"):
        Model.of(problem, solve(problem)).predict_proba(X)


def test_coefficients_are_those_of_columns_as_they_are():
    sizes = np.array([10.0, 0.1, 1.0, 3.0])
    problem = LeastSquares(X / sizes, Y, intercept=True)
    model = Model.of(problem, solve(problem, tol=1e-10), scaling=sizes)
    theirs = linear_model.LinearRegression().fit(X, Y)
    found = model.coefficients()
    assert found["columns"] == ["0", "1", "2", "3"]
    assert found["classes"] is None
    np.testing.assert_allclose(found["coefficients"], theirs.coef_, rtol=1e-6)
    assert found["intercept"] == pytest.approx(theirs.intercept_, rel=1e-6)


def test_of_several_classes_each_has_its_coefficients(file):
    found = Model.load(file).coefficients()
    assert found["columns"] == ["a", "b", "c", "d"]
    assert found["classes"] == [*WORDS]
    assert np.shape(found["coefficients"]) == (3, 4)
    assert np.shape(found["intercept"]) == (3,)
    assert json.loads(json.dumps(found)) == found


def test_a_problem_in_parts_gives_the_same_model():
    parts = Parts(Softmax, [(X[:70], Y[:70]), (X[70:], Y[70:])], l2=0.01, intercept=True)
    whole = PROBLEMS["softmax"]()
    models = [Model.of(each, solve(each, tol=1e-10)) for each in (parts, whole)]
    np.testing.assert_allclose(models[0].predict_proba(X), models[1].predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    "labels",
    [np.array([1.5, 2.5]), np.array([-1, 1]), np.array([False, True]), np.array(["é", "no"]),
     np.array(["a", "b"], dtype=object)],
)  # fmt: skip
def test_classes_stay_what_they_are(labels, tmp_path):
    problem = PROBLEMS["logistic"]()
    Model.of(problem, solve(problem), classes=labels).save(tmp_path / "m")
    classes = Model.load(tmp_path / "m").classes
    assert classes.dtype == labels.dtype
    assert classes.tolist() == labels.tolist()


def test_whole_numbers_that_were_read_as_floats_are_whole_again():
    problem = PROBLEMS["logistic"]()
    assert Model.of(problem, solve(problem), classes=[-1.0, 1.0]).predict(X).dtype == np.int64


def test_sparse_rows_and_single_precision_are_taken():
    from scipy.sparse import csr_array

    problem = Logistic(X.astype(np.float32), Y > 0, l2=0.01, intercept=True)
    model = Model.of(problem, solve(problem, tol=1e-3))
    assert model.precision == "float32"
    np.testing.assert_allclose(model.scores(csr_array(X)), model.scores(X))


@pytest.mark.parametrize("rows", [X[:, :3], X[0], [[1, 2, 3, np.nan]]])
def test_rows_that_do_not_fit_are_told(rows, file):
    with pytest.raises(InputError, match=r"columns|matrix|finite"):
        Model.load(file).predict(rows)


def test_columns_of_a_frame_are_found_by_name(file):
    model, names = Model.load(file), ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names).assign(e=0)
    np.testing.assert_array_equal(model.scores(frame[["e", "c", "a", "d", "b"]]), model.scores(X))
    with pytest.raises(InputError, match="no column 'd'"):
        model.predict(frame.drop(columns="d"))


@pytest.fixture
def churn(rng):
    """A frame of numbers, truths, words and labels that are words."""
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, 150), "plan": rng.choice(["pro", "basic", "gold"], 150),
         "spent": rng.uniform(0, 9, 150), "sure": rng.random(150) < 0.5, "w": rng.random(150) + 0.1}
    )  # fmt: skip
    score = 0.05 * frame["age"] - 0.3 * frame["spent"] + (frame["plan"] == "gold") - 1
    return frame.assign(churn=np.where(score + rng.standard_normal(150) > 0, "yes", "no"))


def test_a_model_of_a_frame_knows_its_columns_words_and_labels(churn, tmp_path, run_cli):
    problem = Logistic(churn, "churn", weights="w", l2=0.01, intercept=True)
    model = Model.of(problem, solve(problem, tol=1e-9))
    X = pd.get_dummies(churn[["age", "spent", "sure", "plan"]], columns=["plan"]).astype(float)
    theirs = linear_model.LogisticRegression(
        C=1 / (0.01 * churn["w"].sum()), tol=1e-9, max_iter=5000
    )
    due = theirs.fit(X, churn["churn"], sample_weight=churn["w"]).predict_proba(X)
    other = churn[["plan", "spent", "churn", "sure", "age"]].astype({"plan": "category"})
    np.testing.assert_allclose(model.predict_proba(other), due, atol=1e-5)
    labels = model.predict(other)
    assert set(labels) == {"no", "yes"}
    assert model.quality(other, churn["churn"]).accuracy == np.mean(labels == churn["churn"])
    model.save(tmp_path / "m.safetensors")
    again = Model.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(other), labels)
    other.to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run_cli(
        "predict", tmp_path / "m.safetensors", tmp_path / "new.csv", "--proba", "--json", "-"
    )
    found = json.loads(out)
    assert (code, found["predictions"]) == (0, labels.tolist())
    np.testing.assert_allclose(found["probabilities"], due, atol=1e-5)
    assert found["quality"]["accuracy"] == np.mean(labels == churn["churn"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="plan"), "no column 'plan'"),
        (lambda frame: frame.assign(plan="iron"), "'iron', which the model has not seen"),
        (lambda frame: frame.assign(plan=3), "3, which the model has not seen"),
        (lambda frame: frame.assign(age="old"), "the word 'old', but the model has numbers"),
        (lambda frame: frame.assign(age=np.nan), "missing"),
        (lambda frame: frame.assign(plan=None), "missing"),
    ],
)
def test_a_frame_that_does_not_fit_is_told(churn, change, words):
    problem = Logistic(churn, "churn", l2=0.01)
    with pytest.raises(InputError, match=words):
        Model.of(problem, solve(problem)).predict(change(churn))


def test_missing_numbers_of_a_frame_are_filled_as_the_model_says():
    columns = (ColumnEncoding("a", fill=2.0), ColumnEncoding("b", fill=0.0))
    encoding = TableEncoding(2, columns, header=("a", "b"), named=True, missing="mean")
    model = Model("leastsquares", np.array([[1.0, 10.0]]), np.zeros(1), encoding)
    frame = pd.DataFrame({"b": [1.0, np.nan], "a": [np.nan, 3.0]})
    assert model.predict(frame).tolist() == [12.0, 3.0]


def test_a_frame_in_parts_keeps_its_names_and_labels(churn):
    pytest.importorskip("dask.dataframe")
    import dask.dataframe

    parts = Logistic(dask.dataframe.from_pandas(churn, npartitions=2), "churn", l2=0.01)
    whole = Logistic(churn, "churn", l2=0.01)
    one, other = (Model.of(each, solve(each, tol=1e-9)) for each in (parts, whole))
    np.testing.assert_allclose(one.scores(churn), other.scores(churn), atol=1e-6)
    assert one.classes.tolist() == other.classes.tolist() == ["no", "yes"]


def test_a_model_without_names_takes_as_many_columns_of_a_frame_as_it_has():
    problem = PROBLEMS["leastsquares"]()
    model, frame = Model.of(problem, solve(problem)), pd.DataFrame(X)
    np.testing.assert_allclose(model.predict(frame), model.predict(X), atol=1e-12)
    with pytest.raises(InputError, match=r"5 columns, the model 4: .* by position"):
        model.predict(frame.assign(e=0))


@pytest.mark.parametrize(
    ("rows", "labels", "weights", "words"),
    [
        (X, WORDS[Y][:-1], None, "shape (149,) for 150 rows"),
        (X, WORDS[Y][:, None], None, "shape (150, 1) for 150 rows"),
        (X, "setosa", None, "shape () for 150 rows"),
        (X, WORDS[Y], np.ones(149), "weights"),
    ],
)
def test_labels_that_are_not_one_a_row_are_told(file, rows, labels, weights, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Model.load(file).quality(rows, labels, weights)


def test_what_is_no_solution_of_the_problem_makes_no_model():
    problem = PROBLEMS["logistic"]()
    with pytest.raises(InputError, match="returned, not of ndarray"):
        Model.of(problem, X)
    with pytest.raises(InputError, match="15 variables, the problem 5"):
        Model.of(problem, solve(PROBLEMS["softmax"]()))
    with pytest.raises(InputError, match="loss on rows"):
        Model.of(X, solve(problem))


def test_a_missing_folder_is_told(file, tmp_path):
    there = tmp_path / "nowhere" / "file"
    method = Method(None, "lpp", 1e-3, "family", 1.0, guard=Guard(fallback="lbfgs"))
    for save in (Model.load(file).save, Memory().save, Memory().update_file, method.save):
        with pytest.raises(InputError, match=r"There is no folder .*nowhere to write file into"):
            save(there)


def test_an_archive_is_no_model_and_the_way_out_is_told(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    with pytest.raises(
        InputError, match=r"x.npz is no model file but an archive .*--out X.safetensors"
    ):
        Model.load(tmp_path / "x.npz")


def test_a_loss_of_ones_own_has_no_model_file():
    class Mine(LeastSquares):
        pass

    with pytest.raises(InputError, match="mine"):
        Model.of(Mine(X, Y), solve(Mine(X, Y)))


def changed(file, change, arrays=None):
    """Write the file with another description or other arrays."""
    with safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()[KEY])
    change(about)
    save_file(arrays or load_file(file), file, metadata={KEY: json.dumps(about)})


def test_other_kinds_of_files_are_told(file, tmp_path):
    memory, method = tmp_path / "memory.safetensors", tmp_path / "method.safetensors"
    Memory().save(memory)
    Method(None, "lpp", 1e-3, "family", 1.0, guard=Guard(fallback="lbfgs")).save(method)
    for other, kind in ((memory, "memory"), (method, "method")):
        with pytest.raises(InputError, match=f"not one of a model .it is one of a {kind}"):
            Model.load(other)
    for reader, kind in ((Memory, "memory"), (Method, "method")):
        with pytest.raises(InputError, match=f"not one of a {kind} .it is one of a model"):
            reader.load(file)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "x.npz", x=X)
    for other in ("data.csv", "x.npz", "nowhere"):
        with pytest.raises(InputError, match=r"no model file|There is no"):
            Model.load(tmp_path / other)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("version", 2, "format version 2; this ode2opt reads 1"),
        ("problem", "logitsic", "did you mean 'logistic'"),
        ("problem", "lpp", "classes, but lpp predicts numbers"),
        ("problem", "logistic", "3 classes and 3 rows"),
        ("options", {"p": 4}, "softmax has no option 'p'"),
        ("classes", ["a", "b"], "2 classes and 3 rows"),
        ("classes", ["a", "b", "a"], "a class twice"),
        ("classes", ["a", "b", 3], "3 is none of words"),
        ("class_form", "colours", "Unknown form of classes"),
        ("precision", "float16", "its precision"),
        ("precision", 64, "not a text"),
        ("fit", {"rows": 0}, "rows"),
        ("fit", {"tol": -1.0}, "its tol is -1"),
        ("fit", {"quality": {"fit": {"rows": -2}}}, "quality is of -2 rows"),
        ("fit", {"l3": 1}, "no setting l3"),
        ("surprise", 1, "surprise that nothing reads"),
    ],
)
def test_a_description_that_is_wrong_is_told(file, field, value, words):
    changed(file, lambda about: about.update({field: value}))
    with pytest.raises(InputError, match=words):
        Model.load(file)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coefficients": np.zeros((3, 5))}, "5 coefficients for 4 columns"),
        ({"coefficients": np.zeros(12)}, "shape"),
        ({"coefficients": np.full((3, 4), np.nan)}, "finite"),
        ({"coefficients": np.zeros((3, 4), np.float32)}, "float32"),
        ({"intercept": np.zeros(2)}, "its intercept"),
        ({"scaling": np.array([1.0, 0, 1, 1])}, "scaling"),
        ({"more": np.zeros(1)}, "nothing reads"),
        ({"table": np.frombuffer(b'{"width": 4', np.uint8)}, "table is damaged"),
        ({"table": np.frombuffer(b'{"width": "4"}', np.uint8)}, "width"),
        ({"table": np.zeros(3)}, "table is of float64"),
    ],
)
def test_arrays_that_are_wrong_are_told(file, change, words):
    changed(file, lambda about: None, load_file(file) | change)
    with pytest.raises(InputError, match=words):
        Model.load(file)


def test_a_text_is_told_as_no_model_and_nothing_of_it_is_shown(tmp_path):
    text = tmp_path / "train.csv"
    text.write_text("age,income,y\n1,2,0\n")
    with pytest.raises(InputError, match=r"no model file: it is not a safetensors file\.$"):
        Model.load(text)


def test_a_file_that_is_cut_off_is_told(file):
    whole = file.read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"damaged|no model file"):
            Model.load(file)


def test_names_of_very_many_columns_are_kept(tmp_path, rng):
    names = [f"{j} {'a column with a long name ' * 20}" for j in range(9_000)]  # 4.7 MB of text
    encoding = TableEncoding(len(names), tuple(map(ColumnEncoding, names)), header=tuple(names),
                             named=True)  # fmt: skip
    model = Model("leastsquares", rng.standard_normal((1, len(names))), np.zeros(1), encoding)
    model.save(tmp_path / "wide.safetensors")
    assert Model.load(tmp_path / "wide.safetensors").encoding.names == names
