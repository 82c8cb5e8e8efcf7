"""Losses of linear models: powers of residuals, counts, outliers, classes with a margin."""

from __future__ import annotations

from typing import Any

from ode2opt.base.arrays import Array, as_number, as_positive, as_ridge
from ode2opt.base.errors import InputError
from ode2opt.kernels.row_loss import NamedLoss
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.predicting import CLASS, COUNT


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

    least_loss = 0.0
    kernel = NamedLoss("power", "p")

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

    def loss(self, z: Array) -> Array:
        return integer_power(z - self.b, self.p) / self.p

    def slope(self, z: Array) -> Array:
        return integer_power(z - self.b, self.p - 1)

    def bend(self, z: Array) -> Array:
        if self.p == 2:
            return self.xp.ones_like(z)
        return (self.p - 1) * integer_power(z - self.b, self.p - 2)


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

    kernel = Lpp.kernel

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
    kernel = NamedLoss("poisson")

    def check_targets(self) -> None:
        if bool(self.xp.any(self.b < 0)):
            low = float(self.xp.min(self.b))
            raise InputError(
                f"Poisson targets are counts and must not be negative; one is {low:g}."
            )

    def loss(self, z: Array) -> Array:
        return self.xp.exp(z) - self.b * z

    def slope(self, z: Array) -> Array:
        return self.xp.exp(z) - self.b

    def loss_and_slope(self, z: Array) -> tuple[Array, Array]:
        e = self.xp.exp(z)
        return e - self.b * z, e - self.b

    def bend(self, z: Array) -> Array:
        return self.xp.exp(z)


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

    slope_bound = 1.0
    least_loss = 0.0
    kernel = NamedLoss("huber", "delta")

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

    def loss(self, z: Array) -> Array:
        r, near = z - self.b, self.slope(z)
        return near * (r - 0.5 * near)

    def slope(self, z: Array) -> Array:
        return self.xp.clip(z - self.b, -self.delta, self.delta)

    def bend(self, z: Array) -> Array:
        return self.xp.astype(self.xp.abs(z - self.b) <= self.delta, z.dtype)


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

    slope_bound = 2.0
    least_loss = 0.0
    binary = True
    prediction = CLASS
    kinked = True
    kernel = NamedLoss("squared_hinge")

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

    def _gap(self, z: Array) -> tuple[Array, Array]:
        """Return s and how far the margin is missed."""
        s = 2 * self.b - 1
        gap = 1 - s * z
        return s, gap * self.xp.astype(gap > 0, gap.dtype)

    def loss(self, z: Array) -> Array:
        return self._gap(z)[1] ** 2

    def slope(self, z: Array) -> Array:
        s, gap = self._gap(z)
        return -2 * s * gap

    def bend(self, z: Array) -> Array:
        return 2 * self.xp.astype((2 * self.b - 1) * z < 1, z.dtype)


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
