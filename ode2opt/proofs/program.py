"""The chain of small matrix inequalities as a sparse cone program, as Clarabel takes it.

    minimise tau   subject to   b - A x  in  {0}^K x R_+^n x (semidefinite matrices)

The unknowns x are tau, the multipliers w, v, s, r and the forms P_1..P_M (docs/mathematics.md,
section 15). They are scaled to be about 1: with sigma_k = (k + 2)/2 the vectors y_k - y_{k-1},
g_{k-1} and g_k are measured in units of 1/sigma_k, w_k and v_k in units of sigma_k, s_k and r_k in
units of sigma_k^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ode2opt.proofs.forms import (
    AT_STAR,
    BETWEEN,
    STORAGE,
    D,
    G,
    H,
    X,
    form,
    step_matrix,
    terminal_form,
)
from ode2opt.proofs.goals import Goal

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
