"""The page of all commands, made from the program when the site is built."""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import typer
from typer.utils import get_params_from_function

from ode2opt.cli.app import app

PLACE = "{{ every command }}"
KINDS = {int: "whole number", float: "number", str: "text", Path: "path"}
COMMON = "Options"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the commands where a page wants them."""
    return markdown.replace(PLACE, reference()) if PLACE in markdown else markdown


def reference() -> str:
    """Return a section for each command: what it does, its arguments and options, examples."""
    program = typer.main.get_command(app)
    sections = [_section("ode2opt", program), *_sections("ode2opt", program)]
    return "\n\n".join(sections)


def _sections(before: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _sections(f"{before} {name}", command)
        else:
            yield _section(f"{before} {name}", command)


def _section(name: str, command: Any) -> str:
    kinds = {one: _kind(about) for one, about in get_params_from_function(command.callback).items()}
    panels: dict[str, list[Any]] = {}
    for one in command.params:
        options = getattr(one, "rich_help_panel", None) or COMMON
        panel = "Arguments" if one.param_type_name == "argument" else options
        if not one.hidden:
            panels.setdefault(panel, []).append(one)
    arguments = " ".join(one.metavar or one.name.upper() for one in panels.get("Arguments", ()))
    parts = [
        f"## {name}",
        _text(command.help),
        "" if name == "ode2opt" else f"    {name} {arguments} [OPTIONS]".replace("  [", " ["),
    ]
    parts += [_table(panel, ones, kinds) for panel, ones in panels.items()]
    return "\n\n".join(filter(None, [*parts, _text(command.epilog)]))


def _table(panel: str, parameters: list[Any], kinds: dict[str, str]) -> str:
    head = [f"**{panel}**", "", "| name | value | default | what it does |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(one, kinds) for one in parameters)])


def _row(one: Any, kinds: dict[str, str]) -> str:
    argument = one.param_type_name == "argument"
    names = [one.metavar or one.name.upper()] if argument else [*one.opts, *one.secondary_opts]
    value = "" if argument or getattr(one, "is_flag", False) else one.metavar or kinds[one.name]
    code = [", ".join(f"`{name}`" for name in names), value and f"`{value}`", _default(one)]
    return "| " + " | ".join([*code, _cell(_text(one.help))]) + " |"


def _default(one: Any) -> str:
    if one.required:
        return "required"
    if isinstance(one.show_default, str):
        return one.show_default
    if not one.show_default or one.default is None or one.default is False:
        return ""
    default = one.default.value if isinstance(one.default, Enum) else one.default
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def _kind(parameter: Any) -> str:
    """Return the words for what an option takes."""
    kind = parameter.annotation
    while get_origin(kind) is not None or get_args(kind):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(one.value) for one in kind)
    return KINDS.get(kind, "text")


def _text(text: str | None) -> str:
    """Return help as Markdown: what is bold on a terminal is code."""
    return re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text or "").strip()


def _cell(text: str) -> str:
    """Return text for a table, whose bars would end a cell; those within code would not."""
    return text.replace("|", "\\|").replace("\n", " ")
