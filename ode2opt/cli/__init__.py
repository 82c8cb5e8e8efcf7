"""The command line: parses, calls, prints; no mathematics. One file a command."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from ode2opt import __version__
from ode2opt.cli import bench, certify, data, demo, report, reproduce, solve, train
from ode2opt.cli.app import app
from ode2opt.errors import Ode2OptError
from ode2opt.terminal import err, fail, out

# Importing one registers it.
COMMANDS = (train, bench, solve, certify, reproduce, report, demo, data)
INTERRUPTED = 130


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
    pass


def main() -> NoReturn:
    """Run the command line; an error is one sentence, a traceback comes with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        app(args=arguments, prog_name="ode2opt")
    except Ode2OptError as error:
        _end(str(error), error.exit_code, debug)
    except MemoryError as error:
        _end(f"Out of memory: {error}", 1, debug)
    except OSError as error:
        _end(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + ".", 1, debug)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's code for Ctrl-C
            _end("Interrupted.", 1, debug)
        raise
    except Exception as error:
        _end(f"{type(error).__name__}: {error} (this is a bug; --debug shows where).", 1, debug)
    sys.exit(0)


def _end(sentence: str, code: int, debug: bool) -> NoReturn:
    if debug:
        err.print_exception()
    try:
        fail(sentence, code)
    except typer.Exit:
        sys.exit(code)
