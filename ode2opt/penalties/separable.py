"""Penalties that are sums over variables: |x|, squares, and limits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ode2opt.base.arrays import Array, as_floating, as_number, namespace
from ode2opt.base.errors import InputError
from ode2opt.penalties.base import Face, Penalty, SeparableTerms, spread


class Separable(Penalty):
    """The sum of l1 |x_j| + l2/2 x_j^2 over variables between limits; what ``L1() + Box()`` makes.

    Args:
        pieces: weights and limits, each one number or one a variable.

    Raises:
        InputError: a weight is negative, a lower limit is above the upper one, or arrays have
            different lengths.

    Examples:
        >>> from ode2opt.penalties import *
        >>> (L1(1.0) + NonNegative()).prox(np.array([3.0, -3.0]), 0.5)
        array([2.5, 0. ])
    """

    separable = True

    def __init__(self, pieces: SeparableTerms) -> None:
        self._terms = pieces
        lengths = {len(one) for one in pieces if np.ndim(one)}
        if len(lengths) > 1:
            few, many = min(lengths), max(lengths)
            raise InputError(f"Weights and limits have {few} and {many} numbers: one a variable.")
        self.n = lengths.pop() if lengths else None
        _check_limits(pieces)
        self._limited = bool(np.any(pieces.lower > -np.inf) or np.any(pieces.upper < np.inf))

    def pieces(self) -> SeparableTerms:
        return self._terms

    def __add__(self, other: Penalty) -> Penalty:
        """Return the sum of two: weights add up, and both limits hold."""
        if not isinstance(other, Separable):
            return super().__add__(other)
        one, two = self._terms, other._terms
        return Separable(
            SeparableTerms(
                one.l1 + two.l1,
                one.l2 + two.l2,
                np.maximum(one.lower, two.lower),
                np.minimum(one.upper, two.upper),
            )
        )

    def value(self, x: Array) -> Array:
        xp, (l1, l2, lower, upper) = self._like(x)
        total = xp.sum(l1 * xp.abs(x)) if _any(l1) else xp.sum(0 * x)
        if _any(l2):
            total = total + 0.5 * xp.sum(l2 * x * x)
        if self._limited:
            inside = xp.all((x >= lower) & (x <= upper))
            total = xp.where(inside, total, xp.asarray(xp.inf, dtype=x.dtype))
        return total

    def prox(self, x: Array, step: Any) -> Array:
        xp, (l1, l2, lower, upper) = self._like(x)
        if _any(l1):
            reach = step * l1
            x = x - xp.clip(x, -reach, reach)
        if _any(l2):
            x = x / (1 + step * l2)
        return xp.clip(x, lower, upper) if self._limited else 1 * x

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return x - prox(x - g), the difference taken by hand: g counts however large x is."""
        _, (l1, l2, lower, upper) = self._like(x)
        found = (l2 * x + g + np.clip(x - g, -l1, l1)) / (1 + l2)
        return np.clip(found, x - upper, x - lower)

    def project(self, x: Array) -> Array:
        xp, (_, _, lower, upper) = self._like(x)
        return xp.clip(x, lower, upper) if self._limited else x

    def _like(self, x: Array) -> tuple[Any, tuple[Any, ...]]:
        """Return x's namespace, weights and limits; both limits are numbers, or both arrays."""
        pieces = self._terms
        if np.ndim(pieces.lower) != np.ndim(pieces.upper):
            limits = (np.broadcast_to(one, (int(self.n or 0),)) for one in pieces[2:])
            pieces = SeparableTerms(*pieces[:2], *limits)
        if isinstance(x, np.ndarray):
            return np, pieces
        xp = namespace(x)
        return xp, tuple(
            xp.asarray(np.array(one), dtype=x.dtype) if np.ndim(one) else float(one)
            for one in pieces
        )

    def curvature_set(self, x: np.ndarray) -> Face:
        l1, l2, lower, upper = self._terms.each(len(x))
        free = ((x != 0) | (l1 == 0)) & (x > lower) & (x < upper)
        return Face(free, np.where(free, l1 * np.sign(x) + l2 * x, 0.0), np.where(free, l2, 0.0))

    def support(self, x: np.ndarray) -> np.ndarray:
        return np.flatnonzero(self.curvature_set(x).free)

    def conjugate(self, v: np.ndarray) -> float:
        """Return the sum of the largest v x - l1 |x| - l2/2 x^2 between the limits.

        The largest is at the prox of an infinite step: at beyond / l2, beyond being what v has more
        than l1, or at a limit.
        """
        l1, l2, lower, upper = self._terms.each(len(v))
        beyond = v - np.clip(v, -l1, l1)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where(
                l2 > 0, beyond / l2, np.where(beyond != 0, np.copysign(np.inf, beyond), 0)
            )
            at = np.clip(at, lower, upper)
            terms = v * at - l1 * np.abs(at) - 0.5 * l2 * at * at
        return float(np.sum(np.where(np.isfinite(at), terms, np.inf)))

    def dual_scale(self, v: np.ndarray) -> float:
        l1, l2, lower, upper = self._terms.each(len(v))
        unbounded = (l2 == 0) & np.where(v > 0, upper == np.inf, lower == -np.inf) & (v != 0)
        if not unbounded.any():
            return 1.0
        return float(min(1.0, np.min(l1[unbounded] / np.abs(v[unbounded]))))

    def critical_scale(self, g: np.ndarray) -> float | None:
        l1, _, lower, upper = self._terms.each(len(g))
        if np.any((lower > 0) | (upper < 0)):
            return None
        moves = np.where(g > 0, lower < 0, upper > 0) & (l1 > 0)
        return float(np.max(np.abs(g[moves]) / l1[moves], initial=0.0)) if np.any(l1) else None

    def scaled(self, factor: float) -> Self:
        if not (_any(self._terms.l1) or _any(self._terms.l2)):
            return super().scaled(factor)
        return self._made(
            self._terms._replace(l1=factor * self._terms.l1, l2=factor * self._terms.l2)
        )

    def only(self, kept: np.ndarray) -> Separable:
        return self._made(
            SeparableTerms(*(one[kept] if np.ndim(one) else one for one in self._terms))
        )

    def sized(self, n: int, free: int = 0, width: int = 1) -> Separable:
        if self.n is None and not free:
            return self
        names = ("The weight", "The weight", "lower", "upper")
        found = (
            spread(one, name, n, free, width, other) if _says(one, other) else one
            for one, name, other in zip(self._terms, names, SeparableTerms(), strict=True)
        )
        return self._made(SeparableTerms(*found))

    def _made(self, pieces: SeparableTerms) -> Self:
        """Return a penalty of the same class with other weights and limits."""
        made = type(self).__new__(type(self))
        Separable.__init__(made, pieces)
        return made

    def _about(self) -> list[tuple[str, str]]:
        rows = [
            (name, _words(one))
            for name, one, nothing in zip(
                SeparableTerms._fields, self._terms, SeparableTerms(), strict=True
            )
            if _says(one, nothing)
        ]
        return [
            (label, f"{label} = {text}" if not k else text) for k, (label, text) in enumerate(rows)
        ]


class L1(Separable):
    """The penalty sum_j weight_j |x_j|: many variables of the solution are 0.

    Args:
        weight: not negative; one number, or one for each column.

    Raises:
        InputError: a weight is negative or not finite.

    Examples:
        >>> from ode2opt.penalties import *
        >>> L1(0.5).prox(np.array([2.0, -0.25]), 1.0)
        array([1.5, 0. ])
    """

    def __init__(self, weight: Any) -> None:
        super().__init__(SeparableTerms(l1=as_weight(weight)))


class ElasticNet(Separable):
    """The penalty weight (l1_ratio |x|_1 + (1 - l1_ratio)/2 |x|^2), as scikit-learn has it.

    scikit-learn's ``alpha`` is the weight here.

    Args:
        weight: not negative; one number, or one for each column.
        l1_ratio: from 0, squares alone, to 1, absolute values alone.

    Raises:
        InputError: a weight is negative or not finite, or ``l1_ratio`` is not between 0 and 1.

    Examples:
        >>> from ode2opt.penalties import *
        >>> ElasticNet(1.0, 0.5).prox(np.array([2.0]), 1.0)
        array([1.])
    """

    def __init__(self, weight: Any, l1_ratio: float) -> None:
        ratio = as_number(l1_ratio, "l1_ratio")
        if not 0 <= ratio <= 1:
            raise InputError(f"l1_ratio is {ratio:g}: it must be between 0 and 1.")
        found = as_weight(weight)
        super().__init__(SeparableTerms(l1=ratio * found, l2=(1 - ratio) * found))


class NonNegative(Separable):
    """The constraint x_j >= 0 for every variable but an intercept.

    Examples:
        >>> from ode2opt.penalties import *
        >>> NonNegative().prox(np.array([2.0, -1.0]), 1.0)
        array([2., 0.])
    """

    def __init__(self) -> None:
        super().__init__(SeparableTerms(lower=0.0))


class Box(Separable):
    """The constraint lower <= x_j <= upper for every variable but an intercept.

    Args:
        lower: one number, or one for each column; minus infinity is no limit.
        upper: one number, or one for each column; infinity is no limit.

    Raises:
        InputError: a lower limit is above the upper one, or a limit is no number.

    Examples:
        >>> from ode2opt.penalties import *
        >>> Box(-1.0, [0.5, np.inf]).prox(np.array([2.0, -3.0]), 1.0)
        array([ 0.5, -1. ])
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        low, high = _as_limit(lower, "lower"), _as_limit(upper, "upper")
        super().__init__(SeparableTerms(lower=low, upper=high))


def as_weight(weight: Any, name: str = "weight") -> Any:
    """Return a number, or an array of numbers, none of them negative."""
    if np.ndim(weight) == 0:
        number = as_number(weight, name)
        if not 0 <= number < np.inf:
            raise InputError(f"{name} is {number:g}: it must be zero or a positive number.")
        return number
    found = _as_row(weight, name)
    bad = np.flatnonzero(~((found >= 0) & (found < np.inf)))
    if len(bad):
        raise InputError(
            f"{name}[{bad[0]}] is {found[bad[0]]:g}: weights must be zero or positive numbers."
        )
    return found


def _as_limit(limit: Any, name: str) -> Any:
    if np.ndim(limit) == 0:
        number = as_number(limit, name)
        if np.isnan(number):
            raise InputError(f"{name} is nan: it must be a number, or infinite for no limit.")
        return number
    found = _as_row(limit, name)
    if np.isnan(found).any():
        raise InputError(
            f"{name}[{int(np.flatnonzero(np.isnan(found))[0])}] is nan: it must be a number, or "
            f"infinite for no limit."
        )
    return found


def _as_row(values: Any, name: str) -> np.ndarray:
    found = np.asarray(as_floating(values, name), dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise InputError(f"{name} has shape {found.shape}: give one number, or one a column.")
    return found


def _check_limits(pieces: SeparableTerms) -> None:
    lower, upper = np.broadcast_arrays(np.atleast_1d(pieces.lower), np.atleast_1d(pieces.upper))
    bad = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if len(bad):
        k = int(bad[0])
        where = f" of variable {k}" if len(lower) > 1 else ""
        raise InputError(
            f"The box is empty: the lower limit{where} is {lower[k]:g} and the upper one "
            f"{upper[k]:g}."
        )


def _any(values: Any) -> bool:
    if isinstance(values, float):
        return values != 0.0
    return bool(np.any(values)) if isinstance(values, np.ndarray) else True


def _says(values: Any, nothing: float) -> bool:
    """Whether a weight or limit is other than the one that does nothing."""
    return bool(np.any(np.asarray(values) != nothing)) or np.ndim(values) > 0


def _words(values: Any) -> str:
    return (
        f"{float(values):g}"
        if np.ndim(values) == 0
        else f"{np.min(values):g} to {np.max(values):g}"
    )
