"""What commands may write to: no input is replaced, and nothing that is not theirs."""

import io
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import typer
from integrations.learned import method

from ode2opt import Memory
from ode2opt.base.errors import InputError
from ode2opt.cli import outputs
from ode2opt.cli.app import app

ROWS = 2 * "1,2,0\n3,1,1\n2,2,0\n4,1,1\n1,1,1\n2,3,0\n"
SOLVE = ("--problem", "logistic", "--l2", "0.1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with rows, a method, parts and notes of the user's, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(ROWS)
    (tmp_path / "parts").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "parts" / name).write_text(ROWS)
    method(None).save("mine.safetensors")
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def link(kind):
    return {"symlink": os.symlink, "hard link": os.link}[kind]


INPUT_AS_OUTPUT = {
    "out": (["solve", "data.csv", *SOLVE, "--out", "data.csv"], "--out data.csv is the input"),
    "json": (["solve", "data.csv", *SOLVE, "--json", "data.csv"], "--json data.csv is the input"),
    "memory": (["solve", "data.csv", *SOLVE, "--memory", "data.csv"], "--memory data.csv is the"),
    "spelling": (["solve", "data.csv", *SOLVE, "--out", "parts/../data.csv"], "is the input"),
    "method": (
        ["solve", "data.csv", *SOLVE, "--method", "mine.safetensors", "--out", "mine.safetensors"],
        "is the input mine.safetensors",
    ),
    "memory is the method": (
        ["solve", "data.csv", *SOLVE, "--method", "mine.safetensors", "--memory",
         "mine.safetensors"], "is the input mine.safetensors",
    ),
    "part of a folder": (["solve", "parts", *SOLVE, "--out", "parts/a.csv"], "input parts/a.csv"),
    "part of a pattern": (["solve", "parts/*.csv", *SOLVE, "--out", "parts/b.csv"], "parts/b.csv"),
    "bench": (
        ["bench", "logistic", "data.csv", "--instances", "1", "--json", "data.csv"], "is the input",
    ),
    "bench's method": (
        ["bench", "logistic", "digits", "--method", "m=mine.safetensors", "--json",
         "mine.safetensors"], "is the input",
    ),
    "certify": (["certify", "nag", "logistic", "data.csv", "--json", "data.csv"], "is the input"),
    "prove": (["prove", "mine.safetensors", "--out", "mine.safetensors"], "is the input"),
    "figure": (
        ["certify", "mine.safetensors", "logistic", "digits", "--figure", "mine.safetensors"],
        "is the input",
    ),
    "train": (["train", "logistic", "data.csv", "--json", "data.csv"], "is the input"),
    "train's memory": (
        ["train", "logistic", "digits", "--memory", "mine.safetensors", "--json",
         "mine.safetensors"], "is the input",
    ),
    "info": (["data", "info", "data.csv", "--json", "data.csv"], "is the input"),
    "show": (["methods", "show", "mine.safetensors", "--json", "mine.safetensors"], "is the input"),
    "export": (
        ["methods", "export", "mine.safetensors", "--format", "json", "--out", "mine.safetensors"],
        "is the input",
    ),
}  # fmt: skip


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("case", INPUT_AS_OUTPUT)
def test_no_output_replaces_an_input(refused, here, case, overwrite):
    arguments, said = INPUT_AS_OUTPUT[case]
    before = contents(here)
    refused(said, *arguments, *overwrite)
    assert contents(here) == before


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
@pytest.mark.parametrize("given", ["data.csv", "other.csv"])
def test_a_link_to_an_input_is_that_input(refused, here, kind, given):
    link(kind)(here / "data.csv", here / "other.csv")
    other = {"data.csv": "other.csv", "other.csv": "data.csv"}[given]
    before = contents(here)
    refused(
        f"--out {other} is the input {given}", "solve", given, *SOLVE, "--out", other,
        "--overwrite",
    )  # fmt: skip
    assert contents(here) == before


def test_a_named_dataset_or_method_is_an_input_too(refused, here, real_data, monkeypatch):
    for name in ("phishing", "a5a"):
        shutil.copy(real_data / name, here)
    shutil.copy(real_data / "a5a.t", here)
    monkeypatch.setenv("ODE2OPT_DATA", str(here))
    for arguments in (
        ["bench", "lpp", "a5a", "--json", "a5a.t"],
        ["data", "info", "phishing", "--json", "phishing"],
        ["train", "lpp", "a5a", "--json", "a5a"],
    ):
        before = contents(here)
        refused("is the input", *arguments, "--overwrite")
        assert contents(here) == before


def test_predictions_replace_neither_the_model_nor_the_rows(run_cli, here):
    model, predict = "model.safetensors", ["predict", "model.safetensors", "data.csv"]
    assert run_cli("solve", "data.csv", *SOLVE, "--out", model)[0] == 0
    shutil.copy("data.csv", "test.csv")
    before = contents(here)
    for arguments in (
        [*predict, "--out", "data.csv"],
        [*predict, "--json", model],
        ["coefficients", model, "--json", model],
        ["coefficients", model, "--out", f"./{model}"],
        ["solve", "data.csv", *SOLVE, "--test", "test.csv", "--out", "test.csv"],
    ):
        code, out, err = run_cli(*arguments, "--overwrite")
        assert (code, out, "is the input" in " ".join(err.split())) == (2, "", True)
    for arguments in (
        [*predict, "--out", "mine.csv"],
        ["coefficients", model, "--out", "mine.csv"],
    ):
        (here / "mine.csv").write_text("mine\n")
        assert "or add --overwrite" in " ".join(run_cli(*arguments)[2].split())
        assert run_cli(*arguments, "--overwrite")[0] == 0
        assert run_cli(*arguments)[0] == 0  # now it is an earlier output
    (here / "mine.csv").unlink()
    assert contents(here) == before


NOT_OURS = {
    "solve --out": ["solve", "data.csv", *SOLVE, "--out", "notes.txt"],
    "solve --json": ["solve", "data.csv", *SOLVE, "--json", "notes.txt"],
    "solve's kept point": ["solve", "data.csv", *SOLVE, "--out", "x.npz"],
    "bench": ["bench", "logistic", "data.csv", "--json", "notes.txt"],
    "certify": ["certify", "nag", "logistic", "data.csv", "--json", "notes.txt"],
    "figure": ["certify", "nag", "logistic", "data.csv", "--figure", "notes.png"],
    "prove": ["prove", "nag", "--out", "notes.txt"],
    "train": ["train", "logistic", "data.csv", "--json", "notes.txt"],
    "list": ["data", "list", "--json", "notes.txt"],
    "info": ["data", "info", "data.csv", "--json", "notes.txt"],
    "methods": ["methods", "list", "--json", "notes.txt"],
    "show": ["methods", "show", "mine.safetensors", "--json", "notes.txt"],
    "export": ["methods", "export", "mine.safetensors", "--format", "json", "--out", "notes.txt"],
    "export's example": ["methods", "export", "mine.safetensors", "--format", "c"],
    "demo": ["demo", "--out", "."],
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_a_file_of_the_users_is_not_replaced_unasked(refused, here, case):
    for name in ("notes.png", "x.npz.partial", "ode2opt_mine_example.c", "report.html"):
        (here / name).write_text("mine too")
    before = contents(here)
    refused("or add --overwrite", *NOT_OURS[case])
    assert contents(here) == before


def test_a_study_is_not_made_in_a_folder_with_other_results(refused, here):
    pytest.importorskip("jax")
    for name in ("report.html", "tables", "figures", "results.json", "cache"):
        folder = here / f"with {name}"
        folder.mkdir()
        (folder / name).write_text("mine")
        before = contents(here)
        line = ("reproduce", "--quick", "--only", "table2", "--out", folder)
        refused(f"holds {name} of something else", *line)
        assert contents(here) == before


AGAIN = {
    "solve": ["solve", "data.csv", *SOLVE, "--out", "x.npz", "--json", "x.json", "--memory", "m.s"],
    "list": ["data", "list", "--json", "x.json"],
    "info": ["data", "info", "data.csv", "--json", "x.json"],
    "methods": ["methods", "list", "--json", "x.json"],
    "show": ["methods", "show", "mine.safetensors", "--json", "x.json"],
    "export c": ["methods", "export", "mine.safetensors", "--format", "c"],
    "export json": ["methods", "export", "mine.safetensors", "--format", "json"],
    "export csv": ["methods", "export", "mine.safetensors", "--format", "csv"],
    "bench": ["bench", "logistic", "data.csv", "--methods", "gd", "--instances", "1", "--jobs", "1",
              "--max-iter", "2", "--json", "x.json"],
    "certify": ["certify", "eigac-c1", "logistic", "data.csv", "--instances", "1", "--max-iter",
                "3", "--json", "x.json"],
}  # fmt: skip


@pytest.mark.parametrize("case", AGAIN)
def test_the_same_command_may_run_again(run_cli, here, case):
    first = run_cli(*AGAIN[case])[0]
    made = set(contents(here))
    assert first in (0, 1)
    assert run_cli(*AGAIN[case])[0] == first
    assert set(contents(here)) == made


def test_a_result_of_another_command_is_not_replaced_unasked(run_cli, refused, here):
    assert run_cli("data", "list", "--json", "x.json")[0] == 0
    kept = (here / "x.json").read_bytes()
    refused("was not written by this command", "solve", "data.csv", *SOLVE, "--json", "x.json")
    assert (here / "x.json").read_bytes() == kept
    assert run_cli("solve", "data.csv", *SOLVE, "--json", "x.json", "--overwrite")[0] == 0
    assert json.loads((here / "x.json").read_text())["success"]


def test_an_empty_file_may_be_replaced(run_cli, here):
    (here / "x.npz").touch()
    assert run_cli("solve", "data.csv", *SOLVE, "--out", "x.npz")[0] == 0
    assert "x" in np.load(here / "x.npz")


@pytest.mark.parametrize(
    "same",
    [
        ["--out", "x.npz", "--json", "x.npz"],
        ["--out", "x.npz", "--memory", "./x.npz"],
        ["--json", "m.safetensors", "--memory", "m.safetensors"],
        ["--out", "x.npz", "--memory", "x.npz.partial"],
        ["--out", "Größe.npz", "--json", "größe.npz"],  # one file where case does not count
    ],
)
def test_two_outputs_are_two_files(refused, here, same):
    before = contents(here)
    refused("are the same file", "solve", "data.csv", *SOLVE, *same, "--overwrite")
    assert contents(here) == before


def test_the_case_of_a_name_counts_where_the_system_says_so(here, monkeypatch):
    """Of files that exist the system is asked: here they are two, there they would be one."""
    asked = [outputs.Output("--json", "Data.csv", outputs.unknown)]
    (here / "Data.csv").touch()
    one = os.path.samefile("data.csv", "Data.csv")
    if not one:
        outputs.check_outputs(asked, ["data.csv"])
        monkeypatch.setattr("os.path.samefile", lambda a, b: True)
    with pytest.raises(InputError, match=re.escape("--json Data.csv is the input data.csv")):
        outputs.check_outputs(asked, ["data.csv"])


def test_devices_may_be_named_twice(run_cli, here):
    code, *_ = run_cli("solve", "data.csv", *SOLVE, "--out", os.devnull, "--json", os.devnull)
    assert code == 0


LOOPS = {
    "out": ["solve", "data.csv", *SOLVE, "--out", "loop.npz", "--overwrite"],
    "json": ["solve", "data.csv", *SOLVE, "--json", "loop.npz"],
    "memory": ["solve", "data.csv", *SOLVE, "--memory", "loop.npz"],
    "method": ["methods", "export", "mine.safetensors", "--format", "json", "--out", "loop.npz"],
    "proof": ["prove", "nag", "--out", "loop.npz"],
    "folder": ["train", "logistic", "data.csv", "--steps", "2", "--out", "loop.npz"],
    "inside": ["prove", "nag", "--out", "loop.npz/proof.json"],
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_link_that_leads_back_to_itself_is_refused_and_stays(run_cli, here, case):
    os.symlink("there.npz", "loop.npz")
    os.symlink("loop.npz", "there.npz")
    code, _, told = run_cli(*LOOPS[case])
    assert code == 2, told
    assert told.count("\n") == 1
    assert "leads back to itself" in told or case == "inside"
    assert os.readlink("loop.npz") == "there.npz"
    assert os.readlink("there.npz") == "loop.npz"


def test_saving_from_python_leaves_such_a_link_too(here):
    os.symlink("loop", "loop")
    for save in (method(None).save, Memory().save, Memory().update_file):
        with pytest.raises(InputError, match="leads back to itself"):
            save("loop")
    assert os.readlink("loop") == "loop"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_gets_the_whole_solution(run_cli, here):
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit((here / "pipe").read_bytes)
        code, *_ = run_cli("solve", "data.csv", *SOLVE, "--out", "pipe")
    assert code == 0
    assert np.load(io.BytesIO(read.result()))["x"].shape == (2,)


@pytest.mark.parametrize("option", ["--out", "--json", "--memory"])
def test_where_nothing_can_be_written_it_is_told_before_the_work(
    run_cli, refused, here, monkeypatch, option
):
    def no_work(*args, **kwargs):
        raise AssertionError("the rows were read")

    monkeypatch.setattr("ode2opt.data.files.read_table", no_work)
    refused("There is no folder", "solve", "data.csv", *SOLVE, option, "missing/x")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    refused(
        "x cannot be written: No space left on device.", "solve", "data.csv", *SOLVE, option, "x",
    )  # fmt: skip
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full())
    for arguments in (["demo", "--out", "new/x"], ["train", "logistic", "digits", "--out", "new"]):
        code, _, err = run_cli(*arguments)
        assert (code, "cannot be written: No space left" in " ".join(err.split())) == (2, True)


def test_every_command_that_writes_a_file_has_overwrite():
    """Files are named by --out, --json and --figure; folders of runs have rules of their own."""
    folders = {"reproduce"}
    writing = [
        (name, {flag for each in command.params for flag in each.opts})
        for name, command in every(typer.main.get_command(app))
        if name not in folders
    ]
    assert len(writing) > 9
    for name, flags in writing:
        assert ("--overwrite" in flags) == bool(flags & {"--out", "--json", "--figure"}), name


def every(command, name=""):
    for part, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from every(each, f"{part} ")
        else:
            yield name + part, each
