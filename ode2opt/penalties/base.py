"""What is added to a smooth function: a convex h that need not be smooth, known by its prox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from ode2opt.base.arrays import Array, namespace
from ode2opt.base.display import Displayed, Listing, one_line
from ode2opt.base.errors import InputError, many, shown
from ode2opt.problems.base import Problem


class SeparableTerms(NamedTuple):
    """A separable penalty: the sum of l1 |x_j| + l2/2 x_j^2 over variables between two limits.

    Each is one number, or an array of one number a variable.

    Attributes:
        l1: weights of |x_j|, not negative.
        l2: weights of x_j^2 / 2, not negative.
        lower: lower limits; minus infinity where there is none.
        upper: upper limits; infinity where there is none.
    """

    l1: Any = 0.0
    l2: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf

    def each(self, n: int) -> SeparableTerms:
        """Return the same with n numbers each.

        Args:
            n: the number of variables.
        """
        return SeparableTerms(
            *(
                np.full(n, one, dtype=np.float64)
                if np.ndim(one) == 0
                else np.array(np.broadcast_to(one, (n,)), dtype=np.float64)
                for one in self
            )
        )


class Face(NamedTuple):
    """Where a penalty is smooth around a point: some variables move, the others stay.

    On the face its second derivative is diag(diagonal) - B B^T; B has one column for each group,
    ``outer`` on the variables of the group and 0 elsewhere.

    Attributes:
        free: whether each variable moves, n truth values.
        slope: the derivative of the penalty by each variable; 0 for those that stay.
        diagonal: n numbers.
        outer: n numbers; None for no B.
        labels: the group of each variable; None for no B.
        normal: n numbers: moves d have normal . d = 0; None where all moves are allowed.
    """

    free: np.ndarray
    slope: np.ndarray
    diagonal: np.ndarray
    outer: np.ndarray | None = None
    labels: np.ndarray | None = None
    normal: np.ndarray | None = None


def real_number(found: Any, penalty: Penalty, what: str) -> float:
    """Return what a penalty's method has answered, as a number."""
    try:
        return float(found)
    except (TypeError, ValueError):
        name = type(penalty).__name__
        raise InputError(f"The {what} of {name} is {shown(found)}, not a number.") from None


class Penalty(Displayed, ABC):
    """A convex function h on R^n, infinite outside of its domain, added to a smooth one.

    One's own is a subclass with ``value`` and ``prox``, written with the operations of the array
    standard where it is to run on JAX arrays, too. ``curvature_set`` makes Newton steps possible,
    ``conjugate`` a duality gap.

    Attributes:
        n: for how many variables it is made; None where any number will do.
        separable: whether it is a sum over variables; then ``prox`` takes n steps as well as one.
        neutral: whether it is 0 everywhere, as ``ZERO`` is.

    Examples:
        >>> from ode2opt.penalties import Penalty
        >>> class Half(Penalty):  # |x|^2 / 2
        ...     def value(self, x):
        ...         return 0.5 * (x @ x)
        ...     def prox(self, x, step):
        ...         return x / (1 + step)
        >>> float(Half().value(Half().prox(np.array([2.0]), 1.0)))
        0.5
    """

    n: int | None = None
    separable: bool = False
    neutral: bool = False

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Return h(x); infinity outside of the domain.

        Args:
            x: n numbers.
        """

    @abstractmethod
    def prox(self, x: Array, step: Any) -> Array:
        """Return the minimiser of h(z) + |z - x|^2 / (2 step), a new array.

        Args:
            x: n numbers.
            step: a positive number; n of them where the penalty is separable.
        """

    def __add__(self, other: Penalty) -> Penalty:
        """Return the sum of two, of which only some are known."""
        if not isinstance(other, Penalty):
            return NotImplemented
        if other.neutral:
            return self
        one, two = type(self).__name__, type(other).__name__
        raise InputError(
            f"{one} + {two} has no prox that is known: L1, ElasticNet, NonNegative and Box add up."
        )

    def __radd__(self, other: object) -> Penalty:
        """Return the penalty itself for 0 + it, with which ``sum`` begins."""
        return self if other == 0 else NotImplemented

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return x - prox(x - g) for the step 1: 0 where x minimises f + h, g being f's gradient.

        Args:
            x: n numbers of NumPy's.
            g: n numbers of NumPy's.
        """
        return x - np.asarray(self.prox(x - g, 1.0), dtype=np.float64)

    def project(self, x: Array) -> Array:
        """Return a point where h is finite: x itself, or one near by.

        Args:
            x: n finite numbers.
        """
        xp = namespace(x)
        return x if bool(xp.isfinite(self.value(x))) else self.prox(x, 1.0)

    def curvature_set(self, x: np.ndarray) -> Face | None:
        """Return the face that a point of the domain is on; None, the default, where none is known.

        Args:
            x: n numbers of NumPy's, as ``prox`` returns them.
        """
        return None

    def conjugate(self, v: np.ndarray) -> float:
        """Return h*(v), the supremum of v . x - h(x); infinity, the default, where none is known.

        Args:
            v: n numbers of NumPy's.
        """
        return np.inf

    def dual_scale(self, v: np.ndarray) -> float:
        """Return the largest s of at most 1 for which h*(s v) is finite; 0 where none is known.

        Args:
            v: n numbers of NumPy's.
        """
        return 0.0

    def critical_scale(self, g: np.ndarray) -> float | None:
        """Return the least c for which x = 0 minimises g . x + c h(x); None where there is none.

        Args:
            g: n numbers of NumPy's: the gradient at 0.
        """
        return None

    def scaled(self, factor: float) -> Self:
        """Return the penalty times a positive number.

        Args:
            factor: the number.

        Raises:
            InputError: this penalty has no weight.
        """
        raise InputError(f"{type(self).__name__} has no weight that could be scaled.")

    def only(self, kept: np.ndarray) -> Penalty | None:
        """Return the penalty of some variables, the others being 0; None, the default: not known.

        Args:
            kept: whether each variable is one of them, n truth values.
        """
        return None

    def pieces(self) -> SeparableTerms | None:
        """Return the weights and limits of a separable penalty; None of another one."""
        return None

    def support(self, x: np.ndarray) -> np.ndarray:
        """Return the numbers of the variables that are not 0, or not at a limit.

        Args:
            x: n numbers of NumPy's.
        """
        return np.flatnonzero(x)

    def on(self, problem: Problem) -> Penalty:
        """Return the penalty for the variables of a problem, its intercepts left alone.

        An intercept, the last variable of a problem with ``intercept=True`` (the last K of
        ``Softmax``), has no penalty. So weights, limits and groups by column are as many as the
        matrix has columns. With as many as the problem has variables they speak of the intercept,
        too. With K classes a number for a column is for all K variables of that column.

        Args:
            problem: what the penalty is added to.

        Raises:
            InputError: the penalty is made for another number of variables.
        """
        width = int(getattr(problem, "width", 1))
        free = width * bool(getattr(problem, "intercept", False))
        return self.sized(problem.n, free, width)

    def sized(self, n: int, free: int = 0, width: int = 1) -> Penalty:
        """Return the penalty for n variables, of which the last ones are left alone.

        Args:
            n: the number of variables.
            free: how many of them, the last ones, have no penalty; 0 by default.
            width: how many variables a column has; 1 by default.

        Raises:
            InputError: the penalty is made for another number of variables.
        """
        from ode2opt.penalties.neutral import LeavingLast

        if self.n == n:
            return self
        self.check_width(n - free)
        return LeavingLast(self, n, free) if free else self

    def check_width(self, n: int) -> None:
        """Refuse a number of variables that the penalty is not made for.

        Args:
            n: the number of variables that have the penalty.

        Raises:
            InputError: it is made for another number.
        """
        if self.n not in (None, n):
            raise InputError(
                f"{type(self).__name__} is made for {many(int(self.n or 0), 'variable')}, but "
                f"{n:,} are to be penalised."
            )

    def __repr__(self) -> str:
        about = self._about()
        return one_line(type(self).__name__, about) if about else f"{type(self).__name__}()"

    def _listing(self) -> Listing:
        return Listing(type(self).__name__, self._about())

    def _about(self) -> list[tuple[str, str]]:
        """Return the penalty's facts for display."""
        return []


def as_penalty(penalty: Any, problem: Problem) -> Penalty:
    """Return a penalty for the variables of a problem."""
    if not isinstance(penalty, Penalty):
        what = penalty.__name__ if isinstance(penalty, type) else type(penalty).__name__
        hint = f"{what}(...) makes one" if isinstance(penalty, type) else "such as ode2opt.L1(0.01)"
        raise InputError(f"penalty must be a Penalty, not {what}: {hint}.")
    return penalty.on(problem)


def spread(values: Any, name: str, n: int, free: int, width: int, otherwise: float) -> Any:
    """Return one number a variable, of numbers by column; one number for all stays one."""
    if np.ndim(values) == 0:
        if not free:
            return values
        return np.append(np.full(n - free, float(values)), np.full(free, otherwise))
    if len(values) == n:
        return values
    if width > 1 and len(values) * width == n - free:
        values = np.repeat(values, width)
    if len(values) != n - free:
        raise InputError(
            f"{name} has {many(len(values), 'number')}, but the problem has "
            f"{many(n - free, 'variable')} to penalise{' beside the intercept' * bool(free)}."
        )
    return np.append(values, np.full(free, otherwise))
