"""TensorBoard: scalars as training goes, figures at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.dynamics.coefficients import restored
from ode2opt.dynamics.schedule import Schedule
from ode2opt.solvers.method import Formula, Method

SCALARS = ("stopping_time", "P", "Q", "loss", "validation", "penalty")


class Board:
    """Event files in a run directory; without one, nothing."""

    def __init__(self, folder: Path | None, step: int = 0) -> None:
        self._writer = None
        if folder is not None:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=step or None)

    def add(self, line: dict[str, Any]) -> None:
        """Write the scalars of one line of metrics."""
        if self._writer is None:
            return
        for name in SCALARS:
            if line[name] is not None:
                self._writer.add_scalar(name, line[name], line["step"])

    def add_method(self, method: Method, step: int) -> None:
        """Draw what there is of schedule, coefficients and metric, if matplotlib is installed."""
        if self._writer is None:
            return
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError:  # the extra study; the scalars are there all the same
            return
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        if method.schedule is not None:
            _draw_schedule(left, method.schedule)
        if method.formula is not None:
            _draw_coefficients(right, method.formula, method.horizon)
        elif method.metric is not None:
            right.semilogy(method.metric.lengths())
            right.set_xlabel("the metric's lengths, in order")
        self._writer.add_figure("method", figure, step)

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()


def _draw_schedule(axes: Any, schedule: Schedule) -> None:
    for name, style in zip("acd", ("-", "--", ":"), strict=True):
        axes.semilogy(getattr(schedule, name), label=name, linestyle=style)
    axes.set_xlabel("iteration k")
    axes.legend()


def _draw_coefficients(axes: Any, formula: Formula, horizon: int) -> None:
    t = formula.t0 + formula.h * np.arange(horizon)
    curves = restored(formula.kind, formula.settings, formula.parameters).curves(t)
    axes.loglog(t, curves.beta, label="beta(t)")
    axes.loglog(t, curves.gamma, label="gamma(t)", linestyle="--")
    axes.set_xlabel("t")
    axes.legend()
