"""What the commands show and write: consoles, progress, tables of facts, files."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ode2opt.errors import Ode2OptError, printable
from ode2opt.errors import sentence as short
from ode2opt.storage import write_atomically

PIPE_WIDTH = 110  # a pipe has no width of its own
PARTS, APART = 20, 2.0  # lines of progress in a pipe, and the seconds between two of them


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
    def print(self, *objects: Any, **options: Any) -> None:
        with _to_stdout():
            super().print(*objects, **options)


out = _Output(width=None if sys.stdout is not None and sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True)


def open_streams() -> None:
    """Give closed streams the null device, before another file gets their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def close_streams(code: int) -> int:
    """Flush what is left; returns the exit code, which is 1 where it cannot be written.

    What a stream still holds is then given up: it would be tried again, and told, at the end.
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


@contextmanager
def bar(description: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, nothing in a pipe."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(plain(description), total=total)
        yield lambda: progress.advance(task)


@contextmanager
def bar_or_lines(description: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; in a pipe a line on stderr for each twentieth that is done."""
    if err.is_terminal:
        with bar(description, total) as advance:
            yield advance
        return
    begin = told_at = time.monotonic()
    done = told = 0

    def advance_in_pipe() -> None:
        nonlocal done, told, told_at
        done += 1
        share, now = PARTS * done // total, time.monotonic()
        if share == told or (now - told_at < APART and done < total):
            return
        told, told_at = share, now
        left = (now - begin) * (total - done) / done
        err.print(
            f"{description}: {100 * share // PARTS}% after {_clock(now - begin)}"
            + (f", about {_clock(left)} left" if done < total else ""),
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip

    yield advance_in_pipe


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def spinner(
    description: str, beside: Callable[[], str] | None = None
) -> Iterator[Callable[[Any], None] | None]:
    """A running gradient norm on a terminal; no callback at all in a pipe.

    What is told ``beside`` it belongs to iterations that take long: each of them is shown.
    """
    if not err.is_terminal:
        yield None
        return
    description = plain(description)
    with err.status(description) as status:

        def show(progress: Any) -> None:
            if beside is not None or progress.iteration % 200 == 0:
                status.update(
                    f"{description}: iteration {progress.iteration:,}, "
                    f"gradient norm {progress.grad_norm:.2e}"
                    + ("" if beside is None else plain(f", {beside()}"))
                )

        yield show


@contextmanager
def live_training(
    description: str, steps: int
) -> Iterator[tuple[Callable[[Any], None] | None, Callable[[str], None]]]:
    """A bar with stopping time, P, Q and validation on a terminal; no callback in a pipe.

    Yields the callback of training, and what shows a word before its first step.
    """
    if not err.is_terminal:
        yield None, lambda text: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[seen]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err) as progress:
        task = progress.add_task(plain(description), total=steps, seen="compiling")
        last = "-"

        def show(step: Any) -> None:
            nonlocal last
            line = step.line
            if step.validation is not None:
                mark = "" if step.validation.feasible else ", infeasible"
                last = f"{step.validation.complexity:.1f} (best {step.best:.1f}{mark})"
            T, P, Q = (_short(line[name]) for name in ("stopping_time", "P", "Q"))
            seen = f"T {T}  P {P}  Q {Q}  validation {last}"
            if "restart" in line:
                seen = f"beginning {line['restart']}  " + seen
            progress.update(task, completed=step.done, total=step.steps, seen=seen)

        yield show, lambda text: progress.update(task, seen=text)


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
    """A download bar on a terminal, nothing in a pipe."""
    if not err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        yield _DownloadBar(progress)


def plain(text: str) -> str:
    """Return text that is shown as it is: neither the terminal nor rich takes it for a command."""
    return escape(printable(text))


def say(sentence: str) -> None:
    """Print a sentence, which may quote a file or an argument."""
    out.print(printable(sentence), markup=False, highlight=False, soft_wrap=True)


def facts_table(facts: dict[str, Any], title: str) -> Table:
    table = Table(title=plain(title), show_header=False)
    for name, value in facts.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        table.add_row(plain(name.replace("_", " ")), plain(shown))
    return table


def write_json(document: Any, file: str | None) -> None:
    if file is None:
        return
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if file == "-":
        with _to_stdout():
            sys.stdout.write(text)
            sys.stdout.flush()
    else:
        write_atomically(Path(file), lambda stream: stream.write(text.encode()))


def fail(sentence: str, code: int) -> NoReturn:
    told = escape(short(sentence))
    err.print(f"[bold red]Error:[/bold red] {told}", highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    """Print a warning as a sentence, in the place of ``warnings.showwarning``."""
    text = plain(str(message))
    err.print(f"[bold yellow]Warning:[/bold yellow] {text}", highlight=False, soft_wrap=True)
