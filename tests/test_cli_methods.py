"""ode2opt methods list | show | export, as a user runs them."""

import json

import numpy as np
import pytest
from integrations.learned import COLUMNS, HORIZON, method, metrics, table

from ode2opt import Logistic, Method, Schedule, solve
from ode2opt.integrations.sklearn import LogisticRegression
from ode2opt.solvers import methods


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A method's file in the current folder."""
    monkeypatch.chdir(tmp_path)
    method(metrics()["lowrank"], provenance={"seed": 3}).save("mine.safetensors")
    Method(None, "lpp", 1e-6, "family", 1.0).save("instant.safetensors")
    return "mine.safetensors"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of learned methods with one in it."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setattr(methods, "FOLDER", folder)
    measured = {"fresh": {"calls": {"method": 3.5, "lbfgs": 7.0}}}
    Method(table(), "logistic here", 1e-3, "family", 9.0, statistics=measured).save(
        folder / "logistic-here.safetensors"
    )
    return folder


def test_list_shows_what_comes_along(run_cli, shelf):
    code, out, _ = run_cli("methods", "list", "--json", "-")
    assert code == 0
    assert json.loads(out) == [
        {
            "name": "logistic-here", "family": "logistic here", "tol": 1e-3,
            "method": f"EIGAC with a learned table of {HORIZON} iterations", "variables": None,
            "calls": 3.5, "lbfgs_calls": 7.0,
        }
    ]  # fmt: skip
    code, out, _ = run_cli("methods", "list")
    assert code == 0
    assert "logistic-here" in out


def test_a_learned_method_is_known_by_its_name(run_cli, shelf, tmp_path):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 3)), rng.integers(0, 2, 40).astype(float)
    problem = Logistic(A, b, l2=0.1)
    loaded = Method.load(shelf / "logistic-here.safetensors")
    named, given = (solve(problem, method=chosen, tol=1e-3) for chosen in ("logistic-here", loaded))
    np.testing.assert_array_equal(named.x, given.x)
    assert named.method == given.method
    np.savez(tmp_path / "rows.npz", A=A, b=b)
    code, out, _ = run_cli(
        "solve", tmp_path / "rows.npz", "--problem", "logistic", "--l2", "0.1", "--tol", "1e-3",
        "--method", "logistic-here", "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["iterations"] == given.iterations
    code, out, _ = run_cli("methods", "show", "logistic-here")
    assert code == 0
    assert "logistic here" in out


def test_estimators_know_the_names_too(shelf):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    named, due = (
        LogisticRegression(solver=solver, C=0.1, tol=1e-6).fit(A, b).coef_
        for solver in ("logistic-here", "auto")
    )
    np.testing.assert_allclose(named, due, atol=1e-4)
    with pytest.raises(ValueError, match="did you mean 'logistic-here'"):
        LogisticRegression(solver="logistic-her").fit(A, b)


def test_show_tells_every_field(run_cli, file):
    code, out, _ = run_cli("methods", "show", file, "--json", "-")
    assert code == 0
    shown = json.loads(out)
    arrays, about = Method.load(file).described()
    assert shown.pop("arrays") == {name: list(values.shape) for name, values in arrays.items()}
    assert shown == json.loads(json.dumps(about))
    code, out, _ = run_cli("methods", "show", file)
    assert code == 0
    assert "provenance: seed" in out


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("--format", "json"), ["mine.json"]),
        (("--format", "csv", "--out", "x.csv"), ["x.csv"]),
        (("--format", "c"), ["ode2opt_mine.h", "ode2opt_mine_example.c"]),
        (("--format", "c", "--out", "a5a.h"), ["a5a.h", "ode2opt_a5a_example.c"]),
    ],
)
def test_export_writes_files(run_cli, file, tmp_path, options, written):
    before = {path.name for path in tmp_path.iterdir()}
    code, out, _ = run_cli("methods", "export", file, *options)
    assert code == 0
    assert sorted({path.name for path in tmp_path.iterdir()} - before) == sorted(written)
    assert all(f"Written: {name}" in out for name in written)
    if "c" in options:
        assert f'#include "{written[0]}"' in (tmp_path / written[1]).read_text()
        assert f"_N {COLUMNS} " in (tmp_path / written[0]).read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "instant.safetensors", "--format", "c"), "no table: it is L-BFGS"),
        (("export", "mine.safetensors", "--format", "c", "--out", "no/x.h"), "no folder"),
        (("export", "mine.safetensors"), "--format"),
        (("show", "lbfgs"), "lbfgs is built in"),
        (("show", "nobody"), "Unknown method 'nobody'"),
        (("show", "nobody.safetensors"), "no method file nobody.safetensors"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(refused, file, arguments, said):
    refused(said, "methods", *arguments)


def test_a_file_beats_no_built_in_name(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Method(Schedule.heavy_ball(0.1, 0.5, 9), "x", 1e-3, "family", 1.0).save("other")
    assert run_cli("methods", "show", "other")[0] == 0
    (tmp_path / "lbfgs").mkdir()
    assert "built in" in run_cli("methods", "show", "lbfgs")[2]
