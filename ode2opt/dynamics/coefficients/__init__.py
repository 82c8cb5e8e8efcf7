"""Kinds of coefficients. A new kind is a class and a line here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ode2opt.dynamics.coefficients.base import Coefficients, Curves
from ode2opt.dynamics.coefficients.default import Default
from ode2opt.dynamics.coefficients.feasible import Feasible
from ode2opt.dynamics.coefficients.log_time import Polynomial, Spline
from ode2opt.dynamics.coefficients.neural import Neural
from ode2opt.dynamics.coefficients.proved import Proved
from ode2opt.dynamics.coefficients.table import Table
from ode2opt.errors import InputError, unknown_name

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
    """Return the name under which coefficients are listed in ``COEFFICIENTS``.

    Args:
        coefficients: of one of the kinds that are listed.
    """
    return next(name for name, kind in COEFFICIENTS.items() if type(coefficients) is kind)


def restored(
    kind: str, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> Coefficients:
    """Return coefficients from plain values, as a method file holds them.

    Args:
        kind: a name in ``COEFFICIENTS``.
        settings: the value of ``Coefficients.settings``.
        parameters: the value of :meth:`Coefficients.parameters`.

    Raises:
        InputError: the kind is unknown, or its settings and parameters do not fit together.
    """
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
