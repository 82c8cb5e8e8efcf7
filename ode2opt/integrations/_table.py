"""A learned table as the loops of other libraries run it: with a scale and a preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, as_positive
from ode2opt.base.errors import InputError, many
from ode2opt.base.schedule import Schedule
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.methods import BuiltIn, method_of
from ode2opt.solvers.metric import Metric


def learned_or_table(method: str | Path | Method | Schedule) -> Method | Schedule:
    """Return a method whose table other libraries can run, by the rule of :func:`method_of`."""
    found = method_of(method)
    if isinstance(found, BuiltIn):
        raise InputError(
            f"The method {method} is run by ode2opt.solve only: name a learned one (ode2opt methods"
            f" list), or give a Method, a Schedule or the Path of a method's file."
        )
    return found


class ScaledTable(NamedTuple):
    """A table for curvature 1, the curvature to divide it by, and its metric if it has one."""

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

    def parts(self, there: Callable[[np.ndarray], Array]) -> list[Array]:
        """Return what ``metric.product`` makes M g of, on another library's arrays."""
        parts = () if self.metric is None else self.metric.parts()
        return [None if part is None else there(part) for part in parts]


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
