"""What predict prints and writes, and which files it replaces."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from support import one_sentence

from ode2opt import Model

L2 = 0.01


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


def test_rows_that_are_left_out_have_empty_cells(run_cli, tmp_path, churn):
    churn.loc[4, "age"] = np.nan
    churn.to_csv(tmp_path / "holes.csv", index=False)
    run_cli(
        "solve", tmp_path / "holes.csv", "--problem", "logistic", "--l2", L2, "--label", "left",
        "--missing", "drop", "--out", tmp_path / "m.safetensors",
    )  # fmt: skip
    model = tmp_path / "m.safetensors"
    assert Model.load(model).fit.rows == 119
    _, out, _ = run_cli("predict", model, tmp_path / "holes.csv", "--out", tmp_path / "preds.csv")
    assert "119 predictions written to" in out
    assert "; 1 row of 120 left without." in " ".join(out.split())
    lines = (tmp_path / "preds.csv").read_text().splitlines()
    assert len(lines) == 121
    assert [i for i, line in enumerate(lines[1:]) if line in ("", '""')] == [4]
