"""Quadratic models of f around a point, and where f + h is least by them.

There is a matrix (the Hessian of all rows, or of some, kept up to date by BFGS) or, for many
variables of a sparse problem, its sparse columns (docs/mathematics.md, section 20).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ode2opt.base.arrays import norm
from ode2opt.kernels.coordinate import SparseColumns, descend_columns, has_columns
from ode2opt.penalties import L1Ball, Penalty, Pieces, Simplex
from ode2opt.problems.base import Problem
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.quadratic import Quadratic
from ode2opt.solvers.composite.budgets import minimise_on_budget
from ode2opt.solvers.composite.descent import minimise_model
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.stages.subsample import Subsamples

# Tuned on a5a, phishing, covtype20k and made data (docs/measurements/penalties.md).
CHEAP = 1.0  # evaluation, which a Hessian of all rows may cost to be made at each step
FEWEST_ROWS = 16  # of a sample, a column
SAMPLE = 1.0  # evaluation, which the Hessian of some rows costs
SLOW, PATIENCE = 0.5, 2  # a residual that falls less, so many times, calls for another Hessian
LARGEST_MATRIX = 2_000  # variables of a matrix
SMALLEST_SET = 100  # variables of a working set
NARROW = 500  # variables up to which all of a sparse problem are in its matrix
LARGEST_SPARSE = 1_000  # variables of a working set that a matrix may be better for than columns
FEW_SWEEPS, MOST_SWEEPS = 30, 200  # over sparse columns
MOST_WORK = 3_000  # evaluations, which all models of a matrix may take as long as
CURVED = 1e-8  # the least cosine of a step and the gradient's change that BFGS learns from


class TooDear(Exception):  # noqa: N818  (not an error: FISTA goes on)
    """Models have taken as long as many evaluations."""


class QuadraticModel(ABC):
    """What the model's second derivatives are.

    Attributes:
        fresh: whether they were made for the point at hand, of all rows.
        exact: whether the model is f itself, to be minimised at once.
        gave_up: whether another kind of model is better here.
        inexact: of the residual: the model is not minimised further.
    """

    inexact = 0.02

    def __init__(self, oracle: Oracle, pieces: Pieces | None) -> None:
        self.oracle, self.pieces = oracle, pieces
        self.fresh = self.exact = self.gave_up = False

    @abstractmethod
    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        """Return the point where model and penalty are least."""

    @abstractmethod
    def learn(self, here: Evaluated, new: Evaluated) -> None:
        """Prepare for the next point after a step."""

    @abstractmethod
    def renew(self) -> None:
        """Make the second derivatives anew, of all rows, when they are next needed."""


class HessianModel(QuadraticModel):
    """A matrix: the Hessian, of all rows or of some."""

    def __init__(self, oracle: Oracle, pieces: Pieces | None) -> None:
        super().__init__(oracle, pieces)
        problem = oracle.problem
        self.costs = Costs(problem)
        self.exact = isinstance(problem, Quadratic) or bool(getattr(problem, "quadratic", False))
        self.cheap = not self.exact and self.costs.hessian() <= CHEAP
        self.rows = sampled_rows(problem)
        self.H: np.ndarray | None = None
        self.slow, self.work = 0, 0.0

    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        if self.H is None:
            self.H = self._of_some_rows(here) if self.rows else self.oracle.hessian(here.x)
            self.fresh = not self.rows
        penalty, given = self.oracle.penalty, (self.H, here.g, here.x)
        try:
            if isinstance(penalty, Simplex | L1Ball):
                return minimise_on_budget(*given, penalty, tol, self._spend)
            assert self.pieces is not None
            return minimise_model(*given, self.pieces, tol, self._spend)
        except TooDear:
            self.gave_up = True
            return here.x

    def _spend(self, moves: int, face: int) -> None:
        """Count work in the model as evaluations that take as long by the plan's times."""
        price = self.costs.model_work(moves, face)
        self.work += price
        self.oracle.charge(price)
        self.oracle.check_time()
        if self.work > MOST_WORK:
            raise TooDear

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        if self.exact:
            return
        self.slow = self.slow + 1 if new.norm > SLOW * here.norm else 0
        if self.cheap or self.slow >= PATIENCE:
            self.renew()
        else:
            self.fresh = False
            self._correct(new.x - here.x, new.g - here.g)

    def renew(self) -> None:
        self.H, self.rows, self.slow = None, 0, 0

    def _of_some_rows(self, here: Evaluated) -> np.ndarray:
        """Return the Hessian of rows drawn at random, with what one more row could add."""
        problem, oracle = self.oracle.problem, self.oracle
        assert isinstance(problem, LinearModel)
        part = Subsamples(oracle, problem).of([self.rows])[0]
        oracle.charge(part.hessian_flops() / problem.gradient_flops())
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

    inexact = 0.1

    def __init__(self, oracle: Oracle, pieces: Pieces, patient: bool) -> None:
        super().__init__(oracle, pieces)
        self.patient = patient
        assert isinstance(oracle.problem, LinearModel)
        self.problem, self.weights = oracle.problem, pieces
        self.columns, self.ridge = sparse_columns(self.problem), self.problem.penalties()

    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        problem, oracle = self.problem, self.oracle
        bends = problem.bends_at(problem.at(oracle.to_problem(here.x)))
        oracle.charge(1)
        self.fresh = True
        shares = np.asarray(bends, dtype=np.float64)
        among = working_set(oracle.penalty, self.weights, here)
        hurry = not self.patient and len(among) <= LARGEST_SPARSE
        found, size = descend_columns(
            self.columns, shares, among, here.x, here.g, self.ridge, tuple(self.weights),
            FEW_SWEEPS if hurry else MOST_SWEEPS, tol,
        )  # fmt: skip
        self.gave_up = hurry and size > tol
        return found

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        self.fresh = False

    def renew(self) -> None:
        self.fresh = False


def sampled_rows(problem: Problem) -> int:
    """Return of how many rows the first Hessian is made; 0 for all."""
    if not isinstance(problem, LinearModel) or problem.quadratic or problem.n > LARGEST_MATRIX:
        return 0
    price = Costs(problem).hessian()
    if price <= CHEAP:
        return 0
    least, most = FEWEST_ROWS * problem.n, problem.largest_sample()
    return min(max(int(problem.N * SAMPLE / price), least), most) if least <= most else 0


def working_set(penalty: Penalty, pieces: Pieces, here: Evaluated) -> np.ndarray:
    """Return the variables that are free, and as many again whose residual is largest."""
    moving = (here.x != 0) | (pieces.l1 == 0)
    residual = np.abs(penalty.residual(here.x, here.g))
    size = max(SMALLEST_SET, 2 * int(np.count_nonzero(moving)))
    if size >= len(residual):
        return np.arange(len(residual))
    urgency = np.where(moving, np.inf, residual)
    chosen = np.argpartition(-urgency, size)[:size]
    return np.sort(chosen[urgency[chosen] > 0])


def sparse_columns(problem: LinearModel) -> SparseColumns:
    """Return the columns of a sparse problem, its intercept's included."""
    A = problem.A.tocsc()
    data, rows = A.data.astype(np.float64, copy=False), A.indices.astype(np.int32, copy=False)
    starts = A.indptr.astype(np.int64)
    if problem.intercept:
        data = np.append(data, np.ones(problem.N))
        rows = np.append(rows, np.arange(problem.N, dtype=np.int32))
        starts = np.append(starts, starts[-1] + problem.N)
    return SparseColumns(data, rows, starts)


def model_of(
    oracle: Oracle, pieces: Pieces | None, columns: str | None = None
) -> QuadraticModel | None:
    """Return the model for a problem, None where there is none that is worth it."""
    if columns is not None and pieces is not None and is_by_columns(oracle.problem):
        return ColumnModel(oracle, pieces, columns == "patient")
    return HessianModel(oracle, pieces) if oracle.problem.n <= LARGEST_MATRIX else None


def is_by_columns(problem: Problem) -> bool:
    """Return whether models of a problem are made of its sparse columns."""
    rows = isinstance(problem, LinearModel) and problem.sparse
    return rows and problem.n > NARROW and has_columns()
