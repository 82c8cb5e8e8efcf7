"""What the site does to its pages: options of training as a table, roles of docstrings as code.

It also refuses a page that lost a formula's asterisk (f*, x*) or an inner product on the way.
"""

import re
from html.parser import HTMLParser

from ode2opt.learning.options import OptionInfo, declared
from ode2opt.learning.registry import TARGETS

ROLE = re.compile(r":(?:class|func|meth):<code>(?:ode2opt\.(?:\w+\.)*)?([\w.]+)</code>")
OPTIONS = "{{ options of training }}"
STARRED = re.compile(r"(?<![\w*])[fx]\\?\*(?!\*)")  # f* and x*, escaped or not
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the options of training where a page wants them."""
    return markdown.replace(OPTIONS, _options()) if OPTIONS in markdown else markdown


def on_page_content(html: str, page: object, **_: object) -> str:
    """Take the roles out of a page that is rendered, and refuse one that lost part of a formula."""
    lost = lost_in_rendering(page.markdown, html)
    if lost:
        from mkdocs.exceptions import PluginError

        raise PluginError(f"{page.file.src_path}: {lost}")
    return ROLE.sub(r"<code>\1</code>", html)


def lost_in_rendering(markdown: str, html: str) -> str:
    """Say what of a page's formulas is missing in its HTML; "" where nothing is.

    Markdown takes the asterisks of "f* and x*" for emphasis, and "<g(x), x>" for a tag.
    """
    due = len(STARRED.findall(FENCE.sub("", markdown)))
    reader = _Reader()
    reader.feed(html)
    shown = len(STARRED.findall("".join(reader.text)))
    if shown < due:
        return f"{due - shown} of {due} asterisks of f* or x* are lost: write f\\* and x\\*."
    strange = [tag for tag in reader.tags if not re.fullmatch(r"[a-z][a-z0-9-]*", tag)]
    return f"<{strange[0]} is taken for a tag: write ⟨ and ⟩." if strange else ""


class _Reader(HTMLParser):
    """Collects the text of a page and the names of its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _options() -> str:
    """Return a table of all options: what each is, its default and what it may be, by target."""
    kinds = {target: declared(kind) for target, kind in TARGETS.items()}
    names = dict.fromkeys(name for options in kinds.values() for name in options)
    lines = [
        f"| option | what it is | {' | '.join(TARGETS)} |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for name in names:
        about = next(options[name] for options in kinds.values() if name in options)
        cells = [
            _cell(getattr(kind, name), kinds[target][name]) if name in kinds[target] else ""
            for target, kind in TARGETS.items()
        ]
        lines.append(f"| `{name}` | {about.help} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(default: object, about: OptionInfo) -> str:
    """Return a default in bold, and what else there is."""
    shown = "by rule" if default is None else f"**{default}**"
    if about.choices is not None:
        return ", ".join([shown, *(name for name in about.choices if name != default)])
    return shown if about.range is None else f"{shown}; {about.range.words}"
