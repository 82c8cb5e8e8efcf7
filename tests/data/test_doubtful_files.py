"""Files that can be taken in more than one way: what is wrong is refused, what is taken is told."""

import json

import numpy as np
import pandas as pd
import pytest

from ode2opt import InputError, Logistic
from ode2opt.problems import Parts, read_encoded, read_table
from ode2opt.problems.parts import files_in_parts


@pytest.fixture
def written(tmp_path):
    def write(text, name="t.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


# Weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [("Ulm", "Bonn", "Ulm"), ("true", "false", "true")])
def test_words_are_no_weights(written, cells):
    rows = "".join(f"{i},{cell},{i % 2}\n" for i, cell in enumerate(cells))
    words = f"line 2, column 'town' is '{cells[0]}', not a number: weights are numbers"
    with pytest.raises(InputError, match=words):
        read_table(written(f"age,town,y\n{rows}"), weights="town")


def test_weights_may_have_decimal_commas_and_holes(written):
    path = written("p;w;y\n1,5;0,5;0\n2;;1\n3;2;1\n")
    found = read_table(path, weights="w", missing="drop")
    np.testing.assert_array_equal(found.weights, [0.5, 2])


# Headers of numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [3, 4, 7])
@pytest.mark.parametrize("sep", [",", ";"])
def test_the_header_of_a_frame_without_names_is_no_row_of_data(tmp_path, columns, sep):
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (20, columns)))
    frame.to_csv(tmp_path / "t.csv", index=False, sep=sep)
    found = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(found.A, frame.iloc[:, :-1])
    np.testing.assert_array_equal(found.labels, frame.iloc[:, -1])
    assert "is taken as a header" in " ".join(found.notes)
    new = frame.iloc[:, :-1]  # without the label, maybe 0,1: the model knows these names
    new.to_csv(tmp_path / "new.csv", index=False, sep=sep)
    np.testing.assert_array_equal(read_encoded(tmp_path / "new.csv", found.encoding).A, new)


def test_a_first_line_of_0_and_1_is_data_and_told(written):
    found = read_table(written("0,1\n2,0\n"))
    np.testing.assert_array_equal(found.A, [[0], [2]])
    assert "is taken as a row of data" in " ".join(found.notes)
    assert read_table(written("0,0\n2,1\n")).notes == ()


# The label -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("label", ["churn", "y"])
@pytest.mark.parametrize("said", [False, True])
def test_choosing_columns_does_not_move_the_label(tmp_path, ending, label, said):
    frame = pd.DataFrame({"age": [3.0, 7, 8], "town": list("aba"), "pay": [1, 2, 3]})
    if label == "y":
        frame.insert(0, "y", [0, 1, 1])
    else:
        frame["churn"] = [0, 1, 1]
    path = tmp_path / f"t.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    for columns in (["age", label], ["age"]):
        found = read_table(path, columns=columns, label=label if said else None)
        assert found.columns == ["age"]
        assert found.encoding.label == label
        np.testing.assert_array_equal(found.labels, [0, 1, 1])
    weighed = read_table(path, columns=["age", "pay"], weights="pay")
    assert weighed.columns == ["age"]


def test_an_index_that_stands_last_is_no_label(tmp_path):
    frame = pd.DataFrame({"p": [1.0, 2], "churn": [0, 1]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.parquet")  # pandas writes the index as the last column
    found = read_table(tmp_path / "t.parquet")
    assert (found.columns, found.encoding.label) == (["p"], "churn")


@pytest.mark.parametrize(
    ("head", "options", "told"),
    [
        ("age,pay,churn\n", (), "The label is column 'churn'."),
        ("age,y,pay\n", (), "The label is column 'y'."),
        ("", (), "The label is column 2 (counted from 0)."),
        ("age,pay,churn\n", ("--label", "churn"), ""),
        ("age,pay,churn\n", ("--json", "-"), ""),
    ],
)
def test_solve_says_which_column_it_takes_as_the_label(written, run_cli, head, options, told):
    path = written(head + "3,0,1\n7,1,0\n8,0,1\n2,1,1\n")
    for where in (path, path.parent / "*.csv"):
        model = ["--problem", "logistic", "--l2", 0.1, "--quiet"]
        code, out, _ = run_cli("solve", where, *model, *options)
        out = " ".join(out.split())
        assert code == 0
        assert told in out
        assert ("The label" in out) == bool(told)
        if "-" in options:
            assert json.loads(out)["success"]
        else:
            assert "4 x 2" in out


# Columns of words ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kinds", "rows"), [(20, 20), (21, 42), (21, 41), (30, 59)])
def test_more_than_20_words_in_over_half_of_the_rows_are_refused(written, kinds, rows):
    text = "".join(f"{i},n{i % kinds},{i % 2}\n" for i in range(rows))
    path = written(f"p,name,y\n{text}")
    if kinds <= 20 or 2 * kinds <= rows:
        assert len(read_table(path).columns) == 1 + kinds
        return
    words = f"{path}: column 'name' has {kinds} different words .* with --drop 'name'"
    with pytest.raises(InputError, match=words):
        read_table(path)


# What is no number, and too many classes -------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('"1,5"', "'1,5', but numbers here have decimal points: --decimal , reads decimal commas"),
        ("$1", r"'\$1', not a number: mend it, or leave the column out with --drop"),
        ("1_000", "'1_000', not a number: mend it"),
        ("5%", "'5%', not a number: mend it"),
    ],
)
def test_the_cell_that_is_no_number_is_named_wherever_it_stands(written, cell, words):
    rows = [f"{cell},0", "2,1", "3,1"]
    for line, order in ((2, rows), (3, [rows[1], rows[0], rows[2]])):
        with pytest.raises(InputError, match=f"line {line}, column 'p' is {words}"):
            read_table(written("p,y\n" + "\n".join(order) + "\n"))
    if "," in cell:
        np.testing.assert_array_equal(
            read_table(written("p,y\n" + "\n".join(rows)), decimal=",").A.ravel(), [1.5, 2, 3]
        )


def test_three_classes_are_sent_to_softmax(written, run_cli):
    path = written("p,y\n1,a\n2,b\n3,c\n")
    for where in (path, path.parent / "*.csv"):
        code, _, told = run_cli("solve", where, "--problem", "logistic", "--quiet")
        assert code == 2
        assert "3 (a, b, c): more classes take a softmax (--problem softmax)" in " ".join(
            told.split()
        )
    code, _, told = run_cli("solve", written("p,y\n1,a\n2,a\n"), "--problem", "logistic")
    assert code == 2
    assert "softmax" not in told


# Commas at the ends of lines -------------------------------------------------------------------


@pytest.mark.parametrize("end", [",", ",,,", ", "])
@pytest.mark.parametrize("head", ["p,town,churn", ""])
def test_commas_at_the_ends_of_lines_are_no_column(written, head, end):
    lines = [*filter(None, [head]), "1,a,0", "2,b,1", "3,a,1"]
    plain = read_table(written("\n".join(lines)))
    found = read_table(written("\n".join(line + end for line in lines) + "\n"))
    np.testing.assert_array_equal(found.A, plain.A)
    np.testing.assert_array_equal(found.labels, plain.labels)
    assert found.encoding == plain.encoding
    assert "no name and no cells: left out" in " ".join(found.notes)
    new = written("\n".join(line + end for line in lines), "new.csv")
    np.testing.assert_array_equal(read_encoded(new, plain.encoding).A, plain.A)


def test_a_last_column_with_a_name_or_a_cell_stays(written):
    with pytest.raises(InputError, match="line 2, column 'z' is missing"):
        read_table(written("p,y,z\n1,0,\n2,1,\n"))
    with pytest.raises(InputError, match="line 2, column '' is missing"):
        read_table(written("p,y,\n1,0,\n2,1,7\n"))
    with pytest.raises(InputError, match="line 3 has 2 columns, not 3"):
        read_table(written("p,y,\n1,0,\n2,1\n"))


def test_a_last_feature_that_is_missing_in_all_rows_to_predict_is_filled(written):
    encoding = read_table(written("1,5,0\n2,7,1\n"), missing="mean").encoding
    new = read_encoded(written("3,\n4,\n", "new.csv"), encoding)
    np.testing.assert_array_equal(new.A, [[3, 6], [4, 6]])


# Names that would stand twice ------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"town=x": [1.0, 2], "town": ["x", "z"], "y": [0, 1]}),
        pd.DataFrame({"town": ["x=u", "z"], "town=x": ["u", "v"], "p": [1, 2], "y": [0, 1]}),
    ],
)
def test_a_column_that_is_called_as_that_of_a_word_is_refused(tmp_path, frame):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    twice = "town=x" if "x" in set(frame["town"]) else "town=x=u"
    words = f"wo columns would be called '{twice}'"
    for read in (
        lambda: read_table(path),
        lambda: Parts(Logistic, files_in_parts(tmp_path), labels=True),
        lambda: Logistic(frame, "y"),
    ):
        with pytest.raises(InputError, match=words):
            read()
