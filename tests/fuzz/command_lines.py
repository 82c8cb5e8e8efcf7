"""Hostile command lines: odd values for every option, odd files, closed and full streams.

    python tests/fuzz/command_lines.py

Each must end with 0, 1 or 2 and, where something is wrong, one sentence.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from ode2opt import Logistic, Model, solve

LONGEST = 320  # characters of a sentence, with the word before it
SECONDS = 120
NUMBERS = ("", "²", "--5", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "abc", "٣", "0x10")
HUGE = ("99999999999999999999", "1" + "0" * 5000)
WORDS = ("", " ", "²", "[/x]", "[link=https://x]y[/link]", "\x1b[31mred", "a" * 5000, "é", "\udcff")
FILES = (
    "", ".", "/", "nowhere.csv", "nowhere/x.npz", "/dev/null", "empty.csv", "empty.npz",
    "noise.npz", "noise.safetensors", "folder", "folder.csv", "loop.csv", "noise.parquet",
    "noise.svm", "noise.gz", "words.csv", "one-row.csv", "label-only.csv",
    "/dev/stdin", "no[/x].csv", "a" * 300,
)  # fmt: skip
TARGETS = (
    "", ".", "/", "folder", "nowhere/x", "/dev/full", "/proc/x", "empty.csv/x", "loop.csv",
    "a" * 300,
)  # fmt: skip
KEPT = ("good.npz", "good.csv", "noise.npz", "noise.gz", "link.npz")  # outputs leave them alone

BENCH = ("bench", "logistic", "good.npz", "--instances", "1", "--max-iter", "5", "--methods", "gd",
         "--jobs", "1")  # fmt: skip
SOLVE = ("solve", "good.npz", "--problem", "logistic", "--l2", "0.1")
PREDICT = ("predict", "model.safetensors", "good.npz")
COEFFICIENTS = ("coefficients", "model.safetensors")
TRAIN = ("train", "logistic", "good.npz", "--out", "empty.csv")  # a file: refused before training
CERTIFY = ("certify", "lbfgs", "logistic", "good.npz")  # no schedule: refused before the work

BENCH_NUMBERS = ("--size", "--tol", "--seed", "--jobs", "--p", "--l2")
BENCH_COUNTS = ("--instances", "--max-iter")  # a huge one would be done
SOLVE_NUMBERS = ("--tol", "--max-iter", "--max-seconds", "--l2", "--p", "--holdout", "--seed")
TRAIN_NUMBERS = (
    "--tol", "--steps", "--batch", "--seed", "--lr", "--momentum", "--clip", "--penalty",
    "--penalty-growth", "--margin", "--alpha", "--h", "--t0", "--C", "--kappa", "--lam", "--safety",
    "--horizon", "--validate-every", "--validation", "--patience", "--knots", "--size", "--p",
    "--l2",
)  # fmt: skip
TRAIN_WORDS = (
    "--target", "--metric", "--reference", "--start", "--coefficients", "--activation",
    "--optimizer", "--decay", "--scale", "--estimator", "--split",
)  # fmt: skip


class Line(NamedTuple):
    """A command line; what the shell does with its streams, if anything."""

    arguments: tuple[str, ...]
    streams: str = ""


def prepare(folder: Path) -> None:
    """Make the files that the lines name."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    np.savez(folder / "good.npz", A=A, b=(A[:, 0] > 0).astype(float))
    problem = Logistic(A, A[:, 0] > 0, l2=0.1)
    Model.of(problem, solve(problem)).save(folder / "model.safetensors")
    noise = rng.integers(0, 256, 2000, dtype=np.uint8).tobytes()
    for name in ("noise.npz", "noise.safetensors", "noise.parquet", "noise.svm", "noise.gz"):
        (folder / name).write_bytes(noise)
    for name in ("empty.csv", "empty.npz"):
        (folder / name).write_bytes(b"")
    (folder / "good.csv").write_text(
        "a,b,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(9))
    )
    (folder / "words.csv").write_text("a,b,y\n1,[/x],0\n2,\x1b[31m,1\n")
    (folder / "one-row.csv").write_text("a,b,y\n1,2,0\n")
    (folder / "label-only.csv").write_text("y\n1\n0\n")
    (folder / "folder").mkdir()
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "link.npz").symlink_to("good.npz")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "config.json").write_text('{"a": [null, 1e999]}')


def all_lines() -> list[Line]:
    """Return every line, in a fixed order."""
    lines = [*_numbers(), *_words(), *_files(), *_shapes()]
    return [Line(arguments) for arguments in dict.fromkeys(lines)] + _streams()


def _numbers() -> list[tuple[str, ...]]:
    return [
        *((*BENCH, *pair) for pair in product(BENCH_NUMBERS, NUMBERS + HUGE)),
        *((*BENCH, *pair) for pair in product(BENCH_COUNTS, NUMBERS)),
        *((*SOLVE, *pair) for pair in product(SOLVE_NUMBERS, NUMBERS + HUGE)),
        *((*TRAIN, *pair) for pair in product(TRAIN_NUMBERS, NUMBERS + HUGE)),
        *(
            (*TRAIN, "--target", "sequence", *pair)
            for pair in product(("--penalty", "--steps", "--knots"), NUMBERS)
        ),
        *((*CERTIFY, *pair) for pair in product(("--instances", "--worst-case"), NUMBERS)),
    ]


def _words() -> list[tuple[str, ...]]:
    label = ("data", "info", "good.csv", "--label")
    return [
        *((*TRAIN, *pair) for pair in product(TRAIN_WORDS, WORDS)),
        *((*label, word) for word in (*WORDS, *NUMBERS, *HUGE, "-4", "3", "-3")),
        *(("bench", word, "good.npz") for word in WORDS),
        *(("bench", "logistic", word) for word in WORDS),
        *(("solve", word, "--problem", "logistic") for word in WORDS),
        *((*SOLVE, "--method", word) for word in WORDS),
        *((*PREDICT, "--unknown", word) for word in WORDS),
        *((*BENCH, "--methods", word) for word in (*WORDS, ",", "gd,gd", ",gd,", "gd,memory")),
        *((*BENCH, "--method", word) for word in (*WORDS, "=", "x=", "=x", "gd=noise.safetensors")),
        *((*BENCH, option, word) for option in ("--split", "--handover") for word in WORDS),
        *(("reproduce", "--only", word, "--out", "empty.csv") for word in WORDS),
        *(("data", "fetch", word) for word in WORDS),
        *(("data", word) for word in WORDS),
        *((word,) for word in WORDS),
    ]


def _files() -> list[tuple[str, ...]]:
    return [
        *(("solve", name, "--problem", "logistic") for name in FILES),
        *(("data", "info", name) for name in FILES),
        *((*SOLVE, "--test", name) for name in FILES),
        *(("predict", name, "good.npz") for name in FILES),
        *(("predict", "model.safetensors", name) for name in (*FILES, "model.safetensors")),
        *(("coefficients", name) for name in FILES),
        *((*command, option, name) for command in (PREDICT, COEFFICIENTS)
          for option in ("--out", "--json") for name in (*TARGETS, *KEPT, "model.safetensors")),
        *((*SOLVE, "--method", name) for name in FILES),
        *((*SOLVE, "--memory", name) for name in (*FILES, *TARGETS) if name != "/dev/null"),
        *((*SOLVE, option, name) for option in ("--out", "--json") for name in (*TARGETS, *KEPT)),
        *((*SOLVE, option, name, "--overwrite") for option in ("--out", "--json")
          for name in (*TARGETS, "good.npz", "./good.npz", "link.npz", "/dev/null", "x\x1b.json")),
        *(("data", "list", "--json", name) for name in TARGETS),
        *(("report", name) for name in (*FILES, "foreign")),
        *(("report", "foreign", "--out", name) for name in TARGETS),
        *((*TRAIN[:3], "--out", name, "--resume") for name in (*FILES, "foreign")),
        *((*TRAIN[:3], "--out", name) for name in ("", "empty.csv", "foreign", "/proc/x")),
        *(("demo", "--out", name) for name in ("", "empty.csv")),
        *(("reproduce", "--out", name) for name in ("", "empty.csv")),
        *((*CERTIFY, "--figure", name) for name in TARGETS),
        *(("certify", name, "logistic", "good.npz") for name in FILES),
        *(("prove", name) for name in FILES),
        *(("prove", "nag", "--out", name) for name in TARGETS),
        *(("prove", "nag", "--steps", n) for n in ("0", "-1", "161", "nan", "1e3", "9" * 400)),
    ]  # fmt: skip


def _shapes() -> list[tuple[str, ...]]:
    """Missing, doubled and misplaced arguments."""
    commands = (
        "bench", "train", "solve", "predict", "coefficients", "certify", "prove", "report",
        "data info", "data fetch",
    )  # fmt: skip
    return [
        *(tuple(name.split()) for name in commands),
        *((*name.split(), "a", "b", "c", "d", "e") for name in commands),
        *((*name.split(), "--nothing") for name in (*commands, "demo", "reproduce", "data list")),
        *((*name.split(), "--help") for name in (*commands, "demo", "reproduce", "data list")),
        (), ("data",), ("--version",), ("--help",), ("-h",), ("--", "bench"), ("bench", "--", "-1"),
        (*SOLVE, "--out", "same", "--json", "same"), (*SOLVE, "--out", "-"), (*SOLVE, "--json"),
        (*SOLVE, "--memory", "good.npz", "--method", "gd"), (*SOLVE, "--scale-columns", "x"),
        ("train", "logistic", "good.npz", "--metric", "spectral", "--out", "t"),
        ("train", "logistic", "good.npz", "--coefficients", "spline", "--target", "sequence",
         "--scale", "instance", "--out", "t"),
        ("bench", "logistic", "a5a", "--label", "y"), ("data", "fetch", "a5a"),
        ("reproduce", "--jobs", "0", "--only", "table1", "--out", "foreign"),
    ]  # fmt: skip


def _streams() -> list[Line]:
    """Lines that need a shell, since a stream of theirs is closed, full or broken."""
    streams = (
        ">&-", "2>&-", "<&-", ">&- 2>&-", ">&- 2>&- <&-", ">/dev/full", "2>/dev/full",
        ">/dev/full 2>&1", "| head -c 1 >/dev/null", "2>&1 | head -c 1 >/dev/null",
    )  # fmt: skip
    commands = (
        ("data", "list"), ("data", "list", "--json", "-"), SOLVE, PREDICT, ("bench", "x", "y"),
    )  # fmt: skip
    return [Line(command, each) for command, each in product(commands, streams)]


def complaint(code: int, out: str, err: str) -> str | None:
    """Say what is wrong with how a command ended, or None."""
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if "Traceback" in out + err or "this is a bug" in err:
        return "a traceback or a bug"
    if "\x1b" in out + err:
        return "an escape sequence"
    if not code or "Usage:" in out + err:
        return None
    if not err.startswith("Error: ") or err.count("\n") != 1 or not err.endswith((".\n", "?\n")):
        return "not one sentence"
    return f"{len(err)} characters" if len(err) > LONGEST else None


def run_inside(line: Line) -> tuple[int, str, str]:
    """Run a line in this process; returns exit code, stdout and stderr."""
    from ode2opt import cli

    out, err = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["ode2opt", *line.arguments])
    stdin = mock.patch.object(sys, "stdin", io.StringIO())
    with argv, stdin, redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
        except BaseException:
            return 70, out.getvalue(), err.getvalue() + traceback.format_exc()


def run_in_shell(line: Line) -> tuple[int, str, str]:
    """Run a line in a shell, with the exit code of the command before any pipe."""
    program = f"{sys.executable} -c 'from ode2opt.cli import main; main()' \"$@\""
    script = f"set -o pipefail; {program} {line.streams}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script, "ode2opt", *line.arguments], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=SECONDS, errors="replace",
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def complaint_of(line: Line) -> str | None:
    """Run a line in the current folder; says what is wrong with how it ended, or None."""
    if not line.streams:
        code, out, err = run_inside(line)
        found = complaint(code, out, err)
    else:
        code, out, err = run_in_shell(line)
        quiet = code in (1, 2) and not err  # the stream for errors may be the one that is closed
        found = None if quiet else complaint(code, out, err)
    return found and f"{found}: {err[-500:]!r}"


def alone(folder: Path):
    """Keep the lines away from caches and networks."""
    cache = {"ODE2OPT_CACHE": str(folder / "cache"), "ODE2OPT_DATA": ""}
    return mock.patch.dict(os.environ, cache)


def main() -> None:
    """Run every line and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip", type=int, default=0, help="leave out so many lines")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as work, alone(Path(work)):
        prepare(Path(work))
        with chdir(work):
            for line in all_lines()[options.skip :]:
                found = complaint_of(line)
                counts["wrong" if found else "as promised"] += 1
                if found:
                    print([word[:60] for word in line.arguments], line.streams, found, flush=True)
    print(f"{sum(counts.values())} command lines: {dict(counts)}")
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
