"""Formulas of the pages: LaTeX between dollars, drawn by a MathJax that the site brings along.

Pages write $...$ in a line and $$...$$ on lines of their own, which GitHub draws as well. MathJax
comes out of a package of the extra ``docs`` when the site is built; no page loads anything from
elsewhere. Without JavaScript a reader sees the LaTeX.
"""

import hashlib
import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

PACKAGE, FILE = "sphinx-mathjax-offline", "tex-svg.js"
SHA256 = "d4295dc33744836935c1399feece5159577b34c5c8ffb9f1c6324cd82e03a882"  # MathJax 3.2.2
FOLDER = "mathjax"
LICENCE = """MathJax 3.2.2, https://www.mathjax.org, copyright the MathJax Consortium.
Licensed under the Apache License, version 2.0: http://www.apache.org/licenses/LICENSE-2.0
"""
SETTINGS = r"""MathJax = {
  tex: {
    inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]], packages: {"[-]": ["autoload"]}
  },
  options: {enableMenu: false, ignoreHtmlClass: ".*", processHtmlClass: "arithmatex"},
  svg: {fontCache: "global"}
}"""
FORMULA = re.compile(r'class="arithmatex"')


def on_files(files: object, config: object) -> object:
    """Add MathJax and its licence to the site."""
    from mkdocs.structure.files import File

    added = {f"{FOLDER}/{FILE}": mathjax().read_bytes(), f"{FOLDER}/LICENCE.txt": LICENCE}
    for name, content in added.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_post_page(output: str, page: object, **_: object) -> str:
    """Let MathJax draw the formulas of a page that has some."""
    from mkdocs.utils import get_relative_url

    return with_mathjax(output, get_relative_url(f"{FOLDER}/{FILE}", page.url))


def with_mathjax(output: str, address: str) -> str:
    """Return a page with MathJax at ``address`` at its end; one without formulas as it is."""
    if not FORMULA.search(output):
        return output
    scripts = f'<script>{SETTINGS}</script><script defer src="{address}"></script>'
    before, end, after = output.rpartition("</body>")
    return f"{before}{scripts}{end}{after}"


def mathjax() -> Path:
    """Return the file of the installed package, which must be the one that is known."""
    try:
        found = next(path for path in files(PACKAGE) or () if path.name == FILE)
    except (PackageNotFoundError, StopIteration):
        raise FileNotFoundError(f"{PACKAGE} is missing: pip install -e '.[docs]'") from None
    path = Path(str(found.locate()))
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{path} is not MathJax 3.2.2: reinstall {PACKAGE}.")
    return path
