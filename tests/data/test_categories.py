"""Columns of words become columns of 0 and 1, in one file as in many, as pandas makes them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support import write_table as write

from ode2opt import InputError, Logistic, solve
from ode2opt.problems import read_table
from ode2opt.problems.parts import Parts, files_in_parts

N = 240
TOWNS = [f"town {i:02}" for i in range(40)]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    x, z = rng.standard_normal((2, N))
    colour = rng.choice(["red", "green", "blue"], N)
    y = (x - z + (colour == "red") + rng.standard_normal(N) > 0).astype(int)
    return pd.DataFrame({"x": x, "colour": colour, "z": 3 * z, "y": y})


def due(frame):
    """The same columns by pandas: numbers first, then name=word."""
    words = frame.select_dtypes(exclude="number").columns
    rest = frame.drop(columns="y")
    return pd.get_dummies(rest, columns=list(words), prefix_sep="=", dtype=float)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("wide", [False, True])
def test_words_are_columns(tmp_path, frame, ending, wide):
    if wide:
        frame = frame.assign(town=np.resize(TOWNS, N))
    write(frame, tmp_path / f"t.{ending}")
    found, wanted = read_table(tmp_path / f"t.{ending}"), due(frame)
    assert sp.issparse(found.A) == wide
    assert found.columns == list(wanted.columns)
    np.testing.assert_array_equal(sp.csr_array(found.A).toarray(), wanted.to_numpy())


def test_a_category_of_pandas_is_words(tmp_path, frame):
    frame.astype({"colour": "category"}).to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").A, due(frame).to_numpy())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("wide", [False, True])
def test_words_are_found_over_all_parts(tmp_path, frame, ending, wide):
    """No part has all of them: blue comes in the last part only, and towns in order."""
    if wide:
        frame = frame.assign(town=np.repeat(TOWNS, N // len(TOWNS)))
    frame = frame.sort_values("colour", ascending=False, kind="stable")
    for i, rows in enumerate(np.array_split(np.arange(N), 3)):
        write(frame.iloc[rows], tmp_path / f"{i}.{ending}")
    problem = Parts(Logistic, files_in_parts(tmp_path, label="y"), labels=True, scale=True, l2=0.01)
    wanted = due(frame)
    A = wanted.to_numpy()
    sizes = abs(A).max(axis=0)
    whole = Logistic(sp.csr_array(A / sizes) if wide else A / sizes, frame["y"], l2=0.01)
    assert problem.names == list(wanted.columns)
    assert (problem.sparse, problem.entries()) == (wide, whole.entries() if wide else A.size)
    assert problem.extent().flops() == whole.extent().flops()
    np.testing.assert_allclose(problem.sizes, sizes)
    np.testing.assert_allclose(
        solve(problem, tol=1e-10).x, solve(whole, tol=1e-10).x, rtol=1e-7, atol=1e-9
    )


def test_a_solution_has_the_names_of_its_columns(tmp_path, frame, run_cli):
    write(frame, tmp_path / "t.csv")
    for where in (tmp_path / "t.csv", tmp_path / "t*.csv"):
        model = ["--problem", "logistic", "--l2", 0.1, "--label", "y", "--tol", 1e-9]
        code, told, _ = run_cli("solve", where, *model, "--out", tmp_path / "x.npz")
        assert code == 0
        assert "columns of 0 and 1, after those of numbers: 'colour' 3." in " ".join(told.split())
        wanted = due(frame)
        x = solve(Logistic(wanted.to_numpy(), frame["y"], l2=0.1), tol=1e-9).x
        with np.load(tmp_path / "x.npz") as found:
            assert found["columns"].tolist() == list(wanted.columns)
            np.testing.assert_allclose(found["x"], x, atol=1e-7)


def test_families_are_made_of_words_too(tmp_path, frame, run_cli):
    write(frame, tmp_path / "t.csv")
    options = ["--methods", "lbfgs", "--instances", 2, "--l2", 0.1, "--jobs", 1, "--label", "y"]
    code, _, _ = run_cli("bench", "logistic", tmp_path / "t.csv", *options)
    assert code == 0


ROWS = "p,q,y\n1,a,0\n2,b,1\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.csv": ROWS + "3,,0\n"}, "a.csv: line 4, column 'q' is missing"),
        ({"a.csv": ROWS + "3,7,0\n"}, "line 4, column 'q' is '7', but the first cell is 'a'"),
        ({"a.csv": "p,q,y\n1,n/a,0\n2,5,1\n"}, "line 2, column 'q' is missing: --missing"),
        ({"a.csv": ROWS + "b,a,0\n"}, "line 4, column 'p' is 'b', not a number"),
        ({"a.csv": ROWS, "b.csv": "p,q,y\n1,5,0\n2,7,1\n"}, "b.csv has words in none, but .*'q'"),
        (
            {"a.csv": "p,q,y\n" + "".join(f"1,name {i},{i % 2}\n" for i in range(50))},
            "olumn 'q' has 50 different words in 50 rows.* --drop 'q'",
        ),
    ],
)
def test_words_that_do_not_fit_are_told(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        Parts(Logistic, files_in_parts(tmp_path, label="y"), labels=True)
    if len(files) == 1:
        with pytest.raises(InputError, match=words):
            read_table(tmp_path / "a.csv")


def test_a_missing_word_is_told(tmp_path):
    table = pd.DataFrame({"p": [1.0, 2.0], "q": ["a", None], "y": [0, 1]})
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="row 2, column 'q' is missing"):
        read_table(tmp_path / "t.parquet")
