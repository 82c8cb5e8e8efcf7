"""The numbers of every method here: four an iteration (docs/mathematics.md, sections 15 and 19).

    z_k = x_k + w_k (x_k - x_{k-1}),    g_k = grad f(z_k),    x_{-1} = x_0,   g_{-1} = g_0,
    x_{k+1} = prox_{s_k h}( x_k + m_k (x_k - x_{k-1}) - p_k g_k + q_k g_{k-1} ),    s_k = p_k - q_k,

for f + h. With w = 0 it is EIGAC, and so Nesterov's method and OGM; with q = 0 and w = m it is
FISTA with the steps p. Proofs take the rows (m, p, q) of EIGAC in fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, as_count
from ode2opt.base.errors import InputError
from ode2opt.base.schedule import IterationNumbers, Schedule

ExactRow = tuple[Fraction, Fraction, Fraction]
Prox = Callable[[Array, Any], Array]
"""(v, s) -> the minimiser of h(z) + |z - v|^2 / (2 s)."""

SLACK = 1e-12  # relative: rounding may break an inequality of the proved set by as much


def no_penalty(v: Array, s: Any) -> Array:
    """Return v, the prox of h = 0."""
    return v


class TableRow(NamedTuple):
    """One iteration, for NumPy, JAX and torch alike.

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

    def ahead(self, x: Array, before: Array) -> Array:
        """Return z = x + w (x - before), where an iteration takes its gradient."""
        return x + self.w * (x - before)

    def step(
        self, x: Array, before: Array, g: Array, g_before: Array, prox: Prox = no_penalty
    ) -> Array:
        """Return the next iterate, prox_{p - q}(x + m (x - before) - p g + q g_before)."""
        v = x + self.m * (x - before) - self.p * g + self.q * g_before
        return prox(v, self.p - self.q)


@dataclass(frozen=True, eq=False, repr=False)
class Table(IterationNumbers):
    """The numbers of K iterations: one each of m, p, q and w.

    Iteration k = 0..K-1 takes its gradient g_k at x_k + w_k (x_k - x_{k-1}) and is
    x_{k+1} = prox_{p_k - q_k}(x_k + m_k (x_k - x_{k-1}) - p_k g_k + q_k g_{k-1}).
    p and q have the dimension of a step: a table for curvature 1 is divided by a problem's
    curvature with :meth:`scaled`.

    Args:
        m: K finite numbers, the momentum; the first has no effect.
        p: K finite numbers, the step along the gradient.
        q: K finite numbers, the step back along the gradient before; the first is 0. With a prox
            they are below those of p: p - q is its step.
        w: K finite numbers: where the gradient is taken; the first has no effect.

    Raises:
        InputError: columns are no rows of finite numbers of one length, or the first q is not 0.

    Examples:
        >>> table = Table.fista(10)
        >>> shrink = lambda v, s: v - np.clip(v, -s, s)  # the prox of h = |x|_1
        >>> x, g = np.zeros(2), np.array([-2.0, 0.5])
        >>> table.step(x, x, g, g, shrink)
        array([1., 0.])
    """

    what, steps = "table", "pq"

    m: np.ndarray
    p: np.ndarray
    q: np.ndarray
    w: np.ndarray

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.q[0]:
            raise InputError(f"The table's first q must be 0, not {self.q[0]:g}.")

    def rows(self, first: int = 0) -> Iterator[TableRow]:
        return map(TableRow._make, super().rows(first))

    def __getitem__(self, k: int) -> TableRow:
        return TableRow(*(float(column[k]) for column in self.columns()))

    def step(
        self,
        x: Array,
        before: Array,
        g: Array,
        g_before: Array,
        prox: Prox = no_penalty,
        k: int = 0,
    ) -> Array:
        """Return x_{k+1}.

        Args:
            x: x_k.
            before: x_{k-1}.
            g: the gradient of iteration k, at ``self[k].ahead(x, before)``.
            g_before: that of the iteration before.
            prox: (v, s) -> the minimiser of h(z) + |z - v|^2 / (2 s); by default that of h = 0.
            k: which iteration, the first by default.
        """
        return self[k].step(x, before, g, g_before, prox)

    def with_prox(self) -> Table:
        """Return the table itself, of which every step of the prox is positive.

        Raises:
            InputError: a step p - q is not positive; the message names the iteration.
        """
        steps = self.p - self.q
        wrong = np.flatnonzero(steps <= 0)
        if len(wrong):
            k = int(wrong[0])
            raise InputError(
                f"The prox of iteration {k} has the step p - q = {steps[k]:g}: it must be positive."
            )
        return self

    @classmethod
    def from_acd(cls, a: Array, c: Array, d: Array) -> Table:
        """Return EIGAC with the numbers of a :class:`Schedule`; the first iteration is idle.

        m_k = 1 - d_{k-1}, p_k = a_k, q_k = a_{k-1} - c_{k-1}, and nothing but 0 for k = 0.

        Args:
            a: K finite numbers, the step along the gradient.
            c: K finite numbers, the gradient's weight in the next velocity.
            d: K finite numbers, the damping.
        """
        return cls.of(Schedule(a, c, d))

    @classmethod
    def of(cls, schedule: Schedule) -> Table:
        """Return what :meth:`from_acd` makes of a schedule; its numbers are not checked again.

        Args:
            schedule: the numbers (a, c, d) of K iterations.
        """
        table = object.__new__(cls)
        a, c, d = schedule.columns()
        m, p, q, w = np.zeros((4, len(a)))
        m[1:], p[1:], q[1:] = 1 - d[:-1], a[1:], a[:-1] - c[:-1]
        vars(table).update(m=m, p=p, q=q, w=w)
        return table

    @classmethod
    def from_schedule(cls, schedule: Schedule) -> Table:
        """Return an EIGAC table for a prox: its K - 1 iterations that move, in two-step form.

        Args:
            schedule: the table (a, c, d) of K iterations, at least 2.

        Raises:
            InputError: the table has one iteration only, or a step of the prox is not positive.
        """
        m, p, q = two_step_rows(schedule).T
        return cls(m, p, q, np.zeros(len(m))).with_prox()

    @classmethod
    def fista(cls, K: int) -> Table:
        """Return FISTA for curvature 1 (Beck and Teboulle, 2009).

        Args:
            K: the number of iterations, at least 1.
        """
        ones = np.ones(as_count(K, "K"))
        return cls.proved(ones, proved_ages(ones, ones))

    @classmethod
    def proved(cls, steps: Sequence[Any] | Array, ages: Sequence[Any] | Array) -> Table:
        """Return the table q = 0, w = m = (t_{k-1} - 1)/t_k of steps s_k and ages t_k.

        Args:
            steps: K positive steps, for curvature 1.
            ages: K numbers from 1 on, the first 1: those of :func:`proved_ages`, for example.
        """
        t, s = np.asarray(ages, dtype=np.float64), np.asarray(steps, dtype=np.float64)
        m = np.append(0.0, (t[:-1] - 1) / t[1:])
        return cls(m, s, np.zeros(len(m)), m).with_prox()

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
            >>> Table.proved(steps, ages).proved_factors(ages)
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


def two_step_rows(schedule: Schedule) -> np.ndarray:
    """Return the rows (m_k, p_k, q_k) of the K - 1 iterations that move, in float64.

    m_k = 1 - d_k, p_k = a_{k+1}, q_k = a_k - c_k; the first row is (0, a_1 - a_0 + c_0, 0).

    Example:
        >>> two_step_rows(Schedule.gradient_descent(1.0, 3)).tolist()
        [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    return np.array(exact_rows(schedule), dtype=np.float64)


def exact_rows(schedule: Schedule) -> list[ExactRow]:
    """Return the rows of :func:`two_step_rows` as fractions, without any rounding."""
    if len(schedule) < 2:
        raise InputError("The table has 1 iteration, which does not move: at least 2 are needed.")
    a, c, d = ([Fraction(x) for x in column.tolist()] for column in schedule.columns())
    zero = Fraction(0)
    first = (zero, a[1] - a[0] + c[0], zero)
    return [first, *((1 - d[k], a[k + 1], a[k] - c[k]) for k in range(1, len(a) - 1))]


def schedule_of(rows: Sequence[Sequence[Fraction]] | np.ndarray) -> Schedule:
    """Return the schedule of R + 1 iterations whose two-step form R rows (m, p, q) are.

    a_0 = c_0 = p_0 and d_0 = 1 are a choice, which no iterate depends on. So is the last row's
    (c, d), which takes the place of the step that comes next: (a, 1).

    Example:
        >>> schedule_of([[0, 1, 0]])
        Schedule(2 iterations, a 1, c 1, d 1)
    """
    if not len(rows):
        raise InputError("A table needs at least one row (m, p, q).")
    exact = [(Fraction(m), Fraction(p), Fraction(q)) for m, p, q in rows]
    m, p, q = zip(*exact, strict=True)
    if m[0] or q[0]:
        raise InputError(f"The first row's m and q must be 0, not {m[0]} and {q[0]}.")
    a = np.array([p[0], *p], dtype=np.float64)
    c = np.array([*(x - y for x, y in zip((p[0], *p), q, strict=False)), p[-1]], dtype=np.float64)
    return Schedule(a, c, np.array([*(1 - x for x in m), 1], dtype=np.float64))
