"""The learned methods that come with the package are what was made, and do what they say."""

import hashlib
import json

import numpy as np
import pytest

from ode2opt import Family, InputError, Method, Quadratic, Schedule, solve
from ode2opt.solvers.methods import FOLDER, SUFFIX, by_name, learned_names

FAMILIES = [
    f"{problem}-{dataset}"
    for problem in ("logistic", "lpp")
    for dataset in ("a5a", "covtype20k", "mushrooms", "phishing", "separable", "w3a")
]


def test_all_twelve_families_are_there():
    assert learned_names() == sorted(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_file_is_the_one_that_was_made(name):
    due = json.loads((FOLDER / "hashes.json").read_text())
    assert hashlib.sha256((FOLDER / f"{name}{SUFFIX}").read_bytes()).hexdigest() == due[name]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_file_says_where_it_comes_from_and_what_was_measured(name):
    method = by_name(name)
    assert isinstance(method, Method)
    assert method.family == name.replace("-", " ")
    about = method.provenance
    assert about["finished"]
    assert about["licence"] == "MIT"
    assert about["command"].startswith(f"ode2opt train {method.family} --target sequence")
    assert about["family"]["split"] == "shuffled"
    assert "rows of covtype" in about["data"] or "covtype" not in name
    fresh = method.statistics["fresh"]
    assert fresh["reached"]["method"] == fresh["problems"]
    assert 0 < fresh["calls"]["method"] < fresh["calls"]["lbfgs"]


@pytest.mark.parametrize("name", ["logistic-a5a", "lpp-separable"])
def test_a_name_solves_problems_of_the_family(real_data, name):
    problem, dataset = name.split("-")
    family = Family.from_dataset(problem, dataset, split="shuffled")
    assert by_name(name).provenance["family"]["hash"] == family.fingerprint()
    chosen = family.sample(10**6)
    result = solve(chosen, method=name, tol=3e-4)
    assert result.success
    assert result.oracle_calls < solve(chosen, method="lbfgs", tol=3e-4).oracle_calls


def test_a_method_is_a_name_a_path_a_method_or_a_schedule(tmp_path):
    problem, table = Quadratic(np.diag([1.0, 4.0]), np.ones(2)), Schedule.heavy_ball(1.0, 0.5, 60)
    made = Method(table, "by hand", tol=1e-6, scale="family", family_scale=4.0)
    made.save(tmp_path / "mine.safetensors")
    due = solve(problem, method=made)
    np.testing.assert_array_equal(solve(problem, method=tmp_path / "mine.safetensors").x, due.x)
    with pytest.raises(InputError, match=r"pathlib.Path\('mine.safetensors'\)"):
        solve(problem, method="mine.safetensors")
    with pytest.raises(InputError, match="nowhere"):
        solve(problem, method=tmp_path / "nowhere")
    (tmp_path / "logistic").write_text("not a method")
    with pytest.raises(InputError, match="Unknown method"):
        solve(problem, method=str(tmp_path / "logistic"))  # a string never opens a file


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(InputError, match="did you mean 'logistic-a5a'"):
        by_name("logistic-a6a")


def test_all_files_together_are_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 4_000_000
