"""Newton's method for a loss with kinks: rows beyond the margin have no curvature and cost nothing.

A squared hinge is a quadratic wherever no row crosses its margin, so that few steps are enough. A
step takes the Hessian of the rows that have curvature; how far to go is found on the scores,
without the matrix. At 0 all rows have curvature: solutions on some rows come first
(docs/mathematics.md, section 14).

For matrices too wide to form H a step solves H d = -g by preconditioned conjugate gradients; H is
the sum of w_i a_i a_i^T over the active rows (those with curvature, w_i > 0) plus the penalty. A
product takes the active rows only: where these are few, they are copied once a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, is_sparse, norm
from ode2opt.base.ended import Ended
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN, Point
from ode2opt.problems.gram import extent
from ode2opt.problems.row_model import Line
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.options import AutoOptions
from ode2opt.solvers.oracle import Oracle, Outcome, Stop
from ode2opt.solvers.stages.linear_systems import CholeskyFactor, solve_by_cg
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.stages.subsample import Subsamples


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

Direction = Callable[[Point, Array], "Array | Ended"]
"""The step d at a point with its gradient, or why there is none."""


class ActiveRowsNewton(Stage):
    """Newton's method with the Hessian of the rows that have curvature."""

    name = "newton"
    needs = frozenset({"matrix", "host", "kinked"})

    def __init__(self, costs: Costs, skip_subsample: bool = False) -> None:
        super().__init__()
        self.costs, self.skip_subsample = costs, skip_subsample

    @staticmethod
    def affordable(problem: Any, costs: Costs, options: AutoOptions) -> bool:
        """Whether the first Hessian is cheap enough to be formed."""
        if problem.n > LARGEST_DENSE_HESSIAN:
            return False
        return bool(_sizes(problem)) or costs.hessian() <= options.affordable_hessian

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point, after solutions on some rows."""
        problem = oracle.problem
        sizes = [] if self.skip_subsample else _sizes(problem)
        oracle.log("Newton's method by the rows with curvature")
        first = 0 if sizes else 1  # a Hessian of all rows, where these are few
        return _newton(oracle, _solved(oracle, problem, point, sizes), self.costs, first)


class ActiveProductsNewton(Stage):
    """Newton's method by products with the rows that have curvature.

    For a Hessian that is too dear to be formed.
    """

    name = "newton"
    needs = ActiveRowsNewton.needs

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        problem = oracle.problem
        oracle.log("Newton's method by products with the rows with curvature")
        direction = ConjugateSteps(oracle, problem)
        return _steps(oracle, problem, point, direction, ACTIVE_ROWS.conjugate_steps)


def _sizes(problem: Any) -> list[int]:
    """Return the rows of the levels, from few to what may be copied."""
    sizes, m = [], ACTIVE_ROWS.rows_per_column * problem.n
    while m <= problem.largest_sample():
        sizes.append(m)
        m *= ACTIVE_ROWS.rows_per_column
    return sizes


def _solved(oracle: Oracle, problem: Any, here: Evaluated, sizes: list[int]) -> Evaluated:
    """Return the solution on some rows, or where it began if that is lower."""
    if not sizes:
        return here
    x = here.x
    for part in Subsamples(oracle, problem).of(sizes):
        left = oracle.max_seconds - oracle.seconds
        most = ACTIVE_ROWS.steps
        inner = Oracle(Objective(part), tol=oracle.tol, max_iter=most, max_seconds=left)
        with suppress(Stop):
            _newton(inner, inner.begin(x), Costs(part), most)
        oracle.charge(inner.calls * part.N / problem.N)
        oracle.check_time()
        x = x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)
    found = oracle.evaluate(x)
    return found if found.value <= here.value else here


def _newton(oracle: Oracle, here: Evaluated, costs: Costs, at_any_price: int) -> Outcome:
    """Minimise by Hessians of the active rows.

    Hessians are asked what they cost only after the first few, ``at_any_price``.
    """
    problem, formed = oracle.problem, count()

    def direction(point: Point, g: Array) -> Array | Ended:
        bends = problem.bends_at(point)
        rows = extent(problem.A, bends)
        if next(formed) >= at_any_price and costs.hessian_of(rows) > ACTIVE_ROWS.dear:
            return Ended.TOO_DEAR
        oracle.charge(rows.flops() / problem.gradient_flops())
        factor = CholeskyFactor(np.asarray(problem.hessian_of(bends), dtype=np.float64))
        return oracle.to_problem(-factor(np.asarray(g, dtype=np.float64)))

    return _steps(oracle, problem, here, direction, ACTIVE_ROWS.steps)


def _steps(
    oracle: Oracle, problem: Any, here: Evaluated, direction: Direction, most: int
) -> Outcome:
    """Take Newton steps from an evaluated point."""
    point, g = problem.at(oracle.to_problem(here.x)), oracle.to_problem(here.g)
    reason = Ended.MANY_STEPS
    for _ in range(most):
        oracle.check_time()
        d = direction(point, g)
        if isinstance(d, Ended):
            reason = d
            break
        line = Line(problem, point, d)
        found = _along(line, float(g @ d))
        oracle.charge(line.flops() / problem.gradient_flops())
        if found is None:
            reason = Ended.LINE_SEARCH
            break
        point, g = found, _gradient(oracle, problem, found)
    return Outcome(reason, oracle.evaluate(point.x, iterate=False))


def _gradient(oracle: Oracle, problem: Any, point: Point) -> np.ndarray:
    """Return the gradient at the next iterate; one that is small enough is taken anew from x."""
    g = problem.gradient_at(point)
    if norm(g) <= oracle.tol:
        found = oracle.evaluate(np.asarray(point.x, dtype=np.float64))
        return oracle.to_problem(found.g)
    oracle.charge(1)
    oracle.observe(point.x, g)
    return g


def _along(line: Line, slope: float) -> Point | None:
    """Return the minimum along a line, about, by Newton's method on its slope; None if nowhere."""
    low, high, t = 0.0, math.inf, 1.0
    if not -math.inf < slope < 0:
        return None
    for _ in range(ACTIVE_ROWS.line_trials):
        found = line.at(t)
        now = line.slope(t, found)
        if abs(now) <= -ACTIVE_ROWS.flat * slope:
            return found
        low, high = (low, t) if not now < 0 else (t, high)
        bend = line.bend(found)
        aim = t - now / bend if bend > 0 else math.inf
        if not low < aim < high:
            aim = 0.5 * (low + high) if high < math.inf else ACTIVE_ROWS.further * t
        t = aim
    return line.at(low) if low > 0 else None


class ConjugateSteps:
    """The direction of each Newton step; the residual asked for falls with the gradient norm."""

    def __init__(self, oracle: Oracle, problem: Any) -> None:
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

    def __init__(self, problem: Any, bends: np.ndarray) -> None:
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
