"""The study in one command: its numbers, its cache, its words about what is missing."""

import json
import shutil
import signal
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from support import DESKTOP, PHONE, assert_drawn, wait_for_traces

from ode2opt import Family, InputError, Method, Ode2OptError, Quadratic, solve
from ode2opt.base import terminal
from ode2opt.base.storage import FolderLock
from ode2opt.executor import LocalExecutor
from ode2opt.study.benchmark import Settings, run_benchmark
from ode2opt.study.reproduction import Reproduction, cells, plan, running
from ode2opt.study.reproduction.cache import NUMERICS, PACKAGE, Store, code_hash
from ode2opt.study.reproduction.figures import make_figures
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import (
    CLASSICS,
    DRAWN,
    LEARNED,
    ROWS,
    Effort,
    Item,
    printed,
    printed_cell,
)
from ode2opt.study.reproduction.report import DIFFERENCES, write_report
from ode2opt.study.reproduction.tables import make_tables

TINY = Effort(
    instances=2,
    training={"steps": 3, "validate_every": 1, "validation": 2, "batch": 1, "tol": 2e-2},
    mark="quick: tiny",
)
ONLY = "table1,table3,table5,fig6"


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A study of one small bundled dataset."""
    monkeypatch.setattr(plan, "QUICK", TINY)
    monkeypatch.setattr(plan, "DATASETS", ("breast_cancer",))


def made(folder, only=ONLY):
    study = Reproduction(folder, only, quick=True)
    study.run()
    study.write()
    return json.loads((folder / "results.json").read_text())


def without_seconds(document):
    """The document without what a clock measured."""
    if isinstance(document, dict):
        return {k: without_seconds(v) for k, v in document.items() if "seconds" not in k}
    if isinstance(document, list):
        rows = [row for row in document if not (isinstance(row, list) and "ms" in row)]
        return [without_seconds(one) for one in rows]
    return document


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "QUICK", TINY)
        patch.setattr(plan, "DATASETS", ("breast_cancer",))
        folder = tmp_path_factory.mktemp("study") / "out"
        return folder, made(folder)


@pytest.fixture
def calls(monkeypatch):
    """The kinds of the items that are worked on, in order."""
    seen = []

    def counted(kind):
        def make(store, effort, item):
            seen.append(item.kind)
            return kind.make(store, effort, item)

        return kind._replace(make=make)

    work = {name: counted(kind) for name, kind in running.WORK.items()}
    monkeypatch.setattr(running, "WORK", work)
    return seen


# The numbers ------------------------------------------------------------------------------------


def test_cells_are_those_of_a_benchmark_of_ones_own(whole):
    folder, results = whole
    cell = results["cells"]["lpp breast_cancer"]
    method = Method.load(folder / cell["training"]["method"])
    family = Family.from_dataset("lpp", "breast_cancer", split="paper")
    names = tuple(row.key for row in CLASSICS)
    own = run_benchmark(family, Settings(names, instances=2, handover="none", jobs=1)).statistics()
    for key, handover in (("eigac-learned", "relay"), ("eigac-guarded", "guard")):
        settings = Settings((), {key: method}, instances=2, handover=handover, jobs=1)
        own |= run_benchmark(family, settings).statistics()
    assert without_seconds(cell["methods"]) == without_seconds(own)
    first = next(r for r in results["tables"]["table3"]["rows"] if r[:2] == ["NAG", "ours"])
    nag = own["nag"]
    assert first[2] == f"{nag['measure_mean']:.2f} ({nag['measure_std']:.3f})"


def test_everything_promised_is_written(whole):
    folder, results = whole
    tables = {f"tables/table{n}.{end}" for n in (1, 3, 5) for end in ("csv", "md", "tex")}
    figures = {f"figures/fig6_lpp.{end}" for end in ("png", "pdf")}
    assert set(results["files"]) == tables | figures | {"report.html"}
    assert all((folder / name).stat().st_size > 100 for name in results["files"])
    assert "Content-Security-Policy" in (folder / "report.html").read_text()


def test_quick_is_said_everywhere(whole):
    folder, results = whole
    assert results["quick"] is True
    for table in results["tables"].values():
        assert table["caption"].endswith("[quick: tiny]")
    for name in ("table3.md", "table3.tex", "table3.csv"):
        assert "quick: tiny" in (folder / "tables" / name).read_text()
    assert "quick: tiny" in (folder / "report.html").read_text()


def test_figures_are_drawn_with_what_there_is(whole):
    store = Reproduction(whole[0], ONLY, quick=True).store
    figures = make_figures(Findings(store, TINY, ("breast_cancer",), tuple(plan.OUTPUTS)))
    assert sorted(name[:4] for name in figures) == [f"fig{n}" for n in range(2, 8)]
    for figure in figures.values():
        assert figure.get_suptitle().endswith("[quick: tiny]")
    training, missing = figures["fig3_training"].axes, figures["fig4_contraction"].axes[0]
    assert len(training[5].lines[0].get_xdata()) == 3  # of lpp, ours
    assert [text.get_text() for text in training[7].texts] == ["0 throughout"]
    assert [text.get_text() for text in training[4].texts] == ["missing"]  # by the paper's protocol
    assert [text.get_text() for text in missing.texts] == ["missing"]


def test_what_it_was_made_with_is_told(whole):
    results = whole[1]
    assert results["made_with"]["seed"] == 0
    assert len(results["made_with"]["code"]) == 64
    assert set(results["machine"]) == {"platform", "processor", "cores", "python"}
    assert results["datasets"]["breast_cancer"]["train_rows"] == 341


def test_the_papers_numbers_ship_with_the_package():
    gd, nag = CLASSICS[:2]
    assert printed_cell("measure", "logistic", gd, "mushrooms") == (-1.55, 0.016)
    assert printed_cell("complexity", "lpp", nag, "phishing") == (252.43, 16.373)
    assert printed_cell("complexity", "lpp", LEARNED, "separable") == (11.0, 0.0)
    assert printed_cell("measure", "lpp", gd, "covtype20k") is None


def test_what_is_said_of_the_printed_igahd_is_so():
    means = {"measure": [], "complexity": []}
    for quantity, found in means.items():
        for table in printed()[quantity].values():
            igahd, eigac = table["IGAHD"], table["EIGAC(default)"]
            found += [(igahd[name][0], eigac[name][0]) for name in igahd]
    same = {name: [a for a, b in found if a == b] for name, found in means.items()}
    assert [len(found) for found in means.values()] == [12, 12]
    assert [len(found) for found in same.values()] == [8, 5]
    assert set(same["complexity"]) == {500}
    assert max(abs(a - b) for a, b in means["measure"]) == pytest.approx(0.06)
    assert 7 < max(abs(a - b) for a, b in means["complexity"]) < 8
    for words in ("13 of its 24", "8 of 12 measures", "5 of 12 complexities", "within 0.06"):
        assert words in DIFFERENCES


def test_the_report_names_the_furthest_mean_of_each_row():
    runs = {row.key: [outcome(-3.0, 500), outcome(-3.0, 500)] for row in ROWS}
    findings = Findings(Given(runs), Effort(2), ("a5a", "w3a"), ())
    text = write_report(findings, {}, []).html()
    assert "Of 12 means of GD, NAG and EIGAC(default) with C = 1 in Tables 2 and 3, 2 are" in text
    assert "GD, 1.190 on logistic a5a; NAG, 1.720 on lpp w3a; IGAHD, 1.660 on lpp w3a" in text


def test_the_page_begins_with_what_the_study_comes_to(marked_findings):
    text = write_report(marked_findings, {}, []).html()
    first = text.split('<p class="subtitle">')[1].split("</p>")[0]
    assert "C = 1 on 100% of the test problems" in first
    assert "is quicker on average in 0 of 2 cells" in first
    bars = text[: text.index("<h2>")]
    assert bars.count('<section class="bars">') == 2
    for name, iterations in (("EIGAC, learned", "85"), ("NAG", "&gt;300"), ("L-BFGS", "&gt;255")):
        begin = bars.index(f'<th scope="row">{name}</th>')
        assert bars[begin : bars.index("</tr>", begin)].endswith(f">{iterations}</td>")


# The cache --------------------------------------------------------------------------------------


def test_a_second_run_does_no_work(whole, calls, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    assert Reproduction(folder, ONLY, quick=True).cost == 0
    assert made(folder) == whole[1]
    assert calls == []


def test_a_second_process_is_refused(calls, tmp_path):
    study = Reproduction(tmp_path / "out", "table1", quick=True)
    with (
        FolderLock(tmp_path / "out"),
        pytest.raises(Ode2OptError, match="out is in use by another process"),
    ):
        study.run()
    assert calls == []


def test_code_that_computes_nothing_is_no_part_of_the_key(tmp_path):
    package = tmp_path / "ode2opt"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "web"))
    before = code_hash(package)

    def edited(name):
        with open(package / name, "a") as file:
            file.write("# edited\n")
        code_hash.cache_clear()
        return code_hash(package)

    assert before == code_hash()
    for name in ("study/page.py", "study/style.py", "study/reproduction/report.py",
                 "study/reproduction/figures.py", "cli/train.py", "terminal.py"):  # fmt: skip
        assert edited(name) == before, name
    seen = {before}
    for name in NUMERICS:
        source = package / name
        seen.add(edited(source if source.is_file() else min(source.rglob("*.py"))))
    assert len(seen) == len(NUMERICS) + 1


HARMLESS = {f"ode2opt.{name}" for name in ("display", "errors", "schema", "storage", "locking")}
HARMLESS |= {"ode2opt", "ode2opt.study", "ode2opt.study.reproduction.cache"}
DASK = "ode2opt.integrations.dask"  # loaded where rows are Dask's, which those of a study are not


def test_everything_that_a_result_is_computed_by_is_part_of_the_key():
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("ode2opt", cache_dir=None)
    computing = {f"ode2opt.study.reproduction.{name}" for name in ("cells", "contraction")}
    used = computing.union(*map(graph.find_upstream_modules, computing)) - HARMLESS
    used -= graph.find_descendants(DASK) | {DASK}
    hashed = tuple("ode2opt." + name.removesuffix(".py").replace("/", ".") for name in NUMERICS)
    outside = [name for name in used if not f"{name}.".startswith(tuple(f"{h}." for h in hashed))]
    assert outside == []


def test_only_does_just_that_and_keeps_what_was_made(whole, calls, tmp_path):
    assert set(made(tmp_path / "new", "table1")["tables"]) == {"table1"}
    assert calls == ["data"]
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    assert made(folder, "table1") == whole[1]
    assert calls == ["data"]


def test_an_interrupted_study_goes_on_to_the_same_numbers(
    whole, calls, monkeypatch, tmp_path, ctrl_c
):
    from ode2opt.learning.run import Training

    step = Training._step

    def interrupted(self):
        if self.position.step == 2:
            monkeypatch.setattr(Training, "_step", step)
            signal.raise_signal(signal.SIGINT)
        return step(self)

    monkeypatch.setattr(Training, "_step", interrupted)
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        made(folder)
    assert calls == ["classics", "training"]
    assert without_seconds(made(folder)) == without_seconds(whole[1])
    assert calls.count("classics") == 1
    assert calls.count("training") == 2


def test_after_ctrl_c_it_is_said_that_the_same_command_goes_on(run_cli, monkeypatch, tmp_path):
    def interrupt(store, effort, item):
        raise KeyboardInterrupt

    command = ("reproduce", "--quick", "--only", "table1", "--out", tmp_path / "out", "--jobs", 1)
    with monkeypatch.context() as patch:
        patch.setitem(running.WORK, "data", running.Kind(interrupt, 1))
        code, _, said = run_cli(*command)
    assert code == 1
    assert f"{tmp_path / 'out'} keeps what is done, and the same command goes on." in said
    assert run_cli(*command)[0] == 0


def test_a_pipe_gets_lines_of_progress_and_how_long_it_takes(run_cli, tmp_path):
    command = ("reproduce", "--quick", "--only", "table1", "--out", tmp_path / "out", "--jobs", 1)
    code, out, said = run_cli(*command)
    assert code == 0
    assert out.count("\n") == 1
    first, last = said.splitlines()
    minutes = running.MINUTES["quick"]
    assert first == (
        "reproduce: 1 piece of work to do; all of the quick study takes about "
        f"{minutes} minutes on two cores."
    )
    assert last.startswith("reproduce: 100% after ")
    help_text = " ".join(run_cli("reproduce", "--help")[1].replace("│", " ").split())
    assert f"about {minutes} minutes, two cores" in help_text
    assert run_cli(*command)[2] == "reproduce: all work is done already.\n"


def test_lines_of_progress_are_few_and_tell_what_is_left(monkeypatch, capsys):
    clock = SimpleNamespace(monotonic=iter(np.arange(0.0, 2000, 2)).__next__)
    monkeypatch.setattr(terminal, "time", clock)
    with terminal.bar_or_lines("work", 400) as advance:
        for _ in range(400):
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 20
    assert lines[0] == "work: 5% after 40 s, about 12 min 40 s left"
    assert lines[-1] == "work: 100% after 13 min 20 s"


def test_a_run_cut_short_by_ctrl_c_is_no_result(monkeypatch, tmp_path, ctrl_c):
    def make(store, effort, item):
        problem = Quadratic(np.eye(2), np.ones(2))
        look = lambda progress: signal.raise_signal(signal.SIGINT)  # noqa: E731
        return {"iterations": solve(problem, np.zeros(2), method="gd", callback=look).iterations}

    item = Item("data", "logistic", "breast_cancer")
    store = Store(tmp_path / "cache", {}, {("logistic", "breast_cancer"): "x"})
    monkeypatch.setitem(running.WORK, "data", running.Kind(make, 1))
    with pytest.raises(KeyboardInterrupt):
        running.run_items(store, TINY, [item])
    assert store.load(item) is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_processes_do_not_change_the_numbers(tmp_path):
    items = [Item("classics", problem, "breast_cancer") for problem in plan.PROBLEMS]
    found = []
    for jobs in (1, 2):
        prints = {(item.problem, item.dataset): "x" for item in items}
        store, ticks = Store(tmp_path / str(jobs), {}, prints), []
        executor = LocalExecutor(jobs)
        assert running.run_items(store, TINY, items, executor, lambda: ticks.append(1)) == []  # noqa: B023
        assert len(ticks) == running.cost_of(items, TINY)
        found.append([without_seconds(store.load(item)) for item in items])
    assert found[0] == found[1]


# What cannot be made ----------------------------------------------------------------------------


def test_an_unknown_name_is_answered_with_the_known_ones(refused, tmp_path):
    known = "'fig1': choose from table1, table2, table3, table4, table5, fig2"
    refused(known, "reproduce", "--only", "table2,fig1", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("ode2opt", "0.0.1", "another version of ode2opt"),
        ("code", "0" * 64, "other numerical code of ode2opt"),
        ("effort", {"instances": 7}, "other settings"),
        ("packages", {"numpy": "1.0"}, "other packages"),
    ],
)
def test_a_folder_of_another_study_is_refused(refused, tmp_path, field, value, words):
    folder = tmp_path / "out"
    Reproduction(folder, "table1", quick=True)
    identity = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(identity | {field: value}))
    said = refused(words, "reproduce", "--quick", "--only", "table1", "--out", folder)
    assert "name another --out" in said


def test_quick_and_full_do_not_mix(tmp_path):
    Reproduction(tmp_path / "out", "table1", quick=True)
    with pytest.raises(InputError, match="other settings"):
        Reproduction(tmp_path / "out", "table1")


def test_a_file_or_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(InputError, match="something else"):
        Reproduction(tmp_path, "table1")
    with pytest.raises(InputError, match="is a file"):
        Reproduction(tmp_path / "results.json", "table1")


def test_missing_data_is_marked_and_the_rest_made(no_network, monkeypatch, run_cli, tmp_path):
    monkeypatch.setattr(plan, "DATASETS", ("breast_cancer", "w3a"))
    folder = tmp_path / "out"
    code, _, said = run_cli(
        "reproduce", "--quick", "--only", "table1", "--out", folder, "--jobs", 1
    )
    assert code == 1
    assert "Missing: w3a (The file 'w3a' is not in" in said
    results = json.loads((folder / "results.json").read_text())
    assert [one["what"] for one in results["missing"]] == ["w3a"]
    first, second = results["tables"]["table1"]["rows"]
    assert first[:3] == ["breast_cancer", "30", "341"]
    assert second[:3] == ["w3a", "missing (300)", "missing (4,912)"]


def test_a_training_that_fails_leaves_the_other_rows(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise Ode2OptError("No flow gets there: raise the tolerance.")

    monkeypatch.setattr(cells, "learn", refuse)
    study = Reproduction(tmp_path / "out", "table3,fig6", quick=True)
    study.run()
    study.write()
    assert [one["what"] for one in study.missing] == ["training of lpp breast_cancer"]
    assert "raise the tolerance" in study.missing[0]["why"]
    rows = {tuple(r[:2]): r[2] for r in _rows(tmp_path / "out", "table3")}
    assert rows["GD", "ours"].startswith("-")
    assert rows["EIGAC", "ours"] == rows["Win rate", "ours"] == "missing"


def test_covtype_joins_where_it_is(monkeypatch, tmp_path, no_network):
    monkeypatch.undo()
    monkeypatch.setenv("ODE2OPT_CACHE", str(tmp_path))
    monkeypatch.delenv("ODE2OPT_DATA", raising=False)
    assert "covtype" not in plan.datasets_of_study()
    assert plan.covtype_of(plan.datasets_of_study()) == "covtype20k"
    (tmp_path / "covtype").write_text("")
    assert "covtype" in plan.datasets_of_study()
    assert plan.covtype_of(plan.datasets_of_study()) == "covtype"


def _rows(folder, table):
    return json.loads((folder / "results.json").read_text())["tables"][table]["rows"]


# Marks ------------------------------------------------------------------------------------------


def outcome(measure, complexity, **rest):
    plain = {"oracle_calls": 1, "seconds": 1.0, "reached": complexity < 500, "diverged": False}
    return {"measure": measure, "complexity": complexity, "handed_over": False} | plain | rest


class Given:
    """Findings that are given, in place of a store."""

    identity: ClassVar = {"ode2opt": "", "code": "", "packages": {}}

    def __init__(self, outcomes):
        from ode2opt.study.benchmark import Benchmark, InstanceOutcome

        settings = Settings(("gd",))
        listed = {key: [InstanceOutcome(**one) for one in found] for key, found in outcomes.items()}
        self.made = {
            "statistics": Benchmark(settings, listed).statistics(),
            "outcomes": outcomes,
        }

    def load(self, item):
        return self.made if item.kind == "classics" else None


@pytest.fixture
def marked_findings():
    runs = {row.key: [outcome(-2.0, 500), outcome(-3.0, 500)] for row in ROWS}
    runs["nag"] = [outcome(-4.0, 100), outcome(-3.0, 500)]
    runs["eigac-learned"] = [outcome(-5.0, 90), outcome(-3.0, 80)]
    runs["lbfgs"] = [outcome(-9.0, 10), outcome(float("inf"), 500, diverged=True)]
    runs["eigac-c4"] = [outcome(float("inf"), 500, diverged=True)] * 2
    return Findings(Given(runs), Effort(2), ("a5a",), ("table3", "table5"))


@pytest.fixture
def marked(marked_findings):
    tables = make_tables(marked_findings)
    return {name: {tuple(r[:2]): r[2] for r in table.rows} for name, table in tables.items()}


def test_what_did_not_reach_the_tolerance_is_marked(marked):
    complexity = marked["table5"]
    assert complexity["GD", "ours"] == "> 500.0 (0/2)"
    assert complexity["GD", "paper"] == "500 (cap)"
    assert complexity["GD", "difference"] == "+0.0 (capped)"
    assert complexity["NAG", "ours"] == "> 300.0 (1/2)"
    assert complexity["NAG", "difference"] == "+88.1 (capped)"
    assert complexity["NAG", "calls"] == "> 1.0"
    assert complexity["EIGAC", "calls"] == "1.0"
    assert complexity["EIGAC", "ours"] == "85.0 (7.1)"
    assert complexity["EIGAC", "difference"] == "-37.2"


def test_what_diverged_is_not_averaged(marked):
    assert marked["table3"]["L-BFGS", "ours"] == "-9.00 (1/2 diverged)"
    assert marked["table3"]["EIGAC(default), C = 4", "ours"] == "diverged (2/2)"


def test_a_tie_is_no_win(marked):
    assert marked["table3"]["Win rate", "ours"] == "50%"
    assert marked["table5"]["Win rate", "ours"] == "100%"
    assert marked["table5"]["Win rate, all rows", "ours"] == "50%"
    assert marked["table5"]["Win rate", "paper"] == "100%"


# In a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(whole, tmp_path_factory):
    """The file of a page with all tables, and all figures that the study can fill."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "QUICK", TINY)
        patch.setattr(plan, "DATASETS", ("breast_cancer",))
        store = Reproduction(whole[0], ONLY, quick=True).store
    findings = Findings(store, TINY, ("breast_cancer",), tuple(plan.OUTPUTS))
    file = tmp_path_factory.mktemp("page") / "report.html"
    write_report(findings, make_tables(findings), []).save(file)
    return file


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_every_figure_of_the_page_is_drawn_within_the_screen(opened, page, viewport):
    view = opened(page.as_uri(), viewport=viewport)
    assert_drawn(view, page.read_text(), viewport)
    assert view.locator(".scroll table").count() == 5


def test_a_method_of_the_page_is_hidden_by_its_entry_in_the_legend(opened, page):
    view = opened(page.as_uri(), viewport=DESKTOP)
    wait_for_traces(view, len(DRAWN))
    view.locator("#plot-0 .legend .traces", has_text="NAG").locator(".legendtoggle").click()
    wait_for_traces(view, len(DRAWN) - 1)
