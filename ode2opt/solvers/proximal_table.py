"""The inertial iteration with a prox: four numbers an iteration (docs/mathematics.md, section 19).

    z_k = x_k + w_k (x_k - x_{k-1}),    g_k = grad f(z_k),    x_{-1} = x_0,
    x_{k+1} = prox_{s_k h}( x_k + m_k (x_k - x_{k-1}) - p_k g_k + q_k g_{k-1} ),    s_k = p_k - q_k,

for f + h. Without h and with w = 0 it is EIGAC in its two-step form (section 15); with q = 0 and
w = m it is FISTA with the steps p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive
from ode2opt.base.errors import InputError, many
from ode2opt.paper.schedule import Schedule
from ode2opt.proofs.two_step import two_step_rows

Prox = Callable[[Array, Any], Array]
"""(v, s) -> the minimiser of h(z) + |z - v|^2 / (2 s)."""

COLUMNS = ("m", "p", "q", "w")
SLACK = 1e-12  # relative: rounding may break an inequality of the proved set by as much


class ProximalRow(NamedTuple):
    """One row of a table.

    Attributes:
        m: the momentum.
        p: the step along the gradient.
        q: the step back along the gradient before.
        w: how far ahead the gradient is taken, as a share of the last move.
    """

    m: Any
    p: Any
    q: Any
    w: Any


def gradient_point(x: Array, before: Array, w: Any) -> Array:
    """Return z = x + w (x - before), where an iteration takes its gradient."""
    return x + w * (x - before)


def proximal_step(
    row: ProximalRow, x: Array, before: Array, g: Array, g_before: Array, prox: Prox
) -> Array:
    """Return the next iterate, prox_{p - q}(x + m (x - before) - p g + q g_before).

    Examples:
        >>> g = np.array([-2.0, 0.5])
        >>> x = np.zeros(2)
        >>> shrink = lambda v, s: v - np.clip(v, -s, s)  # of h = |x|_1
        >>> proximal_step(ProximalRow(0.0, 1.0, 0.0, 0.0), x, x, g, g, shrink)
        array([1., 0.])
    """
    m, p, q, _ = row
    return prox(x + m * (x - before) - p * g + q * g_before, p - q)


@dataclass(frozen=True, eq=False)
class ProximalTable:
    """The numbers of K iterations: one each of m, p, q and w.

    p and q have the dimension of a step: a table for curvature 1 is divided by a problem's
    curvature with :meth:`scaled`.

    Args:
        m: K finite numbers, the momentum; the first has no effect.
        p: K finite numbers, the step along the gradient.
        q: K finite numbers below those of p, the step back along the gradient before; the first
            is 0.
        w: K finite numbers: where the gradient is taken; the first has no effect.

    Raises:
        InputError: columns are no rows of finite numbers of one length, or p - q, the step of the
            prox, is not positive.

    Examples:
        >>> ProximalTable.fista(10)
        ProximalTable(10 iterations)
    """

    m: np.ndarray
    p: np.ndarray
    q: np.ndarray
    w: np.ndarray

    def __post_init__(self) -> None:
        for name in COLUMNS:
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
                raise InputError(f"The table's {name} must be a row of finite numbers.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        lengths = [len(getattr(self, name)) for name in COLUMNS]
        if len(set(lengths)) > 1:
            raise InputError(f"The table's columns must be of one length, not {lengths}.")
        if self.q[0]:
            raise InputError(f"The table's first q must be 0, not {self.q[0]:g}.")
        wrong = np.flatnonzero(self.steps <= 0)
        if len(wrong):
            k = int(wrong[0])
            raise InputError(
                f"The prox of iteration {k} has the step p - q = {self.steps[k]:g}: it must be "
                f"positive."
            )

    def __len__(self) -> int:
        return len(self.m)

    def __repr__(self) -> str:
        return f"ProximalTable({many(len(self), 'iteration')})"

    @property
    def steps(self) -> np.ndarray:
        """The steps p - q of the prox."""
        return self.p - self.q

    def rows(self) -> Iterator[ProximalRow]:
        """Yield the rows as plain numbers."""
        columns = (getattr(self, name).tolist() for name in COLUMNS)
        return map(ProximalRow._make, zip(*columns, strict=True))

    def scaled(self, L: float) -> ProximalTable:
        """Return the table for problems whose curvature is ``L`` times larger: m, p/L, q/L, w.

        Args:
            L: the ratio of curvatures, a positive number.

        Raises:
            InputError: ``L`` is not a positive finite number.
        """
        L = as_positive(L, "The scale")
        return ProximalTable(self.m, self.p / L, self.q / L, self.w)

    def first(self, K: int) -> ProximalTable:
        """Return the first iterations, or all where there are fewer.

        Args:
            K: how many, at least 1.

        Raises:
            InputError: ``K`` is no positive whole number.
        """
        K = as_count(K, "K")
        return ProximalTable(*(getattr(self, name)[:K] for name in COLUMNS))

    @classmethod
    def from_schedule(cls, schedule: Schedule) -> ProximalTable:
        """Return an EIGAC table with a prox: its K - 1 iterations that move, in two-step form.

        Args:
            schedule: the table (a, c, d) of K iterations, at least 2.

        Raises:
            InputError: the table has one iteration only, or a step of the prox is not positive.
        """
        m, p, q = two_step_rows(schedule).T
        return cls(m, p, q, np.zeros(len(m)))

    @classmethod
    def fista(cls, K: int) -> ProximalTable:
        """Return FISTA for curvature 1 (Beck and Teboulle, 2009).

        Args:
            K: the number of iterations, at least 1.
        """
        ones = np.ones(as_count(K, "K"))
        return cls.proved(ones, proved_ages(ones, ones))

    @classmethod
    def proved(cls, steps: Sequence[Any] | Array, ages: Sequence[Any] | Array) -> ProximalTable:
        """Return the table q = 0, w = m = (t_{k-1} - 1)/t_k of steps s_k and ages t_k.

        Args:
            steps: K positive steps, for curvature 1.
            ages: K numbers from 1 on, the first 1: those of :func:`proved_ages`, for example.
        """
        t, s = np.asarray(ages, dtype=np.float64), np.asarray(steps, dtype=np.float64)
        m = np.append(0.0, (t[:-1] - 1) / t[1:])
        return cls(m, s, np.zeros(len(m)), m)

    def proved_factors(self, ages: Sequence[float] | np.ndarray) -> np.ndarray:
        """Check the proof that ages are, and return what it proves.

        For every f with curvature at most L and every convex h the table divided by L has
        F(x_{k+1}) - F* <= L R^2 / (2 c_k), with F = f + h and R = |x_0 - x*|.

        Args:
            ages: K numbers t_k.

        Returns:
            The factors c_k = s_k t_k^2, K numbers.

        Raises:
            InputError: the ages prove nothing of this table; the message names the iteration.

        Examples:
            >>> steps = [1.0, 0.5]
            >>> ages = proved_ages(steps, [1.0, 1.0])
            >>> ProximalTable.proved(steps, ages).proved_factors(ages)
            array([1., 2.])
        """
        t = np.asarray(ages, dtype=np.float64)
        if t.shape != self.m.shape or not np.all(np.isfinite(t)):
            raise InputError(f"There must be {len(self)} finite ages, one an iteration.")
        momenta = np.append(0.0, (t[:-1] - 1) / t[1:])
        later = np.arange(len(t)) > 0
        room = np.append(0.0, self.p[:-1] * t[:-1] ** 2)
        known = (
            (t >= 1) & (later | (t == 1)) & (self.q == 0) & (self.p <= 1)
            & (~later | (self.w == self.m) & (np.abs(self.m - momenta) <= SLACK))
            & (self.p * (t * t - t) <= room * (1 + SLACK))
        )  # fmt: skip
        if not known.all():
            k = int(np.flatnonzero(~known)[0])
            raise InputError(f"Iteration {k} is outside of what is proved.")
        return self.p * t * t


def proved_ages(
    steps: Sequence[Any] | Array, shares: Sequence[Any] | Array, first: Any = 1.0
) -> list[Any]:
    """Return ages t_k inside the proved set, for numbers, NumPy or JAX.

    t_0 = first and t_k = 1 + share_k (T_k - 1); T_k is the largest t with
    s_k (t^2 - t) <= s_{k-1} t_{k-1}^2.

    Examples:
        >>> [round(t, 3) for t in proved_ages([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])]
        [1.0, 1.618, 2.194]
    """
    ages: list[Any] = [first]
    for k in range(1, len(steps)):
        most = 0.5 + (0.25 + ages[-1] ** 2 * steps[k - 1] / steps[k]) ** 0.5
        ages.append(1 + shares[k] * (most - 1))
    return ages
