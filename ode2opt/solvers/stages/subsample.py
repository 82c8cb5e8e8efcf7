"""L-BFGS preconditioned by the problem's own Hessian: of some of its rows, or of all.

The problem is solved on some rows by L-BFGS; the Hessian of these rows at that solution is the
preconditioner with which L-BFGS goes on with all rows. Where that is slow, the Hessian of all rows
at the point reached takes its place, again and again (docs/mathematics.md, section 14).
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Evaluated, Objective
from ode2opt.solvers.options import DEFAULTS, AutoOptions
from ode2opt.solvers.oracle import Oracle, Outcome, Stop
from ode2opt.solvers.stages.lbfgs import lbfgs
from ode2opt.solvers.stages.linear_systems import CholeskyFactor
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper


class SubsampleRules(NamedTuple):
    """How subsamples are solved, and when a Hessian is taken anew.

    Attributes:
        noise: of the sampling error of a subsample's gradient: more exact is wasted.
        steps: of L-BFGS on a subsample.
        draws: until a subsample has labels of both kinds.
        after: calls with a new Hessian, about; doubled each time that this was wrong.
        hessians: of all rows, then another method goes on.
    """

    noise: float = 0.3
    steps: int = 40
    draws: int = 5
    after: float = 4.0
    hessians: int = 12


RULES = SubsampleRules()


class SubsampledLbfgs(Stage):
    """L-BFGS with the Hessian of a subsample as preconditioner."""

    name = "metric-lbfgs"
    needs = frozenset({"rows", "hessian"})

    def __init__(
        self,
        problem: RowModel,
        costs: Costs,
        sizes: list[int],
        options: AutoOptions,
        skip_subsample: bool = False,
    ) -> None:
        super().__init__(SwitchIfCheaper.than(costs.hessian(), RULES.after))
        self.problem, self.sizes, self.options = problem, sizes, options
        self.skip_subsample = skip_subsample

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        subsamples = Subsamples(oracle, self.problem, self.options)
        rows = f"{self.sizes[-1]:,} of {self.problem.N:,} rows"
        if self.skip_subsample:
            oracle.log(f"L-BFGS in the metric of {rows}")
            factor = subsamples.hessian(self.sizes[-1], point.x)
            return lbfgs(oracle, point, factor)
        x, factor = self._solved(oracle, subsamples, point.x)
        oracle.log(f"{rows} solved")
        oracle.log("L-BFGS in their metric")
        found = oracle.evaluate(x)
        return lbfgs(oracle, found if found.value <= point.value else point, factor)

    def _solved(
        self, oracle: Oracle, subsamples: Subsamples, x: np.ndarray
    ) -> tuple[np.ndarray, CholeskyFactor]:
        """Return the solution on the last subsample, and its Hessian there."""
        factor = None
        for part in subsamples.of(self.sizes):
            x = subsamples.solved(part, x, factor)
            oracle.check_time()
            factor = subsamples.factor(part, x)
        assert factor is not None
        return x, factor


class FullHessianLbfgs(Stage):
    """L-BFGS with the Hessian of all rows as preconditioner.

    It is taken at the point reached, and anew where L-BFGS becomes slow.
    """

    name = "metric-lbfgs"
    needs = frozenset({"rows", "hessian"})

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self.costs = costs

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log(f"L-BFGS in metrics of all {oracle.problem.rows:,} rows")
        after = RULES.after
        for _ in range(RULES.hessians):
            oracle.watch = SwitchIfCheaper.than(self.costs.hessian(), after)
            outcome = lbfgs(oracle, point, CholeskyFactor(oracle.hessian(point.x)))
            if outcome.exhausted:
                break
            assert outcome.point is not None
            point, after = outcome.point, 2 * after
        return outcome


class Subsamples:
    """Problems on some rows of another one, drawn at random from a fixed seed."""

    def __init__(self, oracle: Oracle, problem: RowModel, options: AutoOptions = DEFAULTS) -> None:
        self.oracle, self.problem, self.options = oracle, problem, options
        self.rng = np.random.default_rng(options.seed)

    def of(self, sizes: list[int]) -> list[RowModel]:
        """Return problems of so many rows, each with those of the one before.

        A smaller one is taken from the next larger, so that the problem is asked once.
        """
        index, last = self._draw(sizes[-1])
        found: list[RowModel] = [last]
        for size in reversed(sizes[:-1]):
            rows = np.sort(index[: found[-1].N])
            found.append(found[-1].subset(np.searchsorted(rows, np.sort(index[:size]))))
        return found[::-1]

    def hessian(self, m: int, x: np.ndarray) -> CholeskyFactor:
        """Return the Hessian of m rows at a point, factorised."""
        if m == self.problem.N:
            return CholeskyFactor(self.oracle.hessian(x))
        return self.factor(self.of([m])[0], x)

    def factor(self, part: RowModel, x: np.ndarray) -> CholeskyFactor:
        """Return the Hessian of a subsample with what a row more could add to it, factorised."""
        share = part.N / self.problem.N
        self.oracle.charge(part.hessian_flops() / part.gradient_flops() * share)
        point = _as(part, x)
        H = np.asarray(part.hessian(point), dtype=np.float64)
        if part.N < self.problem.N:
            H[np.diag_indices(part.n)] += self.options.damping_rows * part.unseen_curvature(point)
        return CholeskyFactor(H)

    def solved(
        self, part: RowModel, x: np.ndarray, factor: CholeskyFactor | None = None
    ) -> np.ndarray:
        """Return the solution on some rows, as exact as they are worth."""
        oracle, share = self.oracle, part.N / self.problem.N
        oracle.charge(share)
        error = RULES.noise * part.gradient_error(_as(part, x))
        left = oracle.max_seconds - oracle.seconds
        inner = Oracle(Objective(part), tol=error, max_iter=RULES.steps, max_seconds=left)
        with suppress(Stop):
            here = inner.begin_if_finite(x)
            if here is not None:  # what fits fewer rows may overflow on these
                lbfgs(inner, here, factor)
        oracle.charge(inner.calls * share)
        return x if inner.best_x is None else np.asarray(inner.best_x, dtype=np.float64)

    def _draw(self, m: int) -> tuple[np.ndarray, RowModel]:
        """Return m rows at random; with labels of more than one kind, if these can be had."""
        for _ in range(RULES.draws):
            index = self.rng.choice(self.problem.N, m, replace=False)
            found = self.problem.subset(np.sort(index))
            if np.any(found.b != found.b[0]):
                break
        return index, found


def _as(part: RowModel, x: np.ndarray) -> np.ndarray:
    return part.xp.asarray(x, dtype=part.dtype)
