"""What the commands show and write: consoles, sentences, tables of facts, JSON, progress.

Progress is a bar on a terminal, and sparse lines on stderr in a pipe.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
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


PIPE_LINES, SECONDS_APART = 20, 2.0  # lines of progress in a pipe, and the time between two
FIRST_LINE, NEXT_LINE = 10.0, 60.0  # seconds until the first line in a pipe, and the next


@contextmanager
def bar(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal, nothing in a pipe."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(printable(description), total=total)
        yield lambda: progress.advance(task)


@contextmanager
def bar_or_lines(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal; in a pipe print a line on stderr for each twentieth."""
    if err.is_terminal:
        with bar(description, total) as advance:
            yield advance
        return
    begin = told_at = time.monotonic()
    done = told = 0

    def advance_in_pipe() -> None:
        nonlocal done, told, told_at
        done += 1
        share, now = PIPE_LINES * done // total, time.monotonic()
        if share == told or (now - told_at < SECONDS_APART and done < total):
            return
        told, told_at = share, now
        left = (now - begin) * (total - done) / done
        mention(
            f"{description}: {100 * share // PIPE_LINES}% after {_clock(now - begin)}"
            + (f", about {_clock(left)} left" if done < total else "")
        )

    yield advance_in_pipe


class SparseLines:
    """Progress for a pipe: a line on stderr after ten seconds, then one a minute at most."""

    def __init__(self, description: str, quiet: bool = False) -> None:
        self.description, self.quiet = description, quiet
        self._begin = time.monotonic()
        self._due = self._begin + FIRST_LINE

    def tell(self, text: Callable[[], str]) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        if self.quiet or now < self._due:
            return
        self._due = now + NEXT_LINE
        mention(f"{self.description}: {text()}, after {_clock(now - self._begin)}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def _told(description: str, quiet: bool) -> Iterator[Callable[[Callable[[], str]], None]]:
    """Show what functions return: beside a spinner on a terminal, in sparse lines in a pipe."""
    if not err.is_terminal:
        yield SparseLines(description, quiet).tell
        return
    with err.status(plain(description)) as status:
        yield lambda text: status.update(plain(f"{description}: {text()}"))


@contextmanager
def spinner(
    description: str,
    beside: Callable[[], str] | None = None,
    quiet: bool = False,
    measure: str = "gradient norm",
) -> Iterator[Callable[[Any], None] | None]:
    """Show a running gradient norm on a terminal; in a pipe nothing, or sparse lines."""

    def words(progress: Any) -> str:
        rest = "" if beside is None else f", {beside()}"
        norm = f"{measure} {progress.grad_norm:.2e}"
        return f"iteration {progress.iteration:,}, {norm}{rest}"

    def show(progress: Any) -> None:
        if beside is not None or progress.iteration % 200 == 0:
            tell(lambda: words(progress))

    with _told(description, quiet) as tell:
        yield show if err.is_terminal or beside is not None else None


@contextmanager
def reading(description: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show how many parts of a file are read: a spinner on a terminal, sparse lines in a pipe."""
    with _told(description, quiet) as tell:
        yield lambda done, total: tell(lambda: f"{done} of {total} parts")


@contextmanager
def live_training(
    description: str, steps: int, quiet: bool = False
) -> Iterator[tuple[Callable[[Any], None], Callable[[str], None]]]:
    """Show a training: a bar on a terminal, sparse lines in a pipe.

    Both tell the stopping time, P, Q and the validation.
    """
    training = _Training()
    if not err.is_terminal:
        lines = SparseLines(description, quiet)

        def tell(step: Any) -> None:
            training.see(step)
            lines.tell(lambda: f"step {step.done} of {step.steps}, {training.words}")

        yield tell, lambda text: lines.tell(lambda: text)
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[seen]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err) as progress:
        task = progress.add_task(printable(description), total=steps, seen="compiling")

        def show(step: Any) -> None:
            training.see(step)
            progress.update(task, completed=step.done, total=step.steps, seen=training.words)

        yield show, lambda text: progress.update(task, seen=text)


class _Training:
    """What the last steps of a training have shown, in words."""

    words, _validation = "", "-"

    def see(self, step: Any) -> None:
        line = step.line
        if step.validation is not None:
            mark = "" if step.validation.feasible else ", infeasible"
            self._validation = f"{step.validation.complexity:.1f} (best {step.best:.1f}{mark})"
        T, P, Q = (_short(line[name]) for name in ("stopping_time", "P", "Q"))
        restart = f"beginning {line['restart']}  " if "restart" in line else ""
        self.words = f"{restart}T {T}  P {P}  Q {Q}  validation {self._validation}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


class _DownloadBar:
    """A rich progress bar with the few calls of a tqdm bar that a download makes."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None
        self.total = 0

    def update(self, n: int) -> None:
        if self._task is None:
            self._task = self._progress.add_task("download", total=self.total or None)
        self._progress.update(self._task, advance=n)

    def reset(self) -> None:
        if self._task is not None:
            self._progress.reset(self._task)

    def close(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None


@contextmanager
def downloads() -> Iterator[_DownloadBar | None]:
    """Show a bar for downloads on a terminal, nothing in a pipe."""
    if not err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        yield _DownloadBar(progress)
