"""Whether a problem has a minimiser: convergence theorems that speak of one need it.

A convex function of the kind that is meant here has a minimiser unless it falls for ever along
some direction d. A logistic loss does so where no row is on the wrong side of d: s_i a_i . d >= 0
for all rows, > 0 for one of them, with s_i = 1 for the label 1 and -1 for the label 0 (Albert and
Anderson, 1984). A penalty on the variables that d moves forbids it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ode2opt.base.arrays import Array, is_sparse
from ode2opt.base.errors import InputError
from ode2opt.problems.base import Problem
from ode2opt.problems.function import FunctionProblem
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.logistic import Logistic
from ode2opt.problems.losses import Huber, Lpp, Poisson, SquaredHinge
from ode2opt.problems.quadratic import Quadratic
from ode2opt.problems.row_model import RowModel
from ode2opt.problems.scaled_huber import ScaledHuber
from ode2opt.problems.separation import (
    PROGRAMS,
    as_dense,
    falling_direction,
    one_signed_column,
    separating_plane,
)
from ode2opt.problems.softmax import Softmax
from ode2opt.problems.transformed import Transformed

SINGULAR = 1e-12  # of a quadratic, in largest eigenvalues

ALWAYS = (Lpp, Huber, ScaledHuber, SquaredHinge)
"""Losses that are attained whatever the rows: they grow, or are zero from some score on."""


@dataclass(frozen=True)
class MinimiserCheck:
    """Whether a problem has a minimiser, and why.

    Attributes:
        exists: True or False; None where it is not known.
        reason: why, in words that go on after "no minimiser:" and the like.
    """

    exists: bool | None
    reason: str

    @property
    def words(self) -> str:
        """The answer in one line, such as "no minimiser: column 17 has one sign ..."."""
        answer = {True: "a minimiser", False: "no minimiser", None: "a minimiser is not known"}
        return f"{answer[self.exists]}: {self.reason}"


def check_minimiser(problem: Problem) -> MinimiserCheck:
    """Say whether a problem has a minimiser, and why.

    The answer needs no solve: penalties and columns of one sign are looked at first, then a linear
    program is solved (SciPy's HiGHS), for at most 2,000 columns. An answer by penalty or by a
    column is exact; one by a linear program is as sure as its arithmetic, and None where it is
    too close to call.

    Args:
        problem: any problem; of a function given as a callable nothing is known.

    Returns:
        The answer with its reason.

    Examples:
        >>> A = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 2.0], [1.0, 0.0]])
        >>> print(check_minimiser(Logistic(A, np.array([1.0, 0.0, 1.0, 1.0]))).words)
        no minimiser: column 1, signed by the labels, has one sign and no penalty
        >>> print(check_minimiser(Logistic(A, np.array([1.0, 0.0, 1.0, 1.0]), l2=1e-3)).words)
        a minimiser: every variable has a penalty
    """
    if isinstance(problem, Transformed):
        return check_minimiser(problem.inner)
    if isinstance(problem, RowModel | Quadratic) and _all_penalised(problem):
        return MinimiserCheck(True, "every variable has a penalty")
    if isinstance(problem, Quadratic):
        return _of_quadratic(problem)
    if isinstance(problem, ALWAYS):
        return MinimiserCheck(True, f"{problem.kind} is attained on any rows")
    if isinstance(problem, Logistic | Poisson | Softmax):
        return _of_rows(problem)
    return MinimiserCheck(None, _unknown(problem))


def has_minimiser(problem: Problem) -> bool | None:
    """Return whether a problem has a minimiser; None where it is not known.

    Args:
        problem: any problem; see :func:`check_minimiser`, which says why.

    Examples:
        >>> has_minimiser(Logistic(A, b, l2=0.1))
        True
    """
    return check_minimiser(problem).exists


def separable(problem: LinearModel) -> bool | None:
    """Return whether a plane has all rows of each class strictly on its own side.

    With several classes: whether scores can be found whose largest is that of each row's class.

    Args:
        problem: one whose targets are classes: Logistic, SquaredHinge or Softmax. Its intercept,
            if it has one, may move the plane; penalties do not matter. Labels strictly between 0
            and 1 belong to no class.

    Returns:
        True where such a plane has been found, False where a linear program says that there is
        none, None where it could not be decided.

    Raises:
        InputError: where targets are no classes.

    Examples:
        >>> separable(Logistic(np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 1.0, 0.0])))
        True
    """
    if not isinstance(problem, Logistic | SquaredHinge | Softmax):
        raise InputError(f"{type(problem).__name__} has no classes that a plane could separate.")
    if _too_large(problem):
        return None
    sides, undecided = _sides(problem, np.arange(problem.n))
    if undecided.shape[0]:
        raise InputError("Some labels are between 0 and 1: such rows are on no side of a plane.")
    return separating_plane(as_dense(sides))


def _all_penalised(problem: RowModel | Quadratic) -> bool:
    if isinstance(problem, Quadratic) or not problem.intercept:
        return problem.l2 > 0
    return problem.l2 > 0 and problem.intercept_l2 > 0


def _unknown(problem: Problem) -> str:
    if isinstance(problem, FunctionProblem):
        return "the function is known by its values only"
    return f"{type(problem).__name__} was not looked into"


def _of_quadratic(problem: Quadratic) -> MinimiserCheck:
    """1/2 x.Qx - b.x is attained where b is in the range of Q."""
    values, vectors = np.linalg.eigh(np.asarray(problem.hessian(problem.b)))
    flat = vectors[:, values <= SINGULAR * max(float(values[-1]), 0.0)]
    if not flat.shape[1]:
        return MinimiserCheck(True, "the matrix is positive definite")
    b = np.asarray(problem.b)
    if np.linalg.norm(flat.T @ b) > np.sqrt(SINGULAR) * np.linalg.norm(b):
        return MinimiserCheck(False, "b has a part where the matrix has no curvature")
    return MinimiserCheck(True, "b is in the range of the matrix")


def _of_rows(problem: LinearModel) -> MinimiserCheck:
    free = _free_variables(problem)
    if problem.width > 1 and _too_large(problem):
        return MinimiserCheck(None, "the matrix is too large for a linear program")
    sides, fixed = _sides(problem, free)
    column = one_signed_column(sides, fixed)
    if column is not None:
        return MinimiserCheck(False, _about_column(problem, int(free[column])))
    if _too_large(problem):
        return MinimiserCheck(None, "the matrix is too large for a linear program")
    falls = falling_direction(as_dense(sides), as_dense(fixed))
    if falls is None:
        return MinimiserCheck(None, "the linear program is too close to call")
    if falls:
        return MinimiserCheck(
            False, "some direction lowers the loss of rows for ever and raises that of none"
        )
    return MinimiserCheck(True, "along every direction the loss of some row grows")


def _too_large(problem: LinearModel) -> bool:
    """Whether the linear program's matrix would be: N rows for each pair of classes, dense."""
    pairs = max(problem.width - 1, 1)
    return (
        problem.n > PROGRAMS.most_columns or problem.N * problem.n * pairs > PROGRAMS.most_entries
    )


def _free_variables(problem: LinearModel) -> np.ndarray:
    """Return the variables without a penalty; the intercepts come last."""
    own = problem.n - problem.width * problem.intercept
    first = own if problem.l2 else 0
    last = own if problem.intercept_l2 else problem.n
    return np.arange(first, last)


def _about_column(problem: LinearModel, variable: int) -> str:
    place, kind = divmod(variable, problem.width)
    of_class = f" for class {kind}" if problem.width > 1 else ""
    if place == problem.columns:
        return f"the intercept{of_class} has no penalty, and all rows pull it the same way"
    named = "" if problem.names is None else f" ({problem.names[place]})"
    signed = "signed by the labels, " if not isinstance(problem, Poisson) else ""
    return f"column {place}{named}{of_class}, {signed}has one sign and no penalty"


def _sides(problem: LinearModel, variables: np.ndarray) -> tuple[Array, Array]:
    """Return G and E: no loss grows along d where G d >= 0 and E d = 0; sparse where A is.

    G has the rows whose loss falls for ever on one side, E those whose loss grows on both.
    """
    keep = np.ones(problem.N, bool)
    if problem.weights is not None:
        keep = np.asarray(problem.weights) > 0
    A, b = _matrix(problem, keep), np.asarray(problem.b, dtype=np.float64)[keep]
    if isinstance(problem, Softmax):
        leads = _leads(as_dense(A), b.astype(int), problem.classes)[:, variables]
        return leads, leads[:0]
    A = A[:, variables]
    if isinstance(problem, Poisson):
        return -A[b == 0], A[b > 0]
    ones, zeros = A[b == 1], A[b == 0]
    return _stacked(ones, -zeros), A[(b != 0) & (b != 1)]


def _matrix(problem: LinearModel, keep: np.ndarray) -> Array:
    """Return some rows of the matrix, with the intercept's column of ones."""
    A = problem.A.tocsr()[keep] if problem.sparse else np.asarray(problem.A)[keep]
    A = A.astype(np.float64)
    if not problem.intercept:
        return A
    ones = np.ones((A.shape[0], 1))
    if not problem.sparse:
        return np.hstack([A, ones])
    from scipy.sparse import hstack

    return hstack([A, ones]).tocsr()


def _stacked(upper: Array, lower: Array) -> Array:
    if not is_sparse(upper):
        return np.concatenate([upper, lower])
    from scipy.sparse import vstack

    return vstack([upper, lower]).tocsr()


def _leads(A: np.ndarray, b: np.ndarray, classes: int) -> np.ndarray:
    """Return for each row and each other class how its own score leads, as a linear function."""
    blocks = []
    for other in range(classes):
        rows = np.flatnonzero(b != other)
        lead = np.zeros((len(rows), A.shape[1], classes))
        lead[np.arange(len(rows)), :, b[rows]] = A[rows]
        lead[:, :, other] -= A[rows]
        blocks.append(lead.reshape(len(rows), -1))
    return np.concatenate(blocks)
