"""Quadratic models of f around a point, and where f + h is least by them.

There is a matrix (the Hessian of all rows, or of some, kept up to date by BFGS) or, for many
variables of a sparse problem, its sparse columns (docs/mathematics.md, section 20).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ode2opt.kernels.coordinate import SparseColumns, descend_columns, has_columns
from ode2opt.penalties import L1Ball, Penalty, SeparableTerms, Simplex
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.stages.model_descent import minimise_model, minimise_on_budget
from ode2opt.solvers.stages.subsample import Subsamples


class ModelRules(NamedTuple):
    """Which quadratic model is made, and when anew.

    Tuned on a5a, phishing, covtype20k and made data (docs/measurements/penalties.md).

    Attributes:
        cheap: evaluations that a Hessian of all rows may cost to be made at each step.
        fewest_rows: of a sample, a column.
        sample: evaluations that the Hessian of some rows costs.
        slow: a residual that falls by less than this factor ...
        patience: so many times calls for another Hessian.
        matrix: variables of a matrix, at most.
        smallest_set: variables of a working set.
        narrow: variables up to which all of a sparse problem are in its matrix.
        largest_sparse: variables of a working set that a matrix may be better for than columns.
        few_sweeps: over sparse columns, where a matrix may be better.
        most_sweeps: the same elsewhere.
        work: evaluations that all models of a matrix may take as long as.
        curved: the least cosine of a step and the gradient's change that BFGS learns from.
        loose, loose_columns: share of the residual that a model is not minimised further than.
    """

    cheap: float = 1.0
    fewest_rows: int = 16
    sample: float = 1.0
    slow: float = 0.5
    patience: int = 2
    matrix: int = 2_000
    smallest_set: int = 100
    narrow: int = 500
    largest_sparse: int = 1_000
    few_sweeps: int = 30
    most_sweeps: int = 200
    work: float = 3_000
    curved: float = 1e-8
    loose: float = 0.02
    loose_columns: float = 0.1


MODELS = ModelRules()


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

    inexact = MODELS.loose

    def __init__(self, oracle: Oracle, pieces: SeparableTerms | None) -> None:
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
    """A matrix: the Hessian, of all rows or of some, or one that is known to begin with."""

    def __init__(
        self, oracle: Oracle, pieces: SeparableTerms | None, first: np.ndarray | None = None
    ) -> None:
        super().__init__(oracle, pieces)
        self.costs = oracle.costs
        self.exact = "quadratic" in oracle.objective.provides
        self.cheap = not self.exact and self.costs.hessian() <= MODELS.cheap
        self.rows = sampled_rows(oracle) if first is None else 0
        self.H = first
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
        self.oracle.spend(price)
        if self.work > MODELS.work:
            raise TooDear

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        if self.exact:
            return
        self.slow = self.slow + 1 if new.norm > MODELS.slow * here.norm else 0
        if self.cheap or self.slow >= MODELS.patience:
            self.renew()
        else:
            self.fresh = False
            self._correct(new.x - here.x, new.g - here.g)

    def renew(self) -> None:
        self.H, self.rows, self.slow = None, 0, 0

    def _of_some_rows(self, here: Evaluated) -> np.ndarray:
        """Return the Hessian of rows drawn at random, with what one more row could add."""
        problem, oracle = self.oracle.problem, self.oracle
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
        if along > MODELS.curved * math.sqrt((s @ s) * (y @ y)) and by_model > 0:
            self.H += np.outer(y / along, y) - np.outer(Hs / by_model, Hs)


class ColumnModel(QuadraticModel):
    """Sparse columns weighted by the rows' bends: no matrix of all pairs is made."""

    inexact = MODELS.loose_columns

    def __init__(self, oracle: Oracle, pieces: SeparableTerms, patient: bool) -> None:
        super().__init__(oracle, pieces)
        self.patient = patient
        self.problem, self.weights = oracle.problem, pieces
        self.columns, self.ridge = sparse_columns(self.problem), self.problem.penalties()

    def goal(self, here: Evaluated, tol: float) -> np.ndarray:
        problem, oracle = self.problem, self.oracle
        bends = problem.bends_at(problem.at(oracle.to_problem(here.x)))
        oracle.charge(1)
        self.fresh = True
        shares = np.asarray(bends, dtype=np.float64)
        among = working_set(oracle.penalty, self.weights, here)
        hurry = not self.patient and len(among) <= MODELS.largest_sparse
        found, size = descend_columns(
            self.columns, shares, among, here.x, here.g, self.ridge, tuple(self.weights),
            MODELS.few_sweeps if hurry else MODELS.most_sweeps, tol,
        )  # fmt: skip
        self.gave_up = hurry and size > tol
        return found

    def learn(self, here: Evaluated, new: Evaluated) -> None:
        self.fresh = False

    def renew(self) -> None:
        self.fresh = False


def sampled_rows(oracle: Oracle) -> int:
    """Return of how many rows the first Hessian is made; 0 for all."""
    problem = oracle.problem
    provides = oracle.objective.provides
    if "matrix" not in provides or "quadratic" in provides or problem.n > MODELS.matrix:
        return 0
    price = oracle.costs.hessian()
    if price <= MODELS.cheap:
        return 0
    least, most = MODELS.fewest_rows * problem.n, problem.largest_sample()
    return min(max(int(problem.N * MODELS.sample / price), least), most) if least <= most else 0


def working_set(penalty: Penalty, pieces: SeparableTerms, here: Evaluated) -> np.ndarray:
    """Return the variables that are free, and as many again whose residual is largest."""
    moving = (here.x != 0) | (pieces.l1 == 0)
    residual = np.abs(penalty.residual(here.x, here.g))
    size = max(MODELS.smallest_set, 2 * int(np.count_nonzero(moving)))
    if size >= len(residual):
        return np.arange(len(residual))
    urgency = np.where(moving, np.inf, residual)
    chosen = np.argpartition(-urgency, size)[:size]
    return np.sort(chosen[urgency[chosen] > 0])


def sparse_columns(problem: Any) -> SparseColumns:
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
    oracle: Oracle,
    pieces: SeparableTerms | None,
    columns: str | None = None,
    hessian: np.ndarray | None = None,
) -> QuadraticModel | None:
    """Return the model for a problem, None where there is none that is worth it."""
    if columns is not None and pieces is not None and is_by_columns(oracle):
        return ColumnModel(oracle, pieces, columns == "patient")
    return HessianModel(oracle, pieces, hessian) if oracle.problem.n <= MODELS.matrix else None


def is_by_columns(oracle: Oracle) -> bool:
    """Return whether models of a problem are made of its sparse columns."""
    problem = oracle.problem
    rows = "matrix" in oracle.objective.provides and problem.sparse
    return rows and problem.n > MODELS.narrow and has_columns()
