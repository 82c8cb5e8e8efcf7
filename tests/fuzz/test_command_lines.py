"""Hostile command lines end as promised; all of them run in the soak (command_lines.py)."""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from command_lines import (
    BENCH,
    SOLVE,
    TRAIN,
    Line,
    all_lines,
    alone,
    complaint,
    complaint_of,
    prepare,
    run_in_shell,
    run_inside,
)

SLOW = ("certify", "report", "reproduce", "demo")  # they import much, or work long


@pytest.fixture
def folder(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    with alone(tmp_path):
        yield tmp_path


def test_there_are_many_and_none_twice():
    lines = all_lines()
    assert len(lines) > 1000
    assert len(set(lines)) == len(lines)


def test_hostile_command_lines_end_in_one_sentence(folder):
    lines = [one for one in all_lines() if not one.streams]
    quick = [one for one in lines if not set(one.arguments[:1]) & set(SLOW)]
    before = contents(folder)
    for i in np.random.default_rng(0).choice(len(quick), 80, replace=False):
        assert complaint_of(quick[i]) is None, quick[i]
    assert before.items() <= contents(folder).items()


def test_no_command_line_changes_a_file_that_was_there(folder):
    lines = [one for one in all_lines() if {"--out", "--json"} & set(one.arguments)]
    writing = [one for one in lines if one.arguments[:2] == SOLVE[:2] and not one.streams]
    assert len(writing) > 50
    before = contents(folder)
    for line in writing:
        assert complaint_of(line) is None, line
    assert before.items() <= contents(folder).items()


def contents(folder):
    """The files that hold something, with it."""
    return {path: path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.stat().st_size}  # fmt: skip


NAMED = {
    "penalty growth": ((*TRAIN, "--penalty-growth", "inf"), "penalty_growth is inf: it must be at"),
    "safety": ((*TRAIN, "--safety", "inf"), "safety is inf: it must be at least 1, and finite"),
    "penalty": (
        (*TRAIN, "--target", "sequence", "--penalty", "inf"), "penalty is inf: it must be at least",
    ),
    "empty folder": (("train", "logistic", "good.npz", "--out", ""), "'--out': the name is empty"),
    "empty file": ((*SOLVE, "--out", ""), "'--out': the name is empty"),
    "empty json": ((*SOLVE, "--json", ""), "'--json': the name is empty"),
    "superscript": (("data", "info", "good.csv", "--label", "²"), "has no column '²'"),
    "two signs": (("data", "info", "good.csv", "--label", "--5"), "has no column '--5'"),
    "usage": ((*BENCH, "--tol", "abc"), "'--tol'"),
    "loop": ((*TRAIN[:3], "--out", "loop.csv", "--resume"), "no config.json"),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMED)
def test_what_is_wrong_is_named(folder, case):
    arguments, said = NAMED[case]
    code, out, err = run_inside(Line(arguments))
    assert (code, out) == (2, "")
    assert said in err
    assert complaint(code, out, err) is None


@pytest.mark.parametrize(
    ("command", "streams", "code", "said"),
    [
        ("data list", ">&-", 0, ""),
        ("data list --json -", ">&- 2>&- <&-", 0, ""),
        ("data list", ">/dev/full", 1, "Standard output cannot be written: No space left"),
        ("data list --json -", "| true", None, ""),
        ("bench x y", "2>&-", 2, ""),
    ],
)
def test_closed_full_and_broken_streams_are_quiet(folder, command, streams, code, said):
    found, out, err = run_in_shell(Line(tuple(shlex.split(command)), streams))
    assert found in ((0, 1) if code is None else (code,))
    assert out == ""
    assert said in err
    assert err.count("\n") == bool(said)
