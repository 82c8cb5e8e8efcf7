"""The documentation: its programs run, its commands are understood, what it points to is there."""

import ast
import base64
import inspect
import json
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import pytest
import typer
from support import module_of

import ode2opt
from ode2opt.cli.app import app
from ode2opt.integrations import sklearn as estimators

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}
NOTEBOOKS = {
    str(path.relative_to(ROOT)): json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("docs/notebooks/*.ipynb"))
}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
STEPS = re.compile(r"steps=[1-9]\d*")
PROGRAMS = ("ode2opt", "make", "python")
LONG = ("docs/learning.md",)
OTHERS = ("pip", "source", "git", "cd", "tensorboard", "pre-commit")


def fences(text):
    """The blocks of a page: language and content."""
    return [match.groups() for match in FENCE.finditer(text)]


def shape(text):
    """What is printed, without the numbers, which differ between machines."""
    return [NUMBER.sub("#", line).split() for line in text.strip().splitlines()]


def commands(text):
    """The command lines of a page, in fences and in indented blocks, without their remarks."""
    outside = re.findall(r"^ {4}((?:ode2opt|make|python) .*)$", FENCE.sub("", text), re.MULTILINE)
    inside = [content for language, content in fences(text) if language in ("sh", "bash")]
    lines = "\n".join([*outside, *inside]).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def with_python():
    """The pages with programs; those that train a flow compile for a minute."""
    for name, text in PAGES.items():
        if "python" in dict(fences(text)):
            yield pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LONG))


@pytest.mark.parametrize("page", [*with_python()])
def test_the_programs_of_a_page_run_and_print_what_it_says(page, tmp_path, monkeypatch):
    """Block after block in one folder; a block of text is what the one before it prints."""
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "__main__"}, ""
    for language, content in fences(PAGES[page]):
        if language == "python":
            program = STEPS.sub("steps=2", content)  # training is cut short
            with redirect_stdout(StringIO()) as stream:
                exec(compile(program, page, "exec"), names)
            printed = stream.getvalue()
        elif language == "text":
            assert shape(printed) == shape(content)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_prints_what_is_kept_in_it(name, tmp_path, monkeypatch):
    """Cell after cell in one folder, as a kernel would: the last expression is shown."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names = {"__name__": "__main__"}
    for cell in NOTEBOOKS[name]["cells"]:
        if cell["cell_type"] == "code":
            with redirect_stdout(StringIO()) as stream:
                last = run_cell("".join(cell["source"]), names)
            kept = [output for output in cell["outputs"] if output["output_type"] == "stream"]
            text = "".join(line for output in kept for line in output["text"])
            assert shape(stream.getvalue()) == shape(text)
            table = any("text/html" in output.get("data", {}) for output in cell["outputs"])
            assert table == hasattr(last, "_repr_html_")
            assert last is None or read_html(last._repr_html_())
    mpl.pyplot.close("all")


def run_cell(source, names):
    """Run a cell; returns what its last line shows, None where that ends in a semicolon."""
    body = ast.parse(STEPS.sub("steps=2", source)).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return None if source.rstrip().endswith(";") else value


def read_html(html):
    return html.startswith("<table") and html.endswith("</table>")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_holds_no_error(name):
    assert (ROOT / name).stat().st_size < 200_000
    outputs = [output for cell in NOTEBOOKS[name]["cells"] for output in cell.get("outputs", ())]
    assert outputs
    assert {output["output_type"] for output in outputs} <= {
        "stream", "display_data", "execute_result",
    }  # fmt: skip
    assert all(output.get("name") != "stderr" for output in outputs)


def test_a_notebook_becomes_a_page_with_its_output():
    pages = module_of(ROOT / "docs/notebook_pages.py")
    picture = base64.b64encode(b"png").decode()
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Words."]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [
            {"output_type": "stream", "text": ["said\n"]},
            {"output_type": "display_data", "data": {"image/png": picture, "text/plain": "p"}},
            {"output_type": "execute_result", "data": {"text/html": ["<table/>"]}},
        ]},
    ]  # fmt: skip
    page, pictures = pages.as_markdown({"cells": cells}, "mine")
    assert page == (
        "# Title\n\n*This page is a notebook: [download it](mine.ipynb).*\n\nWords.\n\n"
        "```python\n1 + 1\n```\n\n```text\nsaid\n```\n\n"
        "![What the code above draws](mine-1.png)\n\n<table/>\n"
    )
    assert pictures == {"mine-1.png": b"png"}
    link = "[a](../notebooks/mine.ipynb), [b](mine.ipynb)"
    assert pages.on_page_markdown(link) == "[a](../notebooks/mine.md), [b](mine.ipynb)"


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if commands(text)])
def test_the_commands_of_a_page_are_understood(page):
    for words in commands(PAGES[page]):
        assert words[0] in (*PROGRAMS, *OTHERS)
        if words[0] == "ode2opt":
            parse(words[1:])
        elif words[0] == "make":
            makefile = (ROOT / "Makefile").read_text()
            assert all(re.search(f"^{re.escape(target)}:", makefile, re.M) for target in words[1:])
        elif words[0] == "python" and words[1] != "-m":
            assert (ROOT / words[1]).is_file()


def parse(words):
    """Read a command line as the program would, without doing anything."""
    command, name = typer.main.get_command(app), "ode2opt"
    while hasattr(command, "commands"):
        name, *words = words
        if name.startswith("--"):
            assert any(name in each.opts for each in command.params), name
            return
        command = command.commands[name]
    with command.make_context(name, [word for word in words if word != "--debug"]):
        pass


def test_a_command_that_does_not_exist_is_noticed():
    for wrong in (["sovle", "x"], ["solve", "x.csv"], ["bench", "lpp", "a5a", "--instnces", "3"]):
        with pytest.raises((KeyError, typer.BadParameter.__mro__[1])):
            parse(wrong)


def test_every_command_is_described():
    every = typer.main.get_command(app).commands
    assert all(f"ode2opt {name}" in PAGES["docs/commands.md"] for name in every)


def test_the_page_of_commands_has_every_option():
    """The hook fills it from the program: a section for each command, a row for each option."""
    hook = module_of(ROOT / "docs/command_reference.py")
    page = hook.on_page_markdown(PAGES["docs/reference/commands.md"])
    sections = dict(re.findall(r"^## (ode2opt[\w ]*)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    every = dict(every_command("ode2opt", typer.main.get_command(app)))
    assert set(sections) == set(every)
    for name, command in every.items():
        rows = re.findall(r"^\| (`.*?`) \|", sections[name], re.M)
        due = [
            [each.metavar or each.name.upper()]
            if each.param_type_name == "argument"
            else [*each.opts, *each.secondary_opts]
            for each in command.params
        ]
        assert sorted(rows) == sorted(", ".join(f"`{one}`" for one in names) for names in due)
        assert "[bold]" not in sections[name]
        assert ("Example: `ode2opt" in sections[name]) == (name != "ode2opt")
    assert "| `--seed` | `whole number` | `0` |" in sections["ode2opt bench"]
    assert "| `--target` | `flow|sequence` | `flow` |" in sections["ode2opt train"]


def every_command(name, command):
    yield from [(name, command)] if name == "ode2opt" else ()
    for part, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from every_command(f"{name} {part}", each)
        else:
            yield f"{name} {part}", each


def test_every_public_name_is_in_the_reference():
    reference = "\n".join(text for name, text in PAGES.items() if name.startswith("docs/api/"))
    described = set(re.findall(r"^::: ode2opt\.(?:\w+\.)*(\w+)$", reference, re.MULTILINE))
    assert set(ode2opt.__all__) - {"__version__"} <= described


def test_every_estimator_is_in_the_reference_with_all_its_parameters():
    """Each parameter of a constructor has a line under "Args:"."""
    reference = PAGES["docs/api/estimators.md"]
    for name in estimators.__all__:
        assert f"::: ode2opt.integrations.sklearn.{name}\n" in reference + "\n"
        kind = getattr(estimators, name)
        lines = re.findall(r"^ +([\w, ]+):", inspect.getdoc(kind).partition("Args:")[2], re.M)
        described = {word for line in lines for word in line.split(", ")}
        assert set(inspect.signature(kind).parameters) <= described, name


IDENTITY = (
    "Learn optimisation methods from differential equations; use them on streams of problems; know "
    "what is proved."
)


def test_the_project_says_the_same_of_itself_everywhere(run_cli):
    """The first sentence of both pages, and what installers, search engines and --help show."""
    cited, site = (
        re.search(rf"^{key}: (.*)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name, key in (("CITATION.cff", "abstract"), ("mkdocs.yml", "site_description"))
    )
    package = ast.parse((ROOT / "ode2opt/__init__.py").read_text(encoding="utf-8"))
    said = {
        "README.md": PAGES["README.md"].split("\n\n")[1],
        "docs/index.md": PAGES["docs/index.md"].split("\n\n")[1],
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "description"
        ],
        "CITATION.cff": cited[1],
        "mkdocs.yml": site[1],
        "ode2opt": ast.get_docstring(package),
    }
    assert {name: " ".join(text.split()) for name, text in said.items()} == dict.fromkeys(
        said, IDENTITY
    )
    shown = run_cli("--help")[1]
    assert IDENTITY in " ".join(shown.split())


PROGRAM = '--8<-- "README.md:program"'


@pytest.mark.parametrize(
    ("page", "equation", "program"),
    [("README.md", "    x'' + ", "```python"), ("docs/index.md", "\n$$\n", f"\n{PROGRAM}\n")],
)
def test_the_first_screen_has_paper_equation_program_and_commands(page, equation, program):
    """In this order; the home page shows the program of the README, which the tests run."""
    due = [
        IDENTITY, "https://arxiv.org/abs/2406.02006", equation, program, "make demo",
        "ode2opt reproduce", "--protocol paper", "reproducing.md)", "pip install .", "penalty=L1(",
    ]  # fmt: skip
    places = [PAGES[page].find(each) for each in due]
    assert places == sorted(places)
    assert places[0] > 0


def test_the_program_of_the_first_screen_learns_solves_and_proves_in_twelve_lines():
    shown = PAGES["README.md"].partition("[start:program]")[2].partition("[end:program]")[0]
    program = dict(fences(shown))["python"]
    assert len(program.splitlines()) <= 12
    assert 0 < program.find(" learn(") < program.find(" solve(") < program.find("(prove(")


def test_the_home_page_has_the_install_line():
    assert ["pip", "install", "."] in commands(PAGES["docs/index.md"])


@pytest.mark.parametrize("page", PAGES)
def test_formulas_of_a_page_survive_markdown(page):
    """f* and x* outside code are escaped, and no inner product looks like a tag."""
    text = FENCE.sub("", PAGES[page])
    prose = re.sub(r"^ {4}.*$|`[^`]*`", "", text, flags=re.MULTILINE)
    assert not re.findall(r"(?<![\w*\\])[fx]\*(?!\*)", prose)
    assert not re.findall(r"<[a-z]\w*[^\w\s>/=-]", prose)


def test_the_build_of_the_site_refuses_a_page_that_lost_an_asterisk():
    hooks = module_of(ROOT / "docs/hooks.py")
    source = "f(x) - f* <= |x - x*|"
    assert "2 of 2" in hooks.lost_in_rendering(source, "<p>f(x) - f<em> &lt;= |x - x</em>|</p>")
    assert hooks.lost_in_rendering(source, "<p>f(x) - f* &lt;= |x - x*|</p>") == ""
    assert hooks.lost_in_rendering("`x*`, *x*", "<code>x<b>*</b></code>, <em>x</em>") == ""
    assert "<g(x)," in hooks.lost_in_rendering("<g(x), x>", "<p><g(x), x></p>")


def test_every_page_has_its_place_in_the_site():
    placed = re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")]
    pages += [re.sub(r"^docs/(.*)\.ipynb$", r"\1.md", name) for name in NOTEBOOKS]
    assert sorted(placed) == sorted(pages)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_points_to_is_there(page):
    """Links between pages, and files of the source that are named (a changelog names old ones)."""
    text = FENCE.sub("", PAGES[page])
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    named = re.findall(r"`((?:ode2opt|tests|benchmarks|docs)/[\w/.-]+\.\w+)`", text)
    for file in named if page != "CHANGELOG.md" else ():
        assert (ROOT / file).exists(), file
