"""Kinds of coefficients. A new kind is a class and a line here."""

from ode2opt.dynamics.coefficients.base import Coefficients, Curves
from ode2opt.dynamics.coefficients.default import Default
from ode2opt.dynamics.coefficients.feasible import Feasible
from ode2opt.dynamics.coefficients.log_time import Polynomial, Spline
from ode2opt.dynamics.coefficients.neural import Neural
from ode2opt.dynamics.coefficients.table import Table

KINDS: dict[str, type[Coefficients]] = {
    "default": Default,
    "neural": Neural,
    "spline": Spline,
    "polynomial": Polynomial,
    "feasible": Feasible,
    "table": Table,
}

__all__ = [
    "KINDS",
    "Coefficients",
    "Curves",
    "Default",
    "Feasible",
    "Neural",
    "Polynomial",
    "Spline",
    "Table",
]
