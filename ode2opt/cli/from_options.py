"""A command's options made from dataclasses: name, default, help, choices and panel, once each.

Several dataclasses may share a command, as the targets of training do: an option that they all
have appears once, with the default of each. Options that a command tells itself are declared with
``opt`` and ``file_opt``, alone or as fields of a dataclass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import Field, fields, is_dataclass
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ode2opt.learning.options import OptionInfo

Kinds = Mapping[str, type[Any]]


def opt(help: str, *names: str, **about: Any) -> Any:
    """Declare an option: what it is, then its names where they are not those of the parameter."""
    return typer.Option(*names, help=help, **about)


def named(text: str | Path) -> Path:
    """Return the path that an option names; an empty name is refused."""
    if not str(text):
        raise typer.BadParameter("the name is empty")
    return Path(text)


def file_opt(help: str, *names: str, metavar: str = "FILE") -> Any:
    """Declare an option that names a file or a folder."""
    return typer.Option(*names, help=help, metavar=metavar, parser=named)


def file_argument(help: str, metavar: str | None = None) -> Any:
    """Declare an argument that names a file or a folder."""
    return typer.Argument(help=help, metavar=metavar, parser=named)


def options_of(kinds: Kinds) -> list[Parameter]:
    """Return the options of several dataclasses as parameters of a command, each option once."""
    found: dict[str, dict[str, Field[Any]]] = {}
    for owner, kind in kinds.items():
        for each in fields(kind):
            about = each.metadata.get("about")
            if about is None or about.panel is None:  # for Python only
                continue
            found.setdefault(each.name, {})[owner] = each
    return [_shown(owners, kinds) for owners in found.values()]


def _shown(owners: dict[str, Field[Any]], kinds: Kinds) -> Parameter:
    """Return one option, given the field of each dataclass that has it."""
    owner, first = next(iter(owners.items()))
    about: OptionInfo = first.metadata["about"]
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
    option = opt(about.help, flag, show_default=shown, rich_help_panel=about.panel, **parsed)
    return _parameter(first.name, Annotated[kind, option], default)


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


def choice_opt(choices: Iterable[str], help: str, *names: str, **about: Any) -> Any:
    """Return the annotation of an option that is one of a few words."""
    return Annotated[choice_of("Choice", choices), opt(help, *names, **about)]


def with_options(
    more: Sequence[Parameter] = (), panels: Mapping[str, Sequence[str]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the signature that typer reads.

    A parameter whose kind is a dataclass stands for an option for each of its fields. Options
    ``more`` are given to the function as keywords. ``panels`` names the groups of the help in their
    order, each with the parameters that it shows.
    """

    def give(function: Callable[..., None]) -> Callable[..., None]:
        own = signature(function, eval_str=True).parameters
        groups = {name: each.annotation for name, each in own.items() if _is_group(each)}
        place = {name: panel for panel, names in (panels or {}).items() for name in names}
        found = [
            each
            for name, parameter in own.items()
            if parameter.kind is not Parameter.VAR_KEYWORD
            for each in _expanded(parameter, place.get(name))
        ]
        found += more
        if panels:
            order: dict[str | None, int] = {panel: i for i, panel in enumerate(panels)}
            found.sort(key=lambda each: order.get(_panel(each), -1))

        def command(**given: Any) -> None:
            for name, kind in groups.items():
                given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
            for one in more:
                value = given[one.name]
                given[one.name] = value.value if isinstance(value, StrEnum) else value
            function(**given)

        command.__signature__ = Signature(found)  # type: ignore[attr-defined]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return give


def _is_group(parameter: Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _expanded(parameter: Parameter, panel: str | None) -> list[Parameter]:
    """Return a parameter, or those that a group of options stands for."""
    if not _is_group(parameter):
        return [_parameter(parameter.name, parameter.annotation, parameter.default, panel)]
    hints = get_type_hints(parameter.annotation, include_extras=True)
    return [
        _parameter(each.name, hints[each.name], each.default, panel)
        for each in fields(parameter.annotation)
    ]


def _parameter(name: str, annotation: Any, default: Any, panel: str | None = None) -> Parameter:
    if panel is not None:
        kind, option = get_args(annotation)
        option = copy(option)
        option.rich_help_panel = panel
        annotation = Annotated[kind, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _panel(parameter: Parameter) -> str | None:
    """Return the group of the help that shows a parameter; None for an argument."""
    return next((one.rich_help_panel for one in get_args(parameter.annotation)[1:]), None)
