"""Losses of rows that hostile problems are made of, as users write them, with exact slopes.

Each loss of a score z is convex. Some have a wall: they are infinite from a score on. The slopes
are written so that they hold in any precision; beside them stands the size of the terms that
rounding is measured by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ode2opt import LinearModel

Rowwise = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Loss(NamedTuple):
    """A loss by row: value, first and second derivative by the score, and the terms' size."""

    value: Rowwise
    slope: Rowwise
    bend: Rowwise
    size: Rowwise


def _inside(gap: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the value where the gap to the wall is open, else infinity."""
    return np.where(gap > 0, value, np.inf)


def _log_wall() -> Loss:
    """-log(b - z) for z < b."""
    return Loss(
        lambda z, b: _inside(b - z, -np.log(np.maximum(b - z, 0))),
        lambda z, b: _inside(b - z, 1 / (b - z)),
        lambda z, b: _inside(b - z, 1 / (b - z) ** 2),
        lambda z, b: (np.abs(z) + b) / (b - z) ** 2 + 1 / np.abs(b - z),
    )


def _inverse_wall() -> Loss:
    """1 / (b - z) for z < b."""
    return Loss(
        lambda z, b: _inside(b - z, 1 / (b - z)),
        lambda z, b: _inside(b - z, 1 / (b - z) ** 2),
        lambda z, b: _inside(b - z, 2 / (b - z) ** 3),
        lambda z, b: 2 * (np.abs(z) + b) / np.abs(b - z) ** 3 + 1 / (b - z) ** 2,
    )


def _two_walls() -> Loss:
    """-log(b^2 - z^2) for -b < z < b."""
    return Loss(
        lambda z, b: _inside(b - np.abs(z), -np.log(np.maximum((b - z) * (b + z), 0))),
        lambda z, b: _inside(b - np.abs(z), 2 * z / ((b - z) * (b + z))),
        lambda z, b: _inside(b - np.abs(z), 1 / (b - z) ** 2 + 1 / (b + z) ** 2),
        lambda z, b: (np.abs(z) + b) * (1 / (b - z) ** 2 + 1 / (b + z) ** 2),
    )


def _unguarded_wall() -> Loss:
    """-log(b - z), without a word about the wall: beyond it the value is no number."""
    return Loss(
        lambda z, b: -np.log(b - z),
        lambda z, b: 1 / (b - z),
        lambda z, b: 1 / (b - z) ** 2,
        lambda z, b: (np.abs(z) + b) / (b - z) ** 2 + 1 / np.abs(b - z),
    )


def _entropy() -> Loss:
    """s log(s) - s for s = b + z > 0: the slope itself has a wall."""
    return Loss(
        lambda z, b: _inside(b + z, (b + z) * np.log(np.maximum(b + z, 1e-300)) - (b + z)),
        lambda z, b: np.log(b + z),
        lambda z, b: 1 / (b + z),
        lambda z, b: np.abs(np.log(b + z)) + (np.abs(z) + b) / np.abs(b + z),
    )


def _cosh() -> Loss:
    return Loss(
        lambda z, b: np.cosh(z - b),
        lambda z, b: np.sinh(z - b),
        lambda z, b: np.cosh(z - b),
        lambda z, b: (1 + np.abs(z) + np.abs(b)) * np.cosh(z - b),
    )


def _exp_square() -> Loss:
    """exp(r^2) of the residual r: from a residual of 26.6 on it is too large for a number."""
    return Loss(
        lambda z, b: np.exp((z - b) ** 2),
        lambda z, b: 2 * (z - b) * np.exp((z - b) ** 2),
        lambda z, b: (2 + 4 * (z - b) ** 2) * np.exp((z - b) ** 2),
        lambda z, b: (2 + 4 * (z - b) ** 2) * np.exp((z - b) ** 2) * (1 + np.abs(z) + np.abs(b)),
    )


def _gamma() -> Loss:
    """The loss of Gamma regression with the logarithm as link: z + b exp(-z)."""
    return Loss(
        lambda z, b: z + b * np.exp(-z),
        lambda z, b: 1 - b * np.exp(-z),
        lambda z, b: b * np.exp(-z),
        lambda z, b: 1 + b * np.exp(-z) * (1 + np.abs(z)),
    )


def _poisson() -> Loss:
    return Loss(
        lambda z, b: np.exp(z) - b * z,
        lambda z, b: np.exp(z) - b,
        lambda z, b: np.exp(z),
        lambda z, b: np.exp(z) * (1 + np.abs(z)) + b,
    )


def _huber() -> Loss:
    def slope(z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.clip(z - b, -1, 1)

    return Loss(
        lambda z, b: slope(z, b) * (z - b - 0.5 * slope(z, b)),
        slope,
        lambda z, b: (np.abs(z - b) <= 1).astype(z.dtype),
        lambda z, b: 1 + np.abs(z) * (np.abs(z - b) <= 2) + np.abs(b) * (np.abs(z - b) <= 2),
    )


def _hinge() -> Loss:
    """max(0, 1 - s z)^2 with s = 2 b - 1."""
    return Loss(
        lambda z, b: np.maximum(0, 1 - (2 * b - 1) * z) ** 2,
        lambda z, b: -2 * (2 * b - 1) * np.maximum(0, 1 - (2 * b - 1) * z),
        lambda z, b: 2.0 * ((2 * b - 1) * z < 1),
        lambda z, b: 2 + 2 * np.abs(z),
    )


def _logistic() -> Loss:
    def slope(z: np.ndarray, b: np.ndarray) -> np.ndarray:
        e = np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z)))
        return np.where(z > 0, (1 - b) - e, e - b)

    return Loss(
        lambda z, b: np.maximum(z, 0) - b * z + np.log1p(np.exp(-np.abs(z))),
        slope,
        lambda z, b: np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2,
        lambda z, b: np.abs(slope(z, b)) + np.exp(-np.abs(z)) * (1 + np.abs(z)),
    )


def power(p: int) -> Loss:
    """(z - b)^p / p."""
    return Loss(
        lambda z, b: (z - b) ** p / p,
        lambda z, b: (z - b) ** (p - 1),
        lambda z, b: (p - 1) * (z - b) ** (p - 2),
        lambda z, b: p * (np.abs(z) + np.abs(b)) * np.abs(z - b) ** (p - 2),
    )


WALLS = {
    "log wall": _log_wall(),
    "inverse wall": _inverse_wall(),
    "two walls": _two_walls(),
    "unguarded wall": _unguarded_wall(),
    "entropy": _entropy(),
}
STEEP = {"cosh": _cosh(), "exp square": _exp_square(), "gamma": _gamma()}
KNOWN = {"poisson": _poisson(), "huber": _huber(), "hinge": _hinge(), "logistic": _logistic()}


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
