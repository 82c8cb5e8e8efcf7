"""The history of a training: its lines of metrics, what it learned, and a figure of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ode2opt.base.errors import InputError, needing, unknown_name

SHOWN = {"stopping_time": "T", "validation": "iterations on held-out problems"}


class TrainingHistory(Sequence[dict[str, Any]]):
    """The lines of a training, one a step, as in ``metrics.jsonl``.

    Attributes:
        lines: a dictionary for each step.
        learned: the coefficients that were learned, a module of one's own as the module that it
            is; None where a table says all.

    Examples:
        >>> method = learn(family, steps=50)
        >>> method.training.column("stopping_time")[-1]
        >>> method.training.learned.beta(2.0)
    """

    def __init__(self, lines: Sequence[dict[str, Any]], learned: Any) -> None:
        self.lines, self.learned = list(lines), learned

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, i: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, i: int | slice) -> Any:
        return self.lines[i]

    def __repr__(self) -> str:
        return f"TrainingHistory({len(self.lines)} steps)"

    def column(self, name: str) -> np.ndarray:
        """Return one number of each step; not a number where a step has none.

        Args:
            name: a key of the lines, such as "stopping_time", "P", "Q" or "loss".

        Raises:
            InputError: the lines have no such key.
        """
        if self.lines and name not in (known := dict.fromkeys(k for one in self for k in one)):
            raise unknown_name("column", name, known)
        values = (line.get(name) for line in self.lines)
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    def plot(self) -> Any:
        """Return a Matplotlib figure of the stopping time, the validations, P, Q and the loss.

        Raises:
            InputError: nothing was trained.
        """
        if not self.lines:
            raise InputError("There is nothing to plot: no step was taken.")
        with needing("study"):
            from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        steps = np.arange(len(self))
        for name, label in SHOWN.items():
            values = self.column(name)
            met = np.isfinite(values)
            left.plot(steps[met], values[met], marker="." if met.sum() < len(self) else "",
                      label=label)  # fmt: skip
        for name in ("P", "Q", "loss"):
            right.plot(steps, self.column(name), label=name)
        right.set_yscale("symlog", linthresh=1e-3)
        for axes in (left, right):
            axes.set_xlabel("step")
            axes.legend()
        return figure
