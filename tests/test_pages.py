"""The pages: short sentences where one learns, and tables that agree with the results files."""

import importlib
import json
import math
import os
import platform
import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from support import module_of

ROOT = Path(__file__).parents[1]
LONGEST, LONGEST_OF_README = 35, 30  # words of a sentence
NOT_PROSE = re.compile(
    r"^```.*?^```$"  # programs
    r"|<!--.*?-->"
    r"|^(?: {4}|\|).*?$"  # commands, tables
    r"|^#+ .*?$"  # headings
    r"|!\[[^\]]*\]\([^)]*\)",  # pictures
    re.MULTILINE | re.DOTALL,
)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
END = re.compile(r"(?<=[.!?])[\"')*\]]*\s+(?=[\"'(*\[]*[A-Z\d])")
WORD = re.compile(r"\w[^\s]*")


def sentences(page):
    """The sentences of a page's prose; inline code is one word, and an address is none."""
    prose = ITEM.sub("\n\n", NOT_PROSE.sub("\n\n", page))
    prose = re.sub(r"`[^`]*`", "CODE", prose)
    prose = re.sub(r"\]\([^)]*\)", "]", prose)
    for paragraph in re.split(r"\n\s*\n", prose):
        yield from filter(WORD.search, END.split(" ".join(paragraph.split())))


def too_long(page, most):
    """The sentences with more than so many words, with their numbers of words."""
    counted = ((len(WORD.findall(sentence)), sentence) for sentence in sentences(page))
    return [each for each in counted if each[0] > most]


def learn_pages():
    """The pages under "Learn" in the site's navigation, notebooks included."""
    learn = (ROOT / "mkdocs.yml").read_text().partition("- Learn:")[2].partition("- Reference:")[0]
    return re.findall(r"- ([\w/-]+)\.md$", learn, re.MULTILINE)


def prose_of(name):
    """A page as Markdown, or the text of a notebook."""
    page = ROOT / f"docs/{name}.md"
    if page.exists():
        return page.read_text(encoding="utf-8")
    notebook = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return "\n\n".join("".join(cell["source"]) for cell in cells)


@pytest.mark.parametrize("name", learn_pages())
def test_no_sentence_of_a_page_to_learn_from_is_long(name):
    assert not too_long(prose_of(name), LONGEST)


def test_no_sentence_of_the_readme_is_long():
    assert not too_long((ROOT / "README.md").read_text(encoding="utf-8"), LONGEST_OF_README)


def test_sentences_are_told_apart_and_code_and_tables_left_out():
    page = (
        "# A heading. Of two.\n\nOne `a b c` [two](x.md). *Three* is 0.5 here, e.g. there.\n"
        "`four` goes\non (so. It) does.\n- five\n- six\n\n    a command. Left out.\n"
        "| a cell. | Another. |\n\n```python\nprint(1). No.\n```\n<!-- No. No. -->\nSeven?"
    )
    assert list(sentences(page)) == [
        "One CODE [two].", "*Three* is 0.5 here, e.g. there.", "CODE goes on (so.", "It) does.",
        "five", "six", "Seven?",
    ]  # fmt: skip
    assert too_long("A b c. D e.", 2) == [(3, "A b c.")]


def test_the_readme_is_one_screen_before_its_first_table():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert next(i for i, line in enumerate(lines) if line.startswith("|")) <= 66


tables, stale_pages, plan_table = (
    module_of(ROOT / f"tools/{name}.py") for name in ("tables", "stale_pages", "plan_table")
)
RESULT = {
    "about": "A test.", "command": "python a.py", "machine": "two cores",
    "versions": {"numpy": "2.0", "scipy": "1.12"}, "date": "2026-01-02", "code": ["ode2opt/a.py"],
    "tables": {"t": {"columns": ["data", "x, y"], "rows": [["a", 1], ["b", None], ["c", "3"]]}},
}  # fmt: skip
ORIGIN = "<!-- origin r -->\nold\n<!-- end -->"


def test_the_tables_of_the_pages_are_those_of_the_results_files(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().out


def test_every_table_of_a_page_of_measurements_comes_from_a_results_file():
    """But for those that explain words and not numbers."""
    for page in sorted(ROOT.glob("docs/measurements/*.md")):
        by_hand = re.sub(r"<!-- table .*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
        assert set(re.findall(r"^\|.*\|\n\|---", by_hand, re.M)) <= {"| symbol | meaning |\n|---"}


def test_every_results_file_is_shown_on_a_page():
    shown = "".join(page.read_text(encoding="utf-8") for page in tables.pages(ROOT))
    for name, result in tables.read_results(ROOT / tables.RESULTS).items():
        for table in result["tables"]:
            assert f"<!-- table {name}/{table}" in shown
        assert all((ROOT / path).exists() for path in result["code"]), name


def test_a_table_is_written_with_the_rows_and_columns_that_are_chosen():
    page = f"Before.\n<!-- table r/t -->\n<!-- end -->\n{ORIGIN}\nAfter."
    made = tables.written(page, {"r": RESULT})
    assert "| data | x, y |\n|---|---|\n| a | 1 |\n| b | - |\n| c | 3 |\n" in made
    assert (
        "*`python a.py`. Machine: two cores. Versions: numpy 2.0, scipy 1.12. Date: 2026-01-02.*"
    ) in made
    assert made.startswith("Before.\n")
    assert made.endswith("\nAfter.")
    assert tables.written(made, {"r": RESULT}) == made
    chosen = page.replace("r/t", "r/t; rows: c, a; columns: data")
    assert "\n| data |\n|---|\n| c |\n| a |\n" in tables.written(chosen, {"r": RESULT})


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("r/u", "There is no table r/u"),
        ("s/t", "There is no mark <!-- origin s -->"),
        ("r/t; rows: z", "r/t has no row or column 'z'"),
        ("r/t; lines: a", "choose rows and columns, not lines"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_told(mark, said):
    page = f"<!-- table {mark} -->\n<!-- end -->\n{ORIGIN}"
    with pytest.raises(tables.TableError, match=re.escape(said)):
        tables.written(page, {"r": RESULT})


def test_a_page_that_differs_is_named_by_the_check_and_mended_by_a_run(tmp_path, capsys):
    folder = tmp_path / tables.RESULTS
    folder.mkdir(parents=True)
    (folder / "r.json").write_text(json.dumps(RESULT))
    page = tmp_path / "README.md"
    page.write_text(f"<!-- table r/t -->\n| data |\n<!-- end -->\n{ORIGIN}\n")
    assert tables.main(["--check"], tmp_path) == 1
    assert "README.md: differs from the results files" in capsys.readouterr().out
    assert tables.main([], tmp_path) == 0
    assert tables.main(["--check"], tmp_path) == 0
    page.write_text(page.read_text().replace("| a | 1 |", "| a | 2 |"))
    assert tables.main(["--check"], tmp_path) == 1


def test_a_results_file_without_a_machine_or_with_a_short_row_is_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({key: RESULT[key] for key in RESULT if key != "machine"}))
    with pytest.raises(tables.TableError, match="has no field machine"):
        tables.read_results(tmp_path)
    short = {"t": {"columns": ["a", "b"], "rows": [[1]]}}
    path.write_text(json.dumps({**RESULT, "tables": short}))
    with pytest.raises(tables.TableError, match="a row of t is not as long as its columns"):
        tables.read_results(tmp_path)


def test_the_code_that_a_page_speaks_of_is_found():
    text = "`ode2opt/solvers/costs.py`, python benchmarks/peers.py, ode2opt/no/such.py\n"
    text += (
        "from ode2opt.integrations.sklearn import Ridge; ode2opt.solvers.stages.lbfgs.Corrections"
    )
    assert stale_pages.spoken_of(text) == {
        "ode2opt/solvers/costs.py", "benchmarks/peers.py", "ode2opt/integrations/sklearn",
        "ode2opt/solvers/stages/lbfgs.py",
    }  # fmt: skip


def test_a_page_older_than_its_code_is_told(monkeypatch):
    late = {"ode2opt/solvers/costs.py"}
    monkeypatch.setattr(stale_pages, "committed", lambda path, root: int(path in late))
    assert stale_pages.newer_code()["docs/first-solve.md"] == ["ode2opt/solvers/costs.py"]
    late.clear()
    assert not any(name.startswith("docs") for name in stale_pages.newer_code())


def test_results_are_as_old_as_their_measurement(monkeypatch):
    day = 24 * 3600
    assert stale_pages.end_of("on or before 1970-01-02") == 2 * day - 1
    assert stale_pages.end_of("not recorded") == 0
    monkeypatch.setattr(stale_pages, "end_of", lambda date: day)
    for when, told in ((day + 1, True), (day, False)):
        monkeypatch.setattr(stale_pages, "committed", lambda path, root, when=when: when)
        assert ("benchmarks/results/peers.json" in stale_pages.newer_code()) == told


@pytest.fixture
def benchmarks():
    """Imports a benchmark; what it does to the environment is undone."""
    with patch.dict(os.environ):
        yield importlib.import_module


def like(result, made):
    """Whether tables have the names and columns of those in a results file."""
    kept = json.loads((ROOT / f"benchmarks/results/{result}.json").read_text())["tables"]
    return {name: table["columns"] for name, table in kept.items()} == {
        name: table.columns for name, table in made.items()
    }


def test_what_is_recorded_has_its_machine_versions_and_date(benchmarks, tmp_path, monkeypatch):
    recording = benchmarks("recording")
    (tmp_path / "r.json").write_text(json.dumps(RESULT))
    monkeypatch.setattr(
        "sys.argv", ["/x/peers.py", "--l2", "1e-4", "--tables", "/x/kept", "--record"]
    )
    table = recording.Table("data", "seconds", quiet=True)
    table.add('a "b", [c]', 1.5)
    table.add("d", None)
    path = recording.record("r", {"t": table}, tmp_path)
    found = tables.read_results(tmp_path)["r"]
    assert found["command"] == "python benchmarks/peers.py --l2 1e-4 --tables DIR"
    assert found["versions"]["numpy"] == np.__version__
    assert re.fullmatch(rf".+, \d+ cores, \d+ GB, {platform.system()}", found["machine"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert (found["about"], found["code"]) == (RESULT["about"], RESULT["code"])
    assert found["tables"]["t"]["rows"] == [['a "b", [c]', 1.5], ["d", None]]
    assert '    ["d", null]\n' in path.read_text()
    with pytest.raises(ValueError, match="has the tables t"):
        recording.record("r", {"u": table}, tmp_path)
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        table.add("alone")


def test_the_tables_of_peers_have_ratios_means_and_the_worst(benchmarks):
    peer_tables = benchmarks("peer_tables")
    rows = [
        {
            "cell": "a5a", "rows": 32_561, "columns": 123, "l2": l2, "tol": tol, "reading": 0.01,
            "methods": {
                "auto": {"seconds": own}, "auto-no-kernels": {"seconds": 0.3},
                "glum": {"seconds": 0.2}, "saga": {},
            },
        }
        for tol in (1e-6, 1e-3) for l2, own in ((1e-3, 0.1), (1e-4, 0.2), (1e-6, 0.4))
    ]  # fmt: skip
    made = peer_tables.tables(rows)
    assert all(like(name, made) for name in ("peers", "unseen_peers", "ridge_peers"))
    assert made["ratios"].rows == [
        ["a5a", "32,561 x 123", *["0.50 (glum)", "1.00 (glum)", "2.00 (glum)"] * 2]
    ]
    row = ["a5a", "32,561 x 123", "200", "300", "200 (glum)", "20", "1.00", "2.00"]
    assert made["milliseconds"].rows == [row]


def test_other_benchmarks_make_the_tables_that_the_pages_show(benchmarks):
    sif = benchmarks("sif")
    kept = json.loads((ROOT / "benchmarks/results/scipy.json").read_text())["tables"]
    rows = [
        sif.Row(name, n, ours or math.inf, theirs or math.inf, status, True)
        for name, n, ours, theirs, status in kept["problems"]["rows"]
    ]
    made = sif.tables(rows, 1e-6)
    assert like("scipy", made)
    assert {name: table.rows for name, table in made.items()} == {
        name: table["rows"] for name, table in kept.items()
    }
    growth = benchmarks("growth")
    points = [growth.Timed(size, size, 1.0, 2.0, "lbfgs") for size in (1_000, 10)]
    made = growth.tables(points, points[:1])["rows"]
    assert made.columns == ["100 columns, rows:", "1,000", "10"]
    assert made.rows == [["auto, seconds", "1", "1"], ["of scikit-learn's best", "0.50", "0.50"]]
    shown, estimators = benchmarks("estimator_tables"), benchmarks("estimators")
    fits = [
        ("svc", "x", 7, 1.0, 2.0, "dual=True", 0.0),
        ("cv", "x", 7, 1.0, 2.0, "lbfgs", 0.0, 0.4),
    ]
    fits.append(("svc", "y", 20_000, 1.0, 4.0, "dual=False", 0.0))
    fits.append(("ridge", "y", 20_000, 1.0, None, "", 0.0))
    rows = [estimators.Row(*fit) for fit in fits]
    made = shown.side_by_side(rows)
    assert like("estimators", made)
    assert made["seconds"].rows[0] == ["x", "7", "", "", "0.50 (dual=True)", ""]
    assert made["seconds"].rows[1][2:] == ["", "", "0.25 (dual=False)", None]
    assert made["summary"].rows[2] == ["LinearSVC", "0.25", "0.35", "0.50", "x"]
    assert made["summary"].rows[3] == ["Ridge", None, None, None, None]
    made = shown.cross_validation(rows)
    assert like("cross_validation", made)
    assert made["ratios"].rows == [["x", "7", "0.50", "0.40"]]
    assert set(shown.NAMES) == set(estimators.KINDS)


def test_benchmarks_of_learning_make_the_tables_that_the_pages_show(benchmarks):
    names = {"trained": "methods", "curvature_error": "ratios", "scaling": "seconds"}
    names["flow_solvers"] = "solvers"
    for name, table in names.items():
        shown = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
        assert shown["tables"][table]["columns"] == list(benchmarks(name).COLUMNS)
    shown = json.loads((ROOT / "benchmarks/results/training_defaults.json").read_text())
    settings = benchmarks("training_defaults").SETTINGS
    assert shown["tables"]["now"]["columns"] == ["problem", *settings]
    ablation = benchmarks("ablation")
    table = benchmarks("recording").Table(*ablation.COLUMNS, quiet=True)
    for problem, variant in (
        ("logistic a5a", "lbfgs"),
        ("logistic a5a", "t"),
        ("lpp phishing", "t"),
    ):
        table.add(problem, variant, f"kept for {problem}", "3.0", 4, "", "", None)
    made = ablation.side_by_side(table)
    assert like("ablation", {"parts": made})
    kept = [["3.0", 4, f"kept for {problem}"] for problem in ("logistic a5a", "lpp phishing")]
    assert made.rows == [["lbfgs", *kept[0], None, None, None], ["t", *kept[0], *kept[1]]]


def test_the_tables_of_clusters_follow_from_what_the_cost_model_keeps(benchmarks):
    kept = json.loads((ROOT / "benchmarks/cost_model.json").read_text())
    made = benchmarks("cost_tables").tables(kept)
    shown = json.loads((ROOT / "benchmarks/results/cost_model.json").read_text())["tables"]
    assert like("cost_model", made)
    assert {name: table.rows for name, table in made.items()} == {
        name: table["rows"] for name, table in shown.items()
    }


def test_the_means_of_peers_are_those_of_the_ratios_and_those_that_pages_tell():
    kept = json.loads((ROOT / "benchmarks/results/peers.json").read_text())["tables"]
    large, every = [], []
    for row, ratios in zip(kept["milliseconds"]["rows"], kept["ratios"]["rows"], strict=True):
        known = [float(cell.split()[0]) for cell in ratios[2:] if cell and "missed" not in cell]
        every += known
        large += known if int(row[1].split(" x ")[0].replace(",", "")) >= 20_000 else []
        mean = math.exp(np.mean(np.log(known)))
        assert row[:2] == ratios[:2]
        assert float(row[6]) == pytest.approx(mean, abs=0.011)  # made before ratios are rounded
        assert float(row[7]) == max(known)
    summary = dict(zip(kept["summary"]["columns"], kept["summary"]["rows"][0], strict=True))
    for name, ratios in (("all", every), ("20,000 rows or more", large)):
        assert float(summary[name]) == pytest.approx(math.exp(np.mean(np.log(ratios))), abs=0.011)
    assert float(summary["worst"]) == max(every)
    for page in ("docs/first-solve.md", "docs/found.md"):
        assert f"{summary['all']} of the seconds of the fastest" in (ROOT / page).read_text()
    assert (
        f"{summary['20,000 rows or more']} with 20,000 rows" in (ROOT / "docs/found.md").read_text()
    )


def test_the_plan_on_its_page_is_the_plan_of_the_code():
    page = plan_table.PAGE.read_text(encoding="utf-8")
    assert plan_table.written(page) == page, "run make tables"
    rows = [line for line in plan_table.table().splitlines() if " → " in line]
    assert len(rows) >= len(plan_table.KINDS) - 1  # all but plain functions have several stages
