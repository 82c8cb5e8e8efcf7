"""One look for all figures: Okabe and Ito's colours with dashes, which can be told apart in grey.

Colours and dashes are those of the HTML page, taken in the same order.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, needing
from ode2opt.base.storage import write_atomically
from ode2opt.proofs.certificate import Certificate
from ode2opt.solvers.plots import finish
from ode2opt.study.curves import Plot, worth_drawing
from ode2opt.study.page import COLOURS, DASHES

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


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dash of a curve, for any plot call of matplotlib."""
    colour = COLOURS[place % len(COLOURS)]
    return {
        "color": "black" if colour == "ink" else colour,
        "linestyle": _STROKES[DASHES[place % len(DASHES)]],
        "linewidth": 1.2,
    }


def new_figure(title: str, note: str, rows: int, columns: int) -> tuple[Any, list[Any]]:
    """Return an empty figure and its panels, row by row."""
    with needing("study"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * columns, 2.9 * rows + 0.9), layout="constrained")
    lines = textwrap.wrap(title, 44 * columns) + ([f"[{note}]"] if note else [])
    figure.suptitle("\n".join(lines), fontsize=11)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in panels:
        axes.tick_params(which="both", labelsize=8)
    return figure, panels


def draw_figure(
    title: str, note: str, plots: Sequence[Plot], looks: Mapping[str, int], columns: int
) -> Any:
    """Return a figure of plots; ``looks`` is the place of each curve's colour and dash."""
    figure, panels = new_figure(title, note, -(-len(plots) // columns), columns)
    for spare in panels[len(plots) :]:
        spare.set_visible(False)
    for axes, plot in zip(panels, plots, strict=False):
        _draw_panel(axes, plot, looks)
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        fitting = 57 * columns // (max(map(len, found)) + 8)
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=max(1, fitting),
            fontsize=8.5, frameon=False, handlelength=3.2,
        )  # fmt: skip
    return figure


def _draw_panel(axes: Any, plot: Plot, looks: Mapping[str, int]) -> None:
    """Draw a plot, or write what there is instead of curves."""
    title = "\n".join(filter(None, (plot.title, plot.note)))
    finish(axes, title, plot.x, plot.y, log=False, legend=False)
    found = worth_drawing(plot.curves, plot.log_y)
    if not found.curves:
        words = found.said.rstrip(".") or "missing"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.4")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for curve in found.curves:
        style = line_style(looks[curve.name])
        if plot.scattered:
            style = {"color": style["color"], "marker": MARKERS[looks[curve.name] % len(MARKERS)],
                     "markersize": 5, "markerfacecolor": "none", "linestyle": "none"}  # fmt: skip
        axes.plot(curve.x, curve.y, label=curve.name, **style)
    for curve, marker in plot.marks:
        at_top = {} if len(curve.y) else {"transform": axes.get_xaxis_transform()}
        y = curve.y if len(curve.y) else np.full(len(curve.x), 0.98)
        colour, size = line_style(looks[curve.name])["color"], 3 if at_top else 7
        axes.plot(curve.x, y, marker, color=colour, markersize=size, **at_top)
    _set_axes(axes, plot)


def _set_axes(axes: Any, plot: Plot) -> None:
    axes.set_xscale("log" if plot.log_x else "linear")
    if plot.symlog is not None:
        axes.set_yscale("symlog", linthresh=plot.symlog)
    elif plot.log_y:
        axes.set_yscale("log")
    if plot.threshold is not None:
        add_threshold(axes, plot.threshold)
    if plot.heights is not None:
        axes.set_ylim(*plot.heights)


def add_threshold(axes: Any, height: float) -> None:
    """Draw a line across a panel, with its height at the right end."""
    axes.axhline(height, color="0.45", linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
    axes.annotate(
        f"{height:g}", (1, height), xycoords=("axes fraction", "data"), xytext=(2, 0),
        textcoords="offset points", ha="left", va="center", fontsize=7, color="0.35",
    )  # fmt: skip


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF, the same bytes for the same figure."""
    paths = []
    for form in FORMATS:
        metadata = {"CreationDate": None} if form == "pdf" else {"Software": None}
        path = folder / f"{name}.{form}"

        def write(stream: Any, form: str = form, metadata: dict[str, None] = metadata) -> None:
            figure.savefig(stream, format=form, dpi=150, metadata=metadata)

        write_atomically(path, write)
        paths.append(path)
    return paths


def check_figure_file(path: Path) -> str:
    """Return the format that the ending of a figure file asks for."""
    with needing("study"):
        from matplotlib.backend_bases import FigureCanvasBase
    form, known = path.suffix.lstrip(".") or "png", FigureCanvasBase.get_supported_filetypes()
    if form not in known:
        raise InputError(f"{path}: figures are written as {', '.join(sorted(known))}.")
    return form


def certificate_figure(certificate: Certificate) -> Any:
    """Draw contraction factor, C and |1 - B| over k, a line for each instance (figure 4)."""
    title = f"{certificate.method}, {certificate.instances} instances"
    figure, panels = new_figure(title, "", 1, 3)
    traces = certificate.traces
    quantities = (
        ("contraction factor, top mode", [trace.rho for trace in traces], 1.0),
        ("C", [trace.C for trace in traces], 0.0),
        ("|1 - B|", [np.abs(1 - trace.B) for trace in traces], 1.0),
    )
    for axes, (label, lines, edge) in zip(panels, quantities, strict=True):
        for line in lines:
            axes.plot(line, color="black", alpha=0.35, linewidth=0.8)
        add_threshold(axes, edge)
        finish(axes, "", "iteration k", label, log=False, legend=False)
    return figure
