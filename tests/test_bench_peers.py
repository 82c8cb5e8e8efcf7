"""The benchmark of peers: what is kept, how it is summed up, and which solver counts."""

import importlib
import json
import math
import os
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture
def bench():
    """Imports a benchmark; what it does to the environment is undone."""
    with patch.dict(os.environ):
        yield importlib.import_module


def row(cell, rows, own, without, peer, l2=1e-4, tol=1e-6):
    """A measured row: seconds of auto, of auto without kernels and of one peer."""
    methods = {"auto": own, "auto-no-kernels": without, "sklearn-lbfgs": peer, "glum": None}
    return {
        "cell": cell, "rows": rows, "columns": 3, "l2": l2, "tol": tol, "reading": 0.01,
        "methods": {name: {"seconds": s, "norm": 1e-7} for name, s in methods.items()},
    }  # fmt: skip


def test_a_summary_has_the_means_the_worst_and_what_was_not_reached(bench):
    peer_tables = bench("peer_tables")
    rows = [
        row("a", 20_000, 0.1, 0.2, 1.0),
        row("b", 30_000, 0.4, 0.4, 1.0),
        row("c", 500, 3.2, 3.2, 2.0, l2=1e-6, tol=1e-3),
        row("d", 500, None, 1.0, 2.0),  # missed
        row("e", 500, 1.0, 1.0, None),  # no other got there
    ]
    found = peer_tables.summarised(rows, "auto", ["sklearn-lbfgs", "glum"])
    assert found.large == pytest.approx(math.sqrt(0.1 * 0.4))
    assert found.overall == pytest.approx((0.1 * 0.4 * 1.6) ** (1 / 3))
    assert (found.worst, found.where) == (1.6, "c, l2 1e-6, norm 1e-3")
    assert (found.cells, found.missed, found.alone) == (3, 1, 1)
    assert "auto / fastest: 0.20 at 20,000 rows or more, 0.40 over all 3" in found.line("auto")
    made = peer_tables.tables(rows)
    assert [line[:3] for line in made["summary"].rows] == [
        ["with kernels", "0.20", "0.40"],
        ["without kernels", "0.28", "0.50"],
    ]
    shown = {line[0]: line[1:] for line in made["milliseconds"].rows}
    assert shown["a"] == ["20,000 x 3", "100", "200", "1e+03 (sklearn-lbfgs)", "10", "0.10", "0.10"]
    assert shown["c"][1:] == [None] * 4 + ["1.60", "1.60"]  # another l2, another norm
    assert shown["d"][1:] == [None, "1e+03", "2e+03 (sklearn-lbfgs)", None, None, None]
    assert made["ratios"].rows[3][2:] == ["missed (lbfgs)", None]
    nothing = peer_tables.summarised([], "auto", ["glum"])
    assert nothing.line("auto") == "auto: no ratios."


def test_rows_are_kept_and_those_of_other_code_are_not(bench, tmp_path, capsys):
    kept = bench("kept")
    path, now = tmp_path / "deep" / "a.json", {"code": "1", "threads": "one"}
    first = kept.KeptRows(path, now)
    first.row(cell="a", l2=1.0)["seconds"] = 2.0
    first.save()
    first.row(cell="a", l2=0.1)  # interrupted before it was saved
    again = kept.KeptRows(path, now)
    assert again.rows == [{"cell": "a", "l2": 1.0, "seconds": 2.0}]
    assert again.row(cell="a", l2=1.0)["seconds"] == 2.0
    other = kept.KeptRows(path, now | {"code": "2"})
    assert other.rows == []
    assert other.earlier(cell="a", l2=1.0)["seconds"] == 2.0
    assert kept.KeptRows(path, now | {"threads": "all"}).before == []
    assert "measured again" in capsys.readouterr().out
    path.write_text('{"rows"')
    assert kept.KeptRows(path, now).rows == []
    assert "a.json is damaged." in capsys.readouterr().out
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_the_circumstances_change_with_the_code(bench, tmp_path, monkeypatch):
    kept = bench("kept")
    monkeypatch.setattr(kept.ode2opt, "__file__", str(tmp_path / "__init__.py"))
    hashes = []
    for text in ("a = 1", "a = 1", "a = 2"):
        (tmp_path / "m.py").write_text(text)
        kept.code_of_the_package.cache_clear()
        hashes.append(kept.code_of_the_package())
    kept.code_of_the_package.cache_clear()
    assert hashes[0] == hashes[1] != hashes[2]


class Slope:
    """A solver whose gradient norm is a hundredth of its tolerance."""

    def __init__(self):
        self.tried = []

    def fit(self, task, own, bound):
        self.tried.append(own)
        return np.array([own / 100]), 1


def test_the_loosest_tolerance_that_reaches_the_norm_counts(bench):
    judging = bench("judging")
    task = SimpleNamespace(norm=lambda x: float(x[0]), A=np.zeros((1, 1)))
    for tol in (1e-6, 2e-3, 0.05):
        slope = Slope()
        found = judging.Ladder(judging.Peer(slope.fit), task, 10.0).judge(tol)
        assert found.norm <= tol < found.norm * math.sqrt(10)
        assert len(slope.tried) <= 6
    too_wide = judging.Ladder(judging.Peer(slope.fit, most_columns=0), task, 10.0).judge(1.0)
    assert (too_wide.seconds, too_wide.setting) == (None, "skipped")


def test_a_contest_is_won_at_equal_norms_and_goes_on_where_it_was_left(
    bench, tmp_path, monkeypatch, capsys
):
    contest, judging = bench("contest"), bench("judging")
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 3))
    b = (rng.random(60) < 0.5).astype(float)
    monkeypatch.setitem(contest.DATA, "small", lambda: (A, b))
    problem = importlib.import_module("ode2opt").Logistic
    calls = []

    def newton(task, own, bound):
        calls.append(own)
        x = np.zeros(3)
        for k in range(bound):
            g = task.judge.gradient(x)
            if np.linalg.norm(g) <= own:
                return x, k
            x = x - np.linalg.solve(task.judge.hessian(x), g)
        return x, bound

    fits = {"newton": judging.Peer(newton), "never": judging.Peer(lambda *_: (np.ones(3), 1))}
    held = contest.Contest(problem, {}, fits)
    asked = ["--cells", "small", "--l2", "0.01,0.1", "--tol", "1e-6", "--repeats", "1"]
    asked += ["--json", str(tmp_path / "small.json")]
    rows = contest.hold(held, asked)
    assert [(each["cell"], each["l2"], each["rows"]) for each in rows] == [
        ("small", 0.01, 60),
        ("small", 0.1, 60),
    ]
    for each in rows:
        done = each["methods"]
        assert done["newton"]["norm"] <= 1e-6
        assert done["newton"]["seconds"] > 0
        assert done["auto"]["norm"] <= 1e-6
        assert done["auto-no-kernels"]["seconds"] > 0
        assert done["never"]["seconds"] is None
        assert each["reading"] > 0
    path = tmp_path / "small.json"
    whole = json.loads(path.read_text())
    whole["rows"] = whole["rows"][:1]
    path.write_text(json.dumps(whole))
    calls.clear()
    again = contest.hold(held, asked)
    assert again[0] == rows[0]
    assert again[1]["methods"]["newton"]["seconds"] > 0
    assert calls
    calls.clear()
    assert contest.hold(held, asked) == again
    assert not calls
    assert capsys.readouterr().out.count("| small |") == 6


def test_a_peer_that_was_behind_is_not_searched_for_again(bench):
    contest, judging = bench("contest"), bench("judging")
    task = SimpleNamespace(norm=lambda x: float(x[0]), A=np.zeros((1, 1)))
    fast, slow, lost = Slope(), Slope(), Slope()
    fits = {name: judging.Peer(peer.fit) for name, peer in
            (("fast", fast), ("slow", slow), ("lost", lost))}  # fmt: skip
    held = contest.Contest(None, {}, fits)
    old = {"methods": {
        "fast": {"seconds": 1.0, "norm": 1e-6, "own": 1e-4, "bound": 10},
        "slow": {"seconds": 2.5, "norm": 1e-6, "own": 1e-4, "bound": 10},
        "lost": {"seconds": None, "norm": 1e-2, "own": None, "bound": None},
    }}  # fmt: skip
    found = {
        name: held._remembered(judging.Ladder(peer, task, 1.0), name, 1e-6, old)
        for name, peer in fits.items()
    }
    assert (found["fast"].norm, fast.tried) == (1e-6, [1e-4])
    assert [found[name].seconds for name in ("slow", "lost")] == [None, None]
    assert slow.tried == lost.tried == []
    ladder = judging.Ladder(fits["fast"], task, 1.0)
    assert held._remembered(ladder, "fast", 1e-7, old) is None  # its settings do not reach that
    assert held._remembered(ladder, "fast", 1e-6, None) is None


def test_kernels_are_off_only_while_a_solve_without_them_runs(bench, monkeypatch):
    judging = bench("judging")
    monkeypatch.delenv("ODE2OPT_KERNELS", raising=False)
    seen = []
    monkeypatch.setattr(
        judging, "solve",
        lambda *_, method, **__: seen.append((method, os.environ.get("ODE2OPT_KERNELS")))
        or SimpleNamespace(x=None),
    )  # fmt: skip
    task = SimpleNamespace(problem=lambda: None, start=None)
    for name in ("auto", "auto-no-kernels"):
        judging.ours(name)(task, 1.0, 1.0)
    assert seen == [("auto", None), ("auto", "0")]
    assert "ODE2OPT_KERNELS" not in os.environ


def test_what_is_asked_for_is_run_in_processes_and_bad_names_get_a_sentence(bench, tmp_path):
    every = bench("all_peers")
    assert every.chosen(["twelve", "a5a"], False) == {"twelve": ("a5a",)}
    assert set(every.chosen([], False)) == set(every.PARTS)
    assert every.chosen(["ridge"], True) == {"ridge": ("phishing", "breast_cancer")}
    for only, sentence in (
        (["a6a"], "there is no 'a6a'; there are unseen, "),
        (["unseen", "a5a"], "unseen: there is no a5a in it"),
    ):
        with pytest.raises(SystemExit, match=sentence):
            every.chosen(only, False)
    lines = []

    def ran(line, env):
        lines.append((line[-6:], env["BENCH_THREADS"], "OMP_NUM_THREADS" in env))
        return SimpleNamespace(returncode=len(lines) - 1)

    work = every.chosen(["unseen", "unseen-threads", "float32"], False)
    assert every.run(work, tmp_path, False, ran) == ["unseen-threads: float32"]
    assert [(threads, limited) for _, threads, limited in lines] == [("one", False), ("all", False)]
    path = str(tmp_path / "unseen" / "float32.json")
    assert lines[0][0][1:] == [str(every.Path(every.__file__).parent / "peers.py"), "--cells",
                               "float32", "--json", path]  # fmt: skip


def test_a_part_is_written_once_all_of_it_is_measured(bench, tmp_path, capsys):
    every, kept = bench("all_peers"), bench("kept")
    results = tmp_path / "results"
    results.mkdir()
    now = kept.circumstances()
    names = every.PARTS["unseen"].cells
    for i, cell in enumerate(names):
        every.finish(tmp_path, False, results)
        assert list(results.iterdir()) == []
        file = kept.KeptRows(tmp_path / "unseen" / f"{cell}.json", now)
        file.rows.append(row(cell, 20_000, 0.1, 0.2, 0.2 * (i + 1)))
        file.save()
        every.finish(tmp_path, False, results)  # interrupted in the middle
        assert list(results.iterdir()) == []
        file.save(complete=True)
    assert "unseen: not measured in full with this code: " in capsys.readouterr().out
    every.finish(tmp_path, False, results)
    said = capsys.readouterr().out
    assert "five unseen, one thread, with kernels: 20,000 rows or more 0.19" in said
    written = json.loads((results / "unseen_peers.json").read_text())
    assert [line[0] for line in written["tables"]["milliseconds"]["rows"]] == list(names)
    assert written["command"] == "make peers"
    assert ", one thread" in written["machine"]
    other = kept.KeptRows(tmp_path / "ridge" / "a5a.json", now | {"code": "older"})
    other.rows.append(row("a5a", 20_000, 0.1, 0.2, 0.2))
    other.save()
    every.finish(tmp_path, True, results)
    assert not (results / "ridge_peers.json").exists()


def test_the_unseen_data_are_what_they_are_called(bench):
    unseen = bench("unseen")
    assert set(unseen.UNSEEN) == {
        "skewed-counts", "mixed-scales", "clustered-rows", "hashed-50k", "float32",
    }  # fmt: skip
    assert all(made.args[0] >= 20_000 for made in unseen.UNSEEN.values())
    A, b = unseen.skewed_counts(2_000, 20)
    assert np.array_equal(A, np.round(A))
    assert A.min() == 0
    assert A.mean() > 1.5 * np.median(A)
    assert set(b) == {0, 1}
    sizes = np.sort(unseen.mixed_scales(2_000, 13)[0].std(axis=0))
    assert sizes == pytest.approx(10.0 ** np.linspace(-3, 3, 13), rel=0.1)
    A, b = unseen.clustered_rows(2_000, 30, 5)
    near = np.linalg.norm(np.diff(A, axis=0), axis=1)
    assert (near > 4).sum() == 4  # where one cluster ends and the next begins
    A, b = unseen.hashed_categories(500, 700)
    assert sp.issparse(A)
    assert A.has_canonical_format
    assert abs(A).sum(axis=1).max() <= unseen.FIELDS
    assert A.min() < 0 < A.max()
    A, b = unseen.factors_float32(500, 40)
    assert A.dtype == np.float32
    energy = np.linalg.svd(A, compute_uv=False) ** 2
    assert energy[: unseen.FACTORS].sum() > 0.8 * energy.sum()
    assert np.array_equal(A, unseen.factors_float32(500, 40)[0])
