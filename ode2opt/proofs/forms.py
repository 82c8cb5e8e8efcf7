"""The quadratic forms of the chain of matrix inequalities (docs/mathematics.md, section 15).

A form is a symmetric matrix over the basis at point k: X = y_k - x*, D = y_k - y_{k-1},
G = g_{k-1}, H = g_k.
"""

from __future__ import annotations

import numpy as np

from ode2opt.proofs.goals import Goal

X, D, G, H = range(4)


def form(**entries: float) -> np.ndarray:
    """Return the matrix of a quadratic form.

    Examples:
        >>> form(XH=-1, HH=0.5)[3].tolist()
        [-0.5, 0.0, 0.0, 0.5]
    """
    matrix = np.zeros((4, 4))
    for pair, value in entries.items():
        i, j = ("XDGH".index(letter) for letter in pair)
        matrix[i, j] += value / 2
        matrix[j, i] += value / 2
    return matrix


AT_STAR = {
    "smooth": np.array([form(XH=-1, HH=0.5), form(HH=0.5)]),
    "convex": np.array([form(XH=-1), form()]),
}
"""What w_k and v_k multiply, the inequalities between point k and the minimiser."""
BETWEEN = np.array([form(DH=-1, HH=0.5, GG=0.5, GH=-1), form(DG=1, HH=0.5, GG=0.5, GH=-1)])
"""What s_k and r_k multiply, the inequalities between the points k - 1 and k."""
STORAGE = np.array([form(**{key: 1.0}) for key in ("XX", "XD", "DD", "XG", "DG", "GG")])
"""A basis of the forms over X, D, G, which P_k is written in."""


def step_matrix(row: np.ndarray) -> np.ndarray:
    """Return E (4 x 4): X, D, G at point k + 1 from X, D, G, H at point k; its last row is 0."""
    m, p, q = row
    return np.array([[1.0, m, q, -p], [0.0, m, q, -p], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])


def tail_vector(row: np.ndarray, goal: Goal) -> np.ndarray:
    """Return z - x* over the basis of the last point, z being where the tail's momentum aims."""
    m, p, q = row
    assert goal.theta is not None
    after = float(goal.theta) + 0.5
    return np.array([1.0, after * m, after * q, after - 1 - after * p])


def terminal_form(row: np.ndarray, goal: Goal) -> np.ndarray:
    """Return the form that is added at the last point."""
    total = form(HH=float(goal.square))
    if goal.tail is not None:
        z = tail_vector(row, goal)
        total -= np.outer(z, z) / 2
    return total


STEP_BY_ROW = np.array([step_matrix(unit) - step_matrix(np.zeros(3)) for unit in np.eye(3)])
"""dE/dm, dE/dp and dE/dq."""


def tail_by_row(goal: Goal) -> np.ndarray:
    """Return the derivatives of :func:`tail_vector` by m, p and q."""
    return np.array([tail_vector(e, goal) - tail_vector(np.zeros(3), goal) for e in np.eye(3)])
