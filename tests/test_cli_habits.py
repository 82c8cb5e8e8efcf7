"""Habits of a command line: -h, python -m, completion, lines in a pipe, how to go on."""

import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from ode2opt import __version__
from ode2opt.base import terminal
from ode2opt.cli.app import app
from ode2opt.executor import LocalExecutor

ROWS = "1,2,0\n3,1,1\n2,2,0\n4,1,1\n1,1,1\n2,3,0\n"
SOLVE = ("--problem", "logistic", "--l2", "0.1")


def every(command, words=()):
    """All commands with the words that call them."""
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield (*words, name)
            yield from every(one, (*words, name))
        else:
            yield (*words, name)


@pytest.mark.parametrize("words", [(), *every(typer.main.get_command(app))], ids=" ".join)
def test_h_is_help(run_cli, words):
    short, long = run_cli(*words, "-h"), run_cli(*words, "--help")
    assert short == long
    assert short[0] == 0
    assert " ".join(("Usage: ode2opt", *words)) in short[1]
    if words not in ((), ("data",), ("methods",)):
        assert "Example: ode2opt" in short[1]


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "ode2opt", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


OFFERED = {
    "ode2opt so": {"solve"},
    "ode2opt bench l": {"logistic", "lpp", "leastsquares"},
    "ode2opt train logistic a5": {"a5a"},
    "ode2opt data info breast": {"breast_cancer"},
    "ode2opt solve x.csv --problem hub": {"huber"},
    "ode2opt solve x.csv --method lb": {"lbfgs", "lbfgs-scipy"},
    "ode2opt certify eigac": {"eigac-c1", "eigac-c2", "eigac-c4"},
    "ode2opt bench lpp a5a --methods nag,ig": {"nag,igahd"},
    "ode2opt bench lpp a5a --methods nag,mem": {"nag,memory"},
    "ode2opt methods show logistic-a": {"logistic-a5a"},
    "ode2opt solve --overw": {"--overwrite"},
    "ode2opt solve rows": set(),  # the shell offers files
}


@pytest.mark.parametrize("line", OFFERED)
def test_a_shell_is_offered_names(run_cli, monkeypatch, line):
    monkeypatch.setenv("_ODE2OPT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    code, out, _ = run_cli()
    assert (code, set(out.split())) == (0, OFFERED[line])


def test_completion_can_be_installed(run_cli, monkeypatch):
    assert "--install-completion" in run_cli("--help")[1]
    monkeypatch.setenv("_ODE2OPT_COMPLETE", "source_bash")
    code, out, _ = run_cli()
    assert code == 0
    assert "complete -o default -F _ode2opt_completion ode2opt" in out


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    time = SimpleNamespace(now=0.0)
    time.monotonic = lambda: time.now
    monkeypatch.setattr(terminal, "time", time)
    return time


def step(done, validation=None):
    line = {"stopping_time": 2.5, "P": 0.0, "Q": None}
    found = None if validation is None else SimpleNamespace(complexity=validation, feasible=True)
    return SimpleNamespace(line=line, validation=found, best=validation, done=done, steps=500)


@pytest.mark.parametrize("quiet", [False, True])
def test_training_in_a_pipe_tells_a_line_a_minute(clock, capsys, quiet):
    with terminal.live_training("logistic a5a", 500, quiet) as (callback, note):
        note("solving problems to learn from")
        for done in range(1, 501):  # a second each
            clock.now += 1
            callback(step(done, 31.0 if done == 5 else None))
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == (0 if quiet else 9)
    if not quiet:
        assert lines[0] == (
            "logistic a5a: step 10 of 500, T 2.5  P 0  Q -  validation 31.0 (best 31.0), after 10 s"
        )
        assert lines[1].startswith("logistic a5a: step 70 of 500")
        assert lines[-1].endswith("after 8 min 10 s")


def test_a_short_command_is_quiet_in_a_pipe(clock, capsys):
    with terminal.live_training("logistic a5a", 500) as (callback, _):
        clock.now = 9.9
        callback(step(500))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_parts_that_are_read_are_told_in_a_pipe(run_cli, clock, tmp_path, monkeypatch, quiet):
    for i in range(4):
        (tmp_path / f"{i}.csv").write_text(ROWS)
    counted = LocalExecutor._watched

    def slow(self, looked, total):
        for one in counted(self, looked, total):
            clock.now += 40
            yield one

    monkeypatch.setattr(LocalExecutor, "_watched", slow)
    code, out, err = run_cli("solve", tmp_path, *SOLVE, "--json", "-", *quiet)
    assert code == 0
    assert out.startswith("{")
    told = [line.rpartition(": ")[2] for line in err.splitlines()]
    assert told == ([] if quiet else ["2 of 4 parts, after 40 s", "4 of 4 parts, after 2 min 0 s"])


def test_after_ctrl_c_solve_names_the_command_that_goes_on(run_cli, tmp_path, ctrl_c, monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5)) * np.geomspace(1, 1e-4, 5)
    np.savez(tmp_path / "a b.npz", A=A, b=(A @ np.ones(5) > 0).astype(float))
    solve = ("solve", tmp_path / "a b.npz", "--problem", "logistic", "--method", "gd", "--tol",
             "1e-3", "--l2", "0.01", "--out", tmp_path / "x.npz")  # fmt: skip
    seen = []

    def interrupt(kept, progress):
        seen.append(progress)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("ode2opt.cli.fitted.KeptPoint.observe", interrupt)
        code, _, err = run_cli(*solve)
    assert code == 1
    assert "Interrupted" in err
    again = shlex.split(" ".join(err.split()).partition("Go on with: ")[2])
    assert again == ["ode2opt", *map(str, solve), "--resume"]
    code, _, err = run_cli(*again[1:], "--json", "-")
    assert (code, err) == (0, "")


def test_after_ctrl_c_train_names_the_command_that_goes_on(run_cli, tmp_path, monkeypatch):
    pytest.importorskip("jax")

    class Broken:
        position, steps = SimpleNamespace(done=3), 40

        def run(self, callback):
            raise KeyboardInterrupt

    (tmp_path / "rows.csv").write_text(8 * ROWS)
    rows = tmp_path / "rows.csv"
    train = ("train", "logistic", rows, "--target", "sequence", "--out", tmp_path / "run")
    for resume in ([], ["--resume"]):
        monkeypatch.setattr("ode2opt.learning.begin.start_run", lambda *args: Broken())
        monkeypatch.setattr("ode2opt.learning.begin.options_for", lambda *a: Broken())
        code, _, err = run_cli(*train, *resume)
        assert code == 1
        assert "Interrupted after 3 of 40 steps." in " ".join(err.split())
        again = " ".join(err.split()).partition("Go on with: ")[2]
        assert shlex.split(again) == ["ode2opt", *map(str, train), "--resume"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("solve", "t.csv", "--box", "0,1"), "solve"),
        (("solve", "t.csv", "--tol"), "solve"),
        (("methods", "export", "nag", "--out"), "methods export"),
    ],
)
def test_an_option_without_its_value_leads_to_the_help_of_its_command(refused, words, command):
    refused(f"see 'ode2opt {command} --help'.", *words)


@pytest.mark.parametrize(
    "command", [("bench",), ("solve",), ("train",), ("data", "info"), ("certify",)]
)
def test_commands_that_read_tables_share_the_options_of_reading(command):
    found = typer.main.get_command(app)
    for name in command:
        found = found.commands[name]
    flags = {flag for each in found.params for flag in each.opts}
    weights = {"--weights"} if command[0] in ("bench", "solve", "train") else set()
    assert flags >= {"--label", "--missing", "--drop", "--columns", "--decimal"} | weights
