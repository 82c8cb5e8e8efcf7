"""The targets by name: whose stopping time is minimised. Nothing here needs JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.schema import read
from ode2opt.learning.flow.options import FlowOptions
from ode2opt.learning.flow.paper import PaperOptions
from ode2opt.learning.options import Options, declared
from ode2opt.learning.sequence.options import SequenceOptions

PROTOCOLS: dict[str, type[Options]] = {kind.protocol: kind for kind in (FlowOptions, PaperOptions)}
"""The settings that a flow begins with, by name; what is given beside them wins."""
TARGETS: dict[str, type[Options]] = {kind.target: kind for kind in (FlowOptions, SequenceOptions)}
DEFAULT = FlowOptions.target
PANELS = [kind.panel for kind in TARGETS.values()]


def make_options(given: Mapping[str, Any]) -> Options:
    """Return checked options from keywords.

    Examples:
        >>> make_options({"target": "sequence", "steps": 0}).learning_rate
        0.05
    """
    kind, own = _split(given)
    return kind(**own)


def read_options(document: Mapping[str, Any]) -> Options:
    """Return the options that a run's configuration stores, with the type of each field checked."""
    kind, own = _split(document)
    return read(kind, own)


def departures(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a configuration that are not the defaults of its protocol."""
    kind, own = _split(document)
    defaults = asdict(kind())
    return {name: value for name, value in own.items() if value != defaults[name]}


def _split(given: Mapping[str, Any]) -> tuple[type[Options], dict[str, Any]]:
    """Return the target's options and what is given of them."""
    own = dict(given)
    target, protocol = own.pop("target", DEFAULT), own.pop("protocol", None)
    if not isinstance(target, str) or target not in TARGETS:
        raise unknown_name("target", str(target), TARGETS)
    kind = TARGETS[target] if protocol is None else _of_protocol(str(protocol), target)
    known = declared(kind)
    for name, value in own.items():
        if name not in known:
            raise _not_of(name, target)
        choices = known[name].choices or ()
        for other in _with_choice(name, value):
            if value not in choices:
                raise InputError(
                    f"{name} {value} is for --target {other}; a {target} has {', '.join(choices)}."
                )
    return kind, own


def _of_protocol(name: str, target: str) -> type[Options]:
    """Return the options of a protocol, which is one of a flow."""
    if name not in PROTOCOLS:
        raise unknown_name("protocol", name, PROTOCOLS)
    if PROTOCOLS[name].target != target:
        raise InputError(f"protocol {name} is for --target flow; a {target} has its own settings.")
    return PROTOCOLS[name]


def _with_choice(name: str, value: Any) -> list[str]:
    """Return the targets for which an option may have a value by name."""
    found = ((target, declared(kind).get(name)) for target, kind in TARGETS.items())
    return [
        target
        for target, about in found
        if about is not None and isinstance(value, str) and value in (about.choices or ())
    ]


def _not_of(name: str, target: str) -> InputError:
    """Return the error for an option that a target does not have."""
    for other, kind in TARGETS.items():
        if name in declared(kind):
            return InputError(f"{name} is for --target {other}; a {target} does not use it.")
    every = (name for kind in TARGETS.values() for name in declared(kind))
    known = dict.fromkeys(("target", "protocol", *every))
    return InputError(f"learn() has no option {name}; it has {', '.join(known)}.")
