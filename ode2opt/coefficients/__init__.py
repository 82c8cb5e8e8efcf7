"""Kinds of coefficients: the paper's two, and more. A new one is a class and a line here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.coefficients.constrained import Feasible, Proved
from ode2opt.coefficients.curves import Polynomial, Spline, Table
from ode2opt.paper.coefficients import Coefficients, Curves, Default, Neural

COEFFICIENTS: dict[str, type[Coefficients]] = {
    "default": Default,
    "neural": Neural,
    "spline": Spline,
    "polynomial": Polynomial,
    "feasible": Feasible,
    "proved": Proved,
    "table": Table,
}


def kind_of(coefficients: Coefficients) -> str:
    """Return the name under which coefficients are listed in ``COEFFICIENTS``."""
    return next(name for name, kind in COEFFICIENTS.items() if type(coefficients) is kind)


def restored(
    kind: str, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> Coefficients:
    """Return coefficients from plain values, as a method file holds them."""
    if kind not in COEFFICIENTS:
        raise unknown_name("kind of coefficients", kind, COEFFICIENTS)
    most = sum(np.size(values) for values in parameters.values()) + 16  # before room is taken
    sizes = (settings.get(name) for name in ("width", "knots", "degree", "count"))
    if any(type(size) is int and size > most for size in sizes):
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
