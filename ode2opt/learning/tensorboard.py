"""TensorBoard: scalars as training goes, figures at its end."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np

from ode2opt.base.schedule import Schedule
from ode2opt.coefficients import restored
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.solvers.method_file import Formula, Method

SCALARS = ("stopping_time", "P", "Q", "loss", "validation", "penalty")


class TensorBoard:
    """Writes a TensorBoard event file into a run directory.

    It writes at once, not from a thread, so that a full disk is reported like for other files.
    """

    def __init__(self, directory: RunDirectory | None, step: int = 0) -> None:
        self._directory = directory
        if directory is None:
            return
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.record_writer import RecordWriter

        self._event = Event
        where = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
        with directory.writing():
            self._records = RecordWriter(str(directory.path / f"events.out.tfevents.{where}"))
        self._write(file_version="brain.Event:2")
        if step:  # later ones of a run that was broken off are not shown
            self._write(step=step, session_log=SessionLog(status=SessionLog.START))

    def add(self, line: dict[str, Any], done: int) -> None:
        """Write the scalars of one line of metrics."""
        if self._directory is None:
            return
        from tensorboardX.summary import scalar

        stage = f"restart-{line['restart']}/" if "restart" in line else ""
        for name in SCALARS:
            if line[name] is not None:
                self._write(step=done - 1, summary=scalar(stage + name, line[name]))
        if line["validation"] is not None:
            with self._directory.writing():
                self._records.flush()

    def add_method(self, method: Method, step: int) -> None:
        """Draw the method's table, coefficients or preconditioner, if matplotlib is installed."""
        if self._directory is None:
            return
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError:  # the extra study; the scalars are there all the same
            return
        from tensorboardX.summary import image
        from tensorboardX.utils import figure_to_image

        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        if method.schedule is not None:
            _draw_schedule(left, method.schedule)
        if method.formula is not None:
            _draw_coefficients(right, method.formula, method.horizon)
        elif method.metric is not None:
            right.semilogy(method.metric.lengths())
            right.set_xlabel("the metric's lengths, in order")
        self._write(step=step, summary=image("method", figure_to_image(figure)))

    def close(self) -> None:
        """Flush and close the file."""
        if self._directory is not None:
            with self._directory.writing():
                self._records.close()

    def _write(self, **fields: Any) -> None:
        assert self._directory is not None
        event = self._event(wall_time=time.time(), **fields)
        with self._directory.writing():
            self._records.write(event.SerializeToString())


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
