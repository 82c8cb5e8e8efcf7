"""The two-step form of EIGAC: rows (m, p, q) in place of the table (a, c, d).

    y_{k+1} = y_k + m_k (y_k - y_{k-1}) - p_k g_k + q_k g_{k-1},    m_0 = q_0 = 0,

where y_k is the iterate x_{k+1} of EIGAC, whose first iteration does not move
(docs/mathematics.md, section 15). Conversions of fractions are exact both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.paper.schedule import Schedule

ExactRow = tuple[Fraction, Fraction, Fraction]


def two_step_rows(schedule: Schedule) -> np.ndarray:
    """Return the rows (m_k, p_k, q_k) of a table of K iterations, k = 0..K-2, in float64.

    m_k = 1 - d_k, p_k = a_{k+1}, q_k = a_k - c_k, and p_0 = a_1 - a_0 + c_0.

    Example:
        >>> two_step_rows(Schedule.gradient_descent(1.0, 3)).tolist()
        [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    return np.array(exact_rows(schedule), dtype=np.float64)


def exact_rows(schedule: Schedule) -> list[ExactRow]:
    """Return the rows of :func:`two_step_rows` as fractions, without any rounding."""
    if len(schedule) < 2:
        raise InputError("The table has 1 iteration, which does not move: at least 2 are needed.")
    a, c, d = ([Fraction(x) for x in getattr(schedule, key).tolist()] for key in "acd")
    zero = Fraction(0)
    first = (zero, a[1] - a[0] + c[0], zero)
    return [first, *((1 - d[k], a[k + 1], a[k] - c[k]) for k in range(1, len(a) - 1))]


def table_of(rows: Sequence[Sequence[Fraction]] | np.ndarray) -> list[ExactRow]:
    """Return the rows (a_k, c_k, d_k), k = 0..R, whose two-step form R rows are; exact.

    a_0 = c_0 = p_0 and d_0 = 1 are a choice, which no iterate depends on. So is the last row's
    (c, d), which takes the place of the step that comes next: (a, 1).

    Example:
        >>> [[str(x) for x in row] for row in table_of([[0, 1, 0]])]
        [['1', '1', '1'], ['1', '1', '1']]
    """
    if not len(rows):
        raise InputError("A table needs at least one row (m, p, q).")
    exact = [(Fraction(m), Fraction(p), Fraction(q)) for m, p, q in rows]
    m, p, q = zip(*exact, strict=True)
    if m[0] or q[0]:
        raise InputError(f"The first row's m and q must be 0, not {m[0]} and {q[0]}.")
    a = (p[0], *p)
    middle = [(a[k], a[k] - q[k], 1 - m[k]) for k in range(len(exact))]
    return [*middle, (a[-1], a[-1], Fraction(1))]


def schedule_of(rows: Sequence[Sequence[Fraction]] | np.ndarray) -> Schedule:
    """Return the table (a, c, d) of :func:`table_of` in float64."""
    a, c, d = np.array(table_of(rows), dtype=np.float64).T
    return Schedule(a, c, d)


def table_gradient(by_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn derivatives by the rows (m, p, q) into derivatives by the table's (a, c, d)."""
    by_m, by_p, by_q = np.array(by_rows, dtype=np.float64).T
    a, c, d = np.zeros((3, len(by_m) + 1))
    a[1:] += by_p
    a[1:-1] += by_q[1:]
    c[1:-1] -= by_q[1:]
    d[1:-1] -= by_m[1:]
    a[0] -= by_p[0]
    c[0] += by_p[0]
    return a, c, d
