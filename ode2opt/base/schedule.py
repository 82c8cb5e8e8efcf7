"""The numbers of iterations, row by row; EIGAC's three are a schedule (docs/mathematics.md, 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive, refuse_unreal
from ode2opt.base.errors import InputError, many

TimeFunction = Callable[[Array], Array]
"""A coefficient as a function of time: an array of times gives an array of values."""


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


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(IterationNumbers):
    """The coefficients of K iterations of EIGAC: one number each of a, c and d per iteration.

    Iteration k = 0..K-1 at the gradient g = g(x) is (docs/mathematics.md, section 2)

        e = u - a_k g;   x <- x + e;   u <- u - d_k e - c_k g,   u_0 = a_0 g(x_0).

    K is the horizon: the number of iterations the schedule is made for. ``a`` and ``c`` have the
    dimension of a step; a schedule learned for curvature 1 is divided by the instance's scale
    with :meth:`scaled`. What runs it is the same iteration as a table: ``Table.from_acd``.

    Args:
        a: K finite numbers, the step along the gradient; kept as a read-only float64 copy.
        c: K finite numbers, the gradient's weight in the next velocity.
        d: K finite numbers, the damping; alpha h / t where the schedule discretises an ODE.

    Raises:
        InputError: a table is not a row of finite real numbers, or their lengths differ.

    Examples:
        >>> from ode2opt import Schedule
        >>> Schedule.heavy_ball(s=0.5, mu=0.9, K=100)
        Schedule(100 iterations, a 0.5, c 0.5, d 0.1)
    """

    what, steps = "schedule", "ac"

    a: np.ndarray
    c: np.ndarray
    d: np.ndarray

    @classmethod
    def from_coefficients(
        cls,
        alpha: float,
        beta: TimeFunction,
        gamma: TimeFunction,
        dbeta: TimeFunction,
        *,
        h: float,
        t0: float,
        K: int,
    ) -> Schedule:
        """Discretise the inertial system by Euler's method with step h at times t_k = t0 + k h.

            a_k = h beta(t_k),   c_k = h^2 (gamma(t_k) - beta'(t_k)),   d_k = alpha h / t_k

        Args:
            alpha: the viscous damping, positive.
            beta: the Hessian damping as a function of an array of times.
            gamma: the weight of the gradient, likewise.
            dbeta: the derivative of ``beta``, likewise.
            h: the step, positive.
            t0: the first time, above alpha h.
            K: the number of iterations, at least 1.

        Raises:
            InputError: not t0 > alpha h > 0, ``K`` is no positive whole number, or a number is not
                finite.

        Examples:
            >>> def constant(t):
            ...     return 0 * t + 1
            >>> Schedule.from_coefficients(3, constant, constant, np.zeros_like, h=0.1, t0=1, K=5)
            Schedule(5 iterations, a 0.1, c 0.01, d 0.214 to 0.3)
        """
        if not t0 > alpha * h > 0:
            raise InputError(
                f"t0 = {t0} must exceed alpha h = {alpha * h:g}, and both be positive."
            )
        t = t0 + h * np.arange(as_count(K, "K"))
        return cls(h * beta(t), h**2 * (gamma(t) - dbeta(t)), alpha * h / t)

    @classmethod
    def gradient_descent(cls, s: float, K: int) -> Schedule:
        """Return gradient descent x <- x - s g as a schedule: a = c = s, d = 1.

        The first iteration does not move: u_0 = a_0 g makes its e zero.

        Args:
            s: the step, usually 1/L.
            K: the number of iterations, at least 1.
        """
        ones = np.ones(as_count(K, "K"))
        return cls(s * ones, s * ones, ones)

    @classmethod
    def heavy_ball(cls, s: float, mu: float, K: int) -> Schedule:
        """Return Polyak's heavy ball as a schedule: a = c = s, d = 1 - mu.

        Its iteration is x <- x - s g + mu (x - x_old).

        Args:
            s: the step.
            mu: the momentum, usually in [0, 1).
            K: the number of iterations, at least 1.
        """
        ones = np.ones(as_count(K, "K"))
        return cls(s * ones, s * ones, (1 - mu) * ones)

    @classmethod
    def nesterov(cls, s: float, mu: np.ndarray) -> Schedule:
        """Return Nesterov's method as a schedule; the iterates are its extrapolated points.

        a_k = s (1 + mu_k), c_k = s (1 + mu_k - mu_{k+1}), d_k = 1 - mu_{k+1}. The first iteration
        does not move and the second is a plain gradient step: no iterate depends on mu_0 and mu_1.

        Args:
            s: the step, usually 1/L.
            mu: the momenta mu_0..mu_K, for K iterations.

        Raises:
            InputError: ``mu`` is not a row of at least two numbers.
        """
        mu = np.asarray(mu, dtype=np.float64)
        if mu.ndim != 1 or len(mu) < 2:
            raise InputError(f"Nesterov's schedule of K steps needs K + 1 momenta, not {mu.shape}.")
        return cls(s * (1 + mu[:-1]), s * (1 + mu[:-1] - mu[1:]), 1 - mu[1:])
