"""Static figures that can be read in grey."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, needing
from ode2opt.proofs.certificate import Certificate, Trace


def check_figure_file(path: Path) -> str:
    """Return the format that the ending of a figure file asks for."""
    with needing("study"):
        from matplotlib.backend_bases import FigureCanvasBase
    form, known = path.suffix.lstrip(".") or "png", FigureCanvasBase.get_supported_filetypes()
    if form not in known:
        raise InputError(f"{path}: figures are written as {', '.join(sorted(known))}.")
    return form


def certificate_figure(certificate: Certificate) -> Any:
    """Draw contraction factor, C and |1 - B| over k, a line for each instance (paper's figure
    4).
    """
    with needing("study"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    quantities: tuple[tuple[str, Callable[[Trace], np.ndarray], float], ...] = (
        ("contraction factor, top mode", lambda trace: trace.rho, 1.0),
        ("C", lambda trace: trace.C, 0.0),
        ("|1 - B|", lambda trace: np.abs(1 - trace.B), 1.0),
    )
    for axes, (label, of, edge) in zip(panels, quantities, strict=True):
        for trace in certificate.traces:
            axes.plot(of(trace), color="black", alpha=0.35, linewidth=0.8)
        axes.axhline(edge, color="tab:red", linestyle="--", linewidth=1)
        axes.set_xlabel("iteration k")
        axes.set_ylabel(label)
    figure.suptitle(f"{certificate.method}, {certificate.instances} instances")
    return figure
