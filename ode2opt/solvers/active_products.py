"""Newton's method for a loss with kinks by conjugate gradients, for matrices too wide to form H.

A step solves H d = -g by preconditioned conjugate gradients, H being the sum of w_i a_i a_i^T over
the active rows (those with curvature, w_i > 0) plus the penalty. A product with H takes the active
rows only: where these are few, they are copied once a step. How far to go along d is found on the
scores, as for Hessians that are formed (docs/mathematics.md, section 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ode2opt.problems._arrays import Array, is_sparse
from ode2opt.problems._numbers import norm
from ode2opt.problems.base import Point
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.run import HandOver, Run

COPIED = 0.5  # of the rows: where no more are active, they are copied
FORCING = 0.1  # the largest residual of a step, in gradient norms
ENOUGH = 0.3  # of the tolerance: a smaller residual is wasted
CG_STEPS = 250  # of one Newton step
MOST_CALLS = 5_000  # of all steps: then another method goes on
TOO_MANY = "Newton's method took too many products"

Product = Callable[[np.ndarray], np.ndarray]


class ConjugateSteps:
    """The direction of each Newton step; the residual asked for falls with the gradient norm."""

    def __init__(self, run: Run, problem: LinearModel) -> None:
        self.run, self.problem = run, problem
        self.first: float | None = None
        self.end = run.calls + MOST_CALLS

    def __call__(self, point: Point, g: Array) -> Array:
        """Return about -H^-1 g at a point."""
        if self.run.calls > self.end:
            raise HandOver(TOO_MANY, self.run.look(point.x))
        size = norm(g)
        self.first = max(size, self.first or 0.0)
        share = min(FORCING, math.sqrt(size / self.first))
        goal = max(share * size, ENOUGH * self.run.tol)
        active = ActiveRows(self.problem, self.problem.bends_at(point))
        self.run.charge(active.share)  # the diagonal
        d, products = solve_by_cg(active.product, active.scaling(), -g, goal)
        self.run.charge(products * active.share)
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


def solve_by_cg(
    product: Product, weights: np.ndarray, b: np.ndarray, goal: float
) -> tuple[np.ndarray, int]:
    """Return about H^-1 b and how many products it took: a residual of at most ``goal``.

    Args:
        product: v -> H v.
        weights: the diagonal of a preconditioner.
        b: the right-hand side.
        goal: the norm of the residual to reach.
    """
    d, r = np.zeros_like(b), b
    p = weights * r
    square = float(r @ p)
    for count in range(1, CG_STEPS + 1):
        Hp = product(p)
        bend = float(p @ Hp)
        if not bend > 0:
            return (d if count > 1 else p), count
        length = square / bend
        d = d + length * p
        r = r - length * Hp
        if not norm(r) > goal:
            break
        z = weights * r
        square, old = float(r @ z), square
        p = z + (square / old) * p
    return d, count
