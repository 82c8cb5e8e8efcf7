"""DataFrames of numbers and words make the problems that files of the same columns make."""

import numpy as np
import pandas as pd
import pytest

from ode2opt import InputError, LeastSquares, Logistic, Softmax, solve
from ode2opt.problems import read_table

N = 90


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "sure": rng.choice([True, False], N),
            "count": pd.array(rng.integers(0, 9, N), dtype="Int64"),
            "w": rng.random(N) + 0.1,
            "y": rng.choice(["no", "yes"], N),
            "tree": rng.choice(["oak", "elm", "fir"], N),
        }
    )


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_a_frame_makes_the_problem_of_a_file(tmp_path, frame, kind):
    frame = frame.astype({"colour": kind, "y": kind}).drop(columns="tree")
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", label="y", weights="w")
    due = Logistic(table.A, table.labels == "yes", weights=table.weights, l2=0.1)
    features = frame.drop(columns=["w", "y"])
    for mine in (
        Logistic(frame, "y", weights="w", l2=0.1),
        Logistic(features, frame["y"], weights=frame["w"], l2=0.1),
        Logistic(features, frame["y"].to_numpy(), weights=frame["w"], l2=0.1),
        Logistic(features, list(frame["y"]), weights=frame["w"], l2=0.1),
    ):
        np.testing.assert_allclose(mine.A, due.A)
        np.testing.assert_array_equal(mine.b, due.b)
        assert list(mine.names) == table.columns
        assert mine.label_values == ("no", "yes")
    np.testing.assert_allclose(solve(mine, tol=1e-9).x, solve(due, tol=1e-9).x, atol=1e-8)


def test_classes_are_words_in_the_order_of_their_names(frame):
    mine = Softmax(frame[["x", "w"]], frame["tree"])
    assert mine.label_values == ("elm", "fir", "oak")
    codes = frame["tree"].map({"elm": 0, "fir": 1, "oak": 2})
    np.testing.assert_array_equal(mine.b, codes)
    assert mine.classes == 3


def test_words_of_true_and_false_are_one_column(frame):
    said = frame["sure"].map({True: "True", False: "False"})
    for column in (frame["sure"], said):
        mine = LeastSquares(pd.DataFrame({"sure": column}), frame["w"])
        np.testing.assert_array_equal(mine.A[:, 0], frame["sure"])
        assert list(mine.names) == ["sure"]


def test_numbers_in_objects_and_categories_stay_numbers():
    values = pd.DataFrame({"p": pd.Series([1, 2.5], dtype=object), "q": pd.Categorical([4, 3])})
    np.testing.assert_array_equal(LeastSquares(values, [0, 1]).A, [[1, 4], [2.5, 3]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: LeastSquares(f, "y"), "LeastSquares needs numbers as targets, not '(no|yes)'"),
        (lambda f: Logistic(f, "tree"), "needs two label values, but has 3"),
        (lambda f: Logistic(f, "z"), "There is no column 'z'"),
        (lambda f: Logistic(f.assign(d=pd.Timestamp("2020")), "y"), "'d' is datetime.*neither"),
        (lambda f: Logistic(f.assign(d=["p", 5] * 45), "y"), "'d' has numbers among its words"),
        (lambda f: Logistic(f.assign(d=["p", None] * 45), "y"), "45 cells of column 'd' are miss"),
        (
            lambda f: LeastSquares(f.assign(x=f["x"].where(f.index != 4)), "w"),
            "1 cells of column 'x' are missing, the first in row 5",
        ),
        (lambda f: Logistic(pd.concat([f, f["x"]], axis=1), "y"), "both have the name 'x'"),
        (lambda f: Logistic(f[["x"]], ["no", 3] * 45), r"b\[1\] is 3, but other labels are words"),
        (lambda f: Logistic(f.assign(d=[f"n{i}" for i in range(N)]), "y"), "names rows rather"),
    ],
)
def test_frames_that_do_not_fit_are_told(frame, make, words):
    with pytest.raises(InputError, match=words):
        make(frame)
