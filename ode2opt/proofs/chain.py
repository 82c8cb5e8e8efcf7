"""The worst case of a table over all L-smooth convex functions, by a chain of small LMIs.

See docs/mathematics.md, section 15. Clarabel solves the program; a table of 80 rows takes well
under a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from ode2opt.base.arrays import as_count, as_positive
from ode2opt.base.errors import InputError, Ode2OptError, needing
from ode2opt.base.schedule import Schedule
from ode2opt.proofs.program import (
    STEP_BY_ROW,
    Goal,
    Program,
    goal_of,
    program_of,
    step_matrix,
    tail_by_row,
    tail_vector,
)
from ode2opt.proofs.table import two_step_rows

LONGEST = 200
"""Rows of a table that the chain takes: beyond, the solver's precision is not tested."""
TOLERANCE, ACCURACY = 1e-10, 1e-7
"""What the solver aims at, and what a solution needs to count as solved."""


@dataclass(frozen=True)
class WorstCase:
    """What a chain of matrix inequalities proves of a table, in floating point.

    Attributes:
        tau: without a tail f(y_M) - f* <= tau L R^2, where R = |x0 - x*| and M is the last point.
            With one f(y_k - g_k/L) - f* <= tau L R^2 / (eta theta_k^2) for every k >= M. (With
            ``goal.star`` "convex" the left side is f(y_k) - |g_k|^2/(2L) - f*.)
        last: the index M of the last point.
        multipliers: four rows w, v, s, r of M + 1 numbers each; s_0 = r_0 = 0.
        gradient: the derivatives of tau by the rows (m, p, q); shape as the rows'.
        goal: what is bounded.
        rows: the rows (m, p, q) it is about.
        solved: whether the solver met its tolerances; if it nearly did, an exact proof decides
            what the multipliers are worth.
        share: the functions are as smooth as ``share`` L; 1 by default. tau is in units of L, the
            rows and multipliers in those of ``share`` L.
    """

    tau: float
    last: int
    multipliers: np.ndarray = field(compare=False)
    gradient: np.ndarray = field(compare=False)
    goal: Goal
    rows: np.ndarray = field(compare=False)
    solved: bool
    share: float = 1.0

    @property
    def N(self) -> int:
        """How many iterations of a schedule it is about: the idle first one counts."""
        return self.last + 1

    @property
    def value(self) -> float:
        """(f(y_M) - f*) / (L R^2) is at most this, for the functions it is about."""
        return self.tau / float(self.goal.weight)

    @property
    def start(self) -> float:
        """The same of the start: 0.5, and ``share``/2 for functions of ``share`` L."""
        return 0.5 * self.share

    @property
    def driven_away(self) -> bool:
        """Whether the bound is above every start, so that some function may be driven upwards."""
        return self.value > self.start

    @property
    def ratio(self) -> float:
        """The bound divided by Nesterov's own at the last point; see :meth:`Goal.ratio`."""
        return self.goal.ratio(self.tau, self.last)


IterationsBound = WorstCase
"""Its name where older paths lead to this module; deprecated in ``ode2opt.proofs``."""


def worst_case(
    table: Schedule | np.ndarray | Sequence[Sequence[float]],
    L: float = 1.0,
    N: int | None = None,
    *,
    share: float = 1.0,
    tail: str | None = None,
    star: str = "smooth",
    theta: Fraction | float | None = None,
    margin: float = 0.0,
) -> WorstCase:
    """Bound the worst that a table can do, over all L-smooth convex functions with a minimiser.

    A chain of small matrix inequalities between neighbours is solved (docs/mathematics.md, section
    15). The bound is the exact worst case for gradient descent, Nesterov's method and OGM, and up
    to about 1.4 times that for others. It is computed in floating point; ``ode2opt prove`` proves
    it in fractions.

    Args:
        table: a schedule of iterations for curvature ``L``; or rows (m, p, q) of the two-step form
            for L = 1, shape (R, 3), m and q of the first being 0.
        L: the smoothness constant that a schedule is made for, 1 by default; 1 for rows.
        N: use the first N only, by default all: of a schedule 1 to 201 iterations, of which the
            first does not move; of rows 1 to 200.
        share: bound functions with curvatures up to ``share`` L; 1 by default, and for rows.
        tail: None bounds f at the last point. "ogm" or "nag" bounds all points from the one before
            the last row on, the rows being followed by that method.
        star: "smooth", or "convex" for proofs that a run can check by itself.
        theta: where the tail stands, at least 1; by default (R + 1)/2 for R rows.
        margin: how far inside each matrix inequality the multipliers have to be, at least 0; an
            exact proof needs a little.

    Returns:
        The bound, the multipliers that prove it and its derivative by the rows: the dual matrices
        Z_k give d tau = -sum ⟨Z_k, d form_k⟩.

    Raises:
        InputError: the table, N, L, theta or a name is wrong, or the schedule is too short.
        Ode2OptError: the solver cannot find multipliers (the bound grows by orders of magnitude).

    Examples:
        >>> round(worst_case(Schedule.gradient_descent(1.0, 11), 1.0, 11).value, 6)  # 1/42
        0.02381
        >>> round(worst_case([[0, 1, 0]] * 3).tau, 6)  # 1/(4 N + 2)
        0.071429
    """
    if isinstance(table, Schedule):
        if N is not None:
            table = table.first(check_worst_case(N, len(table)))
        share = as_positive(share, "share")
        table = table.scaled(1 / (as_positive(L, "L") * share))
        if N == 1:
            return _of_the_start(share)
        N = None
    elif (L, share) != (1, 1):
        raise InputError("Rows (m, p, q) are for L = 1: give a schedule for another L or share.")
    rows = _checked(table, N)
    goal = goal_of(tail, star, theta, len(rows) - (tail is not None))
    if not 0 <= margin < 1:
        raise InputError(f"margin is {margin}: it must be at least 0 and below 1.")
    program = program_of(rows, goal, margin)
    solution = _solved(program, goal, len(rows))
    x, z = np.array(solution.x), np.array(solution.z)
    gradient = _gradient(program, rows, goal, x, z)
    return WorstCase(
        tau=float(program.unit * x[0]) * share,
        last=program.layout.points - 1,
        multipliers=np.maximum(program.multipliers(x), 0.0),
        gradient=gradient * share,
        goal=goal,
        rows=rows,
        solved=_accurate(solution),
        share=share,
    )


def _of_the_start(share: float) -> WorstCase:
    """Return the bound on a first iteration, which does not move."""
    nothing = np.empty((0, 3))
    return WorstCase(0.5 * share, 0, np.zeros((4, 1)), nothing, Goal(), nothing, True, share)


def check_worst_case(N: int, K: int) -> int:
    """Refuse, before any work, what ``K`` iterations or the installation cannot do."""
    N = as_count(N, "N")
    if N > LONGEST + 1:  # the first iteration is idle
        raise InputError(f"N is {N}: the worst case is computed for 1 to {LONGEST + 1} iterations.")
    if N > K:
        raise InputError(f"The schedule has {K} iterations, fewer than N = {N}.")
    with needing("proofs"):
        import clarabel  # noqa: F401
    return N


def _checked(table: Schedule | np.ndarray | Sequence[Sequence[float]], N: int | None) -> np.ndarray:
    """Return the first N rows of a table in float64."""
    if isinstance(table, Schedule):
        rows = two_step_rows(table)
    else:
        try:
            rows = np.array(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("A table is rows of three numbers (m, p, q).") from None
    if rows.ndim != 2 or rows.shape[1:] != (3,) or not len(rows):
        raise InputError(f"A table is rows of three numbers (m, p, q), not of shape {rows.shape}.")
    if N is not None and not 1 <= N <= len(rows):
        raise InputError(f"N is {N}: the table has 1 to {len(rows)} steps.")
    rows = rows[:N]
    if len(rows) > LONGEST:
        raise InputError(f"The table has {len(rows)} steps: give N, at most {LONGEST}.")
    if not np.all(np.isfinite(rows)):
        raise InputError("The table has a number that is not finite.")
    if rows[0, 0] or rows[0, 2]:
        raise InputError(f"The first row's m and q must be 0, not {rows[0, 0]:g}, {rows[0, 2]:g}.")
    return rows


def _solved(program: Program, goal: Goal, steps: int) -> Any:
    """Return Clarabel's solution; anything but (almost) solved is an error."""
    with needing("proofs"):
        import clarabel
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    points = program.layout.points
    cones = [
        clarabel.ZeroConeT(points),
        clarabel.NonnegativeConeT(program.layout.multiplier_count),
        clarabel.PSDTriangleConeT(2),
        *(clarabel.PSDTriangleConeT(4) for _ in range(points - 1)),
    ]
    unknowns = program.layout.unknowns
    objective = np.zeros(unknowns)
    objective[0] = 1.0
    nothing = sparse.csc_matrix((unknowns, unknowns))
    solver = clarabel.DefaultSolver(nothing, objective, program.A, program.b, cones, settings)
    solution = solver.solve()
    if str(solution.status).endswith("PrimalInfeasible"):
        raise Ode2OptError(
            f"These {steps} steps have no proof by {goal.star} inequalities between neighbours"
            f"{f' with the tail {goal.tail}' if goal.tail else ''}."
        )
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise Ode2OptError(
            f"The worst case of {steps} steps could not be computed ({solution.status}): one that "
            f"grows by orders of magnitude is beyond the solver's precision; take fewer steps."
        )
    return solution


def _accurate(solution: Any) -> bool:
    """Whether gap and residuals are small, whatever the solver aimed at."""
    gap = abs(solution.obj_val - solution.obj_val_dual) / max(1.0, abs(solution.obj_val))
    return bool(max(gap, solution.r_prim, solution.r_dual) <= ACCURACY)


def _gradient(
    program: Program, rows: np.ndarray, goal: Goal, x: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Return d tau / d (m, p, q) of each row, from the dual matrices."""
    P, Z = program.storage(x), program.blocks(z)
    gradient = np.zeros_like(rows)
    for k in range(program.layout.points - 1):
        moved = P[k + 1] @ step_matrix(rows[k]) @ Z[k]
        gradient[k] = -2 * np.einsum("iab,ab->i", STEP_BY_ROW, moved)
    if goal.tail is not None:
        gradient[-1] = tail_by_row(goal) @ Z[-1] @ tail_vector(rows[-1], goal)
    gradient[0, [0, 2]] = 0.0  # the first step has no momentum
    return gradient
