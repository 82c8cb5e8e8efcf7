"""A command's options made from dataclasses: name, default, help, choices and panel, once each.

Several dataclasses may share a command, as the targets of training do: an option that they all
have appears once, with the default of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import Field, fields
from enum import StrEnum
from inspect import Parameter, Signature
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import typer

from ode2opt.learning.options import OptionInfo, Options

Kinds = Mapping[str, type[Options]]


class CommandParameter(NamedTuple):
    """An option of a command.

    Attributes:
        name: of the parameter; the flag is made from it.
        annotation: the type with a ``typer.Option``.
        default: its default.
        panel: the group of the help that shows it.
    """

    name: str
    annotation: Any
    default: Any
    panel: str


def options_of(kinds: Kinds) -> list[CommandParameter]:
    """Return the options of several dataclasses, each option once."""
    found: dict[str, dict[str, Field[Any]]] = {}
    for owner, kind in kinds.items():
        for each in fields(kind):
            if each.metadata["about"].panel is None:  # for Python only
                continue
            found.setdefault(each.name, {})[owner] = each
    return [_shown(owners, kinds) for owners in found.values()]


def _shown(owners: dict[str, Field[Any]], kinds: Kinds) -> CommandParameter:
    """Return one option, given the field of each dataclass that has it."""
    owner, first = next(iter(owners.items()))
    about: OptionInfo = first.metadata["about"]
    assert about.panel is not None
    kind, default = get_type_hints(kinds[owner])[first.name], first.default
    shown: bool | str = default is not None
    choices = [c for each in owners.values() for c in each.metadata["about"].choices or ()]
    if choices:
        kind = choice_of(first.name.title(), choices)
        default = kind(default)
    if len({each.default for each in owners.values()}) > 1:
        kind, default, shown = kind | None, None, _defaults(owners)
    flag = "--" + first.name.replace("_", "-")
    if kind is bool and default:
        flag += f"/--no-{flag[2:]}"
    parsed: dict[str, Any] = {"parser": limit_of, "metavar": "NUMBER|none"} if about.limit else {}
    option = typer.Option(flag, help=about.help, show_default=shown, **parsed)
    return CommandParameter(first.name, Annotated[kind, option], default, about.panel)


def limit_of(text: str | float) -> float:
    """Return the number that an option was given; ``none`` is no limit, infinity."""
    if str(text).lower() == "none":
        return math.inf
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor none") from None


def _defaults(owners: dict[str, Field[Any]]) -> str:
    """Say a default that depends on the dataclass: that of the first, then those of others."""
    said = [
        f"{each.default:g}" if isinstance(each.default, float) else str(each.default)
        for each in owners.values()
    ]
    others = zip(said[1:], list(owners)[1:], strict=True)
    return "; ".join([said[0], *(f"{words} for a {owner}" for words, owner in others)])


def choice_of(name: str, choices: Iterable[str]) -> Any:
    """Return an enumeration, which typer shows and checks as a choice."""
    return StrEnum(name, {choice: choice for choice in choices})


def with_options(
    options: Iterable[CommandParameter], panels: Iterable[str], arguments: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a function of keywords the signature that typer reads."""
    order = list(panels)
    sorted_ = sorted(options, key=lambda one: order.index(one.panel))
    parameters = [
        *(_parameter(name, annotation) for name, annotation in arguments.items()),
        *(_parameter(one.name, _in_panel(one), one.default) for one in sorted_),
    ]

    def give(function: Callable[..., None]) -> Callable[..., None]:
        function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return function

    return give


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _in_panel(one: CommandParameter) -> Any:
    kind, option = get_args(one.annotation)
    option = copy(option)
    option.rich_help_panel = one.panel
    return Annotated[kind, option]
