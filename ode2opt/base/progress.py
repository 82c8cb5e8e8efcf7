"""Progress of long commands: bars on a terminal, sparse lines on stderr in a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from ode2opt.base.errors import printable
from ode2opt.base.terminal import err, mention, plain

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

    if not err.is_terminal:
        lines = SparseLines(description, quiet)
        yield None if beside is None else lambda progress: lines.tell(lambda: words(progress))
        return
    with err.status(plain(description)) as status:

        def show(progress: Any) -> None:
            if beside is not None or progress.iteration % 200 == 0:
                status.update(plain(f"{description}: {words(progress)}"))

        yield show


@contextmanager
def reading(description: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show how many parts of a file are read: a spinner on a terminal, sparse lines in a pipe."""
    if not err.is_terminal:
        lines = SparseLines(description, quiet)
        yield lambda done, total: lines.tell(lambda: f"{done} of {total} parts")
        return
    with err.status(plain(description)) as status:
        yield lambda done, total: status.update(plain(f"{description}: {done} of {total} parts"))


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
