"""Columns of numbers, one row an iteration: what schedules and tables are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from ode2opt.base.arrays import as_count, as_positive, refuse_unreal
from ode2opt.base.errors import InputError, many


@dataclass(frozen=True, eq=False)
class IterationNumbers:
    """The numbers of K iterations: finite columns of one length, as read-only float64 copies."""

    what: ClassVar[str] = "table"
    steps: ClassVar[str] = ""  # the columns with the dimension of a step

    def __post_init__(self) -> None:
        for name in self.names():
            refuse_unreal(getattr(self, name), f"The {self.what}'s {name}")
            try:
                values = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InputError(f"The {self.what}'s {name} must be numbers: {error}.") from None
            if values.ndim != 1 or not len(values):
                raise InputError(
                    f"The {self.what}'s {name} has shape {values.shape}; one row is due."
                )
            if not np.all(np.isfinite(values)):
                k = int(np.flatnonzero(~np.isfinite(values))[0])
                raise InputError(f"The {self.what}'s {name} is {values[k]} at iteration {k}.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        lengths = [str(len(column)) for column in self.columns()]
        if len(set(lengths)) > 1:
            raise InputError(
                f"The {self.what}'s {_listed(self.names())} must be of one length, not "
                f"{_listed(lengths)}."
            )

    def __len__(self) -> int:
        return len(self.columns()[0])

    def __repr__(self) -> str:
        spans = (f"{name} {_span(getattr(self, name))}" for name in self.names())
        return f"{type(self).__name__}({many(len(self), 'iteration')}, {', '.join(spans)})"

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the columns."""
        return [field.name for field in fields(cls)]

    def columns(self) -> list[np.ndarray]:
        """Return the columns in their order."""
        return [getattr(self, name) for name in self.names()]

    def rows(self, first: int = 0) -> Iterator[tuple[float, ...]]:
        """Yield the numbers of each iteration as plain numbers.

        Args:
            first: the iteration to begin with, 0 by default.
        """
        chunk = 1024  # rows turned into plain numbers at a time
        for low in range(first, len(self), chunk):
            yield from zip(*(c[low : low + chunk].tolist() for c in self.columns()), strict=True)

    def scaled(self, L: float) -> Self:
        """Return the numbers for problems whose curvature is ``L`` times larger: steps by L.

        Args:
            L: the ratio of curvatures, a positive number.

        Raises:
            InputError: ``L`` is not a positive finite number.
        """
        L = as_positive(L, "The scale")
        named = zip(self.names(), self.columns(), strict=True)
        return type(self)(*(c / L if name in self.steps else c for name, c in named))

    def first(self, K: int) -> Self:
        """Return the first iterations, or all where there are fewer.

        Args:
            K: how many, at least 1.

        Raises:
            InputError: ``K`` is no positive whole number.
        """
        K = as_count(K, "K")
        return type(self)(*(column[:K] for column in self.columns()))


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _span(values: np.ndarray) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
