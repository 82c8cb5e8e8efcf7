"""What a solve leaves behind: how well its solution fits, a file with it, and its best point.

The point is kept on disk while a solve is under way, in case it is killed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.errors import InputError, WorkersLostError, many
from ode2opt.base.record import MODEL
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import command_again
from ode2opt.cli.outputs import any_of, npz_with
from ode2opt.data.files.arrays import read_arrays

if TYPE_CHECKING:
    from ode2opt import Model, Result
    from ode2opt.data.files import DataTable
    from ode2opt.problems.quality import Quality

KEPT = npz_with("x", "grad_norm", "about")
SOLUTION = any_of(MODEL.is_at, npz_with("x", "fun", "grad_norm", "status"))
MODEL_ENDING, ARRAYS_ENDING = ".safetensors", ".npz"


def check_model_ending(out_file: Path | None) -> None:
    """Refuse a file name that ends in neither .safetensors nor .npz; pipes and devices get NPZ."""
    if out_file is None or (out_file.exists() and not out_file.is_file()):
        return
    if out_file.suffix.lower() not in (MODEL_ENDING, ARRAYS_ENDING):
        raise InputError(
            f"--out {out_file} ends in neither {MODEL_ENDING} (a model, for ode2opt predict) nor "
            f"{ARRAYS_ENDING} (plain arrays): name one of these."
        )


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that a model was not fitted to.

    Attributes:
        name: "holdout" or "test".
        where: what they are called in sentences.
        rows: as the model's encoding has them.
    """

    name: str
    where: str
    rows: DataTable

    def check(self, classes: np.ndarray | None) -> None:
        """Refuse rows without labels, and labels that are no classes of the model."""
        from ode2opt.models.model_file import as_targets

        if self.rows.partly_labelled:
            raise InputError(
                f"Some labels of the {self.where} are missing, so nothing can be measured there: "
                f"fill them, or leave those rows out."
            )
        if self.rows.labels is None:
            raise InputError(f"The {self.where} have no labels, so nothing can be measured there.")
        try:
            as_targets(self.rows.labels, classes)
        except InputError as error:
            raise InputError(f"In the {self.where}: {error}") from None


def measured(
    model: Model, problem: Any, found: Result, others: list[HeldOutRows]
) -> dict[str, Quality]:
    """Return how well a model fits: the rows of its problem, and others."""
    own = _of_fit(problem, found)
    quality = {} if own is None else {"fit": own}
    return quality | {each.name: model.quality(each.rows.A, each.rows.labels) for each in others}


def _of_fit(problem: Any, found: Result) -> Quality | None:
    """Return how well the rows are fitted; None if the workers that hold them are gone."""
    from ode2opt import Parts, Status
    from ode2opt.problems.quality import quality_of_fit

    if isinstance(problem, Parts) and found.status in (Status.INTERRUPTED, Status.WORKERS_LOST):
        return None  # it would be another pass over all parts
    try:
        return quality_of_fit(problem, found.x)
    except WorkersLostError:
        return None


def quality_facts(quality: dict[str, Quality], others: list[HeldOutRows]) -> dict[str, str]:
    """Return lines about quality for the table of facts."""
    where = {"fit": "rows of the fit"} | {each.name: each.where for each in others}
    return {f"on {where[name]}": _with_rows(one) for name, one in quality.items()}


def _with_rows(quality: Quality) -> str:
    return f"{quality} ({many(quality.rows, 'row')})"


def unconverged_file(out_file: Path | None) -> Path | None:
    """Return the file for a solution that misses its tolerance; None is ``out_file`` itself.

    A solution that reached its tolerance is not replaced by one that did not: that one is written
    to NAME.unconverged in the same folder.
    """
    if out_file is None or not out_file.is_file() or not _has_converged(out_file):
        return None
    return out_file.with_name(f"{out_file.stem}.unconverged{out_file.suffix}")


def _has_converged(file: Path) -> bool:
    """Whether a file holds a solution that reached its tolerance."""
    from ode2opt import Model, Status

    try:
        if file.suffix.lower() == MODEL_ENDING:
            return bool(Model.load(file).fit.success)
        _, found = read_arrays(file, ["status"])
        return str(found.get("status")) == Status.CONVERGED.name.lower()
    except InputError:
        return False  # whether it may be replaced is told elsewhere


def write_solution(out_file: Path, model: Model, result: Result) -> None:
    """Write a model file, or NPZ arrays where the name ends in .npz (and to a pipe or a device)."""
    if out_file.suffix.lower() == MODEL_ENDING:
        model.save(out_file)
        return
    names = model.encoding.names if model.encoding.columns else None
    write_atomically(out_file, lambda stream: result.save(stream, names, _arrays(model)))


def _arrays(model: Model) -> dict[str, Any]:
    """Return what predictions need besides x, for an NPZ file."""
    facts = model.coefficients()
    found = {
        "problem": model.problem,
        "coefficients": np.array(facts["coefficients"]),
        "intercept": np.array(facts["intercept"]),
        "label": model.encoding.label,
        "scaling": model.scaling,
        "classes": None if model.classes is None else np.array(facts["classes"]),
    }
    return {name: value for name, value in found.items() if value is not None}


def with_quality(model: Model, quality: dict[str, Quality]) -> Model:
    """Return a model that knows how well it fits."""
    return replace(model, fit=replace(model.fit, quality=quality))


def kept_file(out: Path | None) -> Path | None:
    """Return the file that keeps the point of a solve; None for no output, a pipe or a device."""
    on_disk = out is not None and (out.is_file() or not out.exists())
    return out.with_name(f"{out.name}.partial") if out is not None and on_disk else None


class KeptPoint:
    """A file with the best point so far, in the folder of --out, until there is a solution."""

    seconds = 10.0  # between two points that are kept

    def __init__(self, out: Path | None, about: dict[str, Any]) -> None:
        self.file = kept_file(out)
        self.about = json.dumps(about, sort_keys=True)
        self._best, self._due = math.inf, time.monotonic() + self.seconds

    def watching(self, show: Callable[[Any], None] | None) -> Callable[[Any], None] | None:
        """Return a callback of ``solve`` that keeps points, and shows them if they are to be."""
        if self.file is None:
            return show

        def callback(progress: Any) -> None:
            self.observe(progress)
            if show is not None:
                show(progress)

        return callback

    def observe(self, progress: Any) -> None:
        """Keep a point if it is time for one and no point before was better."""
        if progress.grad_norm <= self._best:
            self._best = progress.grad_norm
            if time.monotonic() >= self._due:
                self.keep(progress.x, progress.grad_norm)
                self._due = time.monotonic() + self.seconds

    def keep(self, x: Any, grad_norm: float) -> None:
        """Write a point."""
        if self.file is not None:
            point = np.asarray(x)
            write_atomically(
                self.file,
                lambda stream: np.savez(stream, x=point, grad_norm=grad_norm, about=self.about),
            )

    def start(self, n: int, resume: bool) -> np.ndarray | None:
        """Return the point to go on from; None to start anew."""
        if not resume:
            return None
        if self.file is None:
            raise InputError("--resume needs --out: the point is kept in its folder.")
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
        stopped = result.status.name in ("INTERRUPTED", "WORKERS_LOST", "MAX_SECONDS", "MAX_ITER")
        return command_again("--resume") if stopped and self.file is not None else None

    def finish(self, result: Any) -> None:
        """Keep the best point of an unfinished solve; remove the file of a finished one."""
        if not result.success:
            self.keep(result.x, result.measure[1])
        elif self.file is not None:
            self.file.unlink(missing_ok=True)
