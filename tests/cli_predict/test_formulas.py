"""Tables that spreadsheets open: a text of somebody's file is never computed there."""

import csv

import pandas as pd
import pytest

from ode2opt import Model

FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1,2)", "+1+1", "-2+3", "＝1"]
OTHERS = ["no", "a=b", "'x"]


@pytest.fixture
def files(tmp_path, run_cli):
    """A model of hostile labels and columns, and its rows."""
    labels = [*FORMULAS, *OTHERS]
    frame = pd.DataFrame({
        "=1+1": [float(i % 7) for i in range(80)],
        "words": [("=2+2", "plain")[i % 2] for i in range(80)],
        "label": [labels[i * 3 % 8] for i in range(80)],
    })  # fmt: skip
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "m.safetensors"
    code, _, told = run_cli(
        "solve", tmp_path / "rows.csv", "--problem", "softmax", "--l2", 0.1, "--out", model
    )
    assert code == 0, told
    return model, tmp_path / "rows.csv"


def cells(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return [cell for row in csv.reader(lines) for cell in row]


def is_number(text):
    return text.lstrip("-").replace(".", "").replace("e-", "").isdigit()


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_no_cell_of_a_written_table_begins_as_a_formula_unless_raw(files, run_cli, tmp_path, raw):
    model, rows = files
    for command in (["predict", model, rows, "--proba"], ["coefficients", model]):
        written = tmp_path / f"{command[0]}.csv"
        assert run_cli(*command, "--out", written, *raw)[0] == 0
        begin = [
            one for one in cells(written) if one[:1] in "=+-@＝" and one and not is_number(one)
        ]
        assert bool(begin) == bool(raw)
        assert run_cli(*command, "--out", written)[0] == 0  # it is known as this command's own


def test_labels_keep_what_they_are_but_for_the_sign_in_front(files, run_cli, tmp_path):
    model, rows = files
    run_cli("predict", model, rows, "--out", tmp_path / "p.csv")
    run_cli("predict", model, rows, "--out", tmp_path / "raw.csv", "--raw")
    run_cli("predict", model, rows, "--out", tmp_path / "p.parquet")
    found, raw, parquet = (
        read(tmp_path / name)["prediction"].tolist()
        for read, name in (
            (pd.read_csv, "p.csv"), (pd.read_csv, "raw.csv"), (pd.read_parquet, "p.parquet"),
        )
    )  # fmt: skip
    assert raw == parquet
    assert set(raw) <= set(Model.load(model).classes.tolist())
    assert set(raw) & set(FORMULAS)
    assert found == [f"'{label}" if label in FORMULAS else label for label in raw]
