"""Directions along which no row objects: columns of one sign, and linear programs.

``sides`` is a matrix G whose rows ask for G d >= 0, ``fixed`` a matrix E that asks for E d = 0.
Rows are taken into a linear program when they are needed, so that many rows cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ode2opt.base.arrays import Array, is_sparse


@dataclass(frozen=True)
class LinearPrograms:
    """How directions are looked for. All are positive; margins are of columns scaled to 1.

    Attributes:
        most_columns: of a matrix that is asked; more would take minutes.
        most_entries: likewise, zeros counted.
        first_rows: of the first program, or 10 a column, and of those that are added to it.
        rounds: programs at most.
        seconds: for one program.
        feasible: how far HiGHS may miss an inequality.
        active: margins below are meant to be zero.
        clear: margins from which a row is clearly on its side.
        rounding: a margin this close to zero is zero.
    """

    most_columns: int = 2_000
    most_entries: int = 20_000_000
    first_rows: int = 2_000
    rounds: int = 40
    seconds: float = 60.0
    feasible: float = 1e-9
    active: float = 1e-6
    clear: float = 1e-5
    rounding: float = 1e-9


PROGRAMS = LinearPrograms()


def one_signed_column(sides: Array, fixed: Array) -> int | None:
    """Return a column j with G e_j >= 0 or <= 0, not all zero, and E e_j = 0; None without one."""
    low, high = _range_of_columns(sides)
    lowest, highest = _range_of_columns(fixed)
    one_sign = ((low >= 0) | (high <= 0)) & ((low != 0) | (high != 0))
    found = np.flatnonzero(one_sign & (lowest == 0) & (highest == 0))
    return int(found[0]) if len(found) else None


def _range_of_columns(G: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest entry of each column; 0 where there are no rows."""
    if not G.shape[0]:
        return np.zeros(G.shape[1]), np.zeros(G.shape[1])
    return as_dense(G.min(axis=0)).ravel(), as_dense(G.max(axis=0)).ravel()


def as_dense(G: Array) -> np.ndarray:
    """Return a matrix as a NumPy array."""
    return np.asarray(G.toarray() if is_sparse(G) else G)


def falling_direction(sides: np.ndarray, fixed: np.ndarray) -> bool | None:
    """Return whether some d has G d >= 0, G d != 0 and E d = 0; None where it is unclear."""
    G = _unit_columns(np.concatenate([sides, fixed]))
    G, E = G[: len(sides)], G[len(sides) :]
    if len(E):
        G = G @ _null_space(E)
    if not np.any(np.abs(G) > PROGRAMS.rounding):
        return False
    chosen = _first_rows(G)
    for _ in range(PROGRAMS.rounds):
        d = _most_margin(G[chosen])
        if d is None:
            return None
        if float(np.sum(G[chosen] @ d)) <= PROGRAMS.active:  # no direction for these rows
            missed = np.abs(G @ _null_space(G[chosen])).max(axis=1, initial=0.0) > PROGRAMS.active
            if not missed.any():
                return False
        else:
            d = _with_exact_zeros(G[chosen], d)
            margins = G @ d
            missed = margins < -PROGRAMS.rounding
            if not missed.any():
                return True if margins.max() > PROGRAMS.clear else None
        if not (more := _worst(G @ d, missed, chosen)).size:
            return None
        chosen = np.concatenate([chosen, more])
    return None


def separating_plane(sides: np.ndarray) -> bool | None:
    """Return whether some d has G d > 0 in every row; None where it is unclear."""
    G = _unit_columns(sides)
    chosen = _first_rows(G)
    for _ in range(PROGRAMS.rounds):
        d = _widest_margin(G[chosen])
        if d is None:
            return None
        margins = G @ d
        if margins.min() > PROGRAMS.rounding:
            return True
        if margins[chosen].min() <= PROGRAMS.active:  # the best for these rows
            return False
        more = _worst(margins, margins <= PROGRAMS.rounding, chosen)
        chosen = np.concatenate([chosen, more])
    return None


def _unit_columns(G: np.ndarray) -> np.ndarray:
    size = np.abs(G).max(axis=0, initial=0.0)
    return G / np.where(size > 0, size, 1.0)


def _first_rows(G: np.ndarray) -> np.ndarray:
    count = max(PROGRAMS.first_rows, 10 * G.shape[1])
    if len(G) <= count:
        return np.arange(len(G))
    return np.sort(np.random.default_rng(0).choice(len(G), count, replace=False))


def _worst(margins: np.ndarray, missed: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return rows that are missed and not yet chosen, the worst first."""
    missed = missed.copy()
    missed[chosen] = False
    rows = np.flatnonzero(missed)
    return rows[np.argsort(margins[rows])][: PROGRAMS.first_rows]


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the directions that no row sees."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return vectors[:, values <= 1e-12 * max(float(values[-1]), 1.0)]


def _with_exact_zeros(G: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the nearest direction whose margins that are about zero are zero to rounding."""
    flat = _null_space(G[G @ d < PROGRAMS.active])
    return flat @ (flat.T @ d)


def _most_margin(G: np.ndarray) -> np.ndarray | None:
    """Maximise the sum of G d over G d >= 0 and -1 <= d <= 1."""
    return _program(-G.sum(axis=0), -G, np.zeros(len(G)), [(-1.0, 1.0)] * G.shape[1])


def _widest_margin(G: np.ndarray) -> np.ndarray | None:
    """Maximise the least entry of G d over -1 <= d <= 1."""
    columns = G.shape[1]
    rows = np.hstack([-G, np.ones((len(G), 1))])
    bounds = [(-1.0, 1.0)] * columns + [(None, 1.0)]
    found = _program(np.append(np.zeros(columns), -1.0), rows, np.zeros(len(G)), bounds)
    return None if found is None else found[:-1]


def _program(
    cost: np.ndarray,
    rows: np.ndarray,
    limits: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
) -> np.ndarray | None:
    """Minimise cost . d over rows d <= limits; None where HiGHS has no answer in time."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    options = {"primal_feasibility_tolerance": PROGRAMS.feasible, "time_limit": PROGRAMS.seconds}
    found = linprog(cost, csr_array(rows), limits, bounds=bounds, method="highs", options=options)
    return np.asarray(found.x) if found.status == 0 else None
