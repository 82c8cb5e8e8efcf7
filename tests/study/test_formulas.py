"""Formulas of the documentation: well formed, and drawn by the MathJax that the site brings."""

import html
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from support import module_of

from ode2opt.coefficients import Feasible
from ode2opt.learning.stage import FIRST_STEPS
from ode2opt.paper import largest_stable_C
from ode2opt.proofs.chain import LONGEST
from ode2opt.proofs.following import FIRST
from ode2opt.solvers.relay import Relay

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```$|^ {4}.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
DISPLAYED = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$([^$]+)\$")
FORMULAS = module_of(ROOT / "docs/formulas.py")


def formulas(text):
    """The displayed formulas of a page and those in its lines."""
    text = CODE.sub("", text)
    return DISPLAYED.findall(text), INLINE.findall(DISPLAYED.sub("", text))


PAGES = {
    str(path.relative_to(ROOT)): formulas(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("docs/**/*.md"))
    if "$" in CODE.sub("", path.read_text(encoding="utf-8"))
}


def test_formulas_are_told_from_code():
    page = "a $x_1$ and\n\n$$\n\\beta\n$$\n\n`$HOME`\n\n    $b$\n\n```sh\n$c$\n```\n"
    assert formulas(page) == (["\\beta"], ["x_1"])


def test_the_mathematics_is_typeset():
    displayed, inline = PAGES["docs/mathematics.md"]
    assert len(displayed) > 30
    assert len(inline) > 300


@pytest.mark.parametrize("page", PAGES)
def test_what_is_opened_in_a_formula_is_closed(page):
    for formula in (*PAGES[page][0], *PAGES[page][1]):
        plain = re.sub(r"\\[{}]", "", formula)
        assert plain.count("{") == plain.count("}"), formula
        begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", formula) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended), formula
        assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula))
        assert not formula.startswith(" "), formula


def test_numbers_of_the_page_are_those_of_the_code():
    """docs/mathematics.md, sections 7, 8 and 11, and docs/certificates.md."""
    page = (ROOT / "docs/mathematics.md").read_text(encoding="utf-8")
    relay = Relay().coefficients
    assert f"$C = {relay.C:g}$ and $\\alpha = {relay.alpha:g}$" in page.replace("\n", " ")
    assert f"{Feasible().margin:g} by default" in page
    assert f"{largest_stable_C():.3f} is the largest stable one" in page
    assert f"(1 + k/{FIRST_STEPS})" in page
    levels = (ROOT / "docs/certificates.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"for up to {LONGEST + 1} iterations" in levels
    assert f"after {FIRST[0]} iterations" in levels


def test_only_pages_with_formulas_load_mathjax():
    page = '<body><p class="arithmatex">x</p></body>'
    assert 'src="../mathjax/tex-svg.js"' in FORMULAS.with_mathjax(page, "../mathjax/tex-svg.js")
    assert FORMULAS.with_mathjax("<body></body>", "a.js") == "<body></body>"


def test_another_file_in_the_place_of_mathjax_is_refused(tmp_path, monkeypatch):
    class Other:
        name = "tex-svg.js"

        def locate(self):
            return tmp_path / "tex-svg.js"

    (tmp_path / "tex-svg.js").write_text("something else")
    monkeypatch.setattr(FORMULAS, "files", lambda name: [Other()])
    with pytest.raises(ValueError, match="is not MathJax"):
        FORMULAS.mathjax()

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(FORMULAS, "files", missing)
    with pytest.raises(FileNotFoundError, match="pip install -e"):
        FORMULAS.mathjax()


def test_mathjax_draws_every_formula_without_an_error(browser, tmp_path):
    try:
        script = FORMULAS.mathjax()
    except FileNotFoundError:
        pytest.skip("needs the extra docs, for MathJax")
    parts = []
    for displayed, inline in PAGES.values():
        parts += [f'<div class="arithmatex">\\[{html.escape(f)}\\]</div>' for f in displayed]
        parts += [f'<span class="arithmatex">\\({html.escape(f)}\\)</span> ' for f in inline]
    page = tmp_path / "page.html"
    text = f"<!doctype html><body>{''.join(parts)}</body>"
    page.write_text(FORMULAS.with_mathjax(text, script.as_uri()), encoding="utf-8")
    requests = []
    view = browser.new_page()
    view.on("request", lambda request: requests.append(request.url))
    view.goto(page.as_uri())
    view.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    view.evaluate("MathJax.startup.promise")
    assert view.locator("mjx-container").count() == len(parts)
    errors = view.locator("[data-mjx-error]").all()
    assert [error.get_attribute("data-mjx-error") for error in errors] == []
    assert requests == [page.as_uri(), script.as_uri()]
    view.close()
