"""What solve leaves: how well it fits, on other rows too, and a file with the model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from support import one_sentence

from ode2opt import Model

L2 = 0.01
CONTRACT = {
    "status", "success", "fun", "grad_norm", "iterations", "oracle_calls", "seconds", "handovers",
    "bound", "bound_from",
}  # fmt: skip


@pytest.fixture
def cancer(tmp_path):
    """A file of 300 rows, and one of others."""
    frame = load_breast_cancer(as_frame=True).frame.iloc[:, [0, 1, 4, 8, -1]]
    frame = frame.sample(frac=1, random_state=0)
    frame[:300].to_csv(tmp_path / "train.csv", index=False)
    frame[300:].to_csv(tmp_path / "test.csv", index=False)
    return frame


def solve(run_cli, file, *more, problem="logistic"):
    code, out, err = run_cli(
        "solve", file, "--problem", problem, "--l2", L2, "--intercept", "--json", "-", *more
    )
    assert (code, "Error" in err) == (0, False)  # a cluster names its dashboard there
    return json.loads(out)


def theirs(train):
    model = LogisticRegression(C=1 / (L2 * len(train)), solver="newton-cholesky", tol=1e-9)
    return model.fit(train.iloc[:, :-1], train.iloc[:, -1])


def assert_measures(found, model, rows):
    X, y = rows.iloc[:, :-1], rows.iloc[:, -1]
    assert found["rows"] == len(rows)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, model.predict(X)))
    due = metrics.log_loss(y, model.predict_proba(X))
    assert found["log_loss"] == pytest.approx(due, rel=1e-4)


def test_quality_is_told_on_the_rows_and_on_a_test_file(run_cli, tmp_path, cancer):
    document = solve(run_cli, tmp_path / "train.csv", "--test", tmp_path / "test.csv")
    assert set(document) == CONTRACT | {"quality"}
    model = theirs(cancer[:300])
    assert set(document["quality"]) == {"fit", "test"}
    assert_measures(document["quality"]["fit"], model, cancer[:300])
    assert_measures(document["quality"]["test"], model, cancer[300:])
    code, out, _ = run_cli(
        "solve", tmp_path / "train.csv", "--problem", "logistic", "--l2", L2, "--test",
        tmp_path / "test.csv",
    )  # fmt: skip
    assert code == 0
    assert "on rows of the fit" in out
    assert "on rows of test.csv" in out
    assert out.count("accuracy") == out.count("log-loss") == 2


MORE = ("--holdout", 0.2, "--seed", 3, "--scale-columns")


def test_rows_held_back_are_measured_on_and_not_fitted_to(run_cli, tmp_path, cancer):
    document = solve(run_cli, tmp_path / "train.csv", *MORE)
    held = held_rows(tmp_path / "train.csv")
    scaled = cancer[:300] / cancer[:300][~held].max()
    model = theirs(scaled[~held])
    assert (document["quality"]["fit"]["rows"], held.sum()) == (240, 60)
    assert_measures(document["quality"]["fit"], model, scaled[~held])
    assert_measures(document["quality"]["holdout"], model, scaled[held])


def test_nothing_is_learned_of_rows_held_back(run_cli, tmp_path, cancer):
    """Whatever their cells are, the model, its means for missing cells and scales are the same."""
    file, model = tmp_path / "train.csv", tmp_path / "m.safetensors"
    held, frame, models = np.flatnonzero(held_rows(file)), cancer[:300].copy(), []
    fitted = np.setdiff1d(np.arange(300), held)
    frame.iloc[fitted[:9], 0] = np.nan
    for value in (3.0, 1e6):
        frame.iloc[held, 0] = value
        frame.iloc[held[:3], 1] = np.nan
        frame.to_csv(file, index=False)
        solve(run_cli, file, *MORE, "--missing", "mean", "--out", model)
        models.append(Model.load(model))
    one, two = models
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.scaling, two.scaling)
    assert one.encoding == two.encoding
    assert one.encoding.numbers[0].fill == pytest.approx(frame.iloc[fitted, 0].mean())


def test_what_became_of_the_whole_file_is_told_once(run_cli, tmp_path, cancer):
    frame = cancer[:300].copy()
    frame.iloc[::10, 0] = np.nan
    frame.to_csv(tmp_path / "holes.csv", index=False, sep=";", decimal=",")
    code, out, _ = run_cli(
        "solve", tmp_path / "holes.csv", "--problem", "logistic", "--l2", L2, "--missing", "drop",
        *MORE,
    )  # fmt: skip
    assert code == 0
    told = " ".join(out.split())
    assert told.count("30 rows of 300 left out") == 1
    assert told.count("decimal commas") == 1
    assert "Of the rows held back" not in told


def held_rows(file):
    """The rows that --holdout 0.2 --seed 3 takes of 300: a fifth of each class."""
    from ode2opt.data.preparing import held_out

    labels = pd.read_csv(file)["target"].to_numpy()
    held = held_out(labels.astype(float), 0.2, 3, classes=True)
    assert abs(labels[held].mean() - labels.mean()) < 0.01
    return held


def test_words_that_only_rows_held_back_have_count_as_none(run_cli, tmp_path):
    words = [f"w{i}" for i in range(15)] + ["a", "b"] * 30
    frame = pd.DataFrame({"word": words, "x": np.arange(75.0), "y": np.arange(75) % 7})
    frame.to_csv(tmp_path / "data.csv", index=False)
    model = tmp_path / "m.safetensors"
    document = solve(run_cli, tmp_path / "data.csv", "--holdout", 0.4, "--out", model,
                     problem="leastsquares")  # fmt: skip
    assert document["quality"]["holdout"]["rows"] == 30
    assert len(Model.load(model).encoding.names) < 18


@pytest.mark.parametrize("share", ["1", "0", "-0.2", "nan", "inf", "1.5"])
def test_what_is_no_share_is_refused(refused, tmp_path, cancer, share):
    refused(
        "more than 0 and less than 1", "solve", tmp_path / "train.csv", "--problem", "logistic",
        "--holdout", share,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.iloc[:, :-1], "no labels"),
        (lambda frame: frame.assign(target=frame["target"].where(frame.index > 50)), "Some labels"),
        (lambda frame: frame.assign(target=7), "7.0 is none of the model's classes"),
        (lambda frame: frame.iloc[:, 1:], "no column 'mean radius'"),
        (lambda frame: frame.head(0), "no rows"),
    ],
    ids=["no label", "some labels", "another class", "a column less", "empty"],
)
def test_a_test_file_that_cannot_be_measured_is_told_before_the_fit(
    refused, tmp_path, cancer, change, words, monkeypatch
):
    monkeypatch.setattr("ode2opt.solve", None)
    change(cancer).to_csv(tmp_path / "test.csv", index=False)
    refused(
        words, "solve", tmp_path / "train.csv", "--problem", "logistic", "--test",
        tmp_path / "test.csv",
    )  # fmt: skip


def test_weights_count_in_the_quality_of_the_fit(run_cli, tmp_path, cancer, rng):
    weighted = cancer[:300].assign(w=rng.integers(1, 4, 300))
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    weighted.loc[weighted.index.repeat(weighted["w"])].drop(columns="w").to_csv(
        tmp_path / "repeated.csv", index=False
    )
    one = solve(run_cli, tmp_path / "weighted.csv", "--weights", "w")["quality"]["fit"]
    other = solve(run_cli, tmp_path / "repeated.csv")["quality"]["fit"]
    assert one["accuracy"] == pytest.approx(other["accuracy"])
    assert one["log_loss"] == pytest.approx(other["log_loss"], rel=1e-4)


@pytest.mark.parametrize("name", ["s.csv", "s", "s.npz.txt", "s.json", "s.safetensor"])
def test_an_ending_that_is_no_form_is_refused(refused, tmp_path, cancer, name):
    solve = ("solve", tmp_path / "train.csv", "--problem", "logistic", "--out", tmp_path / name)
    assert ".npz" in refused(".safetensors", *solve)
    assert not (tmp_path / name).exists()


def test_an_archive_has_all_that_a_prediction_needs(run_cli, tmp_path):
    bunch = load_wine(as_frame=True)
    frame = bunch.data.iloc[:, :4].assign(kind=bunch.target_names[bunch.target])
    frame.to_csv(tmp_path / "wine.csv", index=False)
    solve(run_cli, tmp_path / "wine.csv", "--label", "kind", "--scale-columns", "--out",
          tmp_path / "x.npz", problem="softmax")  # fmt: skip
    with np.load(tmp_path / "x.npz") as archive:  # without pickle
        found = dict(archive)
    assert str(found["problem"]) == "softmax"
    assert found["classes"].tolist() == list(bunch.target_names)
    assert str(found["label"]) == "kind"
    assert found["columns"].tolist() == list(frame.columns[:4])
    np.testing.assert_allclose(found["scaling"], np.abs(bunch.data.iloc[:, :4]).max())
    assert found["coefficients"].shape == (3, 4)
    both = np.column_stack([found["coefficients"], found["intercept"]])
    np.testing.assert_array_equal(both, found["x"].reshape(5, 3).T)
    scores = frame.iloc[:, :4] @ found["coefficients"].T + found["intercept"]
    chosen = found["classes"][np.argmax(scores, axis=1)]
    assert np.mean(chosen == frame["kind"]) > 0.6


def test_a_fit_that_does_not_converge_leaves_its_model_and_predict_says_so(
    run_cli, tmp_path, cancer
):
    model = tmp_path / "m.safetensors"
    code, _, _ = run_cli(
        "solve", tmp_path / "train.csv", "--problem", "logistic", "--l2", L2, "--max-iter", 1,
        "--out", model,
    )  # fmt: skip
    assert code == 1
    assert Model.load(model).fit.success is False
    code, out, _ = run_cli("predict", model, tmp_path / "test.csv")
    assert code == 0
    assert "did not reach its tolerance" in out


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_a_fit_that_does_not_converge_leaves_a_model_that_did(run_cli, tmp_path, cancer, ending):
    file, aside = tmp_path / f"m.{ending}", tmp_path / f"m.unconverged.{ending}"
    fit = ("solve", tmp_path / "train.csv", "--problem", "logistic", "--l2", L2, "--out", file)
    for _ in range(2):  # one that has not converged may be replaced
        assert run_cli(*fit, "--max-iter", 1)[0] == 1
        assert file.exists()
        assert not aside.exists()
    early = file.read_bytes()
    assert run_cli(*fit)[0] == 0
    good = file.read_bytes()
    for _ in range(2):
        code, _, err = run_cli(*fit, "--max-iter", 1)
        assert (code, file.read_bytes()) == (1, good)
        assert f"{file} reached its tolerance, and stays; this solution is in {aside}." in err
    if ending == "safetensors":
        assert aside.read_bytes() == early
        assert Model.load(aside).fit.success is False
    assert run_cli(*fit, "--resume", "--json", "-")[0] == 0
    aside.write_text("mine")
    code, _, err = run_cli(*fit, "--max-iter", 1)
    assert (code, one_sentence(err), aside.read_text()) == (2, True, "mine")


@pytest.mark.parametrize(
    "more",
    [[], pytest.param(["--cluster", "local", "--workers", 1], marks=pytest.mark.exhaustive)],
)
def test_rows_in_parts_give_the_same_model(run_cli, tmp_path, cancer, more):
    (tmp_path / "parts").mkdir()
    for i in range(3):
        frame = cancer[100 * i : 100 * (i + 1)].assign(word=["a", "b", "bc"[i % 2]] * 33 + ["a"])
        frame.to_csv(tmp_path / "parts" / f"{i}.csv", index=False)
    pd.concat(pd.read_csv(tmp_path / "parts" / f"{i}.csv") for i in range(3)).to_csv(
        tmp_path / "whole.csv", index=False
    )
    tol = ("--tol", 1e-9, "--label", "target")
    solve(run_cli, tmp_path / "whole.csv", *tol, "--out", tmp_path / "one.safetensors")
    document = solve(
        run_cli, tmp_path / "parts", *tol, "--out", tmp_path / "two.safetensors", "--test",
        tmp_path / "whole.csv", *more,
    )  # fmt: skip
    one, two = (Model.load(tmp_path / f"{name}.safetensors") for name in ("one", "two"))
    assert one.encoding.names == two.encoding.names
    assert one.classes.tolist() == two.classes.tolist()
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-5, atol=1e-8)
    assert document["quality"]["fit"] == pytest.approx(document["quality"]["test"], rel=1e-9)
    for key in ("accuracy", "log_loss"):
        due = getattr(one.fit.quality["fit"], key)
        assert document["quality"]["fit"][key] == pytest.approx(due, rel=1e-6)


def test_rows_in_parts_cannot_be_held_back(refused, tmp_path, cancer):
    refused("--test FILE", "solve", tmp_path / "t*.csv", "--problem", "logistic", "--holdout", 0.2)


def test_numbers_are_held_back_and_measured_by_r2(run_cli, tmp_path, rng):
    A = rng.standard_normal((50, 3))
    b = A @ [1.0, 2, 3] + rng.standard_normal(50)
    np.savez(tmp_path / "data.npz", A=A, b=b)
    document = solve(run_cli, tmp_path / "data.npz", "--holdout", 0.3, problem="leastsquares")
    from ode2opt.data.preparing import held_out

    held = held_out(b, 0.3, 0, classes=False)
    due = Ridge(L2 * 35).fit(A[~held], b[~held])
    for name, rows in (("fit", ~held), ("holdout", held)):
        assert document["quality"][name]["r2"] == pytest.approx(
            due.score(A[rows], b[rows]), rel=1e-6
        )
