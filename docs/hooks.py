"""What the site does to its pages: options of training as a table, roles of docstrings as code."""

import re

from ode2opt.learning.options import About, declared
from ode2opt.learning.registry import TARGETS

ROLE = re.compile(r":(?:class|func|meth):<code>(?:[\w.]*\.)?(\w+)</code>")
OPTIONS = "{{ options of training }}"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the options of training where a page wants them."""
    return markdown.replace(OPTIONS, _options()) if OPTIONS in markdown else markdown


def on_page_content(html: str, **_: object) -> str:
    """Take the roles out of a page that is rendered."""
    return ROLE.sub(r"<code>\1</code>", html)


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


def _cell(default: object, about: About) -> str:
    """Return a default in bold, and what else there is."""
    shown = "by rule" if default is None else f"**{default}**"
    if about.choices is not None:
        return ", ".join([shown, *(name for name in about.choices if name != default)])
    return shown if about.range is None else f"{shown}; {about.range.words}"
