"""Kinds of coefficients. A new kind is a class and a line here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.paper.coefficients.base import Coefficients, Curves
from ode2opt.paper.coefficients.default import Default
from ode2opt.paper.coefficients.feasible import Feasible
from ode2opt.paper.coefficients.log_time import Polynomial, Spline
from ode2opt.paper.coefficients.neural import Neural
from ode2opt.paper.coefficients.proved import Proved
from ode2opt.paper.coefficients.table import Table

COEFFICIENTS: dict[str, type[Coefficients]] = {
    "default": Default,
    "neural": Neural,
    "spline": Spline,
    "polynomial": Polynomial,
    "feasible": Feasible,
    "proved": Proved,
    "table": Table,
}

SIZES = ("width", "knots", "degree", "count")  # the settings that say how large coefficients are
SPARE = 16  # a size may exceed the number of parameters by this much


def kind_of(coefficients: Coefficients) -> str:
    """Return the name under which coefficients are listed in ``COEFFICIENTS``."""
    return next(name for name, kind in COEFFICIENTS.items() if type(coefficients) is kind)


def restored(
    kind: str, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> Coefficients:
    """Return coefficients from plain values, as a method file holds them."""
    if kind not in COEFFICIENTS:
        raise unknown_name("kind of coefficients", kind, COEFFICIENTS)
    size = sum(np.size(values) for values in parameters.values())
    if any(type(settings.get(n)) is int and settings[n] > size + SPARE for n in SIZES):
        raise InputError(f"The settings of the {kind} coefficients do not fit its parameters.")
    try:
        blank = COEFFICIENTS[kind].blank(**settings)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InputError(f"The settings of the {kind} coefficients are wrong: {error}") from None
    return blank.with_parameters(parameters)


__all__ = [
    "COEFFICIENTS",
    "Coefficients",
    "Curves",
    "Default",
    "Feasible",
    "Neural",
    "Polynomial",
    "Proved",
    "Spline",
    "Table",
    "kind_of",
    "restored",
]
