"""`prove`: what is said of built-in methods, learned ones and their files."""

import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import ode2opt.proofs as package
from ode2opt import InputError, Method, Schedule
from ode2opt.proofs import check_proof
from ode2opt.proofs.exact import exact_proof
from ode2opt.proofs.table import exact_rows, schedule_of
from ode2opt.proofs.theorem import classical_rows, tail_rows
from ode2opt.solvers import METHODS
from ode2opt.solvers.method_file import SCALES
from ode2opt.study.prove import prove

FIELDS = {"method", "K", "tail", "tau", "ratio_to_nesterov", "seconds"}


@pytest.fixture(scope="module")
def carrying():
    """A method near OGM with its tail, whose file carries the proof."""
    rng = np.random.default_rng(0)
    rows = np.array(classical_rows("ogm", 10), float) * (1 + 0.03 * rng.standard_normal((10, 3)))
    rows[0, [0, 2]] = 0
    schedule = schedule_of([*rows.tolist(), *tail_rows("ogm", Fraction(11, 2), 15)])
    proved = exact_proof(exact_rows(schedule)[:10], tail="ogm")
    return Method(
        schedule=schedule, family="test", tol=1e-4, scale="family", family_scale=2.0,
        proof=proved.document,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ratio"),
    [("nag", 1.0), ("ogm", 0.5), ("nag-monitored", 42**2 / (41 * 44)), ("gd", 441 / 81)],
)
def test_built_in_methods_have_their_known_bounds(name, ratio):
    """Nesterov's, half of it, 2/((N+1)(N+4)) and 1/(4N+2), all at N = 40 or 39."""
    proof = prove(name)
    assert proof.proved
    assert proof.summary()["ratio_to_nesterov"] == pytest.approx(ratio, rel=1e-6)
    assert set(proof.summary()) == FIELDS


@pytest.mark.parametrize("name", ["eigac-c2", "eigac-c4"])
def test_a_bound_that_is_worse_than_the_start_is_proved_and_said_to_be_so(name):
    proof = prove(name, steps=12)
    assert not proof.proved
    assert proof.found.value > 0.5
    assert check_proof.bound(check_proof.ExactProof(dict(proof.found.document))) == proof.found.tau
    said = " ".join(proof.words())
    assert proof.found.words in said
    assert "Proved in exact arithmetic" in said
    assert "no better than the start" in said
    assert "not proved" not in said.lower()


def test_a_worst_case_that_explodes_is_not_proved_and_said():
    proof = prove("eigac-c4", steps=25)
    assert (proof.proved, proof.found) == (False, None)
    assert "take fewer steps" in proof.words()[0]


def test_a_files_proof_is_checked(carrying, tmp_path):
    carrying.save(tmp_path / "m.safetensors")
    proof = prove(tmp_path / "m.safetensors")
    assert proof.proved
    assert proof.found.proof.tail == "ogm"
    assert proof.summary()["K"] == 10
    assert proof.summary()["tau"] >= proof.found.tau
    assert "divides the table by 2" in proof.words()[-1]


def test_a_proof_for_another_table_is_refused(carrying):
    a, c, d = (np.array(getattr(carrying.schedule, key)) for key in "acd")
    a[4] *= 1 + 1e-15
    with pytest.raises(InputError, match="another table: they differ at step 3"):
        prove(carrying.replace(schedule=Schedule(a, c, d)))
    with pytest.raises(InputError, match="about 10 steps, the table has 5"):
        prove(carrying.replace(schedule=carrying.schedule.first(6)))
    a[4], d[14] = carrying.schedule.a[4], 0.5
    with pytest.raises(InputError, match="go on as its proof says: they differ at step 14"):
        prove(carrying.replace(schedule=Schedule(a, c, d)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"w": ["-1"] * 10}, "w_0 is negative"),
        ({"theta": "nan"}, "a fraction in quotes"),
        ({"rows": []}, "not a list of 1 to 1000"),
        ({"tau": "0"}, "no meaning"),
    ],
)
def test_a_damaged_proof_is_refused(carrying, change, said):
    with pytest.raises(InputError, match=said):
        prove(carrying.replace(proof=dict(carrying.proof) | change))


def test_files_without_a_proof_are_as_before(carrying, tmp_path):
    path = tmp_path / "m.safetensors"
    carrying.replace(proof=None).save(path)
    assert b"proof" not in path.read_bytes()
    assert Method.load(path).proof is None
    carrying.save(path)
    assert Method.load(path).proof == carrying.proof


def test_a_proof_that_is_no_object_is_refused(carrying, tmp_path):
    path = tmp_path / "m.safetensors"
    carrying.save(path)
    text = path.read_bytes()
    start = text.index(b'\\"proof\\": {')
    assert text[start:].startswith(b'\\"proof\\": {')
    arrays = load_file(path)
    header = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])["__metadata__"]
    (key,) = header
    about = json.loads(header[key]) | {"proof": "yes"}
    save_file(arrays, path, {key: json.dumps(about)})
    with pytest.raises(InputError, match="its proof is 'yes', not an object"):
        Method.load(path)


@pytest.mark.parametrize(
    ("method", "steps", "said"),
    [
        ("lbfgs", None, "no table of steps to prove"),
        ("nag", 161, "1 to 160 steps"),
        ("nag", 0, "steps is 0"),
        (Schedule.gradient_descent(1.0, 5), 5, "has 4 steps"),
        (Schedule.gradient_descent(1.0, 1), None, "does not move"),
        ("nagg", None, "did you mean 'nag'"),
    ],
)
def test_bad_input_is_named(method, steps, said):
    with pytest.raises(InputError, match=said):
        prove(method, steps=steps)


def test_the_command_writes_a_proof_that_a_copy_of_the_checker_takes(run_cli, tmp_path):
    file = tmp_path / "proof.json"
    code, out, _ = run_cli("prove", "gd", "--steps", 7, "--out", file)
    assert code == 0
    assert "after N = 7 steps" in out
    assert "Proved in exact arithmetic" in out
    shutil.copy(Path(package.__path__[0]) / "check_proof.py", tmp_path)
    command = [sys.executable, "-I", "-S", "check_proof.py", "proof.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, out.splitlines()[0])


def test_the_command_answers_in_json_and_by_its_exit_code(run_cli, tmp_path):
    code, out, _ = run_cli("prove", "ogm", "--json", "-")
    document = json.loads(out)
    assert code == 0
    assert set(document) == FIELDS
    assert (document["method"], document["K"], document["tail"]) == ("ogm", 40, "ogm")
    assert (document["tau"], document["ratio_to_nesterov"]) == (0.5, 0.5)
    code, out, error = run_cli("prove", "eigac-c2", "--steps", 10, "--json", tmp_path / "p.json")
    assert code == 1
    said = "Error: The bound of eigac-c2 is proved, but no better than the start."
    assert said in " ".join(error.split())
    assert json.loads((tmp_path / "p.json").read_text())["tau"] > 0.5
    code, _, error = run_cli("prove", "eigac-c4", "--steps", 25)
    assert (code, "eigac-c4 is not proved." in error) == (1, True)
    assert run_cli("prove", "lbfgs")[0] == 2


@pytest.mark.parametrize("scale", SCALES)
def test_what_a_solve_divides_by_is_told_for_every_scale(scale):
    family_scale = 2.0 if scale == "family" else None
    table = METHODS["nag"].schedule(6)
    method = Method(table, "test", 1e-4, scale, family_scale=family_scale)
    assert prove(method).notes[0].startswith("A solve divides the table by ")
