"""The best point of a solve, kept on disk while it is under way, in case it is killed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import command_again
from ode2opt.cli.outputs import npz_with
from ode2opt.data.files.arrays import read_arrays

Show = Callable[[Any], None]
EVERY = 10.0  # seconds between two points that are kept
STOPPED = ("INTERRUPTED", "WORKERS_LOST", "MAX_SECONDS", "MAX_ITER")
KEPT = npz_with("x", "grad_norm", "about")


def kept_file(out: Path | None) -> Path | None:
    """Return the file that keeps the point of a solve; None for no output, a pipe or a device."""
    on_disk = out is not None and (out.is_file() or not out.exists())
    return out.with_name(f"{out.name}.partial") if out is not None and on_disk else None


class KeptPoint:
    """A file beside the solution's, as long as there is no solution."""

    def __init__(self, out: Path | None, about: dict[str, Any]) -> None:
        self.file = kept_file(out)
        self.about = json.dumps(about, sort_keys=True)
        self._best, self._due = math.inf, time.monotonic() + EVERY

    def watching(self, show: Show | None) -> Show | None:
        """Return a callback of ``solve`` that keeps points, and shows them if they are to be
        shown.
        """
        if self.file is None:
            return show

        def callback(progress: Any) -> None:
            self.observe(progress)
            if show is not None:
                show(progress)

        return callback

    def observe(self, progress: Any) -> None:
        """Keep a point if ten seconds have gone by since the last and no point before was
        better.
        """
        if progress.grad_norm <= self._best:
            self._best = progress.grad_norm
            if time.monotonic() >= self._due:
                self.keep(progress.x, progress.grad_norm)
                self._due = time.monotonic() + EVERY

    def keep(self, x: Any, grad_norm: float) -> None:
        """Write a point."""
        if self.file is not None:
            point = np.asarray(x)
            write_atomically(
                self.file,
                lambda stream: np.savez(stream, x=point, grad_norm=grad_norm, about=self.about),
            )

    def start(self, n: int, resume: bool) -> np.ndarray | None:
        """Return the point to go on from; None where there is none."""
        if not resume:
            return None
        if self.file is None:
            raise InputError("--resume needs --out: the point is kept beside it.")
        return self._read(self.file, n) if self.file.exists() else None

    def _read(self, file: Path, n: int) -> np.ndarray:
        try:
            _, found = read_arrays(file, ("about", "x"))
            about, x = str(found["about"]), found["x"].astype(np.float64)
        except (InputError, ValueError, KeyError):
            raise InputError(f"{file} cannot be read: delete it, and start again.") from None
        if about != self.about or x.shape != (n,) or not np.isfinite(x).all():
            raise InputError(f"{file} is of another problem: delete it, or name another --out.")
        return x

    def resume_command(self, result: Any) -> str | None:
        """Return the command that goes on with a solve that was stopped; None for others."""
        stopped = result.status.name in STOPPED
        return command_again("--resume") if stopped and self.file is not None else None

    def finish(self, result: Any) -> None:
        """Keep the best point of an unfinished solve; remove the file of a finished one."""
        if not result.success:
            self.keep(result.x, result.measure[1])
        elif self.file is not None:
            self.file.unlink(missing_ok=True)
