"""ode2opt solve on many files, in this process."""

import json

import numpy as np
import pytest

from ode2opt import InputError, Logistic, solve
from ode2opt.cli.fit_rows import as_bytes


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
def test_wrong_use_is_told(refused, folder, arguments, words):
    file, *more = arguments
    refused(words, "solve", folder / file, "--problem", "logistic", *more)


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


def given_up(run_cli, folder, out, *more):
    """Solve a few iterations; the best point is kept."""
    return run_cli(
        "solve", folder, "--problem", "logistic", "--label", "y", "--l2", 0.01, "--scale-columns",
        "--method", "lbfgs", "--tol", 1e-10, "--out", out, "--json", "-", *more,
    )  # fmt: skip


def test_a_solve_that_was_broken_off_is_gone_on_with(run_cli, folder, tmp_path):
    out, kept = tmp_path / "x.npz", tmp_path / "x.npz.partial"
    code, first, _ = given_up(run_cli, folder, out, "--max-iter", 3)
    assert (code, kept.exists()) == (1, True)
    code, again, _ = given_up(run_cli, folder, out, "--max-iter", 0, "--resume")
    assert code == 1
    assert json.loads(again)["grad_norm"] == json.loads(first)["grad_norm"]
    code, last, _ = given_up(run_cli, folder, out, "--resume")
    assert (code, json.loads(last)["success"], kept.exists()) == (0, True, False)
    A, b = whole(folder)
    sizes = abs(A).max(axis=0)
    due = solve(Logistic(A / sizes, b, l2=0.01), tol=1e-10).x / sizes
    np.testing.assert_allclose(np.load(out)["x"], due, rtol=1e-7)
    assert given_up(run_cli, folder, out, "--resume")[0] == 0  # nothing is left to go on from


def test_points_are_kept_on_the_way(run_cli, folder, tmp_path, monkeypatch):
    from ode2opt.cli.fitted import KeptPoint

    monkeypatch.setattr(KeptPoint, "seconds", 0.0)
    seen = []
    keep = KeptPoint.keep
    monkeypatch.setattr(
        KeptPoint,
        "keep",
        lambda self, x, norm: (seen.append(norm), keep(self, x, norm)),
    )
    assert given_up(run_cli, folder, tmp_path / "x.npz")[0] == 0
    assert len(seen) > 3
    assert seen == sorted(seen, reverse=True)
    assert not (tmp_path / "x.npz.partial").exists()


@pytest.mark.parametrize("more", [["--l2", 0.02], ["--intercept"]])
def test_a_point_of_another_problem_is_refused(run_cli, folder, tmp_path, more):
    out = tmp_path / "x.npz"
    given_up(run_cli, folder, out, "--max-iter", 3)
    code, _, err = given_up(run_cli, folder, out, "--resume", *more)
    assert code == 2
    assert "is of another problem" in " ".join(err.split())
    for damaged in (b"PK", b"PK\x03\x04 and no archive"):
        (tmp_path / "x.npz.partial").write_bytes(damaged)
        code, _, err = given_up(run_cli, folder, out, "--resume")
        assert (code, "cannot be read" in " ".join(err.split())) == (2, True)


def test_to_resume_a_file_must_be_named(refused, folder):
    refused(
        "--resume needs --out", "solve", folder, "--problem", "logistic", "--label", "y",
        "--resume",
    )  # fmt: skip
