"""Newton's method for a loss with kinks by conjugate gradients, for matrices too wide to form H.

A step solves H d = -g by preconditioned conjugate gradients, H being the sum of w_i a_i a_i^T over
the active rows (those with curvature, w_i > 0) plus the penalty. A product with H takes the active
rows only: where these are few, they are copied once a step. How far to go along d is found on the
scores, as for Hessians that are formed (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math

import numpy as np

from ode2opt.problems._arrays import Array, is_sparse
from ode2opt.problems._numbers import norm
from ode2opt.problems.base import Point
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.outcome import Reason
from ode2opt.solvers.session import Session
from ode2opt.solvers.stages.conjugate_gradients import solve_by_cg

COPIED = 0.5  # of the rows: where no more are active, they are copied
FORCING = 0.1  # the largest residual of a step, in gradient norms
ENOUGH = 0.3  # of the tolerance: a smaller residual is wasted
CG_STEPS = 250  # of one Newton step
MOST_CALLS = 5_000  # of all steps: then another method goes on


class ConjugateSteps:
    """The direction of each Newton step; the residual asked for falls with the gradient norm."""

    def __init__(self, session: Session, problem: LinearModel) -> None:
        self.session, self.problem = session, problem
        self.first: float | None = None
        self.end = session.calls + MOST_CALLS

    def __call__(self, point: Point, g: Array) -> Array | Reason:
        """Return about -H^-1 g at a point, or why no further step is made."""
        if self.session.calls > self.end:
            return Reason.MANY_PRODUCTS
        size = norm(g)
        self.first = max(size, self.first or 0.0)
        share = min(FORCING, math.sqrt(size / self.first))
        goal = max(share * size, ENOUGH * self.session.tol)
        active = ActiveRows(self.problem, self.problem.bends_at(point))
        self.session.charge(active.share)  # the diagonal
        d, products = solve_by_cg(active.product, active.scaling(), -g, goal, CG_STEPS)
        self.session.charge(products * active.share)
        return d


class ActiveRows:
    """The Hessian of the rows that have curvature; ``share`` is their part of the work."""

    def __init__(self, problem: LinearModel, bends: np.ndarray) -> None:
        self.problem, self.A, self.bends = problem, problem.A, bends
        active = np.flatnonzero(bends)
        if len(active) <= COPIED * len(bends):
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
