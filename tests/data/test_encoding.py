"""Another file is read as the table that a model was fitted to, and says where it is unlike it."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.datasets import dump_svmlight_file
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from support import write_table as write

from ode2opt import InputError, Logistic
from ode2opt.base import schema
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.problems import Parts, read_encoded, read_table
from ode2opt.problems.parts import files_in_parts

N = 60


def frame_of(seed, holes=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], N),
            "x": rng.standard_normal(N).round(3),
            "member": rng.choice([True, False], N),
            "z": rng.integers(0, 9, N).astype(float),
            "y": rng.choice(["no", "yes"], N),
        }
    )
    if holes:
        frame.loc[rng.choice(N, 9, replace=False), "x"] = np.nan
        frame.loc[rng.choice(N, 9, replace=False), "z"] = np.nan
    return frame


def dense(A):
    return A.toarray() if sp.issparse(A) else A


def saved(encoding):
    """The encoding after a journey through JSON."""
    return TableEncoding.from_json(schema.parse(json.dumps(encoding.to_json())))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_new_rows_are_encoded_as_a_pipeline_of_scikit_learn_would(tmp_path, ending, missing):
    train, new = (frame_of(seed, holes=missing == "mean") for seed in (0, 1))
    table = read_table(write(train, tmp_path / f"train.{ending}"), missing=missing)
    shuffled = new[["z", "y", "member", "colour", "x"]]
    other = "parquet" if ending == "csv" else "csv"
    found = read_encoded(write(shuffled, tmp_path / f"new.{other}"), saved(table.encoding))
    numbers = ["x", "member", "z"]
    pipeline = ColumnTransformer(
        [("numbers", SimpleImputer(), numbers), ("words", OneHotEncoder(), ["colour"])]
    ).fit(train.astype({"member": float}))
    for rows, A in ((train, table.A), (new, found.A)):
        np.testing.assert_allclose(
            dense(A), dense(pipeline.transform(rows.astype({"member": float}))), rtol=1e-14
        )
    assert table.encoding.names == [*numbers, "colour=blue", "colour=green", "colour=red"]
    assert list(found.labels) == list(new["y"])
    assert found.notes == ()


def test_columns_are_matched_by_name_or_else_by_position(tmp_path):
    (tmp_path / "train.csv").write_text("a,w,y,b\n1,1,0,5\n2,1,1,6\n")
    (tmp_path / "bare.csv").write_text("1,1,0,5\n2,1,1,6\n")
    named = read_table(tmp_path / "train.csv", weights="w", label="y").encoding
    bare = read_table(tmp_path / "bare.csv", weights="1", label="2").encoding
    texts = {
        "a,w,y,b\n7,0,1,8\n": ([[7, 8]], [1]),
        "b,a\n8,7\n": ([[7, 8]], None),
        "7,0,1,8\n": ([[7, 8]], [1]),
        "7,0,8\n": ([[7, 8]], None),
        "7,8\n": ([[7, 8]], None),
    }
    for text, (A, labels) in texts.items():
        (tmp_path / "new.csv").write_text(text)
        for encoding in (named, bare):
            if encoding is bare and text.startswith("b"):
                A = [[8, 7]]  # the model knows no names
            found = read_encoded(tmp_path / "new.csv", saved(encoding))
            np.testing.assert_array_equal(found.A, A)
            np.testing.assert_array_equal(found.labels, labels)
            said = "".join(found.notes)
            assert ("by position" in said) == ((text[0] in "ab") != encoding.named)


def test_a_file_of_one_column_is_enough_for_a_model_of_one(tmp_path):
    (tmp_path / "train.csv").write_text("a,y\n1,0\n2,1\n")
    encoding = read_table(tmp_path / "train.csv").encoding
    for text in ("a\n5\n6\n", "5\n6\n"):
        (tmp_path / "new.csv").write_text(text)
        np.testing.assert_array_equal(read_encoded(tmp_path / "new.csv", encoding).A, [[5], [6]])


TRAIN = "p,q,flag,y\n1,a,true,0\n2.5,b,false,1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p,y\n1,0\n", "new.csv has no column 'flag', 'q', which the model needs"),
        ("p,q,flag\n1,a,true\nx,a,true\n", "line 3, column 'p' is 'x', not a number"),
        ("p,q,flag\n1,a,true\n1,7,true\n", "line 3, column 'q' is '7', a number among words"),
        ("p,q,flag\n1,a,maybe\n", "line 2, column 'flag' is 'maybe', not a number"),
        ("p,q,flag\n1,c,true\n2,d,true\n1,a,true\n", "column 'q' has 'c', 'd', which the model"),
        ("p,q,flag\n\n,a,true\n", "line 3, column 'p' is missing, and the model has no rule"),
        ("p,q,flag\n1,,true\n", "line 2, column 'q' is missing, and the model has no rule"),
        ("p,q,flag\n1,a,true\ninf,a,true\n", "line 3, column 'p' is inf"),
        ("p,q,flag\n", "a header but no rows"),
        ("", "is empty"),
        ("p,p,q,flag\n1,1,a,true\n", r"columns 0 and 1 \(counted from 0\) both have the name 'p'"),
        ("1,a\n", "has 2 columns, but the rows of the model have 4"),
        ("p,q,flag\n1,a,true\n1,a\n", "line 3 has 2 columns, not 3"),
    ],
)
def test_a_file_that_is_unlike_the_first_is_told(tmp_path, text, words):
    (tmp_path / "train.csv").write_text(TRAIN)
    (tmp_path / "new.csv").write_text(text)
    encoding = saved(read_table(tmp_path / "train.csv").encoding)
    with pytest.raises(InputError, match=words) as caught:
        read_encoded(tmp_path / "new.csv", encoding)
    assert "new.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"p": ["x"], "q": ["a"], "flag": [True]}, "row 1, column 'p' is 'x', but .* numbers"),
        ({"p": [1.0], "q": [3], "flag": [True]}, "row 1, column 'q' is 3, but .* words"),
        ({"p": [1.0, np.nan], "q": ["a", "a"], "flag": [True, True]}, "row 2, column 'p' is miss"),
        ({"p": [], "q": [], "flag": []}, "has no rows of data"),
    ],
)
def test_a_parquet_file_that_is_unlike_the_first_is_told(tmp_path, columns, words):
    (tmp_path / "train.csv").write_text(TRAIN)
    frame = pd.DataFrame(columns)
    if not len(frame):
        frame = frame.astype({"q": str})
    frame.to_parquet(tmp_path / "new.parquet")
    encoding = read_table(tmp_path / "train.csv").encoding
    with pytest.raises(InputError, match=words):
        read_encoded(tmp_path / "new.parquet", encoding)


def test_unseen_words_are_zeros_on_request(tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    (tmp_path / "new.csv").write_text("flag,q,extra,p,y\n1,c,9,3,1\n0,b,9,4,0\n")
    encoding = read_table(tmp_path / "train.csv").encoding
    found = read_encoded(tmp_path / "new.csv", encoding, unknown="zero")
    np.testing.assert_array_equal(dense(found.A), [[3, 1, 0, 0], [4, 0, 0, 1]])
    said = " ".join(found.notes)
    assert "ignored: 'extra'" in said
    assert "does not know are zeros: 'c' in column 'q'." in said
    with pytest.raises(InputError, match="unknown is 'ones'"):
        read_encoded(tmp_path / "new.csv", encoding, unknown="ones")


DECIMALS = {
    ",": "p;town;q;y\n1,5;Ulm;2;0\n;Bonn;3;1\n2,5;Ulm;3;1\n",
    ".": "p,town,q,y\n1.5,Ulm,2,0\n,Bonn,3,1\n2.5,Ulm,3,1\n",
}


@pytest.mark.parametrize("other", DECIMALS)
@pytest.mark.parametrize("sign", DECIMALS)
def test_the_decimal_sign_is_a_property_of_the_file_and_not_of_the_model(tmp_path, sign, other):
    (tmp_path / "train.csv").write_text(DECIMALS[sign])
    (tmp_path / "new.csv").write_text(DECIMALS[other])
    encoding = saved(read_table(tmp_path / "train.csv", missing="mean").encoding)
    for decimal in (None, other):
        found = read_encoded(tmp_path / "new.csv", encoding, decimal=decimal)
        np.testing.assert_array_equal(found.A, [[1.5, 2, 0, 1], [2, 3, 1, 0], [2.5, 3, 0, 1]])
        assert ("decimal commas" in " ".join(found.notes)) == (other == ",")
    wrong, words = (",", "commas") if other == "." else (".", "points")
    with pytest.raises(InputError, match=f"line 2, column 'p' is '1.5', .* decimal {words}"):
        read_encoded(tmp_path / "new.csv", encoding, decimal=wrong)
    with pytest.raises(InputError, match="decimal is ';'"):
        read_encoded(tmp_path / "new.csv", encoding, decimal=";")


def test_commas_between_commas_are_decimal_for_a_model_of_such_a_file_alone(tmp_path):
    """Elsewhere "1,500" may be a thousand and a half as well: it has to be said."""
    file = tmp_path / "t.csv"
    file.write_text('p,q,y\n"1,5",2,0\n"2,5",3,1\n')
    encoding = saved(read_table(file, decimal=",").encoding)
    np.testing.assert_array_equal(read_encoded(file, encoding).A, [[1.5, 2], [2.5, 3]])
    (tmp_path / "points.csv").write_text("p,q,y\n1.5,2,0\n2.5,3,1\n")
    np.testing.assert_array_equal(
        read_encoded(tmp_path / "points.csv", encoding).A, [[1.5, 2], [2.5, 3]]
    )
    other = read_table(tmp_path / "points.csv").encoding
    with pytest.raises(InputError, match="'1,5', but numbers here have decimal points"):
        read_encoded(file, other)
    np.testing.assert_array_equal(read_encoded(file, other, decimal=",").A, [[1.5, 2], [2.5, 3]])


def test_missing_cells_are_treated_as_in_training(tmp_path):
    holes = "p,q,y\n1,a,0\n,a,1\n4,b,1\n"
    (tmp_path / "train.csv").write_text(holes)
    (tmp_path / "new.csv").write_text("p,q,y\n,b,\n8,,1\n9,a,0\n")
    drop = saved(read_table(tmp_path / "train.csv", missing="drop").encoding)
    found = read_encoded(tmp_path / "new.csv", drop)
    np.testing.assert_array_equal(found.rows, [2])
    assert found.total == 3
    assert found.labels is None  # one is missing
    np.testing.assert_array_equal(dense(found.A), [[9, 1, 0]])
    mean = saved(read_table(tmp_path / "train.csv", missing="mean").encoding)
    with pytest.raises(InputError, match=r"line 3, column 'q' is missing.* --unknown zero"):
        read_encoded(tmp_path / "new.csv", mean)
    found = read_encoded(tmp_path / "new.csv", mean, unknown="zero")
    np.testing.assert_array_equal(dense(found.A), [[2.5, 0, 1], [8, 0, 0], [9, 1, 0]])


def test_matrices_without_names_keep_their_columns(tmp_path):
    """A file whose rows lack the last or the first indices has the model's columns all the same."""
    A, b = np.array([[1.0, 0, 2], [0, 3, 0]]), np.array([0.0, 1.0])
    for zero_based in (True, False):
        dump_svmlight_file(A, b, str(tmp_path / "train.svm"), zero_based=zero_based)
        encoding = saved(read_table(tmp_path / "train.svm").encoding)
        assert encoding.zero_based is zero_based
        new = np.array([[0.0, 5, 0]])
        dump_svmlight_file(new, [1], str(tmp_path / "new.svm"), zero_based=zero_based)
        np.testing.assert_array_equal(read_encoded(tmp_path / "new.svm", encoding).A.toarray(), new)
    (tmp_path / "wide.svm").write_text("1 1:1 4:2\n")
    with pytest.raises(InputError, match="has an index of 4, but there are 3 columns"):
        read_encoded(tmp_path / "wide.svm", encoding)
    np.savez(tmp_path / "new.npz", A=A)
    found = read_encoded(tmp_path / "new.npz", encoding)
    np.testing.assert_array_equal(found.A, A)
    assert found.labels is None
    (tmp_path / "new.csv").write_text("1,2,3\n")
    np.testing.assert_array_equal(read_encoded(tmp_path / "new.csv", encoding).A, [[1, 2, 3]])
    (tmp_path / "new.csv").write_text("u,v,y,w\n1,2,0,3\n")
    found = read_encoded(tmp_path / "new.csv", encoding)
    np.testing.assert_array_equal(found.A, [[1, 2, 3]])
    np.savez(tmp_path / "thin.npz", A=A[:, :2])
    with pytest.raises(InputError, match="A has 2 columns, but the model has 3"):
        read_encoded(tmp_path / "thin.npz", encoding)
    (tmp_path / "words.csv").write_text(TRAIN)
    with pytest.raises(InputError, match="the model has words in 'q'"):
        read_encoded(tmp_path / "new.npz", read_table(tmp_path / "words.csv").encoding)


def test_files_in_parts_have_one_encoding(tmp_path):
    frame = frame_of(0).sort_values("colour")  # no part has all colours
    for i, rows in enumerate(np.array_split(np.arange(N), 3)):
        write(frame.iloc[rows], tmp_path / f"{i}.csv")
    problem = Parts(Logistic, files_in_parts(tmp_path, label="y"), labels=True)
    whole = read_table(write(frame, tmp_path / "whole.csv"), label="y")
    assert problem.encoding == whole.encoding


DOCUMENT = TableEncoding(
    3,
    (ColumnEncoding("p"), ColumnEncoding("q", "words", ("a", "b"))),
    header=("p", "q", "y"),
    named=True,
    label="y",
).to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 2}, "do not make a matrix of width 2"),
        ({"width": "3"}, "its width is '3', not a whole number"),
        ({"columns": DOCUMENT["columns"][::-1]}, "do not come after those of numbers"),
        ({"columns": [DOCUMENT["columns"][0]] * 2, "width": 2}, "it has a column twice"),
        ({"label": "u"}, "its header has no column 'u'"),
        ({"missing": "guess"}, "policy for missing cells is 'guess'"),
        ({"missing": "mean"}, "its fills are not those"),
        ({"decimal": ";"}, "its decimal sign is ';'"),
        ({"colour": 1}, "a field colour that nothing reads"),
        ({"columns": [{"name": "p", "kind": "date"}]}, "kind of a column is 'date'"),
        ({"columns": [{"name": "p", "kind": "words"}]}, "'p' of words has other words"),
        ({"columns": [{"name": "p", "kind": "words", "words": ["a", "a"]}]}, "has a word twice"),
        ({"columns": [{"name": "p", "fill": 1e999}]}, "cannot be filled"),
        ({"columns": [], "fills": [1.0]}, "its fills are not 3 finite numbers"),
    ],
)
def test_a_damaged_description_is_told(change, words):
    assert TableEncoding.from_json(DOCUMENT).to_json() == DOCUMENT
    with pytest.raises(InputError, match=words):
        TableEncoding.from_json(DOCUMENT | change)
