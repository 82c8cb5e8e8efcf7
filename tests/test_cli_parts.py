"""ode2opt solve on many files, in this process."""

import json

import numpy as np
import pytest

from ode2opt import InputError, Logistic, solve
from ode2opt.cli.options import as_bytes


@pytest.fixture
def folder(tmp_path, rng):
    """Two CSV files with labels in words."""
    where = tmp_path / "rows"
    where.mkdir()
    for name in "ab":
        A = rng.standard_normal((40, 3))
        words = np.where(A[:, 0] + rng.standard_normal(40) > 0, "yes", "no")
        rows = zip(A.tolist(), words, strict=True)
        lines = [",".join([*map(repr, row), word]) for row, word in rows]
        (where / f"{name}.csv").write_text("\n".join(["p,q,r,y", *lines]) + "\n")
    return where


def whole(folder):
    """The rows of both files."""
    lines = [line for name in "ab" for line in (folder / f"{name}.csv").read_text().split()[1:]]
    cells = [line.split(",") for line in lines]
    A = np.array([row[:3] for row in cells], dtype=float)
    return A, np.array([row[3] == "yes" for row in cells], dtype=float)


@pytest.mark.parametrize("pattern", ["", "*.csv"])
@pytest.mark.parametrize("more", [[], ["--memory-limit", "1kB", "--workers", "2"]])
def test_a_folder_or_pattern_is_one_problem(run_cli, folder, tmp_path, pattern, more):
    code, out, err = run_cli(
        "solve", folder / pattern, "--problem", "logistic", "--label", "y", "--l2", 0.01,
        "--intercept", "--tol", 1e-10, "--out", tmp_path / "x.npz", "--json", "-", *more,
    )  # fmt: skip
    assert (code, err, json.loads(out)["success"]) == (0, "", True)
    A, b = whole(folder)
    due = solve(Logistic(A, b, l2=0.01, intercept=True), tol=1e-10).x
    np.testing.assert_allclose(np.load(tmp_path / "x.npz")["x"], due, rtol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["*.npz"], "No file matches"),
        (["a.csv", "--workers", "2"], "are for a folder, a pattern"),
        (["a.csv", "--memory-limit", "2GB"], "are for a folder, a pattern"),
        (["*.csv", "--memory-limit", "2"], "no amount of memory"),
        (["*.csv", "--workers", "0"], "greater than or equal to 1"),
        (["*.csv", "--label", "z"], "has no column 'z'"),
    ],
)
def test_wrong_use_is_told(run_cli, folder, arguments, words):
    file, *more = arguments
    code, _, err = run_cli("solve", folder / file, "--problem", "logistic", *more)
    assert code == 2
    assert words in " ".join(err.split())


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 MB", 1_500_000), ("3kiB", 3072), ("4MiB", 4 << 20), ("7B", 7)],
)
def test_amounts_of_memory(text, size):
    assert as_bytes(text) == size


@pytest.mark.parametrize("text", ["", "2", "GB", "-1GB", "0MB", "2 gigabytes"])
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(InputError, match="write it like 2GB"):
        as_bytes(text)
