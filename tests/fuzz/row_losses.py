"""Losses of rows that hostile problems are made of, as users write them, with exact slopes.

Each loss of a score z is convex. Some have a wall: they are infinite from a score on. The slopes
hold in any precision; ``size`` is that of the terms of the slope that rounding is measured by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ode2opt import LinearModel

Rowwise = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Loss(NamedTuple):
    """A loss by row: value, first and second derivative by the score, and the terms' size.

    ``along`` is the second derivative times a change of the scores, where it is no diagonal.
    """

    value: Rowwise
    slope: Rowwise
    bend: Rowwise
    size: Rowwise
    along: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None


def _inside(gap: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the value where the gap to the wall is open, else infinity."""
    return np.where(gap > 0, value, np.inf)


def power(p: int) -> Loss:
    """(z - b)^p / p."""
    return Loss(
        lambda z, b: (z - b) ** p / p,
        lambda z, b: (z - b) ** (p - 1),
        lambda z, b: (p - 1) * (z - b) ** (p - 2),
        lambda z, b: p * (np.abs(z) + np.abs(b)) * np.abs(z - b) ** (p - 2),
    )


def _clipped(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.clip(z - b, -1, 1)


def _below_one(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(0, 1 - (2 * b - 1) * z)


def _error(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a probability minus the label, without cancellation."""
    e = np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z)))
    return np.where(z > 0, (1 - b) - e, e - b)


WALLS = {
    # -log(b - z) for z < b.
    "log wall": Loss(
        lambda z, b: _inside(b - z, -np.log(np.maximum(b - z, 0))),
        lambda z, b: _inside(b - z, 1 / (b - z)),
        lambda z, b: _inside(b - z, 1 / (b - z) ** 2),
        lambda z, b: (np.abs(z) + b) / (b - z) ** 2 + 1 / np.abs(b - z),
    ),
    # 1 / (b - z) for z < b.
    "inverse wall": Loss(
        lambda z, b: _inside(b - z, 1 / (b - z)),
        lambda z, b: _inside(b - z, 1 / (b - z) ** 2),
        lambda z, b: _inside(b - z, 2 / (b - z) ** 3),
        lambda z, b: 2 * (np.abs(z) + b) / np.abs(b - z) ** 3 + 1 / (b - z) ** 2,
    ),
    # -log(b^2 - z^2) for -b < z < b.
    "two walls": Loss(
        lambda z, b: _inside(b - np.abs(z), -np.log(np.maximum((b - z) * (b + z), 0))),
        lambda z, b: _inside(b - np.abs(z), 2 * z / ((b - z) * (b + z))),
        lambda z, b: _inside(b - np.abs(z), 1 / (b - z) ** 2 + 1 / (b + z) ** 2),
        lambda z, b: (np.abs(z) + b) * (1 / (b - z) ** 2 + 1 / (b + z) ** 2),
    ),
    # -log(b - z) again, without a word of the wall: beyond it no number.
    "unguarded wall": Loss(
        lambda z, b: -np.log(b - z),
        lambda z, b: 1 / (b - z),
        lambda z, b: 1 / (b - z) ** 2,
        lambda z, b: (np.abs(z) + b) / (b - z) ** 2 + 1 / np.abs(b - z),
    ),
    # s log(s) - s for s = b + z > 0: the slope itself has a wall.
    "entropy": Loss(
        lambda z, b: _inside(b + z, (b + z) * np.log(np.maximum(b + z, 1e-300)) - (b + z)),
        lambda z, b: np.log(b + z),
        lambda z, b: 1 / (b + z),
        lambda z, b: np.abs(np.log(b + z)) + (np.abs(z) + b) / np.abs(b + z),
    ),
}
STEEP = {
    "cosh": Loss(
        lambda z, b: np.cosh(z - b),
        lambda z, b: np.sinh(z - b),
        lambda z, b: np.cosh(z - b),
        lambda z, b: (1 + np.abs(z) + np.abs(b)) * np.cosh(z - b),
    ),
    # exp(r^2) of the residual r: from a residual of 26.6 on it is too large for a number.
    "exp square": Loss(
        lambda z, b: np.exp((z - b) ** 2),
        lambda z, b: 2 * (z - b) * np.exp((z - b) ** 2),
        lambda z, b: (2 + 4 * (z - b) ** 2) * np.exp((z - b) ** 2),
        lambda z, b: (2 + 4 * (z - b) ** 2) * np.exp((z - b) ** 2) * (1 + np.abs(z) + np.abs(b)),
    ),
    # The loss of Gamma regression with the logarithm as link: z + b exp(-z).
    "gamma": Loss(
        lambda z, b: z + b * np.exp(-z),
        lambda z, b: 1 - b * np.exp(-z),
        lambda z, b: b * np.exp(-z),
        lambda z, b: 1 + b * np.exp(-z) * (1 + np.abs(z)),
    ),
}
KNOWN = {
    "poisson": Loss(
        lambda z, b: np.exp(z) - b * z,
        lambda z, b: np.exp(z) - b,
        lambda z, b: np.exp(z),
        lambda z, b: np.exp(z) * (1 + np.abs(z)) + b,
    ),
    "huber": Loss(
        lambda z, b: _clipped(z, b) * (z - b - 0.5 * _clipped(z, b)),
        _clipped,
        lambda z, b: (np.abs(z - b) <= 1).astype(z.dtype),
        lambda z, b: 1 + np.abs(z) * (np.abs(z - b) <= 2) + np.abs(b) * (np.abs(z - b) <= 2),
    ),
    # max(0, 1 - s z)^2 with s = 2 b - 1.
    "hinge": Loss(
        lambda z, b: _below_one(z, b) ** 2,
        lambda z, b: -2 * (2 * b - 1) * _below_one(z, b),
        lambda z, b: 2.0 * ((2 * b - 1) * z < 1),
        lambda z, b: 2 + 2 * np.abs(z),
    ),
    "logistic": Loss(
        lambda z, b: np.maximum(z, 0) - b * z + np.log1p(np.exp(-np.abs(z))),
        _error,
        lambda z, b: np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2,
        lambda z, b: np.abs(_error(z, b)) + np.exp(-np.abs(z)) * (1 + np.abs(z)),
    ),
}
FLAT = {
    # |r|^2.5 / 2.5: its curvature is zero at the minimum and no Lipschitz constant holds.
    "steep": Loss(
        lambda z, b: np.abs(z - b) ** 2 * np.sqrt(np.abs(z - b)) / 2.5,
        lambda z, b: (z - b) * np.sqrt(np.abs(z - b)),
        lambda z, b: 1.5 * np.sqrt(np.abs(z - b)),
        lambda z, b: 1.5 * (np.abs(z) + np.abs(b)) * np.sqrt(np.abs(z - b)),
    ),
    # sqrt(1 + r^2): linear far out, where its curvature vanishes.
    "flat": Loss(
        lambda z, b: np.hypot(1, z - b),
        lambda z, b: (z - b) / np.hypot(1, z - b),
        lambda z, b: 1 / np.hypot(1, z - b) ** 3,
        lambda z, b: (np.abs(z) + np.abs(b)) / np.hypot(1, z - b) ** 3,
    ),
}


def _mean_of_exponentials(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    top = np.max(z + b)
    return np.full_like(z, top + np.log(np.sum(np.exp(z + b - top))))


def _shares(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    e = np.exp(z + b - np.max(z + b))
    return len(z) * e / np.sum(e)


def _shares_along(z: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    p = _shares(z, b)
    return p * (t - (p @ t) / len(p))


LOG_SUM_EXP = Loss(_mean_of_exponentials, _shares, _shares, _shares, _shares_along)
"""log(sum(exp(z + b))), shared out so that the mean of the rows is it."""


def user_model(loss: Loss) -> type[LinearModel]:
    """Return a linear model of a loss as a user writes one."""

    class User(LinearModel):
        def loss(self, z: np.ndarray) -> np.ndarray:
            return loss.value(z, self.b)

        def slope(self, z: np.ndarray) -> np.ndarray:
            return loss.slope(z, self.b)

        def bend(self, z: np.ndarray) -> np.ndarray:
            return loss.bend(z, self.b)

    return User
