"""ode2opt solve with a penalty or limits: against scikit-learn and scipy; wrong options."""

import json

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.linear_model import ElasticNet, Lasso
from support import one_sentence

N, n = 80, 6


@pytest.fixture
def rows(tmp_path):
    """A file with a constant column and one of zeros, and its numbers."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, n)) * [1, 3, 0.2, 1, 1, 1]
    A[:, 3], A[:, 4] = 2.0, 0.0
    y = A @ [1.0, -1.0, 2.0, 0, 0, 0.02] + 0.5 + 0.1 * rng.standard_normal(N)
    file = tmp_path / "rows.csv"
    names = ",".join([*(f"c{k}" for k in range(n)), "y"])
    np.savetxt(file, np.column_stack([A, y]), delimiter=",", header=names, comments="")
    return file, A, y


def solved(run_cli, file, *more):
    """Return the JSON and x of a solve."""
    out_file = file.with_name("x.npz")
    code, out, err = run_cli(
        "solve", file, "--problem", "leastsquares", "--tol", 1e-9, "--out", out_file, "--json", "-",
        *more,
    )  # fmt: skip
    assert (code, err) == (0, "")
    return json.loads(out), np.load(out_file)["x"]


@pytest.mark.parametrize("ratio", [None, 0.3])
def test_l1_agrees_with_scikit_learn(run_cli, rows, ratio):
    file, A, y = rows
    share = () if ratio is None else ("--l1-ratio", ratio)
    document, x = solved(run_cli, file, "--intercept", "--l1", 0.05, *share)
    kind = Lasso(0.05) if ratio is None else ElasticNet(0.05, l1_ratio=ratio)
    due = kind.set_params(tol=1e-12, max_iter=100_000).fit(A, y)
    np.testing.assert_allclose(x, [*due.coef_, due.intercept_], atol=1e-7)
    assert (document["status"], document["success"]) == ("converged", True)
    assert document["residual"] <= 1e-9
    assert document["support"] == np.count_nonzero(due.coef_) + 1  # the intercept
    assert document["gap"] is None


def test_the_gap_is_told_without_an_intercept(run_cli, rows):
    file, A, y = rows
    document, x = solved(run_cli, file, "--l1", 0.05)
    due = Lasso(0.05, fit_intercept=False, tol=1e-13, max_iter=100_000).fit(A, y)
    np.testing.assert_allclose(x[[0, 1, 2, 5]], due.coef_[[0, 1, 2, 5]], atol=1e-7)
    assert 0 <= document["gap"] <= 1e-7


@pytest.mark.parametrize(
    "options",
    [
        ("--lower", -0.5, "--upper", 0.8),
        ("--box", -0.5, 0.8),
        ("--box", -0.5, 0.8, "--scale-columns"),
    ],
)
def test_limits_hold_for_columns_as_they_are(run_cli, rows, options):
    file, A, y = rows
    document, x = solved(run_cli, file, *options)
    due = lsq_linear(A, y, (-0.5, 0.8), tol=1e-14).x
    moved = [0, 1, 2, 3, 5]  # nothing is known of the column of zeros
    np.testing.assert_allclose(x[moved], due[moved], atol=1e-6)
    assert document["residual"] <= 1e-9
    assert 0 <= document["gap"] <= 1e-6


def test_weights_and_limits_go_together(run_cli, rows):
    file, A, y = rows
    _, x = solved(run_cli, file, "--l1", 0.05, "--lower", 0, "--intercept")
    due = Lasso(0.05, positive=True, tol=1e-12, max_iter=100_000).fit(A, y)
    np.testing.assert_allclose(x, [*due.coef_, due.intercept_], atol=1e-7)


def test_a_memory_learns_from_limits(run_cli, rows, tmp_path):
    file, memory = rows[0], tmp_path / "memory.safetensors"
    found = [solved(run_cli, file, "--box", -0.1, 0.2, "--memory", memory) for _ in range(2)]
    assert found[1][0]["oracle_calls"] < found[0][0]["oracle_calls"]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-5)


def test_the_table_tells_residual_gap_and_support(run_cli, rows):
    code, out, _ = run_cli("solve", rows[0], "--problem", "leastsquares", "--l1", 0.05)
    assert code == 0
    assert "The residual reached the tolerance." in out
    assert all(word in out for word in ("residual", "gap", "at most", "support", "of 6 variables"))
    assert "bound" not in out


def test_a_solve_that_misses_its_residual_says_so(run_cli, rows):
    too_few = ("--l1", 0.05, "--method", "fista", "--max-iter", 2)
    code, _, err = run_cli("solve", rows[0], "--problem", "leastsquares", *too_few)
    assert code == 1
    assert one_sentence(err)
    assert "The iteration limit was reached. Residual " in err


def test_a_kept_point_is_of_its_own_penalty(run_cli, rows):
    file, out_file = rows[0], rows[0].with_name("model.safetensors")
    given = ("solve", file, "--problem", "leastsquares", "--out", out_file, "--resume")
    assert run_cli(*given, "--l1", 0.05, "--method", "fista", "--max-iter", 2)[0] == 1
    code, _, err = run_cli(*given, "--l1", 0.1)
    assert (code, one_sentence(err), "is of another problem" in err) == (2, True, True)
    assert run_cli(*given, "--l1", 0.05)[0] == 0


WRONG = {
    "--l1 is -1: it must be zero or a positive number.": ("--l1", -1),
    "--l1 is nan: it must be zero or a positive number.": ("--l1", "nan"),
    "--l1-ratio says how --l1 W is shared out: give --l1, too.": ("--l1-ratio", 0.5),
    "--l1-ratio is 2: it must be between 0 and 1.": ("--l1", 1, "--l1-ratio", 2),
    "No number lies between --lower 1 and --upper 0.": ("--lower", 1, "--upper", 0),
    "No number lies between --lower inf and --upper inf.": ("--lower", "inf"),
    "No number lies between --lower 2 and --upper 1.": ("--box", 2, 1),
    "--box A B is short for --lower A --upper B": ("--box", 0, 1, "--lower", 0),
    "--lower is nan: it must be a number.": ("--lower", "nan"),
    "The method 'lbfgs' is for smooth functions": ("--l1", 1, "--method", "lbfgs"),
    "The method fista is for penalties": ("--method", "fista"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_options_are_refused_before_the_file_is_read(refused, sentence):
    refused(sentence, "solve", "nowhere.csv", "--problem", "logistic", *WRONG[sentence])
