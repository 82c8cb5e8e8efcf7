"""Coefficients that ``learn`` is given as a class or an instance rather than by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ode2opt.base.errors import InputError, shown

if TYPE_CHECKING:
    from ode2opt.paper.coefficients import Coefficients

NAME, FIRST_VALUES = "coefficients", "first"
FITTED = ("C", "activation")  # of these coefficients to begin with are made


def with_named_coefficients(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose ``coefficients`` is a name, whatever it was given as."""
    given = options.get(NAME)
    if given is None or isinstance(given, str):
        return dict(options)
    from ode2opt.coefficients import COEFFICIENTS, Coefficients

    names = {kind: name for name, kind in COEFFICIENTS.items()}
    if isinstance(given, type) and given in names:
        return {**options, NAME: names[given]}
    if not isinstance(given, Coefficients) or type(given) not in names:
        raise InputError(
            f"coefficients must be a name as 'spline', a class of ode2opt.coefficients as Spline,"
            f" or an instance as Spline(), not {shown(given)}."
        )
    if options.get("target", "flow") != "flow":
        raise InputError(
            f"Coefficients to begin with are for --target flow; a {options['target']} learns a "
            f"table: leave coefficients out."
        )
    return {**options, NAME: names[type(given)], **_settings(given, options)}


def _settings(given: Coefficients, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an instance says; options that contradict it are refused."""
    for name in FITTED:
        if name in options:
            raise InputError(
                f"{name} is for coefficients that training makes, and these are given: leave {name}"
                f" out."
            )
    found: dict[str, Any] = {"alpha": float(given.alpha)}
    if "h" in given.settings:
        found["h"] = given.settings["h"]
    for name, value in found.items():
        if options.get(name, value) != value:
            raise InputError(
                f"{name} is {options[name]}, but the coefficients have {value:g}: leave {name} out."
            )
    values = {name: array.tolist() for name, array in given.parameters().items()}
    return found | {FIRST_VALUES: {"settings": given.settings, "parameters": values}}
