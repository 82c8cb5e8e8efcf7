"""Newton's method for a loss with kinks by conjugate gradients, for matrices too wide to form H.

A step solves H d = -g by preconditioned conjugate gradients, H being the sum of w_i a_i a_i^T over
the active rows (those with curvature, w_i > 0) plus the penalty. A product with H takes the active
rows only: where these are few, they are copied once a step. How far to go along d is found on the
scores, as for Hessians that are formed (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, is_sparse, norm
from ode2opt.base.ended import Ended
from ode2opt.problems.base import Point
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.stages.conjugate_gradients import solve_by_cg


class ActiveRowsRules(NamedTuple):
    """How Newton's method goes by the rows with curvature.

    Chosen on squared hinges of a5a, w3a, mushrooms, phishing, covtype20k, and made-up texts.

    Attributes:
        rows_per_column: rows of the first subsample; each next one has as many times more.
        dear: evaluations: where a Hessian costs more, L-BFGS preconditioned by some rows is left.
        flat: of the slope where a line begins: then it has been followed far enough.
        further: times as far, where a line has no bend.
        line_trials: of one line.
        steps: Newton steps by Hessians.
        conjugate_steps: Newton steps by conjugate gradients.
        copied: share of the rows: where no more are active, they are copied.
        forcing: the largest residual of a step, in gradient norms.
        enough: of the tolerance: a smaller residual is wasted.
        products: of one step by conjugate gradients.
        calls: of all steps by conjugate gradients: then another method goes on.
    """

    rows_per_column: int = 16
    dear: float = 2.0
    flat: float = 0.1
    further: float = 4.0
    line_trials: int = 30
    steps: int = 40
    conjugate_steps: int = 100
    copied: float = 0.5
    forcing: float = 0.1
    enough: float = 0.3
    products: int = 250
    calls: float = 5_000


ACTIVE_ROWS = ActiveRowsRules()


class ConjugateSteps:
    """The direction of each Newton step; the residual asked for falls with the gradient norm."""

    def __init__(self, oracle: Oracle, problem: LinearModel) -> None:
        self.oracle, self.problem = oracle, problem
        self.first: float | None = None
        self.end = oracle.calls + ACTIVE_ROWS.calls

    def __call__(self, point: Point, g: Array) -> Array | Ended:
        """Return about -H^-1 g at a point, or why no further step is made."""
        if self.oracle.calls > self.end:
            return Ended.MANY_PRODUCTS
        size = norm(g)
        self.first = max(size, self.first or 0.0)
        share = min(ACTIVE_ROWS.forcing, math.sqrt(size / self.first))
        goal = max(share * size, ACTIVE_ROWS.enough * self.oracle.tol)
        active = ActiveRows(self.problem, self.problem.bends_at(point))
        self.oracle.charge(active.share)  # the diagonal
        d, products = solve_by_cg(active.product, active.scaling(), -g, goal, ACTIVE_ROWS.products)
        self.oracle.charge(products * active.share)
        return d


class ActiveRows:
    """The Hessian of the rows that have curvature; ``share`` is their part of the work."""

    def __init__(self, problem: LinearModel, bends: np.ndarray) -> None:
        self.problem, self.A, self.bends = problem, problem.A, bends
        active = np.flatnonzero(bends)
        if len(active) <= ACTIVE_ROWS.copied * len(bends):
            self.A, self.bends = problem.A[active], bends[active]
        self.share = (self.A.nnz if is_sparse(self.A) else self.A.size) / max(1, problem.entries())

    def product(self, v: np.ndarray) -> np.ndarray:
        """Return H v."""
        penalty = self.problem._penalty(v)
        if not self.problem.intercept:
            return self.A.T @ (self.bends * (self.A @ v)) + penalty
        rows = self.bends * (self.A @ v[:-1] + v[-1])
        penalty[:-1] += self.A.T @ rows
        penalty[-1] += np.sum(rows)
        return penalty

    def scaling(self) -> np.ndarray:
        """Return 1 / sqrt(diag(H)): half-way to Jacobi's, which does too much for rare columns."""
        A, problem = self.A, self.problem
        if is_sparse(A):
            squares = type(A)((A.data * A.data, A.indices, A.indptr), shape=A.shape, copy=False)
            diagonal = squares.T @ self.bends
        else:
            diagonal = np.einsum("i,ij,ij->j", self.bends, A, A)
        diagonal = diagonal + problem.l2
        if problem.intercept:
            diagonal = np.append(diagonal, np.sum(self.bends) + problem.intercept_l2)
        return 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
