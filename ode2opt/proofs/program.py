"""The chain of small matrix inequalities as a sparse cone program, as Clarabel takes it.

    minimise tau   subject to   b - A x  in  {0}^K x R_+^n x (semidefinite matrices)

A goal says what is bounded: the last point of a table, or all that follows it. The inequalities are
quadratic forms, symmetric matrices over the basis at point k: X = y_k - x*, D = y_k - y_{k-1},
G = g_{k-1}, H = g_k. The unknowns x are tau, the multipliers w, v, s, r and the forms P_1..P_M
(docs/mathematics.md, section 15). They are scaled to be about 1: with sigma_k = (k + 2)/2 the
vectors y_k - y_{k-1}, g_{k-1} and g_k are measured in units of 1/sigma_k, w_k and v_k in units of
sigma_k, s_k and r_k in units of sigma_k^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.proofs.check_proof import ETA

STARS = ("smooth", "convex")


@dataclass(frozen=True)
class Goal:
    """What is bounded, in units of L |x0 - x*|^2.

    Attributes:
        tail: None bounds the value at the table's last point. "ogm" or "nag" bounds all points from
            there on, the table being followed by that method with theta, theta + 1/2, ...
        star: "smooth" takes the inequalities of an L-smooth function at the minimiser. "convex"
            takes plain convexity there, so that a run can check all the others by itself.
        theta: where the tail's method stands at the table's last point, at least 1; None without a
            tail.
    """

    tail: str | None = None
    star: str = "smooth"
    theta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.tail is not None and self.tail not in ETA:
            raise unknown_name("tail", self.tail, ETA)
        if self.star not in STARS:
            raise unknown_name("star", self.star, STARS)
        if (self.theta is None) != (self.tail is None):
            raise InputError("theta belongs to a tail: give both or none.")
        if self.theta is not None and self.theta < 1:
            raise InputError(f"theta is {float(self.theta):g}: it must be at least 1.")
        if self.tail == "ogm" and self.star == "convex":
            raise InputError("The tail ogm has no proof by plain convexity: use the tail nag.")

    @property
    def eta(self) -> int:
        """The tail's eta; 1 without a tail."""
        return 1 if self.tail is None else ETA[self.tail]

    @property
    def weight(self) -> Fraction:
        """A, what the last value is weighed with: eta theta^2, or 1 without a tail."""
        return Fraction(1) if self.theta is None else self.eta * self.theta**2

    @property
    def square(self) -> Fraction:
        """What the terminal form has times |g_M|^2, besides the tail's |z - x*|^2."""
        if self.tail is None:
            return Fraction(0) if self.star == "smooth" else Fraction(1, 2)
        step_on = Fraction(1, 8) if self.star == "convex" else Fraction(0)
        return self.weight / 2 - step_on

    def ratio(self, tau: float, last: int) -> float:
        """Return the bound divided by Nesterov's own, L R^2 / (2 t^2), at the last point."""
        t = Fraction(last + 2, 2) if self.theta is None else self.theta
        return 2 * tau * float(t * t / self.weight)


def goal_of(tail: str | None, star: str, theta: Fraction | float | None, last: int) -> Goal:
    """Return the goal for a table whose last point has the index ``last``."""
    if tail is not None and theta is None:
        theta = Fraction(last + 2, 2)
    return Goal(tail, star, None if theta is None else Fraction(theta))


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


KEPT = {2: np.ix_([X, H], [X, H]), 4: np.ix_([X, D, G, H], [X, D, G, H])}
"""The part of a form that is used at the first point, and at the others."""


@dataclass(frozen=True)
class Layout:
    """Where the unknowns and the rows of the program are."""

    points: int

    @property
    def unknowns(self) -> int:
        """How many unknowns there are."""
        return 1 + 2 * self.points + 8 * (self.points - 1)

    @property
    def multiplier_count(self) -> int:
        """How many multipliers there are: w and v at each point, s and r between two."""
        return 2 * self.points + 2 * (self.points - 1)

    def at_star(self, k: int) -> list[int]:
        """Return the columns of w_k and v_k."""
        return [1 + 2 * k, 2 + 2 * k]

    def between(self, k: int) -> list[int]:
        """Return the columns of s_k and r_k."""
        return [2 * self.points + 2 * k - 1, 2 * self.points + 2 * k]

    def storage(self, k: int) -> list[int]:
        """Return the columns of P_k."""
        first = 1 + self.multiplier_count + 6 * (k - 1)
        return list(range(first, first + 6))

    @property
    def first_block(self) -> int:
        """The row where the matrix inequalities begin."""
        return self.points + self.multiplier_count


@dataclass(frozen=True)
class Program:
    """The cone program and how to read its solution.

    Attributes:
        A: the sparse matrix.
        b: the right-hand side.
        layout: where unknowns and rows are.
        sigma: the unit at each point.
        unit: what tau is measured in.
    """

    A: sparse.csc_matrix
    b: np.ndarray
    layout: Layout
    sigma: np.ndarray
    unit: float

    def multipliers(self, x: np.ndarray) -> np.ndarray:
        """Return the rows w, v, s, r, each with M + 1 numbers; s_0 = r_0 = 0."""
        points = self.layout.points
        ends = 1 + 2 * points, 1 + self.layout.multiplier_count
        found = np.zeros((4, points))
        found[:2] = x[1 : ends[0]].reshape(points, 2).T * self.sigma
        found[2:, 1:] = x[ends[0] : ends[1]].reshape(points - 1, 2).T * self.sigma[1:] ** 2
        return self.unit * found

    def storage(self, x: np.ndarray) -> np.ndarray:
        """Return the forms P_0..P_M; P_0, which does not exist, is 0."""
        weights = x[1 + self.layout.multiplier_count :].reshape(-1, 6)
        P = np.zeros((self.layout.points, 4, 4))
        P[1:] = np.einsum("ki,iab->kab", weights, STORAGE)
        return self.unit * _congruent(P, _units(self.sigma))

    def blocks(self, z: np.ndarray) -> np.ndarray:
        """Return the dual matrices Z_0..Z_M: d tau = -sum ⟨Z_k, d form_k⟩."""
        start = self.layout.first_block
        Z = np.zeros((self.layout.points, 4, 4))
        Z[0][KEPT[2]] = _matrix(z[start : start + 3], 2)
        for k, triangle in enumerate(z[start + 3 :].reshape(-1, 10), start=1):
            Z[k] = _matrix(triangle, 4)
        return _congruent(Z, 1 / _units(self.sigma))


def program_of(rows: np.ndarray, goal: Goal, margin: float = 0.0) -> Program:
    """Return the program for rows (m, p, q) and a goal."""
    points = len(rows) + (goal.tail is None)
    sigma = units_of(points)
    unit = float(goal.weight) / sigma[-1] ** 2
    layout = Layout(points)
    parts = [_cancelling(k, layout, sigma) for k in range(points)]
    parts += [
        ([column], -np.eye(1), np.zeros(1)) for column in range(1, layout.multiplier_count + 1)
    ]
    parts += [_inequality(k, layout, sigma, rows, goal, unit, margin) for k in range(points)]
    A, b = _assembled(parts, layout.unknowns)
    return Program(A, b, layout, sigma, unit)


def units_of(points: int) -> np.ndarray:
    """Return sigma_0..sigma_M, about how large t_k is in Nesterov's method."""
    return (np.arange(points) + 2.0) / 2


BlockRows = tuple[list[int], np.ndarray, np.ndarray]
"""Some rows of the program: columns, values in them, right-hand side."""


def _cancelling(k: int, layout: Layout, sigma: np.ndarray) -> BlockRows:
    """The values cancel: w_k - v_k + (s_k - r_k) - (s_{k+1} - r_{k+1}) = 0, and A at the end."""
    signs = np.array([1.0, -1.0])
    columns, values = layout.at_star(k), [signs * sigma[k]]
    if k:
        columns += layout.between(k)
        values.append(signs * sigma[k] ** 2)
    last = k + 1 == layout.points
    if not last:
        columns += layout.between(k + 1)
        values.append(-signs * sigma[k + 1] ** 2)
    unit = sigma[k] ** 2  # keeps the entries about 1
    return columns, np.concatenate(values)[None] / unit, np.array([float(last)])


def _inequality(
    k: int, layout: Layout, sigma: np.ndarray, rows: np.ndarray, goal: Goal, unit: float,
    margin: float,
) -> BlockRows:  # fmt: skip
    """stage_k + E_k' P_{k+1} E_k - P_k >= 0, with tau |X|^2 at the start and the terminal form."""
    own = 1 / _units(sigma[k : k + 1])
    columns = layout.at_star(k)
    forms = [sigma[k] * _congruent(AT_STAR[goal.star], own)]
    if k:
        columns += layout.between(k) + layout.storage(k)
        forms += [sigma[k] ** 2 * _congruent(BETWEEN, own), -STORAGE]
    else:
        columns += [0]
        forms += [form(XX=1.0)[None]]
    constant = np.zeros((4, 4))
    if k + 1 < layout.points:
        columns += layout.storage(k + 1)
        E = _units(sigma[k + 1 : k + 2]).T * step_matrix(rows[k]) * own
        forms += [E.T @ STORAGE @ E]
    else:
        constant = _congruent(terminal_form(rows[-1], goal) / unit, own)[0]
    size = 4 if k else 2
    i, j = KEPT[size]
    values = -_triangle(np.concatenate(forms)[:, i, j]).T
    return columns, values, _triangle(constant[i, j] - margin * np.eye(size))


def _assembled(parts: list[BlockRows], unknowns: int) -> tuple[sparse.csc_matrix, np.ndarray]:
    """Return the matrix and the right-hand side of all parts, one below the other."""
    starts = np.cumsum([0, *(len(right) for *_, right in parts)])
    places, entries = [], []
    for start, (columns, values, _) in zip(starts, parts, strict=False):
        i, j = np.nonzero(values)
        places.append(np.array([start + i, np.array(columns)[j]]))
        entries.append(values[i, j])
    shape = (int(starts[-1]), unknowns)
    A = sparse.csc_matrix((np.concatenate(entries), np.hstack(places)), shape=shape)
    return A, np.concatenate([right for *_, right in parts])


def _units(sigma: np.ndarray) -> np.ndarray:
    """Return the factors that take X, D, G, H into scaled units, one row a point."""
    return np.column_stack([np.ones_like(sigma), sigma, sigma, sigma])


def _congruent(forms: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return diag(factors) form diag(factors), form by form."""
    return forms * factors[:, :, None] * factors[:, None, :]


_ROOT = np.sqrt(2)
_TRIANGLES = {n: np.tril_indices(n) for n in (2, 4)}


def _triangle(matrices: np.ndarray) -> np.ndarray:
    """Return the upper triangle by columns, off-diagonal entries times sqrt(2), of each matrix."""
    j, i = _TRIANGLES[matrices.shape[-1]]
    return matrices[..., i, j] * np.where(i == j, 1.0, _ROOT)


def _matrix(triangle: np.ndarray, n: int) -> np.ndarray:
    """Return the symmetric matrix whose triangle :func:`_triangle` gives."""
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = triangle / _ROOT
    matrix = lower + lower.T
    np.fill_diagonal(matrix, np.diag(lower) * _ROOT)
    return matrix
