"""The command line: parses, calls, prints; no mathematics."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from ode2opt import __version__
from ode2opt.base.errors import Ode2OptError
from ode2opt.base.terminal import close_streams, err, fail, open_streams, out, show_warning
from ode2opt.cli import (
    bench,
    certify,
    coefficients,
    data,
    methods,
    predict,
    solve,
    study,
    train,
)
from ode2opt.cli.app import app

# Importing one registers it.
COMMANDS = (solve, predict, coefficients, train, bench, certify, study, data, methods)
USAGE: Any = typer.BadParameter.__mro__[1]  # click's UsageError, which typer may carry in itself


def _version(value: bool) -> None:
    if value:
        out.print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    warnings.showwarning = show_warning


def main() -> NoReturn:
    """Run the command line; an error is one sentence, a traceback comes with --debug."""
    open_streams()
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        code = _run(arguments, debug)
    except OSError:  # the sentence cannot be told
        code = 1
    sys.exit(close_streams(code))


def _run(arguments: list[str], debug: bool) -> int:
    """Run a command and tell what went wrong; returns the exit code."""
    try:
        code = app(args=arguments, prog_name="ode2opt", standalone_mode=False) or 0
        return _told("Interrupted.", 1) if code == 130 else code  # typer's for Ctrl-C
    except (KeyboardInterrupt, typer.Abort):
        return _told("Interrupted.", 1, debug)
    except SystemExit as end:  # a pipe that nobody reads any more
        return int(end.code or 0)
    except USAGE as error:
        return _wrong_use(error, arguments, debug)
    except Ode2OptError as error:
        return _told(str(error), error.exit_code, debug)
    except MemoryError as error:
        return _told(f"Out of memory: {error}".rstrip(": ") + ".", 1, debug)
    except OSError as error:
        where = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
        return _told(f"{where}.", 1, debug)
    except Exception as error:
        name = type(error).__name__
        return _told(f"{name}: {error} (this is a bug; --debug shows where).", 1, debug)


def _wrong_use(error: Any, arguments: list[str], debug: bool) -> int:
    """Tell what is wrong with a command line; one without any argument gets the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    where = _command_of(arguments) if error.ctx is None else error.ctx.command_path
    sentence = f"{error.format_message().rstrip('.')}: see '{where} --help'."
    return _told(" ".join(sentence.split()), error.exit_code, debug)


def _command_of(arguments: list[str]) -> str:
    """Return the command that a line begins with."""
    command: Any = typer.main.get_command(app)
    words = ["ode2opt"]
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return " ".join(words)


def _told(sentence: str, code: int, debug: bool = False) -> int:
    if debug:
        err.print_exception()
    try:
        fail(sentence, code)
    except typer.Exit:
        return code
