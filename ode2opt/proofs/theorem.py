"""The corrected Theorem 2: tables given by inequalities, with the rate 1/k^2.

Let 0 < eta_k <= 2, t_0 = 1, t_k >= 1 and eta_{k+1} (t_{k+1}^2 - t_{k+1}) <= eta_k t_k^2. Then

    m_k = q_k = (t_k - 1)/t_{k+1},    p_k = 1 + (eta_k t_k - 1)/t_{k+1}

gives f(y_k - g_k/L) - f* <= L R^2 / (2 eta_k t_k^2) for every L-smooth convex f with a minimiser
(docs/mathematics.md, section 15). Nesterov's method is eta = 1, OGM is eta = 2. Whether a table
falls under it, or under the theorem on gradient descent, is found out by :func:`theorem_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count as counted
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.proofs.check_proof import ETA
from ode2opt.proofs.table import ExactRow, two_step_rows

Number = TypeVar("Number", Fraction, float, np.ndarray)
"""Rows are made of fractions for proofs and of floats for runs, by the same formulas."""


@dataclass(frozen=True)
class Rounding:
    """By how much numbers in floating point may miss the theorem, or each other.

    Attributes:
        inequality: relatively, in a table that was made by the theorem's formulas.
        equal: numbers of any table that differ by less are the same number.
    """

    inequality: float = 1e-12
    equal: float = 1e-9


ROUNDING = Rounding()


@dataclass(frozen=True, eq=False)
class Member:
    """A table of the theorem: eta_0..eta_R and t_0..t_R, checked against the inequalities.

    Attributes:
        eta: above 0, at most 2.
        t: t_0 = 1, then at least 1.
        without_minimiser: whether eta_k <= 2 - 1/t_k and the recursion holds with equality, so
            that the bound is f(y_k) - |g_k|^2/(2L) <= f(z) + L |x0 - z|^2 / (2 eta_k t_k^2) for
            every point z, and f needs no minimiser.

    Example:
        >>> nesterov = Member([1, 1, 1], [1, 1.5, 2])
        >>> nesterov.rows().tolist()[0]
        [0.0, 1.0, 0.0]
    """

    eta: np.ndarray
    t: np.ndarray
    without_minimiser: bool = False

    def __post_init__(self) -> None:
        for name in ("eta", "t"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values)):
                raise InputError(f"{name} must be a row of 2 or more finite numbers.")
            object.__setattr__(self, name, values)
        if len(self.eta) != len(self.t):
            raise InputError(f"There are {len(self.eta)} eta but {len(self.t)} t.")
        self._check()

    def _check(self) -> None:
        eta, t, near = self.eta, self.t, 1 + ROUNDING.inequality
        ceiling = 2 - 1 / t if self.without_minimiser else np.full_like(t, 2.0)
        if np.any(eta <= 0) or np.any(eta > ceiling * near):
            k = int(np.flatnonzero((eta <= 0) | (eta > ceiling * near))[0])
            raise InputError(f"eta_{k} is {eta[k]:g}: it must be in (0, {ceiling[k]:.4g}].")
        if abs(t[0] - 1) > ROUNDING.inequality or np.any(t < 1 - ROUNDING.inequality):
            raise InputError(f"t_0 must be 1 and every t_k at least 1; the least is {t.min():g}.")
        before, after = eta[:-1] * t[:-1] ** 2, eta[1:] * (t[1:] ** 2 - t[1:])
        missed = after > before * near
        if self.without_minimiser:
            missed |= after < before * (1 - ROUNDING.inequality)
        if np.any(missed):
            k = int(np.flatnonzero(missed)[0])
            sign = "=" if self.without_minimiser else "<="
            raise InputError(
                f"eta_{k + 1} (t_{k + 1}^2 - t_{k + 1}) {sign} eta_{k} t_{k}^2 does not hold: "
                f"{after[k]:.6g} and {before[k]:.6g}."
            )

    def rows(self) -> np.ndarray:
        """Return the rows (m_k, p_k, q_k), k = 0..R-1, shape (R, 3)."""
        t, t_next = self.t[:-1], self.t[1:]
        return np.column_stack(row_of(self.eta[:-1] * t, t, t_next))

    def bounds(self) -> np.ndarray:
        """Return 1/(2 eta_k t_k^2), k = 0..R, in units of L R^2."""
        return 1 / (2 * self.eta * self.t**2)


def member_of(levels: Sequence[float] | np.ndarray, shares: Sequence[float] | np.ndarray) -> Member:
    """Return the member of the theorem for any numbers: the inequalities hold by construction.

    eta_k = 2 / (1 + exp(-level_k)); t_{k+1} is 1 plus the share 1 / (1 + exp(-share_k)) of the way
    from 1 to the largest t that the recursion allows.

    Example:
        >>> member = member_of([0.0, 0.0, 0.0], [40.0, 40.0])  # Nesterov's longest steps
    """
    levels, shares = (np.asarray(x, dtype=np.float64) for x in (levels, shares))
    if levels.ndim != 1 or shares.shape != (len(levels) - 1,):
        raise InputError(f"R + 1 levels and R shares are due, not {levels.shape}, {shares.shape}.")
    eta, way = 2 * _sigmoid(levels), _sigmoid(shares)
    t = [1.0]
    for k, share in enumerate(way):
        largest = (1 + np.sqrt(1 + 4 * eta[k] * t[k] ** 2 / eta[k + 1])) / 2
        t.append(1 + share * (largest - 1))
    return Member(eta, np.array(t))


def member_without_minimiser(extras: Sequence[float] | np.ndarray, eta_0: float = 1.0) -> Member:
    """Return the member whose bound needs no minimiser, for any numbers.

    t_{k+1} is exp(extra_k) above its least value (3 + sqrt(1 + 8 eta_k t_k^2))/4, and eta_{k+1}
    follows from equality in the recursion.
    """
    if not 0 < eta_0 <= 1:
        raise InputError(f"eta_0 is {eta_0:g}: it must be above 0 and at most 1.")
    eta, t = [float(eta_0)], [1.0]
    for extra in np.exp(np.asarray(extras, dtype=np.float64)):
        square = eta[-1] * t[-1] ** 2
        t.append((3 + np.sqrt(1 + 8 * square)) / 4 + extra)
        eta.append(square / (t[-1] ** 2 - t[-1]))
    return Member(np.array(eta), np.array(t), without_minimiser=True)


def row_of(w: Number, t: Number, t_next: Number) -> tuple[Number, Number, Number]:
    """Return the theorem's row m_k = q_k = (t_k - 1)/t_{k+1}, p_k = 1 + (w_k - 1)/t_{k+1}."""
    momentum = (t - 1) / t_next
    return momentum, 1 + (w - 1) / t_next, momentum


def rows_after(tail: str, theta: Number) -> Iterator[tuple[Number, Number, Number]]:
    """Yield the rows that follow a table whose last point stands at ``theta``, without end.

    They are the theorem's with eta = 2 ("ogm") or 1 ("nag") and t = theta + 1/2, theta + 1, ...

    Example:
        >>> next(rows_after("nag", 1.0))
        (0.25, 1.25, 0.25)
    """
    _check_tail(tail, theta)
    return _spaced_by_half(ETA[tail], theta)


def _check_tail(tail: str, theta: Fraction | float | np.ndarray) -> None:
    if tail not in ETA:
        raise unknown_name("tail", tail, ETA)
    if not 1 <= theta < math.inf:
        raise InputError(f"theta is {theta}: it must be at least 1.")


def _spaced_by_half(eta: int, t: Number) -> Iterator[tuple[Number, Number, Number]]:
    while True:
        t = (2 * t + 1) / 2
        yield row_of(eta * t, t, (2 * t + 1) / 2)


def tail_rows(tail: str, theta: Fraction | float, count: int) -> list[ExactRow]:
    """Return the first rows of :func:`rows_after` as fractions.

    Example:
        >>> [str(x) for x in tail_rows("nag", 1, 1)[0]]
        ['1/4', '5/4', '1/4']
    """
    _check_tail(tail, theta)
    return list(islice(rows_after(tail, Fraction(theta)), as_count(count, "count")))


def classical_rows(name: str, count: int) -> list[ExactRow]:
    """Return the first rows of "nag" or "ogm" with t_k = (k + 2)/2, as fractions."""
    if name not in ETA:
        raise unknown_name("method", name, ETA)
    start = (Fraction(0), 1 + Fraction(2 * (ETA[name] - 1), 3), Fraction(0))
    return [start, *(tail_rows(name, Fraction(1), as_count(count, "count"))[: count - 1])]


def weights_for_every_point(k: Number) -> tuple[Number, Number]:
    """Return w_k = (k + 2)/2 and n_k = w_0 + ... + w_{k-1} = k (k + 3)/4 of ``nag-monitored``.

    Example:
        >>> weights_for_every_point(2.0)
        (2.0, 2.5)
    """
    return (k + 2) / 2, k * (k + 3) / 4


def rows_for_every_point(
    number: Callable[[int], Number],
) -> Iterator[tuple[Number, Number, Number]]:
    """Yield the rows of ``nag-monitored``, whose bound needs no minimiser, without end.

    eta_k t_k = w_k = (k + 2)/2 and t_k = 1 + n_k/w_k, so that the recursion holds with equality:
    f(y_k) - |g_k|^2/(2L) <= f(z) + L |x0 - z|^2 / (2 n_{k+1}) for every z.

    Example:
        >>> next(rows_for_every_point(float))
        (0.0, 1.0, 0.0)
    """
    w, n = weights_for_every_point(number(0))
    t = 1 + n / w
    for k in counted(1):
        w_next, n_next = weights_for_every_point(number(k))
        t_next = 1 + n_next / w_next
        yield row_of(w, t, t_next)
        w, t = w_next, t_next


def monitored_rows(count: int) -> list[ExactRow]:
    """Return the first rows of :func:`rows_for_every_point` as fractions."""
    return list(islice(rows_for_every_point(Fraction), as_count(count, "count")))


def theorem_multipliers(
    eta: Sequence[Fraction], t: Sequence[Fraction]
) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Return the multipliers w, v, r with which the proof of the theorem bounds the point M.

    w_k = eta_k t_k, v_k = eta_k t_k^2 - eta_{k+1} (t_{k+1}^2 - t_{k+1}), v_M = 0, r_k = 0.
    """
    w = [e * x for e, x in zip(eta, t, strict=True)]
    needed = [e * (x * x - x) for e, x in zip(eta, t, strict=True)]
    v = [one * x - after for one, x, after in zip(w, t, needed[1:], strict=False)]
    return w, [*v, 0 * w[-1]], [0 * one for one in w]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -x))


@dataclass(frozen=True)
class Theorem:
    """What a theorem says of a table, for every L-smooth convex function.

    Attributes:
        name: which theorem.
        steps: how many steps N the table makes; the idle first iteration is not counted.
        bound: with a minimiser x*, f - f* after these steps is at most ``bound`` L |x0 - x*|^2.
        any_point: for every point z, the lowest f of these steps is at most
            f(z) + ``any_point`` L |x0 - z|^2, minimiser or not; None where that is not known.
        at_gradient_step: whether both are said of the points y_k - g_k/L; else of y_k itself.
    """

    name: str
    steps: int
    bound: float
    any_point: float | None
    at_gradient_step: bool

    @property
    def words(self) -> str:
        """The theorem for functions with a minimiser, in a sentence."""
        return (
            f"For every L-smooth convex function with a minimiser x*, after {self.steps} steps "
            f"{self._value} - f* <= {self.bound:.4g} L |x0 - x*|^2 ({self.name})."
        )

    @property
    def words_without_minimiser(self) -> str | None:
        """The theorem for all L-smooth convex functions, in a sentence; None without one."""
        if self.any_point is None:
            return None
        return (
            f"For every L-smooth convex function and every point z, the lowest {self._value} of "
            f"{self.steps} steps is at most f(z) + {self.any_point:.4g} L |x0 - z|^2 "
            f"({self.name}; no minimiser is needed)."
        )

    @property
    def _value(self) -> str:
        return "f(x - g(x)/L)" if self.at_gradient_step else "f(x)"


def theorem_of(schedule: Schedule) -> Theorem | None:
    """Return the theorem that a table falls under, or None.

    Args:
        schedule: the table for curvature 1.

    Returns:
        The theorem with its bound after the table's last step. None where neither gradient
        descent with a constant step of at most 1/L nor the corrected Theorem 2 applies.

    Example:
        >>> theorem_of(Schedule.gradient_descent(1.0, 11)).bound  # 1/(4 N + 2), N = 10 steps
        0.023809523809523808
    """
    if len(schedule) < 2:
        return None
    m, p, q = two_step_rows(schedule).T
    equal = ROUNDING.equal
    if np.any(np.abs(m - q) > equal) or np.any(m < -equal):
        return None
    if np.all(np.abs(m) <= equal) and np.ptp(p) <= equal and 0 < p[0] <= 1 + equal:
        name, steps = "Drori and Teboulle's theorem on gradient descent", len(p) * float(p[0])
        return Theorem(name, len(p), 1 / (4 * steps + 2), 1 / (2 * steps), False)
    found = _with_momentum(np.maximum(m, 0.0), p)
    if found is None:
        return None
    return Theorem("the corrected Theorem 2", len(p), found.bound, found.any_point, True)


class _Choice(NamedTuple):
    """By how much a choice of t_N misses the theorem's inequalities, and its bounds."""

    missed: float
    bound: float
    any_point: float | None


def _with_momentum(m: np.ndarray, p: np.ndarray) -> _Choice | None:
    """Return the least 1/(2 eta_N t_N^2) over all t_N that meet the theorem; None without one.

    t_k = 1 + m_k t_{k+1} leads from t_N back to t_0 = 1, whatever t_N is. By how much a t_N misses
    the inequalities first falls and then rises with t_N.
    """
    from scipy.optimize import minimize_scalar

    N = len(p)

    def missed(log_t: float) -> float:
        return _chosen(m, p, float(np.exp(log_t))).missed

    grid = np.linspace(0.0, np.log(N + 2.0), 200)
    k = int(np.argmin([missed(x) for x in grid]))
    around = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
    best = minimize_scalar(missed, bounds=around, method="bounded", options={"xatol": 1e-13}).x
    best = min((best, grid[k]), key=missed)
    if missed(best) > ROUNDING.equal:
        return None
    low, high = best, grid[-1] + 1.0
    while high - low > 1e-12:  # the largest t_N that still meets them
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) <= ROUNDING.equal else (low, middle)
    return _chosen(m, p, float(np.exp(low)))


def _chosen(m: np.ndarray, p: np.ndarray, last: float) -> _Choice:
    """Return what t_N = ``last`` gives."""
    N = len(p)
    t = np.empty(N + 1)
    t[N] = last
    for k in range(N - 1, -1, -1):
        t[k] = 1 + m[k] * t[k + 1]
    eta = (1 + (p - 1) * t[1:]) / t[:-1]
    reach = eta * t[:-1] ** 2
    need = t[1:] ** 2 - t[1:]
    final = 2.0 if need[-1] <= 0 else min(2.0, reach[-1] / need[-1])
    rise = (eta[1:] * need[:-1] - reach[:-1]) / np.maximum(reach[:-1], 1.0)
    worst = max(float(np.max(rise, initial=-1.0)), float(eta.max()) - 2, -float(eta.min()))
    if final <= 0:
        return _Choice(np.inf, np.inf, None)
    bound, any_point = float(1 / (2 * final * last**2)), None
    if np.all(eta <= 2 - 1 / t[:-1] + ROUNDING.equal):
        any_point = float(1 / (2 * min(final, 2 - 1 / last) * last**2))
    return _Choice(worst, bound, any_point)
