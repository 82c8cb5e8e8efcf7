"""ode2opt train, and the commands that take what it makes."""

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from sklearn.datasets import load_digits

from ode2opt import Guard, Method, cli
from ode2opt.cli import train as train_command
from ode2opt.cli.app import app

SHORT = (
    "--coefficients", "spline", "--steps", 2, "--validate-every", 1, "--validation", 2,
    "--horizon", 150, "--tol", 5e-3,
)  # fmt: skip


def command(folder, *options):
    every = [*map(str, options), "--out", str(folder), "--json", "-", "--quiet"]
    return ["train", "logistic", "digits", *every]


def train_by_command(folder, *options):
    """Run the command itself; returns what it printed as JSON."""
    program = [sys.executable, "-c", "from ode2opt.cli import main; main()"]
    done = subprocess.run([*program, *command(folder, *options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def train_here(folder, *options):
    """Run the command in this process; returns what it printed as JSON."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["ode2opt", *command(folder, *options)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code, err.getvalue()
    assert err.getvalue() == ""
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run directory and its summary; a flow has no metric, and may be told so."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    return folder, train_here(folder, *SHORT, "--target", "flow", "--metric", "none")


def test_train_prints_one_json_document(trained):
    folder, document = trained
    assert document["run"] == str(folder)
    assert set(document) == {
        "run", "horizon", "validation", "test", "fresh", "statistical", "seconds", "mesh",
    }  # fmt: skip
    assert document["test"]["total"] == 20
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    assert Method.load(folder / "method.safetensors").metric is None


def test_bench_takes_learned_methods_under_their_names(trained, run_cli):
    file = trained[0] / "method.safetensors"
    code, out, _ = run_cli(
        "bench", "logistic", "digits", "--methods", "gd", "--method", file, "--method",
        f"mine={file}", "--instances", 2, "--max-iter", 60, "--jobs", 1, "--json", "-",
    )  # fmt: skip
    assert code == 0
    methods = json.loads(out)["methods"]
    assert list(methods) == ["gd", "method", "mine"]
    assert methods["method"]["measure_mean"] == methods["mine"]["measure_mean"]


def test_solve_takes_a_learned_method(trained, run_cli, tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "d.npz", A=X / 16, b=(y % 2).astype(float))
    code, out, _ = run_cli(
        "solve", tmp_path / "d.npz", "--problem", "logistic", "--method",
        trained[0] / "method.safetensors", "--tol", 1e-3, "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["success"]


def test_off_its_family_a_method_is_told_so(trained, run_cli, tmp_path):
    file = trained[0] / "method.safetensors"
    bench = ("bench", "lpp", "digits", "--methods", "gd", "--method", f"mine={file}",
             "--instances", 1, "--max-iter", 5, "--jobs", 1)  # fmt: skip
    code, out, _ = run_cli(*bench)
    assert code == 0
    assert "mine was learned for logistic digits (paper split)" in out
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "d.npz", A=X, b=(y % 2).astype(float))
    solve = ("solve", tmp_path / "d.npz", "--problem", "logistic", "--method", file, "--tol", 1e-2)
    assert "--scale-columns" in run_cli(*solve)[1]
    assert "--scale-columns" not in run_cli(*solve, "--scale-columns")[1]


def test_certify_takes_a_learned_method(trained, run_cli):
    file = trained[0] / "method.safetensors"
    code, out, _ = run_cli("certify", file, "logistic", "digits", "--instances", 1, "--json", "-")
    document = json.loads(out)
    assert document["method"] == str(file)
    margins, levels = document["margins"], document["levels"]
    assert set(margins) == {"convergence", "stability", "linear"}
    assert levels["linear"] == (margins["linear"] > 1e-6)
    tame = document["proof"] is not None or document["worst_case"]["value"] <= 0.5
    granted = levels["proved"] or (levels["flow"] and levels["linear"] and tame)
    assert code == (0 if granted else 1)


def test_what_is_wrong_is_said_in_one_sentence(trained, refused, tmp_path):
    folder, _ = trained
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes((folder / "method.safetensors").read_bytes()[:-100])
    bench = ("bench", "logistic", "digits", "--methods", "gd", "--instances", 1)
    file = folder / "method.safetensors"
    cases = [
        (("train", "logistic", "digits", "--out", folder), "holds a run already"),
        (("train", "logistic", "digits", "--out", folder, "--resume"), "it is finished"),
        (("train", "logistic", "digits", "--out", tmp_path, "--resume"), "nothing to resume"),
        (("train", "lpp", "digits", "--out", folder, "--resume"), "another configuration: name"),
        (("train", "logistic", "digits", "--out", folder, "--resume", "--lr", 1), "lr is None"),
        (("train", "logistic", "digits", "--alpha", 0.5, "--out", tmp_path / "a"), "alpha is 0.5"),
        (("train", "logistic", "digits", "--out", damaged), "is a file; --out names a folder"),
        ((*bench, "--method", damaged), "damaged or no method file"),
        ((*bench, "--method", tmp_path / "none.safetensors"), "There is no method file"),
        ((*bench, "--method", file, "--method", file), "The method method is named twice"),
        ((*bench, "--method", f"gd={file}"), "The method gd is named twice"),
        (("certify", "lbfsg", "logistic", "digits"), "did you mean 'lbfgs'"),
    ]
    for arguments, said in cases:
        refused(said, *arguments)
    assert not (tmp_path / "a").exists()


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """A learned sequence with a start of its own."""
    folder = tmp_path_factory.mktemp("fast") / "run"
    options = (
        "--target", "sequence", "--metric", "spectral", "--reference", "start", "--steps", 4,
        "--batch", 2, "--validation", 2, "--tol", 5e-3, "--start", "learned",
    )  # fmt: skip
    return folder, train_here(folder, *options)


def test_a_sequence_is_benched_from_its_own_start_and_earns_its_training_back(fast, run_cli):
    folder, document = fast
    assert document["test"]["reached"] == 20
    file = folder / "method.safetensors"
    common = ("bench", "logistic", "digits", "--methods", "lbfgs", "--method", f"mine={file}",
              "--instances", 2, "--max-iter", 60, "--tol", 5e-3, "--jobs", 1)  # fmt: skip
    code, out, _ = run_cli(*common, "--json", "-")
    assert code == 0
    mine, lbfgs = (json.loads(out)["methods"][name] for name in ("mine", "lbfgs"))
    assert mine["oracle_calls_mean"] < lbfgs["oracle_calls_mean"]
    saved = lbfgs["seconds_mean"] - mine["seconds_mean"]
    expected = None if saved <= 0 else pytest.approx(document["seconds"] / saved, abs=1)
    assert mine["earned_back"]["lbfgs"] == expected
    code, out, _ = run_cli(*common)
    assert code == 0
    assert "mine: " in out
    assert "earned back" in out


def test_a_sequence_is_certified_and_reported(fast, run_cli, tmp_path):
    folder = fast[0]
    code, out, _ = run_cli(
        "certify", folder / "method.safetensors", "logistic", "digits", "--instances", 1,
        "--json", "-",
    )  # fmt: skip
    document = json.loads(out)
    assert document["margins"]["convergence"] is None  # a sequence has no flow
    if not document["levels"]["linear"]:
        assert code == (0 if document["levels"]["proved"] else 1)
    code, out, _ = run_cli("report", folder)
    assert code == 0
    page = (folder / "report.html").read_text()
    assert "The metric" in page
    assert Method.load(folder / "method.safetensors").words in page


@pytest.fixture(scope="module")
def instant(tmp_path_factory):
    """A run without steps."""
    folder = tmp_path_factory.mktemp("instant") / "run"
    options = ("--target", "sequence", "--steps", 0, "--validation", 2, "--tol", 5e-3)
    return folder, train_by_command(folder, *options)


def test_without_steps_there_is_no_table(instant, run_cli):
    folder, document = instant
    assert document["horizon"] == 0
    assert document["fresh"]["reached"]["method"] == 20
    calls = document["fresh"]["calls"]
    assert calls["method"] < 0.5 * calls["lbfgs"]
    assert set(document["held_out"]["calls"]) == {"method", "lbfgs", "auto"}
    code, out, err = run_cli(
        "train", "logistic", "digits", "--target", "sequence", "--steps", 0, "--validation", 2,
        "--tol", 5e-3, "--out", folder.parent / "again",
    )  # fmt: skip
    assert code == 0, err
    said = " ".join(out.split())
    assert "L-BFGS in its metric" in said
    assert "On 20 fresh test problems it takes, beside L-BFGS, " in said


def test_certify_says_that_there_is_no_table(instant, run_cli, refused, tmp_path):
    file = instant[0] / "method.safetensors"
    command = ("certify", file, "logistic", "digits", "--instances", 2)
    code, out, err = run_cli(*command, "--json", "-")
    assert code == 1
    document = json.loads(out)
    assert document["levels"] == {
        "flow": False, "linear": False, "proved": False, "guarded": True,
    }  # fmt: skip
    assert document["margins"] == {"convergence": None, "stability": None, "linear": None}
    assert (document["instances"], document["worst_case"]) == (2, None)
    assert document["method"] == str(file)
    assert "only the guard's promise holds" in err
    code, out, _ = run_cli(*command)
    assert code == 1
    said = " ".join(out.split())
    assert said.startswith("There is no table to certify: the method is L-BFGS in its metric")
    assert "the guard hands over to a method that converges" in said
    refused("no table to draw", *command, "--figure", tmp_path / "none.png")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "spectral"), "metric spectral is for --target sequence; a flow has none."),
        (("--target", "sequence", "--alpha", 5), "alpha is for --target flow; a sequence does not"),
        (("--target", "sequence", "--alpha", 6), "alpha is for --target flow"),  # the default, too
        (("--target", "sequence", "--learn-alpha"), "learn_alpha is for --target flow"),
        (
            ("--target", "sequence", "--coefficients", "neural"),
            "coefficients neural is for --target",
        ),
        (("--target", "sequence", "--scale", "instance"), "a sequence has family."),
        (("--steps", 0), "steps is 0: it must be a whole number, 1 or more."),
        (("--momentum", 1), "momentum is 1: it must be at least 0 and below 1."),
        (("--kappa", 1.5), "kappa is 1.5: it must be above 0 and at most 1."),
        (("--safety", 0.5), "safety is 0.5: it must be at least 1, and finite."),
        (("--clip", 0), "clip is 0: it must be a positive number."),
        (("--clip", "some"), "'some' is neither a number nor none"),
        (("--decay-power", 0.5), "decay_power is 0.5: it must be above 0.5 and at most 1."),
        (
            ("--target", "sequence", "--protocol", "paper"),
            "protocol paper is for --target flow; a sequence has its own settings.",
        ),
        (
            ("--target", "sequence", "--knots", 1),
            "knots is 1: it must be a whole number, 2 or more.",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_sentence(options, said, refused, tmp_path):
    refused(said, "train", "logistic", "digits", "--out", tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


CONTRACT = """
    target protocol metric reference start memory knots coefficients activation split size tol
    steps batch out resume seed blocks no-blocks optimizer lr momentum decay decay-power clip
    penalty penalty-growth margin alpha learn-alpha h t0 substeps C kappa lam scale estimator
    safety horizon validate-every validation patience keep units p l2 intercept label weights
    missing drop columns decimal cluster workers json overwrite quiet help certified tail l1
    l1-ratio
"""


def test_the_command_has_the_options_of_its_contract_the_five_that_matter_first():
    command = typer.main.get_command(app).commands["train"]
    with command.make_context("train", ["logistic", "digits"]) as context:
        found = [each for each in command.get_params(context) if each.param_type_name == "option"]
    flags = [flag for each in found for flag in (*each.opts, *each.secondary_opts)]
    assert sorted(flags) == sorted(f"--{name}" for name in CONTRACT.split())
    assert {each.name for each in found[:5]} == {"target", "tol", "steps", "out_dir", "resume"}
    assert all(each.help for each in found)
    assert len({each.rich_help_panel for each in found[5:-1]}) > 3


def test_a_certified_table_is_shown_without_penalties():
    """It has a proof in the place of P and Q."""
    counts = {"complexity": 3.0, "worst": 4, "P": None, "Q": None, "handovers": 0, "total": 5}
    method = SimpleNamespace(
        words="a table", instant=False, provenance={"options": {}}, metric=None, guard=Guard(),
        statistics={"validation": counts, "test": counts},
    )  # fmt: skip
    facts = train_command._facts(method, Path("run"))
    assert facts["handed over by the guard"] == "0 of 5"
    assert "P, Q on them" not in facts


def test_a_table_with_a_prox_is_learned_and_used(tmp_path, run_cli, refused):
    short = ("--batch", 1, "--validation", 1, "--steps", 2, "--horizon", 40, "--tol", 1e-2)
    found = train_here(tmp_path / "run", "--target", "sequence", "--l1", 0.02, "--size", 60, *short)
    method = Method.load(tmp_path / "run" / "method.safetensors")
    assert found["horizon"] == method.horizon == len(method.proximal)
    assert found["test"]["reached"] == found["fresh"]["problems"] == 20
    other = command(tmp_path / "run", "--target", "sequence", "--l1", 0.5, *short, "--resume")
    refused("another configuration", *other)
    certify = ("certify", tmp_path / "run" / "method.safetensors", "logistic", "digits")
    certify = (*certify, "--size", 60, "--instances", 3, "--json", "-")
    code, out, _ = run_cli(*certify, "--l1", 0.02)
    told = json.loads(out)
    assert (code, told["statistical"]["problems"]) == (1, 3)  # nothing but the guard's promise
    assert "FISTA" in told["verdict"][0]
    other = ("certify", "nag", *certify[2:], "--l1", 0.02)
    for given, words in ((certify, "was learned with a penalty"), (other, "knows no penalty")):
        refused(words, *given)


def test_a_flow_with_a_penalty_is_refused_in_a_sentence(tmp_path, refused):
    refused("sequence", *command(tmp_path / "run", "--l1", 0.1))
