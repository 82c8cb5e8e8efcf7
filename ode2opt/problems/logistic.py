"""Logistic regression (docs/mathematics.md, section 9)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from ode2opt.base.arrays import Array, namespace
from ode2opt.base.errors import InputError
from ode2opt.kernels.row_loss import Loss
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.predicting import TWO_CLASSES

LARGEST_SCORE = 0.9  # share of the largest exponent: beyond, log(1 + e^z) is computed as z
BLOCK = 1 << 13  # rows that are worked on together


def _tails(z: Array) -> tuple[Array, Array]:
    """Return exp(-|z|), and whether z > 0 as a number."""
    xp = namespace(z)
    return xp.exp(-xp.abs(z)), xp.astype(z > 0, z.dtype)


def _loss(z: Array, b: Array, e: Array, above: Array) -> Array:
    loss = above * z
    loss -= b * z
    loss += namespace(z).log1p(e)
    return loss


def _slope(b: Array, e: Array, above: Array) -> Array:
    """Return sigmoid(z) - b from sigmoid(-|z|), without cancellation in either tail.

    In place and without a choice by rows, which would take half as long again.
    """
    slope = above - b
    above *= -2
    above += 1
    e /= 1 + e
    above *= e
    slope += above
    return slope


def _loss_and_slope(z: Array, b: Array) -> tuple[Array, Array]:
    tails = _tails(z)
    return _loss(z, b, *tails), _slope(b, *tails)


def _curvature(z: Array, b: Array) -> Array:
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return e / (1 + e) ** 2


LOGISTIC = Loss(
    lambda z, b: _loss(z, b, *_tails(z)),
    lambda z, b: _slope(b, *_tails(z)),
    _curvature,
    _loss_and_slope,
    curvature_bound=0.25,
    lower_bound=0.0,
    compiled="logistic",
)


class Logistic(LinearModel):
    """Logistic regression: loss = log(1 + exp(z)) - b z with b in {0, 1}.

    A label between 0 and 1 is taken as a probability. The arguments are those of
    :class:`LinearModel`.

    Raises:
        InputError: a label is below 0 or above 1, or as for :class:`LinearModel`.

    Examples:
        >>> problem = Logistic(A, b, l2=1e-3)
        >>> g = problem.gradient(x)
    """

    binary = True
    prediction = TWO_CLASSES
    row_loss = LOGISTIC
    _signs: np.ndarray | None = None

    def _set(self, A: Array, b: Array) -> None:
        super()._set(A, b)
        plain = isinstance(b, np.ndarray) and bool(np.all((b == 0) | (b == 1)))
        self._signs = 1 - 2 * b if plain else None

    def check_targets(self) -> None:
        if bool(self.xp.any((self.b < 0) | (self.b > 1))):
            low, high = float(self.xp.min(self.b)), float(self.xp.max(self.b))
            raise InputError(
                f"Logistic labels must be 0 or 1 (or between), but range from {low:g} to {high:g}: "
                f"map them first, e.g. b = (b == {high:g})."
            )

    def _slope_in_place(self, z: Array) -> Array:
        if (signs := self._signs_for(z)) is None:
            return super()._slope_in_place(z)
        for rows, odds, _ in _odds(z, signs):
            _slope_from(odds, signs[rows], z[rows])
        return z

    def _total_and_slope(self, z: Array) -> tuple[Array, Array]:
        if (signs := self._signs_for(z)) is None:
            return super()._total_and_slope(z)
        total = 0.0
        for rows, odds, beyond in _odds(z, signs):
            _slope_from(odds, signs[rows], z[rows])
            loss = np.log1p(odds, out=odds)
            if beyond is not None:
                loss += beyond
            total += float(loss.sum() if self.weights is None else loss @ self.weights[rows])
        return z.dtype.type(total), z

    def _signs_for(self, z: Array) -> np.ndarray | None:
        """Return 1 - 2 b, for labels that are all 0 or 1 and NumPy arrays; None for others."""
        return self._signs if isinstance(z, np.ndarray) else None


def _odds(
    z: np.ndarray, signs: np.ndarray
) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Yield the rows of a block, their odds exp(s z), and by how much s z was capped, if it was.

    s is 1 - 2 b. Loss and slope take half as many passes over the rows from these; the rows of a
    block stay in the cache, and no array as long as z is made.
    """
    most = _largest_score(z.dtype)
    buffer = np.empty(min(BLOCK, len(z)), dtype=z.dtype)
    for first in range(0, len(z), BLOCK):
        rows = slice(first, first + BLOCK)
        margin = np.multiply(signs[rows], z[rows], out=buffer[: len(z) - first])
        beyond = None
        if margin.max() > most:
            beyond = np.maximum(margin - most, 0)
            np.minimum(margin, most, out=margin)
        yield rows, np.exp(margin, out=margin), beyond


@cache
def _largest_score(dtype: np.dtype) -> float:
    """Return the score up to which the odds of a precision are finite, with room to spare."""
    return LARGEST_SCORE * math.log(np.finfo(dtype).max)


def _slope_from(odds: np.ndarray, signs: np.ndarray, slope: np.ndarray) -> None:
    """Write signs * odds / (1 + odds): no cancellation in either tail."""
    np.add(odds, 1, out=slope)
    np.divide(odds, slope, out=slope)
    slope *= signs
