"""Coefficients of a model: named, for the columns as they are, the largest first."""

import csv
import io
import json

import numpy as np
from sklearn.datasets import load_wine

from ode2opt import Model

L2 = 0.01


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
