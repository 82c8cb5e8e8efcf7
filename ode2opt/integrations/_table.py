"""A method as the loops of other libraries run it: a table, what it is divided by, a metric."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError, many
from ode2opt.problems._arrays import as_positive
from ode2opt.solvers.library import learned_or_table
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import Metric


class ScaledTable(NamedTuple):
    """A table for curvature 1, the curvature to divide it by, and the metric it runs in."""

    schedule: Schedule
    scale: float
    metric: Metric | None

    def check_size(self, n: int) -> None:
        """Refuse parameters of another number than the metric's."""
        if self.metric is not None and n != self.metric.n:
            raise InputError(
                f"The method is for {many(self.metric.n, 'variable')}; "
                f"the parameters have {n:,} numbers."
            )


def table_of(method: str | Path | Method | Schedule, scale: float | None) -> ScaledTable:
    """Return the table of a method, scaled as its family is, or of a schedule, as it is."""
    method = learned_or_table(method)
    if scale is not None:
        scale = as_positive(scale, "scale")
    if isinstance(method, Schedule):
        return ScaledTable(method, 1.0 if scale is None else scale, None)
    schedule = method.table()
    scale = method.family_scale if scale is None else scale
    if scale is None:
        raise InputError(
            f"The method for {method.family} is scaled by the curvature at each start: give "
            f"scale=method.scale_of(problem, x0)."
        )
    return ScaledTable(schedule, scale, method.metric)
