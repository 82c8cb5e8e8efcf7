"""Quadratic models of f around a point, and where f + h is least by them.

There is a matrix (the Hessian of all rows, or of some, kept up to date by BFGS) or, for many
variables of a sparse problem, its sparse columns (docs/mathematics.md, section 20).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ode2opt.kernels.coordinate import SparseColumns, descend_columns, has_columns
from ode2opt.penalties import Pieces
from ode2opt.problems._numbers import norm
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.quadratic import Quadratic
from ode2opt.solvers.composite.descent import minimise_model
from ode2opt.solvers.composite.session import CompositeSession
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.outcome import Evaluated
from ode2opt.solvers.stages.subsample import Subsamples

# Tuned on a5a, phishing, covtype20k and made data (docs/measurements/penalties.md).
CHEAP = 4.0  # evaluations that a Hessian of all rows may cost to be made at each step
SAMPLE = 2.0  # evaluations that the Hessian of some rows costs
SLOW = 0.5  # a residual that falls less calls for another Hessian
LARGEST_MATRIX = 2_000  # variables of a matrix
LARGEST_SPARSE = 1_000  # the same of a sparse problem, whose columns do for more
CURVED = 1e-8  # the least cosine of a step and the gradient's change that BFGS learns from


class QuadraticModel(ABC):
    """What the model's second derivatives are.

    Attributes:
        fresh: whether they were made for the point at hand, of all rows.
        exact: whether the model is f itself, to be minimised at once.

    Args:
        session: the solve.
        pieces: the penalty, with n numbers each.
    """

    def __init__(self, session: CompositeSession, pieces: Pieces) -> None:
        self.session, self.pieces = session, pieces
        self.fresh = self.exact = False

    @abstractmethod
    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        """Return the point where model and penalty are least.

        Args:
            here: where the model is made.
            tol: the residual of the model that is small enough.
        """

    @abstractmethod
    def learn(self, here: Evaluated, new: Evaluated) -> None:
        """Prepare for the next point after a step.

        Args:
            here: where the step began.
            new: where it led.
        """

    @abstractmethod
    def renew(self) -> None:
        """Make the second derivatives anew, of all rows, when they are next needed."""


class HessianModel(QuadraticModel):
    """A matrix: the Hessian, of all rows or of some."""

    def __init__(self, session: CompositeSession, pieces: Pieces) -> None:
        super().__init__(session, pieces)
        problem = session.problem
        self.exact = isinstance(problem, Quadratic) or bool(getattr(problem, "quadratic", False))
        price = 0.0 if self.exact else Costs(problem).hessian()
        self.cheap, self.rows = price <= CHEAP, 0
        if not self.cheap and isinstance(problem, LinearModel):
            rows = int(problem.N * SAMPLE / price)
            self.rows = rows if problem.n <= rows <= problem.largest_sample() else 0
        self.H: np.ndarray | None = None

    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        if self.H is None:
            self.H = self._of_some_rows(here) if self.rows else self.session.hessian(here.x)
            self.fresh = not self.rows
        return minimise_model(self.H, here.g, here.x, self.pieces, tol, self.session.check_time)

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        if self.exact:
            return
        if self.cheap or (not self.fresh and new.norm > SLOW * here.norm):
            self.renew()
        else:
            self.fresh = False
            self._correct(new.x - here.x, new.g - here.g)

    def renew(self) -> None:
        self.H, self.rows = None, 0

    def _of_some_rows(self, here: Evaluated) -> np.ndarray:
        """Return the Hessian of rows drawn at random, with what one more row could add."""
        problem, session = self.session.problem, self.session
        assert isinstance(problem, LinearModel)
        part = Subsamples(session, problem).of([self.rows])[0]
        session.charge(part.hessian_flops() / problem.gradient_flops())
        x = part.xp.asarray(here.x, dtype=part.dtype)
        H = np.asarray(part.hessian(x), dtype=np.float64)
        H.flat[:: part.n + 1] += part.unseen_curvature(x)
        return H

    def _correct(self, s: np.ndarray, y: np.ndarray) -> None:
        """Let the matrix map a step to the change of the gradient along it (BFGS)."""
        assert self.H is not None
        Hs = self.H @ s
        along, by_model = float(s @ y), float(s @ Hs)
        if along > CURVED * norm(s) * norm(y) and by_model > 0:
            self.H += np.outer(y / along, y) - np.outer(Hs / by_model, Hs)


class ColumnModel(QuadraticModel):
    """Sparse columns weighted by the rows' bends: no matrix of all pairs is made."""

    def __init__(self, session: CompositeSession, pieces: Pieces) -> None:
        super().__init__(session, pieces)
        self.problem = session.problem
        assert isinstance(self.problem, LinearModel)
        self.columns = sparse_columns(self.problem)

    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        problem, session = self.problem, self.session
        assert isinstance(problem, LinearModel)
        bends = problem.bends_at(problem.at(session.to_problem(here.x)))
        session.charge(1)
        self.fresh = True
        ridge = problem.penalties()
        columns = self.columns.weighted(np.sqrt(np.asarray(bends, dtype=np.float64)))
        return descend_columns(columns, here.x, here.g, ridge, tuple(self.pieces), tol)

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        self.fresh = False

    def renew(self) -> None:
        self.fresh = False


def sparse_columns(problem: LinearModel) -> SparseColumns:
    """Return the columns of a sparse problem, its intercept's included.

    Args:
        problem: a linear model with a SciPy matrix.
    """
    A = problem.A.tocsc()
    data, rows = A.data.astype(np.float64), A.indices.astype(np.int32)
    starts = A.indptr.astype(np.int64)
    if problem.intercept:
        data = np.append(data, np.ones(problem.N))
        rows = np.append(rows, np.arange(problem.N, dtype=np.int32))
        starts = np.append(starts, starts[-1] + problem.N)
    return SparseColumns(data, rows, starts, problem.N)


def model_of(session: CompositeSession, pieces: Pieces) -> QuadraticModel | None:
    """Return the model for a problem, None where there is none that is worth it.

    Args:
        session: the solve.
        pieces: the penalty, with n numbers each.
    """
    problem = session.problem
    by_columns = isinstance(problem, LinearModel) and problem.sparse and has_columns()
    if problem.n <= (LARGEST_SPARSE if by_columns else LARGEST_MATRIX):
        return HessianModel(session, pieces)
    return ColumnModel(session, pieces) if by_columns else None
