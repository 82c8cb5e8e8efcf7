"""Holes, decimal commas, truth values, indices, chosen columns: one rule for every kind of file."""

import csv

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support import write_table as write

from ode2opt import Family, InputError, Logistic, load_dataset, solve
from ode2opt.data.files import ReadOptions
from ode2opt.problems import Parts, read_table
from ode2opt.problems.parts import files_in_parts

N = 200


@pytest.fixture
def holes():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((N, 3)), columns=list("pqr")).round(4)
    frame["kind"] = rng.choice(["new", "old"], N)
    frame["y"] = rng.integers(0, 2, N)
    for name in "pq":
        frame.loc[rng.choice(N, 20, replace=False), name] = np.nan
    return frame


# Missing cells ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_missing_cells_are_told_dropped_or_filled_as_pandas_does(tmp_path, holes, ending):
    path = write(holes, tmp_path / f"t.{ending}")
    row = int(np.argmax(holes[["p", "q"]].isna().any(axis=1)))
    name = "p" if np.isnan(holes["p"][row]) else "q"
    place = f"line {row + 2}" if ending == "csv" else f"row {row + 1}"
    with pytest.raises(InputError, match=f"{place}, column '{name}' is missing: --missing drop"):
        read_table(path)
    dummies = pd.get_dummies(holes.drop(columns="y"), prefix_sep="=", dtype=float)
    dropped = read_table(path, missing="drop")
    kept = holes.dropna().index
    np.testing.assert_array_equal(dropped.A, dummies.loc[kept])
    np.testing.assert_array_equal(dropped.labels, holes["y"][kept])
    np.testing.assert_array_equal(dropped.rows, kept)
    assert f"{N - len(kept)} rows of {N} left out" in " ".join(dropped.notes)
    filled = read_table(path, missing="mean")
    np.testing.assert_allclose(filled.A, dummies.fillna(holes[["p", "q"]].mean()), rtol=1e-13)
    fills = [column.fill for column in filled.encoding.numbers]
    np.testing.assert_allclose(fills, holes[["p", "q", "r"]].mean(), rtol=1e-12)


@pytest.mark.parametrize("cell", ["", "NA", "nan", "NaN", "n/a", "NULL", "null", "<NA>", " "])
def test_a_cell_that_says_that_it_is_missing_is(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"p,q,y\n1,a,0\n{cell},b,1\n4,{cell},1\n")
    found = read_table(tmp_path / "t.csv", missing="drop")
    np.testing.assert_array_equal(found.rows, [0])
    with pytest.raises(InputError, match="line 4, column 'q' is missing, and it has no mean"):
        read_table(tmp_path / "t.csv", missing="mean")


def test_missing_labels_weights_and_words_can_only_be_dropped(tmp_path):
    frame = pd.DataFrame({"p": [1.0, 2, 3, 4], "y": ["a", None, "b", "a"], "w": [1, 1, np.nan, 2]})
    for ending in ("csv", "parquet"):
        path = write(frame, tmp_path / f"t.{ending}")
        for missing in ("error", "mean"):
            with pytest.raises(InputError, match=r"the label in (line 3|row 2) is missing"):
                read_table(path, label="y", weights="w", missing=missing)
        found = read_table(path, label="y", weights="w", missing="drop")
        np.testing.assert_array_equal(found.A, [[1], [4]])
        assert list(found.labels) == ["a", "a"]
        np.testing.assert_array_equal(found.weights, [1, 2])


def test_missing_entries_of_archives(tmp_path):
    A = np.array([[1, np.nan], [3, 4], [np.nan, 6], [0, 8]])
    b = np.arange(4.0)
    S = sp.csr_array(A)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    for arrays in ({"A": A}, parts):
        np.savez(tmp_path / "t.npz", b=b, **arrays)
        with pytest.raises(InputError, match=r"row 1, column 1 \(counted from 0\) is missing"):
            read_table(tmp_path / "t.npz")
        dropped, filled = (read_table(tmp_path / "t.npz", missing=m) for m in ("drop", "mean"))
        np.testing.assert_array_equal(sp.csr_array(dropped.A).toarray(), A[[1, 3]])
        means = np.nanmean(A, axis=0)
        wanted = np.where(np.isnan(A), means, A)
        np.testing.assert_allclose(sp.csr_array(filled.A).toarray(), wanted)
        np.testing.assert_allclose(filled.encoding.fills, means)


def test_columns_and_files_of_nothing_but_holes_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("p,q,y\n,1,0\n,2,1\n")
    with pytest.raises(InputError, match=r"column 'p' has no value in any row.* --drop"):
        read_table(tmp_path / "t.csv", missing="mean")
    with pytest.raises(InputError, match="every row has a missing cell"):
        read_table(tmp_path / "t.csv", missing="drop")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv", drop="p").A, [[1], [2]])
    with pytest.raises(InputError, match="missing is 'guess'"):
        read_table(tmp_path / "t.csv", missing="guess")


def test_the_means_of_a_data_set_are_those_of_its_train_rows(tmp_path):
    """Test rows of another level do not move what training sees."""
    p = np.append(np.arange(60.0), np.full(40, 1e6))
    p[3] = np.nan
    frame = pd.DataFrame({"p": p, "y": np.arange(100) % 2})
    data = load_dataset(write(frame, tmp_path / "t.csv"), split="paper", missing="mean")
    assert data.train.A[3, 0] == pytest.approx(np.nanmean(p[:60]) / 59)


@pytest.mark.parametrize("missing", ["drop", "mean"])
@pytest.mark.parametrize("scale", [False, True])
def test_parts_treat_missing_cells_as_one_file_does(tmp_path, holes, missing, scale):
    holes["p"] += np.linspace(0, 5, N)  # each part has a mean of its own
    for i, rows in enumerate(np.array_split(np.arange(N), 7)):
        write(holes.iloc[rows], tmp_path / f"{i}.csv")
    files = files_in_parts(tmp_path, label="y", missing=missing)
    problem = Parts(Logistic, files, labels=True, l2=0.1, scale=scale)
    kept = holes.dropna() if missing == "drop" else holes
    A = pd.get_dummies(kept.drop(columns="y"), prefix_sep="=", dtype=float)
    A = A.fillna(A.mean()).to_numpy()
    sizes = abs(A).max(axis=0) if scale else 1.0
    x = solve(Logistic(A / sizes, kept["y"], l2=0.1), tol=1e-10).x
    np.testing.assert_allclose(solve(problem, tol=1e-10).x, x, atol=1e-8)
    whole = read_table(write(holes, tmp_path / "whole.csv"), label="y", missing=missing)
    assert problem.encoding.names == whole.encoding.names
    if missing == "mean":
        fills = [[c.fill for c in e.numbers] for e in (problem.encoding, whole.encoding)]
        np.testing.assert_allclose(*fills)
    assert len(problem.notes) <= 5
    assert "0.csv: " in problem.notes[0]


def test_parts_of_archives_are_filled_too(tmp_path):
    A = np.random.default_rng(0).standard_normal((30, 3))
    A[abs(A) < 0.4] = 0
    A[[1, 5, 20], [0, 1, 2]] = np.nan
    b = np.arange(30.0) % 2
    for i, rows in enumerate(np.array_split(np.arange(30), 2)):
        S = sp.csr_array(A[rows])
        parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
        np.savez(tmp_path / f"{i}.npz", y=b[rows], **parts)
    problem = Parts(Logistic, files_in_parts(tmp_path, missing="mean"), labels=True)
    whole = Logistic(np.where(np.isnan(A), np.nanmean(A, axis=0), A), b)
    x = np.array([1.0, -2, 3])
    np.testing.assert_allclose(problem.gradient(x), whole.gradient(x), rtol=1e-12)
    np.testing.assert_allclose(problem.encoding.fills, np.nanmean(A, axis=0))


def test_files_that_count_indices_from_0_and_from_1_do_not_go_together(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:2 1:1\n0 1:1\n")
    (tmp_path / "b.svm").write_text("1 1:2\n0 1:1\n")
    with pytest.raises(InputError, match=r"b.svm has indices from 1, but .*a.svm has .* from 0"):
        Parts(Logistic, files_in_parts(tmp_path), labels=True)


def test_words_of_dropped_rows_are_no_columns(tmp_path):
    (tmp_path / "t.csv").write_text("p,q,y\n1,a,0\n2,b,1\n,rare,1\n")
    assert read_table(tmp_path / "t.csv", missing="drop").columns == ["p", "q=a", "q=b"]


# Decimal commas --------------------------------------------------------------------------------


@pytest.mark.parametrize("sep", [";", "\t"])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas_are_found_out(tmp_path, sep, header):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((50, 3)).round(3), columns=list("pqr"))
    frame["whole"] = rng.integers(0, 5, 50)
    frame["y"] = rng.integers(0, 2, 50)
    path = tmp_path / ("t.csv" if sep == ";" else "t.tsv")
    frame.to_csv(path, sep=sep, decimal=",", index=False, header=header)
    found = read_table(path)
    np.testing.assert_array_equal(found.A, frame.drop(columns="y"))
    assert found.encoding.decimal == ","
    assert found.notes == ("Its numbers have decimal commas.",)


def test_decimal_commas_that_come_late_or_with_words_and_holes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("p;town;q;y\n1;Ulm;;0\n2,5;Bonn;-,5;1\n,25;Ulm;1,5e1;1\n")
    found = read_table(path, missing="mean")
    np.testing.assert_array_equal(found.A, [[1, 7.25, 0, 1], [2.5, -0.5, 1, 0], [0.25, 15, 0, 1]])


def test_a_decimal_sign_can_be_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('p,y\n"1,5",0\n"2,5",1\n')
    np.testing.assert_array_equal(read_table(path, decimal=",").A, [[1.5], [2.5]])
    assert read_table(path).columns == ["p=1,5", "p=2,5"]  # not guessed where commas separate
    path.write_text("p;q;y\n1,5;1.5;0\n2;2;1\n")
    with pytest.raises(InputError, match=r"line 2, column 'q' is '1\.5', .* decimal commas"):
        read_table(path)
    path.write_text("p;q;y\n3,5;1;0\n1.234,5;2;1\n")
    with pytest.raises(InputError, match=r"line 3, column 'p' is '1\.234,5'"):
        read_table(path)
    with pytest.raises(InputError, match="decimal is ';'"):
        read_table(path, decimal=";")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a;b,c,d,y\n1;2,3,4,0\n", ["a;b=1;2", "c", "d"]),
        ("a,b;c,d;y\n1,5;2,5;0\n", ["a,b", "c,d"]),
        ("1,5;2,5;3,5\n2,5;1,5;4,5\n", ["0", "1"]),
        ("a;b\ty\n1\t0\n", ["a;b"]),
        ("a,b,y\n1;2,3,0\n", ["b", "a=1;2"]),
    ],
)
def test_what_separates_cells_is_told_from_what_is_in_them(tmp_path, text, columns):
    (tmp_path / "t.csv").write_text(text)
    assert sorted(read_table(tmp_path / "t.csv").columns) == sorted(columns)


# Truth values, indices, names ------------------------------------------------------------------


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_true_and_false_are_one_column_in_every_kind_of_file(tmp_path, words):
    truths = np.array([True, False, False, True])
    said = np.where(truths, *words)
    plain = pd.DataFrame({"p": truths, "q": [1, 2, 3, 4], "y": truths[::-1]})
    paths = (
        write(plain, tmp_path / "t.parquet"),
        write(plain.assign(p=said), tmp_path / "s.parquet"),
        write(plain.assign(p=said, y=said[::-1]), tmp_path / "t.csv"),
    )
    for path in paths:
        found = read_table(path)
        np.testing.assert_array_equal(found.A, np.column_stack([truths, [1, 2, 3, 4]]))
        np.testing.assert_array_equal(found.labels, truths[::-1])
        assert found.columns == ["p", "q"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_index_is_left_out_and_said(tmp_path, ending):
    frame = pd.DataFrame({"p": [1.0, 2], "y": [0, 1]}, index=[7, 9])
    path = write(frame, tmp_path / f"t.{ending}", index=True)
    found = read_table(path)
    assert found.columns == ["p"]
    assert "is an index and is left out" in " ".join(found.notes)
    index = "0" if ending == "csv" else "-1"
    kept = read_table(path, columns=[index, "p"])
    assert sorted(kept.A[0]) == [1, 7]
    read_again = frame.reset_index().rename(columns={"index": "Unnamed: 0"})
    assert read_table(write(read_again, tmp_path / f"u.{ending}")).columns == ["p"]


def test_columns_can_be_chosen_by_name_and_number(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b"], "p": [1.0, 2], "q": [3.0, 4], "y": [0, 1]})
    for ending in ("csv", "parquet"):
        path = write(frame, tmp_path / f"t.{ending}")
        assert read_table(path, drop=["id", 2]).columns == ["p"]
        assert read_table(path, columns=["q", "p"]).columns == ["p", "q"]
        assert read_table(path, drop="y").columns == ["p", "id=a", "id=b"]  # q is the label then
        for options, words in (
            ({"drop": "ids"}, "has no column 'ids': did you mean 'id'"),
            ({"columns": "zzz"}, "has no column 'zzz': its columns are id, p, q, y"),
            ({"drop": "y", "label": "y"}, "'y' cannot hold labels and be dropped"),
            ({"columns": "y", "label": "y"}, "no features"),
            ({"drop": ["id", "p", "q"]}, "no features"),
            ({"drop": "p", "columns": "q"}, "exclude each other"),
        ):
            with pytest.raises(InputError, match=words):
                read_table(path, **options)
    np.savez(tmp_path / "t.npz", A=np.eye(2), b=[0, 1])
    (tmp_path / "t.svm").write_text("1 1:1\n0 2:1\n")
    for name in ("t.npz", "t.svm"):
        with pytest.raises(InputError, match="--drop and --columns are for CSV and Parquet"):
            read_table(tmp_path / name, drop="0")


def test_two_columns_of_one_name_are_told(tmp_path):
    frame = pd.DataFrame([[1.0, 2, 0], [3, 4, 1]], columns=["p", "p", "y"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"columns 0 and 1 .* both have the name 'p'"):
        read_table(tmp_path / "t.csv")
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table([[1.0], [2.0], [1]], names=["p", "p", "y"])
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"columns 0 and 1 .* both have the name 'p'"):
        read_table(tmp_path / "t.parquet")


# Where errors are ------------------------------------------------------------------------------


def test_errors_name_the_line_of_text_and_the_row_of_other_files(tmp_path):
    text = 'p,note,y\n1,"two\nlines",0\n\n2,b,1\ninf,b,1\n'
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.svm").write_text("1 1:2\n# nothing\n\n0 1:inf\n")
    pd.DataFrame({"p": [1.0, np.inf], "y": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", A=[[1.0], [np.inf]], b=[0, 1])
    for name, words in (
        ("t.csv", "line 6, column 'p' is inf"),
        ("t.svm", r"line 4, column 0 \(counted from 0\) is inf"),
        ("t.parquet", "row 2, column 'p' is inf"),
        ("t.npz", r"row 2, column 0 \(counted from 0\) is inf"),
    ):
        with pytest.raises(InputError, match=words):
            load_dataset(tmp_path / name)
        with pytest.raises(InputError, match=words):
            Parts(Logistic, files_in_parts(tmp_path / f"*{name[1:]}"), labels=True)


def test_dropped_rows_do_not_shift_the_lines_in_errors(tmp_path):
    (tmp_path / "t.csv").write_text("p,y\n1,0\n,0\n2,1\ninf,1\n")
    with pytest.raises(InputError, match="line 5, column 'p' is inf"):
        load_dataset(tmp_path / "t.csv", missing="drop")


# On the command line ---------------------------------------------------------------------------


def test_the_options_of_the_commands(tmp_path, holes, run_cli):
    frame = holes.assign(id=[f"row {i}" for i in range(N)])[["id", "p", "q", "kind", "y"]]
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    path, model = tmp_path / "t.csv", ["--problem", "logistic", "--l2", 0.1, "--tol", 1e-9]
    code, _, told = run_cli("solve", path, *model)
    assert code == 2
    assert "--missing drop" in told
    code, _, told = run_cli("solve", path, *model, "--missing", "drop")
    assert code == 2
    assert "'id' has" in told
    options = ["--missing", "mean", "--drop", "id", "--decimal", ","]
    code, told, _ = run_cli("solve", path, *model, *options, "--out", tmp_path / "x.npz")
    assert code == 0
    assert "decimal commas" in told
    assert "40 missing cells filled with column means." in " ".join(told.split())
    A = pd.get_dummies(holes[["p", "q", "kind"]], prefix_sep="=", dtype=float)
    A = A.fillna(A.mean()).to_numpy()
    with np.load(tmp_path / "x.npz") as found:
        x = solve(Logistic(A, holes["y"], l2=0.1), tol=1e-9).x
        np.testing.assert_allclose(found["x"], x, atol=1e-7)
    few = ["--methods", "lbfgs", "--instances", 2, "--l2", 0.1, "--jobs", 1]
    options = ["--missing", "drop", "--columns", "p,q"]
    code, told, _ = run_cli("bench", "logistic", path, *few, *options)
    assert code == 0
    assert "left out: cells are missing." in " ".join(told.split())
    code, told, _ = run_cli("data", "info", path, *options)
    assert code == 0
    assert "left out: cells are missing." in " ".join(told.split())
    code, _, told = run_cli("bench", "logistic", "digits", *few, *options)
    assert code == 2
    assert "for files of your own" in told


def test_one_object_of_options_reads_as_keywords_do(holes, tmp_path):
    file = write(holes, tmp_path / "a.csv")
    keywords = {"label": "y", "missing": "mean", "drop": ["kind", 2]}
    options = ReadOptions.of(**keywords)
    expected = read_table(file, **keywords)
    found = {
        "object": read_table(file, options),
        "both": read_table(file, ReadOptions.of(label="r", missing="mean"), **keywords),
    }
    for table in found.values():
        np.testing.assert_array_equal(table.A, expected.A)
        assert table.encoding == expected.encoding
    data, same = load_dataset(file, reading=options), load_dataset(file, **keywords)
    np.testing.assert_array_equal(data.train.A, same.train.A)
    families = [
        Family.from_dataset("logistic", file, size=30, l2=0.5, **way)
        for way in (keywords, {"reading": options})
    ]
    first, second = (family.sample(0) for family in families)
    np.testing.assert_array_equal(first.A, second.A)
    assert (first.l2, first.n) == (second.l2, second.n) == (0.5, 2)
    parts = [Parts(Logistic, files_in_parts(tmp_path, **way), labels=True)
             for way in (keywords, {"reading": options})]  # fmt: skip
    assert parts[0].n == parts[1].n == 2


@pytest.mark.parametrize("of", [{"missing": "zero"}, {"decimal": "'"}, {"drop": 1, "columns": 2}])
def test_options_that_cannot_be_are_refused_before_a_file_is_opened(of):
    with pytest.raises(InputError):
        ReadOptions.of(**of)
    with pytest.raises(InputError):
        load_dataset("digits", **of)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "names",
    [
        ["a\nb", "c", "label"],
        ["a", "b\n\nc\n", "label"],
        ['say ""\n""', "x;\t,\ny", "label"],
        ["one\ntwo", "three\rfour", "label"],
        ["a\n1,2,3\nb", "c\n4;5;6", "label"],
    ],
)
def test_names_in_quotes_may_have_line_breaks(tmp_path, ending, sign, end, names):
    """As pandas writes and reads them; the words of rows may, too."""
    words = ["p\nq", "r"]
    rows = [[i, words[i % 2], i % 2] for i in range(6)]
    file = tmp_path / f"t.{ending}"
    frame, quoting = pd.DataFrame(rows, columns=names), csv.QUOTE_NONNUMERIC
    frame.to_csv(file, sep=sign, index=False, lineterminator=end, quoting=quoting)
    table, due = read_table(file, label="label"), pd.read_csv(file, sep=sign)
    if "\r" not in "".join(names):  # pandas takes one for the end of a line
        assert list(due.columns) == names
    np.testing.assert_array_equal(table.A[:, 0], due.iloc[:, 0])
    np.testing.assert_array_equal(table.labels, due["label"])
    second = names[1].strip()
    assert table.encoding.names == [names[0].strip(), f"{second}=p\nq", f"{second}=r"]


def test_faults_below_a_name_with_line_breaks_have_the_numbers_of_their_lines(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('"a\n\nb",c,label\n1,2,0\n3,?,1\n')
    with pytest.raises(InputError, match=r"line 5, column 'c' is '\?'"):
        read_table(file, label="label")


@pytest.mark.parametrize("text", ['"a,b,label\n1,2,0\n3,4,1\n', 'a,5" pipe,label\n1,2,0\n3,4,1\n'])
def test_a_quote_that_is_missing_joins_no_lines(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text)
    if text.startswith("a"):
        assert read_table(file, label="label").encoding.names == ["a", '5" pipe']
    else:
        with pytest.raises(InputError, match="no rows"):
            read_table(file, label="label")
