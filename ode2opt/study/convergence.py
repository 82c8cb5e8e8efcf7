"""A plot of gradient norms on one fresh problem, from the curves that a method file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ode2opt.base.errors import InputError
from ode2opt.base.schema import read
from ode2opt.learning.comparison import CURVES
from ode2opt.solvers.method_file import Method
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.run_files import part_of


@dataclass(frozen=True)
class GradientCurve:
    """The gradient norms of a solve.

    Attributes:
        calls: the oracle calls after which each norm was seen.
        norms: the norms.
    """

    calls: tuple[float, ...]
    norms: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.calls) != len(self.norms):
            raise InputError(f"there are {len(self.calls)} calls and {len(self.norms)} norms.")


def add_convergence(page: Page, file: Path, method: Method, names: Mapping[str, str]) -> None:
    """Add a plot of gradient norms over oracle calls, where the method file has them."""
    if method.statistics.get(CURVES) is None:
        return
    found = part_of(file, method.statistics, CURVES)
    curves = {name: _curve(file, name, found) for name in found}
    known = [name for name in names if name in curves]
    page.add_plot(
        "Gradient norm on a fresh problem",
        [
            Curve(names.get(name, name), curves[name].calls, curves[name].norms)
            for name in (*known, *(name for name in curves if name not in names))
        ],
        x="oracle calls",
        y="gradient norm",
        log_y=True,
        threshold=method.tol,
        caption="The first of the fresh test problems, by each method from the same start; the "
        "dashed line is the tolerance.",
    )


def _curve(file: Path, name: str, found: Mapping[str, object]) -> GradientCurve:
    try:
        return read(GradientCurve, part_of(file, found, name))
    except InputError as error:
        raise InputError(f"{file} is no valid method: its curve of {name}: {error}") from None
