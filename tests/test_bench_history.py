"""The history of `make bench`: what a line has, and what a run is compared with."""

import json
import re
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import history
import numpy as np
import pytest
import recording
import run
from support import git

from ode2opt.base.machine import cpu_count


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Run fake benchmarks with these results; return what is printed."""

    def bench_of(*results):
        names = [f"fake_benchmark_{i}" for i in range(len(results))]
        for name, result in zip(names, results, strict=True):
            fake = SimpleNamespace(main=lambda result=result: dict(result))
            monkeypatch.setitem(sys.modules, name, fake)
        run.main(tuple(names), tmp_path)
        return capsys.readouterr().out

    return bench_of


def lines(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_results_are_ratios_by_name_as_ever(bench, tmp_path):
    bench({"one": 1.5}, {"two": 0.25, "three": 3.0})
    written = json.loads((tmp_path / "results.json").read_text())
    assert written == {"one": 1.5, "two": 0.25, "three": 3.0}


def test_a_run_adds_one_line_with_what_made_it(bench, tmp_path):
    bench({"one": 1.5})
    bench({"one": 1.6})
    first, second = lines(tmp_path)
    assert [first["results"], second["results"]] == [{"one": 1.5}, {"one": 1.6}]
    assert set(second) == {"commit", "date", "machine", "versions", "results"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", second["date"])
    assert second["versions"]["numpy"] == np.__version__
    assert f"{cpu_count()} cores" in second["machine"]


def test_a_run_is_compared_with_the_last_on_this_machine(bench, tmp_path):
    assert "nothing to compare with" in bench({"one": 2.0, "gone": 1.0})
    first = history.read(tmp_path / "history.jsonl")[0]
    elsewhere = replace(first, machine="another", results={"one": 100.0})
    history.append(tmp_path / "history.jsonl", elsewhere)
    out = bench({"one": 2.5, "new": 1.0})
    assert re.search(r"^one +2\.000 +2\.500 +\+25%  worse$", out, re.MULTILINE)
    assert re.search(r"^gone +1\.000 +-$", out, re.MULTILINE)
    assert re.search(r"^new +- +1\.000$", out, re.MULTILINE)
    assert re.search(r"^one +2\.500 +2\.000 +-20%$", bench({"one": 2.0}), re.MULTILINE)


def test_versions_that_changed_are_told(bench, tmp_path, monkeypatch):
    bench({"one": 1.0})
    monkeypatch.setattr(recording, "versions", lambda: {"Python": "9.9"})
    out = bench({"one": 1.0})
    assert "is 9.9" in out
    assert f"numpy was {np.__version__}, is absent" in out


def test_a_damaged_history_is_told_before_the_work(tmp_path, bench):
    (tmp_path / "history.jsonl").write_text('{"commit": null}\n')
    with pytest.raises(SystemExit, match=r"history\.jsonl, line 1 is no entry"):
        bench({"one": 1.0})
    assert not (tmp_path / "results.json").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_is_dirty_where_files_differ_from_it(tmp_path):
    assert history.commit_of(tmp_path) is None
    git(tmp_path, "init")
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "history.jsonl").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    clean = history.commit_of(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (tmp_path / "history.jsonl").write_text("{}\n")
    assert history.commit_of(tmp_path) == clean
    (tmp_path / "code.py").write_text("2")
    assert history.commit_of(tmp_path) == clean + "-dirty"


def test_the_history_of_this_clone_can_be_read():
    assert all(entry.results for entry in history.read(run.FOLDER / "history.jsonl"))
