"""Coefficients given as numbers on a grid of times, joined by straight lines."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.paper.coefficients.base import Coefficients, as_alpha, samples
from ode2opt.paper.default import ALPHA
from ode2opt.paper.schedule import TimeFunction


class Table(Coefficients):
    """Coefficients given at some times, straight lines between them, constant outside.

    Examples:
        >>> from ode2opt.paper import Table
        >>> float(Table([1, 3], [20.0, 10.0], [500.0, 300.0]).beta(2.0))
        15.0
    """

    times: Array
    betas: Array
    gammas: Array

    def __init__(self, times: Array, betas: Array, gammas: Array, alpha: float = ALPHA) -> None:
        rows = [np.asarray(row, dtype=np.float64) for row in (times, betas, gammas)]
        if rows[0].ndim != 1 or len(rows[0]) < 2 or len({row.shape for row in rows}) != 1:
            shapes = ", ".join(str(row.shape) for row in rows)
            raise InputError(f"A table needs three rows of one length (2 or more), not {shapes}.")
        if np.any(np.diff(rows[0]) <= 0):
            raise InputError("A table's times must rise.")
        for name, values in (("beta", rows[1]), ("gamma", rows[2])):
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise InputError(f"A table's {name} must be finite and not negative.")
        self.alpha = as_alpha(alpha)
        self.times, self.betas, self.gammas = rows

    def beta(self, t: Array) -> Array:
        return jnp.interp(t, self.times, self.betas)

    def gamma(self, t: Array) -> Array:
        return jnp.interp(t, self.times, self.gammas)

    @property
    def settings(self) -> dict[str, Any]:
        return {"count": len(self.times)}

    @classmethod
    def blank(cls, *, count: int = 2) -> Table:  # type: ignore[override]
        """Return a table of ones, to be filled in."""
        return cls(np.arange(1.0, count + 1), np.ones(count), np.ones(count))

    @property
    def smooth(self) -> bool:
        return False

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Table:
        t, b = samples(beta, t0, t1, "beta", positive=False)
        _, g = samples(gamma, t0, t1, "gamma", positive=False)
        return Table(t, b, g, float(self.alpha))
