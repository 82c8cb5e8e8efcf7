"""A page of text, tables, bars and plots in one HTML file that fetches nothing.

The page carries plotly.js (its basic bundle, packed), its data as JSON and a script that draws it.
Its policy forbids the browser any request, so it reads the same from a disk, a mail or a server
without a network. How it looks is in the files of ``web``.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError, needing
from ode2opt.base.storage import write_atomically
from ode2opt.study.curves import Curve, Plot, plain, thinned, worth_drawing

# Okabe and Ito's colours without yellow, which white swallows; "ink" is the text's colour. Seven
# colours and six dashes repeat together after 42 names only.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "ink")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
WEB = "web"
_NUMBER = re.compile(r"[<>]?\s*[-+]?(\d[\d,]*\.?\d*|\.\d+)(e[-+]?\d+)?(\s*[%/(±].*)?", re.I)
_NOTHING = ("", "-")


class Page:
    """Collects the parts of a page, from top to bottom; all text is taken as plain text.

    Examples:
        >>> page = Page("A run")
        >>> page.add_text("It went well.")
        >>> page.save("report.html")
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title, self._subtitle = title, subtitle
        self._parts: list[tuple[str, dict[str, Any]]] = []
        self._figures: list[dict[str, Any]] = []
        self._names: dict[str, int] = {}

    def _add(self, kind: str, **values: Any) -> None:
        """Add a part that the macro ``kind`` of parts.html.jinja writes."""
        self._parts.append((kind, values))

    def add_heading(self, text: str) -> None:
        """Begin a section."""
        self._add("heading", text=text)

    def add_text(self, text: str) -> None:
        """Add paragraphs."""
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text)]
        self._add("text", paragraphs=[part for part in paragraphs if part])

    def add_facts(self, facts: Mapping[str, str]) -> None:
        """Add a list of names and values."""
        self._add("facts", pairs=list(facts.items()))

    def add_table(self, columns: list[str], rows: list[list[str]], caption: str = "") -> None:
        """Add a table; numbers stand on the right, and a narrow screen scrolls it sideways.

        A row whose first cell is that of the row before belongs to that row.
        """
        for row in rows:
            if len(row) != len(columns):
                raise InputError(f"A row of {len(row)} cells in a table of {len(columns)} columns.")
        numeric = [
            bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))
        ]
        self._add(
            "table",
            columns=list(zip(columns, numeric, strict=True)),
            rows=[
                ([(text, _is_number(text)) for text in row], row[:1] == before[:1])
                for row, before in zip(rows, [[], *rows], strict=False)
            ],
            caption=caption,
        )

    def add_bars(
        self,
        title: str,
        values: Mapping[str, float],
        shown: Mapping[str, str],
        caption: str = "",
    ) -> None:
        """Add a bar for each name, the first one in colour."""
        longest = max(values.values(), default=0.0) or 1.0
        rows = [
            (name, shown[name], f"{100 * value / longest:.1f}") for name, value in values.items()
        ]
        self._add("bars", title=title, rows=rows, caption=caption)

    def add_plot(self, plot: Plot) -> None:
        """Add a plot of curves; where none of them varies, a sentence that says so."""
        found = worth_drawing(plot.curves, plot.log_y)
        caption = _joined(plot.note and f"{plot.note}.".capitalize(), plot.caption)
        if not found.curves:
            self._add("flat", title=plot.title, words=_joined(found.said, caption))
            return
        number, said = len(self._figures), _joined(caption, found.said)
        self._add("plot", title=plot.title, number=number, caption=said)
        self._figures.append(
            {
                "x": {"title": escape(plot.x, quote=False), "log": plot.log_x},
                "y": {"title": escape(plot.y, quote=False), "log": plot.log_y},
                "threshold": plot.threshold,
                "heights": plot.heights,
                "curves": [
                    self._drawn(
                        curve, 2 + 5 * hidden
                    )  # five pixels wider than the curve that hides it
                    for curve, hidden in zip(found.curves, found.hidden, strict=True)
                ],
            }
        )

    def plot(self, title: str, curves: Sequence[Curve], x: str, y: str, **options: Any) -> None:
        """Add a plot with the fields of a :class:`Plot`."""
        self.add_plot(Plot(title, curves, x, y, **options))

    def html(self) -> str:
        """Return the whole page as HTML."""
        page: str = _template().render(
            title=self._title,
            subtitle=self._subtitle,
            parts=self._parts,
            figures=self._figures,
            policy=POLICY,
        )
        return page

    def save(self, path: str | Path) -> None:
        """Write the page; a crash or a full disk leaves the old file as it was."""
        text = self.html().encode()
        write_atomically(Path(path), lambda stream: stream.write(text))

    def _drawn(self, curve: Curve, width: int) -> dict[str, Any]:
        """Return a curve as the script takes it."""
        short = thinned(curve)
        style = self._names.setdefault(curve.name, len(self._names))
        return {
            "name": escape(curve.name, quote=False),
            "group": curve.group or curve.name,
            "colour": COLOURS[style % len(COLOURS)],
            "dash": DASHES[style % len(DASHES)],
            "width": width,
            "marked": len(short.x) <= 30,  # points are marked one by one
            "x": plain(short.x),
            "y": plain(short.y),
        }


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _is_number(text: str) -> bool:
    return text in _NOTHING or _NUMBER.fullmatch(text) is not None


@cache
def _template() -> Any:
    """Return the page's template. What is filled in is escaped; only the package's files are not.

    tojson, jinja's own, writes no <, > nor &, so that data cannot end its script element.
    """
    with needing("study"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    environment = Environment(
        loader=PackageLoader("ode2opt.study", WEB),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals |= {
        "file": lambda name: Markup(_file(name).decode()),
        "packed": lambda name: Markup(_packed(name)),
    }
    return environment.get_template("page.html.jinja")


def _file(name: str) -> bytes:
    return (files("ode2opt.study") / WEB / name).read_bytes()


@cache
def _packed(name: str) -> str:
    """Return a file as base64 of gzip: a third of its size, and the same at any time."""
    return base64.b64encode(gzip.compress(_file(name), mtime=0)).decode()
