"""Rows, models and options that do not fit each other are refused in one sentence."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ode2opt import Memory, Model

L2 = 0.01


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
def test_rows_that_do_not_fit_the_model_are_told(refused, tmp_path, model, churn, change, words):
    edited(churn, change).to_csv(tmp_path / "new.csv", index=False)
    refused(words, "predict", model, tmp_path / "new.csv", "--out", tmp_path / "preds.csv")
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


def test_a_file_with_another_decimal_sign_is_predicted_alike(
    run_cli, refused, tmp_path, model, churn
):
    """A spreadsheet with commas by a model of points: found out, or said."""
    new = tmp_path / "new.csv"
    for name, form in (("points", {}), ("commas", {"sep": ";", "decimal": ","})):
        churn.to_csv(new, index=False, **form)
        for said in ([], ["--decimal", form.get("decimal", ".")]):
            out = tmp_path / f"{name}{len(said)}.csv"
            assert run_cli("predict", model, new, "--out", out, "--proba", *said)[0] == 0
            assert out.read_text() == (tmp_path / "points0.csv").read_text()
    refused("but numbers here have decimal points", "predict", model, new, "--decimal", ".")


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


def test_probabilities_of_a_model_without_are_refused(run_cli, refused, tmp_path, churn):
    model = tmp_path / "m.safetensors"
    run_cli(
        "solve", tmp_path / "churn.csv", "--problem", "squaredhinge", "--l2", L2, "--label",
        "left", "--out", model,
    )  # fmt: skip
    refused(
        "squaredhinge has no probabilities", "predict", model, tmp_path / "churn.csv", "--proba",
    )  # fmt: skip


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
def test_what_is_no_model_is_told(refused, tmp_path, model, command, break_it, words):
    break_it(model)
    more = [tmp_path / "churn.csv"] if command == "predict" else []
    refused(words, command, model, *more)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "preds.txt"], "neither .csv nor .parquet"),
        (["--unknown", "maybe"], "--unknown"),
        (["--out", "nowhere/preds.csv"], "There is no folder"),
    ],
)
def test_wrong_use_of_predict_is_told(refused, tmp_path, model, arguments, words):
    refused(words, "predict", model, tmp_path / "churn.csv", *arguments)
