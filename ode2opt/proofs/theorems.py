"""Tables about which a theorem speaks: the corrected Theorem 2, and gradient descent.

A table is read in its two-step form y_{k+1} = y_k + m_k (y_k - y_{k-1}) - p_k g_k + q_k g_{k-1}
for L = 1. The corrected Theorem 2 asks for numbers t_k >= 1 and eta_k in (0, 2] with

    m_k = q_k = (t_k - 1)/t_{k+1},   p_k = 1 + (eta_k t_k - 1)/t_{k+1},
    eta_{k+1} (t_{k+1}^2 - t_{k+1}) <= eta_k t_k^2.

See docs/mathematics.md, section 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ode2opt.base.schedule import Schedule
from ode2opt.proofs.table import two_step_rows

EQUAL = 1e-9  # numbers that differ by less are the same number, rounded


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
    if np.any(np.abs(m - q) > EQUAL) or np.any(m < -EQUAL):
        return None
    if np.all(np.abs(m) <= EQUAL) and np.ptp(p) <= EQUAL and 0 < p[0] <= 1 + EQUAL:
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
    if missed(best) > EQUAL:
        return None
    low, high = best, grid[-1] + 1.0
    while high - low > 1e-12:  # the largest t_N that still meets them
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) <= EQUAL else (low, middle)
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
    if np.all(eta <= 2 - 1 / t[:-1] + EQUAL):
        any_point = float(1 / (2 * min(final, 2 - 1 / last) * last**2))
    return _Choice(worst, bound, any_point)
