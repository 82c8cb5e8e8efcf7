"""A learned table as the loops of other libraries run it: with a scale and a preconditioner."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ode2opt.base.arrays import as_positive
from ode2opt.base.errors import InputError, many
from ode2opt.base.schedule import Schedule
from ode2opt.solvers.library import learned_or_table
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import Metric


class ScaledTable(NamedTuple):
    """A table with what it needs to run.

    Attributes:
        schedule: the table for curvature 1.
        scale: the curvature to divide it by.
        metric: the preconditioner, None for none.
    """

    schedule: Schedule
    scale: float
    metric: Metric | None

    def check_size(self, n: int) -> None:
        """Refuse parameters whose number is not the preconditioner's."""
        if self.metric is not None and n != self.metric.n:
            raise InputError(
                f"The method is for {many(self.metric.n, 'variable')}; "
                f"the parameters have {n:,} numbers."
            )


def table_of(method: str | Path | Method | Schedule, scale: float | None) -> ScaledTable:
    """Return the table of a method or of a schedule."""
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
