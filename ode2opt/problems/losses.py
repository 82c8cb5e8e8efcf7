"""Losses of linear models: powers of residuals, counts, outliers, classes with a margin."""

from __future__ import annotations

from typing import Any

from ode2opt.base.arrays import Array, as_number, as_positive, as_ridge, namespace
from ode2opt.base.errors import InputError
from ode2opt.kernels.row_loss import Loss
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.predicting import CLASS, COUNT


def integer_power(r: Array, k: int) -> Array:
    """Return r^k by repeated multiplication, many times quicker than a general power."""
    result: Any = None
    while True:
        if k % 2:
            result = r if result is None else result * r
        k //= 2
        if not k:
            return result
        r = r * r


def _power_curvature(z: Array, b: Array, p: int) -> Array:
    return namespace(z).ones_like(z) if p == 2 else (p - 1) * integer_power(z - b, p - 2)


POWER = Loss(
    lambda z, b, p: integer_power(z - b, p) / p,
    lambda z, b, p: integer_power(z - b, p - 1),
    _power_curvature,
    parameter="p",
    lower_bound=0.0,
    compiled="power",
)


def _poisson(z: Array, b: Array) -> tuple[Array, Array]:
    e = namespace(z).exp(z)
    return e - b * z, e - b


POISSON = Loss(
    lambda z, b: namespace(z).exp(z) - b * z,
    lambda z, b: namespace(z).exp(z) - b,
    lambda z, b: namespace(z).exp(z),
    _poisson,
    compiled="poisson",
)


def _clipped(z: Array, b: Array, delta: float) -> Array:
    return namespace(z).clip(z - b, -delta, delta)


def _huber(z: Array, b: Array, delta: float) -> Array:
    r, near = z - b, _clipped(z, b, delta)
    return near * (r - 0.5 * near)


def _huber_curvature(z: Array, b: Array, delta: float) -> Array:
    xp = namespace(z)
    return xp.astype(xp.abs(z - b) <= delta, z.dtype)


HUBER = Loss(
    _huber,
    _clipped,
    _huber_curvature,
    parameter="delta",
    curvature_bound=1.0,
    lower_bound=0.0,
    compiled="huber",
)


def _missed(z: Array, b: Array) -> tuple[Array, Array]:
    """Return s = 2 b - 1 and how far the margin is missed."""
    s = 2 * b - 1
    gap = 1 - s * z
    return s, gap * namespace(z).astype(gap > 0, gap.dtype)


def _hinge_slope(z: Array, b: Array) -> Array:
    s, gap = _missed(z, b)
    return -2 * s * gap


SQUARED_HINGE = Loss(
    lambda z, b: _missed(z, b)[1] ** 2,
    _hinge_slope,
    lambda z, b: 2 * namespace(z).astype((2 * b - 1) * z < 1, z.dtype),
    curvature_bound=2.0,
    lower_bound=0.0,
    compiled="squared_hinge",
)


class Lpp(LinearModel):
    """l_p^p regression: loss = (z - b)^p / p for an even p >= 2.

    Args:
        A: as in :class:`LinearModel`.
        b: N targets.
        p: an even whole number of at least 2; 4 by default.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows, none negative; one each by default.
        intercept: whether the last variable is added to every score.
        offset: what is added to each row's score; nothing by default.

    Raises:
        InputError: p is not even and at least 2, or as for :class:`LinearModel`.

    Examples:
        >>> round(float(Lpp(np.eye(2), np.zeros(2), p=4).value(np.array([1.0, 1.0]))), 4)
        0.25
    """

    row_loss = POWER

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        p: int = 4,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
    ) -> None:
        power = as_number(p, "p")
        if not power.is_integer() or power < 2 or power % 2:
            raise InputError(f"p is {p}: the l_p^p loss needs an even p of at least 2.")
        self.p = int(power)
        self.quadratic = self.p == 2
        self.slope_bound = 1.0 if self.quadratic else None
        super().__init__(A, b, l2=l2, weights=weights, intercept=intercept, offset=offset)


class LeastSquares(Lpp):
    """Least squares: loss = (z - b)^2 / 2.

    Args:
        A: as in :class:`LinearModel`.
        b: N targets.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows, none negative; one each by default.
        intercept: whether the last variable is added to every score.
        offset: what is added to each row's score; nothing by default.

    Examples:
        >>> problem = LeastSquares(A, b, l2=0.1)
        >>> solve(problem, tol=1e-8).success
        True
    """

    row_loss = POWER

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
    ) -> None:
        options = {"weights": weights, "intercept": intercept, "offset": offset}
        super().__init__(A, b, p=2, l2=l2, **options)


class Poisson(LinearModel):
    """Poisson regression with the logarithm as link: loss = exp(z) - b z for counts b >= 0.

    Up to a constant, half the deviance. Its arguments are those of :class:`LinearModel`.

    Raises:
        InputError: a target is negative, or as for :class:`LinearModel`.

    Examples:
        >>> counts = np.array([0.0, 1.0, 3.0])
        >>> x = solve(Poisson(np.ones((3, 1)), counts), tol=1e-10).x  # log of the mean
        >>> round(float(np.exp(x[0])), 6)
        1.333333
    """

    prediction = COUNT
    row_loss = POISSON

    def check_targets(self) -> None:
        if bool(self.xp.any(self.b < 0)):
            low = float(self.xp.min(self.b))
            raise InputError(
                f"Poisson targets are counts and must not be negative; one is {low:g}."
            )


class Huber(LinearModel):
    """Huber's loss: a square up to a residual of ``delta``, a line beyond.

    It is r^2 / 2 where |r| <= delta and delta |r| - delta^2 / 2 elsewhere, r = z - b.

    Args:
        A: as in :class:`LinearModel`.
        b: N targets.
        delta: the residual from which on the loss is a line, positive; 1 by default.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows, none negative; one each by default.
        intercept: whether the last variable is added to every score.
        offset: what is added to each row's score; nothing by default.

    Raises:
        InputError: ``delta`` is not positive, or as for :class:`LinearModel`.

    Examples:
        >>> float(Huber(np.eye(1), np.zeros(1), delta=1.0).value(np.array([3.0])))
        2.5
    """

    row_loss = HUBER

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        delta: float = 1.0,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
    ) -> None:
        self.delta = as_positive(delta, "delta")
        super().__init__(A, b, l2=l2, weights=weights, intercept=intercept, offset=offset)


class SquaredHinge(LinearModel):
    """The squared loss of a support vector machine: max(0, 1 - s z)^2 with s = 2 b - 1.

    Args:
        A: as in :class:`LinearModel`.
        b: N labels, 0 or 1, or words of two kinds.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows, none negative; one each by default.
        intercept: whether the last variable is added to every score.
        offset: what is added to each row's score; nothing by default.
        intercept_l2: weight of a penalty on the intercept alone, which l2 leaves out; 0 by default.

    Raises:
        InputError: a label is neither 0 nor 1, or as for :class:`LinearModel`.

    Examples:
        >>> float(SquaredHinge(np.eye(1), np.ones(1)).value(np.array([0.5])))
        0.25
    """

    binary = True
    prediction = CLASS
    kinked = True
    row_loss = SQUARED_HINGE

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
        intercept_l2: float = 0.0,
    ) -> None:
        self.intercept_l2 = as_ridge(intercept_l2) if intercept else 0.0
        super().__init__(A, b, l2=l2, weights=weights, intercept=intercept, offset=offset)

    def check_targets(self) -> None:
        if bool(self.xp.any((self.b != 0) & (self.b != 1))):
            raise InputError("SquaredHinge labels must be 0 or 1.")
