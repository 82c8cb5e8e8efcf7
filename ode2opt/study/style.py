"""One look for all figures: Okabe and Ito's colours with dashes, which can be told apart in grey.

Colours and dashes are those of the HTML page, taken in the same order.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import needing
from ode2opt.base.storage import write_atomically
from ode2opt.study.page import COLOURS, DASHES

INK = "black"
_STROKES = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1.2, 1.4)),
    "dashdot": (0, (6, 2, 1.2, 2)),
    "longdash": (0, (10, 3)),
    "longdashdot": (0, (10, 2.5, 1.2, 2.5)),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("png", "pdf")
DPI = 150
ABOVE, BELOW = 4.0, 0.4  # how far a panel goes beyond the first and the least height
TITLE_WIDTH = 44  # letters over one column of panels


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dash of a curve, for any plot call of matplotlib."""
    colour = COLOURS[place % len(COLOURS)]
    return {
        "color": INK if colour == "ink" else colour,
        "linestyle": _STROKES[DASHES[place % len(DASHES)]],
        "linewidth": 1.2,
    }


def marker_style(place: int) -> dict[str, Any]:
    """Return colour and shape of points, for ``Axes.scatter``."""
    colour = line_style(place)["color"]
    marker = MARKERS[place % len(MARKERS)]
    return {"color": colour, "marker": marker, "s": 22, "linewidths": 0.9, "facecolors": "none"}


def new_figure(title: str, note: str, rows: int, columns: int) -> tuple[Any, list[Any]]:
    """Return an empty figure and its panels, row by row."""
    with needing("study"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * columns, 2.9 * rows + 0.9), layout="constrained")
    lines = textwrap.wrap(title, TITLE_WIDTH * columns) + ([f"[{note}]"] if note else [])
    figure.suptitle("\n".join(lines), fontsize=11)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in panels:
        axes.grid(True, color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", labelsize=8)
    return figure, panels


def name_panel(axes: Any, title: str, x: str, y: str) -> None:
    """Write the title and the axes of a panel."""
    axes.set_title(title, fontsize=9.5)
    axes.set_xlabel(x, fontsize=8.5)
    axes.set_ylabel(y, fontsize=8.5)


def add_threshold(axes: Any, height: float) -> None:
    """Draw a line across a panel, its height written beside it."""
    axes.axhline(height, color="0.45", linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
    axes.annotate(
        f"{height:g}", (1, height), xycoords=("axes fraction", "data"), xytext=(2, 0),
        textcoords="offset points", ha="left", va="center", fontsize=7, color="0.35",
    )  # fmt: skip


def say_in_panel(axes: Any, words: str = "missing") -> None:
    """Write words into a panel that has nothing to draw."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.4")
    axes.set_xticks([])
    axes.set_yticks([])


def add_legend(figure: Any, panels: Sequence[Any], columns: int) -> None:
    """Put one legend below all panels, each name once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize=8.5,
            frameon=False, handlelength=3.2,
        )  # fmt: skip


def window_of(lines: Sequence[Any]) -> tuple[float, float]:
    """Return heights that hold all lines, but not what a diverging one climbs to."""
    finite = [np.asarray(line, float)[np.isfinite(line)] for line in lines]
    low = min(line[line > 0].min() for line in finite if np.any(line > 0))
    return BELOW * low, ABOVE * max(line[0] for line in finite)


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF, the same bytes for the same figure."""
    paths = []
    for form in FORMATS:
        metadata = {"CreationDate": None} if form == "pdf" else {"Software": None}
        path = folder / f"{name}.{form}"

        def write(stream: Any, form: str = form, metadata: dict[str, None] = metadata) -> None:
            figure.savefig(stream, format=form, dpi=DPI, metadata=metadata)

        write_atomically(path, write)
        paths.append(path)
    return paths
