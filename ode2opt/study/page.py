"""A page of text, tables and plots in one HTML file that fetches nothing.

The page carries plotly.js, its data as JSON and a script that draws it. Its policy forbids the
browser any request, so it reads the same from a disk, a mail or a server without a network.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ode2opt.errors import InputError, needing
from ode2opt.storage import write_atomically

LONGEST = 1000  # points of a curve
FEW = 30  # points that are marked one by one
# Okabe and Ito's colours without yellow, which white swallows; "ink" is the text's colour. Seven
# colours and six dashes repeat together after 42 names only.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "ink")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
_NUMBER = re.compile(r"[<>]?\s*[-+]?(\d[\d,]*\.?\d*|\.\d+)(e[-+]?\d+)?(\s*[%/(±].*)?", re.I)
_NOTHING = ("", "-")


class Curve(NamedTuple):
    """A line of a plot.

    Curves of one name look the same on the whole page and share an entry of the legend; curves of
    one group (by default, of one name) are shown and hidden together.
    """

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    group: str = ""


class Page:
    """Collects the parts of a page, from top to bottom; all text is taken as plain text."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if subtitle:
            self._parts.append(f'<p class="subtitle">{escape(subtitle)}</p>')
        self._figures: list[dict[str, Any]] = []
        self._names: dict[str, int] = {}

    def add_heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def add_text(self, text: str) -> None:
        """Add paragraphs; an empty line ends one."""
        paragraphs = (part.strip() for part in re.split(r"\n\s*\n", text))
        self._parts += [f"<p>{escape(part)}</p>" for part in paragraphs if part]

    def add_facts(self, facts: dict[str, str]) -> None:
        """Add a list of names and values."""
        pairs = (
            f"<div><dt>{escape(k)}</dt><dd>{escape(value)}</dd></div>" for k, value in facts.items()
        )
        self._parts.append(f"<dl>{''.join(pairs)}</dl>")

    def add_table(self, columns: list[str], rows: list[list[str]], caption: str = "") -> None:
        """Add a table; numbers stand on the right, and a narrow screen scrolls it sideways."""
        for row in rows:
            if len(row) != len(columns):
                raise InputError(f"A row of {len(row)} cells in a table of {len(columns)} columns.")
        numeric = [
            bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))
        ]
        head = "".join(_cell("th", *pair) for pair in zip(columns, numeric, strict=True))
        body = "".join(_row(row, before) for row, before in zip(rows, [[], *rows], strict=False))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self._parts.append(
            f'<div class="scroll" tabindex="0">{table}</div>{_caption("p", caption)}'
        )

    def add_plot(
        self,
        title: str,
        curves: list[Curve],
        *,
        x: str,
        y: str,
        log_x: bool = False,
        log_y: bool = False,
        threshold: float | None = None,
        heights: tuple[float, float] | None = None,
        caption: str = "",
    ) -> None:
        """Add a plot of curves.

        Args:
            title: what is above it.
            curves: what is in it. A value that is not finite is a gap; of more than 1000 points,
                the extremes of each stretch are kept.
            x, y: the axes in words.
            log_x, log_y: whether an axis is logarithmic.
            threshold: a height to mark by a line across the plot.
            heights: the part of the y axis to show at first; None shows all.
            caption: what is below it.
        """
        number = len(self._figures)
        self._figures.append(
            {
                "x": {"title": escape(x, quote=False), "log": log_x},
                "y": {"title": escape(y, quote=False), "log": log_y},
                "threshold": threshold,
                "heights": heights,
                "curves": [self._drawn(curve) for curve in curves],
            }
        )
        self._parts.append(
            f'<figure><h3>{escape(title)}</h3><div class="plot" id="plot-{number}"></div>'
            f"{_caption('figcaption', caption)}</figure>"
        )

    def html(self) -> str:
        """Return the whole page."""
        with needing("study"):
            from plotly.offline import get_plotlyjs
        head = [
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(self._title)}</title>",
            f"<style>{STYLE}</style>",
        ]
        body = ["<main>", *self._parts, "</main>"]
        if self._figures:
            body += [
                "<noscript>The plots of this page are drawn by its script.</noscript>",
                f'<script type="application/json" id="figures">{_json(self._figures)}</script>',
                f"<script>{get_plotlyjs()}</script>",
                f"<script>{SCRIPT}</script>",
            ]
        lines = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>"]
        return "\n".join([*lines, "<body>", *body, "</body>", "</html>", ""])

    def save(self, path: str | Path) -> None:
        """Write the page; a crash or a full disk leaves what was there."""
        text = self.html().encode()
        write_atomically(Path(path), lambda stream: stream.write(text))

    def _drawn(self, curve: Curve) -> dict[str, Any]:
        """Return a curve as the script takes it."""
        x, y = (np.asarray(values, dtype=float) for values in (curve.x, curve.y))
        if x.ndim != 1 or x.shape != y.shape:
            raise InputError(f"The curve {curve.name} has x of {x.shape} and y of {y.shape}.")
        x, y = _thinned(x, y)
        style = self._names.setdefault(curve.name, len(self._names))
        return {
            "name": escape(curve.name, quote=False),
            "group": curve.group or curve.name,
            "colour": COLOURS[style % len(COLOURS)],
            "dash": DASHES[style % len(DASHES)],
            "marked": len(x) <= FEW,
            "x": _plain(x),
            "y": _plain(y),
        }


def _row(cells: list[str], before: list[str]) -> str:
    """Return a row of a table; one that begins as the row before it belongs to that one."""
    again = " class=again" if cells[:1] == before[:1] else ""
    return f"<tr{again}>{''.join(_cell('td', text, _is_number(text)) for text in cells)}</tr>"


def _cell(tag: str, text: str, is_number: bool) -> str:
    return f"<{tag}{' class=number' if is_number else ''}>{escape(text)}</{tag}>"


def _caption(tag: str, text: str) -> str:
    return f'<{tag} class="caption">{escape(text)}</{tag}>' if text else ""


def _is_number(text: str) -> bool:
    return text in _NOTHING or _NUMBER.fullmatch(text) is not None


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most LONGEST points: both ends and the extremes of each stretch, spikes too."""
    if len(x) <= LONGEST:
        return x, y
    kept = [0, len(x) - 1]
    for part in np.array_split(np.arange(len(x)), LONGEST // 2 - 1):
        finite = part[np.isfinite(y[part])]
        if len(finite):
            kept += [finite[y[finite].argmin()], finite[y[finite].argmax()]]
        else:
            kept.append(part[0])  # a gap stays one
    chosen = np.unique(kept)
    return x[chosen], y[chosen]


def _plain(values: np.ndarray) -> list[float | None]:
    """Return six digits of each value, None for what is not finite."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]


def _json(document: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


STYLE = """
:root { --paper: #ffffff; --ink: #1c2024; --faint: #5b636b; --line: #d5dade; --raised: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e9ec; --faint: #a0a8b0; --line: #3a4148; --raised: #1e2226; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; display: grid;
  grid-template-columns: minmax(0, 1fr); column-gap: 2rem; }
main > * { grid-column: 1 / -1; min-width: 0; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.5rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem; padding-bottom: 0.3rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0; }
p { margin: 0.5rem 0; max-width: 46rem; overflow-wrap: break-word; }
.subtitle, .caption, dt { color: var(--faint); }
.caption { font-size: 0.875rem; margin: 0.3rem 0 0.5rem; }
.scroll { overflow-x: auto; margin: 0.75rem 0 0.25rem; background:
  linear-gradient(to left, var(--paper) 50%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--line), transparent) right / 0.8rem 100% no-repeat; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.875rem;
  border-bottom: 1px solid var(--line); }
th, td { padding: 0.3rem 0.5rem; text-align: left; white-space: nowrap; }
td { border-top: 1px solid var(--line); }
th, .again td:first-child { color: var(--faint); }
th { font-weight: 600; }
.again td { border-top: 0; padding-top: 0; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper);
  padding-left: 0; }
.number { text-align: right; }
@media (max-width: 40rem) {
  th, td { padding: 0.3rem; }
  th:first-child, td:first-child { white-space: normal; min-width: 6rem; }
}
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
  gap: 0.6rem 1.2rem; margin: 0.75rem 0; }
dt { font-size: 0.875rem; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
.plot { width: 100%; }
@media (min-width: 60rem) {
  main { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  figure { grid-column: auto; }
  :not(figure) + figure:not(:has(+ figure)) { grid-column: 1 / -1; }
}
"""

SCRIPT = """
"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;
const config = {  // the buttons by name: others would offer to send the plot away
  responsive: true, displaylogo: false, typesetMath: false,
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
};

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue("--" + name).trim();
}

function traces(curves, names, colour) {
  const seen = new Set();
  const label = names > 1 ? "%{fullData.name}" : "";
  return curves.map((curve) => {
    const line = { dash: curve.dash, width: 2,
      color: curve.colour === "ink" ? colour("ink") : curve.colour };
    const first = !seen.has(curve.name);
    seen.add(curve.name);
    return {
      type: "scatter", mode: curve.marked ? "lines+markers" : "lines", line, marker: { size: 6 },
      name: curve.name, legendgroup: curve.group, showlegend: first, x: curve.x, y: curve.y,
      hovertemplate: "%{x:.6~g}, %{y:.5~g}<extra>" + label + "</extra>",
    };
  });
}

function axis(about, values, colour, shown = null) {
  const exponents = values.filter((value) => value > 0).map(Math.log10);
  const decades = exponents.reduce((a, b) => Math.max(a, b), -Infinity)
    - exponents.reduce((a, b) => Math.min(a, b), Infinity);
  const few = about.log && decades < 3;  // then 1, 2 and 5 are written out
  return {
    title: { text: about.title, standoff: 8 }, type: about.log ? "log" : "linear",
    automargin: true, exponentformat: "power", tickformat: few ? "~g" : "",
    nticks: few && decades > 1 ? Math.round(2 * decades) : 0, ticks: "outside",
    gridcolor: colour("line"), zerolinecolor: colour("line"), tickcolor: colour("line"),
    linecolor: colour("faint"),
    ...(shown ? { range: about.log ? shown.map(Math.log10) : shown } : {}),
  };
}

function threshold(height, colour) {
  return {
    type: "line", xref: "paper", x0: 0, x1: 1, y0: height, y1: height, layer: "below",
    line: { color: colour("faint"), width: 1, dash: "dash" },
  };
}

function heightBeside(height, log, colour) {
  const [text] = [String(height), height.toExponential()].sort((a, b) => a.length - b.length);
  return {
    xref: "paper", x: 1, xanchor: "left", y: log ? Math.log10(height) : height,
    text, showarrow: false, font: { color: colour("faint"), size: 12 },
  };
}

function legendRows(names, width) {
  let rows = 1, used = 0;
  for (const name of names) {
    const needed = 70 + 7 * name.length;
    if (used && used + needed > width - 100) { rows += 1; used = 0; }
    used += needed;
  }
  return names.length > 1 ? rows : 0;
}

function layout(figure, names, width, colour) {
  const marked = figure.threshold !== null;
  return {
    height: 350 + 22 * legendRows(names, width),
    margin: { l: 20, r: marked ? 44 : 24, t: 32, b: 20 },
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"),
    font: { color: colour("ink"), size: 13, family: getComputedStyle(document.body).fontFamily },
    xaxis: axis(figure.x, figure.curves.flatMap((curve) => curve.x), colour),
    yaxis: axis(figure.y, figure.heights || figure.curves.flatMap((curve) => curve.y), colour,
      figure.heights),
    shapes: marked ? [threshold(figure.threshold, colour)] : [],
    annotations: marked ? [heightBeside(figure.threshold, figure.y.log, colour)] : [],
    showlegend: names.length > 1, uirevision: "kept", hovermode: "closest",
    dragmode: touch ? false : "zoom",
    legend: { orientation: "h", itemwidth: 44, x: 0, xref: "container", xanchor: "left",
      y: 0, yref: "container", yanchor: "bottom" },
    hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line"), namelength: -1,
      font: { color: colour("ink") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("ink") },
  };
}

function draw() {
  const colour = colours();
  figures.forEach((figure, i) => {
    const box = document.getElementById("plot-" + i);
    const names = [...new Set(figure.curves.map((curve) => curve.name))];
    Plotly.react(box, traces(figure.curves, names.length, colour),
      layout(figure, names, box.clientWidth, colour), config);
  });
}

draw();
dark.addEventListener("change", draw);
"""
