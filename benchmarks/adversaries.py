"""Functions that try to drive a table away: 200 of them, 1-smooth and convex, with |x0 - x*| = 1.

96 one-dimensional quadratics, 96 Huber functions, and 8 worst cases of the table itself: what PEPit
finds to be worst after 2 to 9 steps, as a function that can be evaluated anywhere (fewer where its
solver gives up on a table that explodes). *Driven away*
is a table where f(y_k) - f* exceeds 1/2 at some k: no 1-smooth function begins higher.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import clarabel
import numpy as np
from cvxpy.error import SolverError
from scipy import sparse

Function = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From points, one a row, to values f - f* and gradients."""

EACH = 96
WORST_AFTER = range(2, 10)
HIGHEST_START = 0.5
ABOVE = 1 + 1e-6  # so many times the highest start: the solver's precision


def simple_functions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and gradients of the quadratics c x^2/2 and of Huber functions, one a row."""
    c = np.tile(np.linspace(1 / EACH, 1.0, EACH), 2)[:, None]
    inside = (np.arange(2 * EACH) < EACH)[:, None]
    quadratic = c * x**2 / 2, c * x
    far = c * np.abs(x) - c**2 / 2
    huber = np.where(np.abs(x) <= c, x**2 / 2, far), np.clip(x, -c, c)
    return tuple(np.where(inside, one, other) for one, other in zip(quadratic, huber, strict=True))


class WorstFunction:
    """The least 1-smooth convex function with given values and gradients at some points.

    It is the Moreau envelope of a maximum of lines, so that its value is a small quadratic program.

    Args:
        x: the points, one a row.
        f: the values there.
        g: the gradients there.
    """

    def __init__(self, x: np.ndarray, f: np.ndarray, g: np.ndarray) -> None:
        self.g, self.level = g, f + np.sum(g * g, axis=1) / 2 - np.sum(g * x, axis=1)
        self.P = sparse.csc_matrix(np.triu(g @ g.T))
        count = len(f)
        self.A = sparse.csc_matrix(np.vstack([np.ones(count), -np.eye(count)]))
        self.b = np.append(1.0, np.zeros(count))
        self.cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)]

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return value and gradient at a point (one row)."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        line = self.level + self.g @ x[0]
        solver = clarabel.DefaultSolver(self.P, -line, self.A, self.b, self.cones, settings)
        found = solver.solve()
        slope = np.array(found.x) @ self.g
        return np.array([[-found.obj_val]]), slope[None]


def worst_function(rows: np.ndarray) -> tuple[WorstFunction, np.ndarray, float]:
    """Return PEPit's worst function after some rows, its start point, and the value that is due."""
    from PEPit import PEP
    from PEPit.functions import SmoothConvexFunction

    pep = PEP()
    f = pep.declare_function(SmoothConvexFunction, L=1.0)
    star = f.stationary_point()
    y = before = start = pep.set_initial_point()
    pep.set_initial_condition((y - star) ** 2 <= 1)
    points, g_before = [], None
    for m, p, q in rows.tolist():
        g = f.gradient(y)
        points.append((y, g, f(y)))
        step = m * (y - before) - p * g
        y, before, g_before = y + (step if g_before is None else step + q * g_before), y, g
    points.append((y, f.gradient(y), f(y)))
    pep.set_performance_metric(f(y) - f(star))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = pep.solve(verbose=0, wrapper="cvxpy", solver="CLARABEL")
    zero, low = star.eval(), f(star).eval()
    x = np.array([one.eval() - zero for one, *_ in points] + [0 * zero])
    g = np.array([one.eval() for _, one, _ in points] + [0 * zero])
    values = np.array([one.eval() - low for *_, one in points] + [0.0])
    return WorstFunction(x, values, g), (start.eval() - zero)[None], float(value)


def highest(rows: np.ndarray, function: Function, x0: np.ndarray) -> np.ndarray:
    """Return the largest f(y_k) - f* over all k of rows (m, p, q), for each row of x0."""
    y, before, g_before = x0, x0, np.zeros_like(x0)
    most = np.zeros(len(x0))
    with np.errstate(over="ignore", invalid="ignore"):
        for m, p, q in rows:
            value, g = function(y)
            most = np.fmax(most, np.where(np.isfinite(value[:, 0]), value[:, 0], np.inf))
            if not np.any(most < 1e12):
                break
            y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
    return most


def attacked(rows: np.ndarray) -> Iterator[float]:
    """Yield the largest f(y_k) - f* on each of the 200 functions."""
    yield from highest(rows, simple_functions, np.ones((2 * EACH, 1)))
    for steps in WORST_AFTER:
        try:
            function, x0, due = worst_function(rows[:steps])
        except (SolverError, ValueError):  # the worst case grows beyond its precision
            return
        found = float(highest(rows, function, x0)[0])
        if found < due * (1 - 1e-2):
            raise AssertionError(f"PEPit's worst case is {due:g}, the function's {found:g}.")
        yield found


def driven_away(rows: np.ndarray) -> tuple[int, int, float]:
    """Return how many functions drive a table away, of how many, and the largest f(y_k) - f*."""
    found = list(attacked(rows))
    return sum(one > HIGHEST_START * ABOVE for one in found), len(found), max(found)
