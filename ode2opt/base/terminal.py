"""What the commands show and write: consoles, sentences, tables of facts, JSON."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ode2opt.base.errors import Ode2OptError, printable
from ode2opt.base.errors import sentence as short
from ode2opt.base.storage import write_atomically

PIPE_WIDTH = 110  # a pipe has no width of its own


@contextmanager
def _to_stdout() -> Iterator[None]:
    """Say of an error of the system that it was standard output."""
    try:
        yield
    except BrokenPipeError:  # nobody reads any more, and nobody needs to be told
        raise
    except OSError as error:
        raise Ode2OptError(f"Standard output cannot be written: {error.strerror}.") from None


class _Output(Console):
    """Standard output. Neither stream takes codes such as :x: for emoji."""

    def print(self, *objects: Any, **options: Any) -> None:
        with _to_stdout():
            super().print(*objects, **options)


out = _Output(
    width=None if sys.stdout is not None and sys.stdout.isatty() else PIPE_WIDTH, emoji=False
)
err = Console(stderr=True, emoji=False)


def open_streams() -> None:
    """Give closed streams the null device, before another file gets their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def close_streams(code: int) -> int:
    """Flush the standard streams.

    A stream that cannot be written is given up: Python would try again, and complain, at exit.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
            code = code or 1
    return code


def plain(text: str) -> Text:
    """Return text that is shown as it is: neither the terminal nor rich takes it for a command.

    That goes for control characters, markup and codes of emoji.
    """
    return Text(printable(text))


def say(sentence: str) -> None:
    """Print a sentence on standard output."""
    out.print(plain(sentence), soft_wrap=True)


def mention(sentence: str) -> None:
    """Print a sentence on standard error, apart from the results."""
    err.print(plain(sentence), soft_wrap=True)


def facts_table(facts: dict[str, Any], title: str) -> Table:
    """Return a table of names and values for the terminal."""
    table = Table(title=plain(title), show_header=False)
    for name, value in facts.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        table.add_row(plain(name.replace("_", " ")), plain(shown))
    return table


def rows_table(
    columns: Mapping[str, bool], title: str = "", caption: str = "", no_wrap: bool = True
) -> Table:
    """Return an empty table for the terminal, given whether each column stands on the right."""
    table = Table(
        title=plain(title) if title else None, caption=plain(caption) if caption else None,
        caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for name, right in columns.items():
        table.add_column(plain(name), justify="right" if right else "left", no_wrap=no_wrap)
    return table


def write_json(document: Any, file: str | None) -> None:
    """Write a document as JSON, atomically."""
    if file is None:
        return
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if file == "-":
        with _to_stdout():
            sys.stdout.write(text)
            sys.stdout.flush()
    else:
        write_atomically(Path(file), lambda stream: stream.write(text.encode()))


def command_again(*more: str) -> str:
    """Return the command line of this process with more options, as a shell takes it."""
    program, *arguments = sys.argv
    name = "python -m ode2opt" if Path(program).name == "__main__.py" else "ode2opt"
    added = [option for option in more if option not in arguments]
    return f"{name} {shlex.join([*arguments, *added])}"


def fail(sentence: str, code: int, go_on: str | None = None) -> NoReturn:
    """Print what went wrong and end the command."""
    told = short(sentence) if go_on is None else f"{short(sentence)} Go on with: {go_on}"
    err.print(Text("Error:", "bold red"), plain(told), soft_wrap=True)
    raise typer.Exit(code)


def show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    """Print a warning as a sentence; takes the place of ``warnings.showwarning``."""
    err.print(Text("Warning:", "bold yellow"), plain(str(message)), soft_wrap=True)
