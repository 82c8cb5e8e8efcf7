"""``auto``, the default method: it plans from the problem (docs/mathematics.md, section 14).

A plan is a list of stages. Each goes on where the one before gave up, and after all of them come
the methods that always converge (:mod:`ode2opt.solvers.supervisor`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ode2opt.penalties import L1Ball, Simplex
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.options import DEFAULTS, AutoOptions
from ode2opt.solvers.stages.active_rows import ActiveProductsNewton, ActiveRowsNewton
from ode2opt.solvers.stages.blocks import ClasswiseLbfgs, DiagonalLbfgs, is_strongly_penalised
from ode2opt.solvers.stages.lbfgs import Lbfgs
from ode2opt.solvers.stages.nesterov import Fista
from ode2opt.solvers.stages.newton import Newton
from ode2opt.solvers.stages.proximal_newton import ProximalNewton
from ode2opt.solvers.stages.quadratic_models import MODELS
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper, for_ever
from ode2opt.solvers.stages.subsample import FullHessianLbfgs, SubsampledLbfgs


class PlanRules(NamedTuple):
    """What parts of a solve cost, about.

    Compared on parts of a5a, phishing and covtype20k and on made tables of 300 x 10 to 8,000 x 120.

    Attributes:
        enough_rows: a column: then a subsample serves without having been solved.
        newton_steps: on all rows.
        reused_hessians: of L-BFGS that takes the Hessian of all rows anew where it becomes slow.
        reused_calls: evaluations of that, beside its Hessians.
        fall: of the gradient norm, in all.
    """

    enough_rows: int = 16
    newton_steps: int = 7
    reused_hessians: int = 3
    reused_calls: int = 12
    fall: float = 1e6


RULES = PlanRules()


def plan(
    objective: Objective,
    costs: Costs,
    options: AutoOptions = DEFAULTS,
    skip_subsample: bool = False,
    hessian: np.ndarray | None = None,
) -> list[Stage]:
    """Return the stages of a solve; of one with a penalty a Hessian of f may be known already."""
    problem, stages = objective.problem, list[Stage]()
    provides = objective.provides
    if not objective.smooth:
        first = proximal_stages(objective, skip_subsample, hessian)
        return [*first, Fista(for_ever, faces=True)]
    if "rows" in provides:
        rows: Any = problem
        if is_strongly_penalised(rows):
            stages.append(DiagonalLbfgs())
        if ClasswiseLbfgs.needs <= provides and rows.columns < LARGEST_DENSE_HESSIAN:
            stages.append(ClasswiseLbfgs(costs))
            skip_subsample = True
        elif ActiveRowsNewton.needs <= provides:
            affordable = ActiveRowsNewton.affordable(rows, costs, options)
            stages.append(
                ActiveRowsNewton(costs, skip_subsample) if affordable else ActiveProductsNewton()
            )
            skip_subsample = True
        stages += row_stages(rows, costs, options, skip_subsample)
    elif "Q" in provides and costs.newton_by_cholesky():
        stages.append(Newton.within_budget(costs))
    return [*stages, Lbfgs()]


def proximal_stages(
    objective: Objective, skip_subsample: bool = False, hessian: np.ndarray | None = None
) -> list[Stage]:
    """Return the stages before FISTA: proximal Newton where the problem has a cheap model."""
    problem, penalty = objective.problem, objective.penalty
    provides = objective.provides
    cheap = ProximalNewton.needs <= provides and "classes" not in provides
    if not cheap or ("rows" not in provides and problem.n > MODELS.matrix):
        return []
    known = isinstance(penalty, Simplex | L1Ball) or penalty.pieces() is not None
    return [ProximalNewton(skip_subsample, hessian)] if known else []


def row_stages(
    problem: RowModel, costs: Costs, options: AutoOptions, skip_subsample: bool
) -> list[Stage]:
    """Return the stages of a linear model: with its Hessian if it can be formed, else by
    products.
    """
    if problem.n > LARGEST_DENSE_HESSIAN or problem.N <= problem.n:
        return [Newton.within_budget(costs)]
    hessian, sizes = costs.hessian(), subsample_sizes(problem, costs, options)
    newton = (1 if problem.quadratic else RULES.newton_steps) * (1 + hessian)
    reused = math.inf if problem.quadratic else RULES.reused_hessians * hessian + RULES.reused_calls
    by_subsamples = _subsampled_price(costs, sizes)
    affordable = problem.quadratic or hessian <= options.cheap_hessian
    if affordable and newton <= min(reused, by_subsamples):
        return [Newton.within_budget(costs)]
    full = FullHessianLbfgs(costs)
    if reused <= by_subsamples and hessian <= options.affordable_hessian:
        return [full]
    if skip_subsample:
        subsampled = SubsampledLbfgs(problem, costs, sizes, options, skip_subsample)
        return [subsampled, full] if sizes[-1:] >= [RULES.enough_rows * problem.n] else [full]
    if sizes and costs.hessian(sizes[-1]) <= options.affordable_hessian:
        return [SubsampledLbfgs(problem, costs, sizes, options, problem.quadratic), full]
    return [Lbfgs(SwitchIfCheaper(options.clearly * (hessian + RULES.newton_steps), hessian)), full]


def _subsampled_price(costs: Costs, sizes: list[int]) -> float:
    """Return what a solve by subsamples costs, in evaluations; of a square these are not solved.

    Preconditioned by k n rows the spectrum is about that of Marchenko and Pastur, so that the error
    falls by the root of k a step.
    """
    if not sizes:
        return math.inf
    rate = max(1.5, 0.8 * math.sqrt(sizes[-1] / costs.n))
    square = costs.model is not None and costs.model.quadratic
    before = costs.hessian(sizes[-1]) if square else costs.subsamples(sizes)
    return before + 1 + math.log(RULES.fall) / math.log(rate)


def subsample_sizes(problem: RowModel, costs: Costs, options: AutoOptions = DEFAULTS) -> list[int]:
    """Return the rows of the subsamples: so many a column, where the problem has far more.

    Of the large ones only those whose Hessian is cheap are taken. A square has the same Hessian
    everywhere: one subsample is enough, and need not be solved.
    """
    sizes = [count * problem.n for count in options.rows_per_column]
    sizes = [size for size in sizes if size <= problem.largest_sample()]
    enough = RULES.enough_rows * problem.n
    if problem.quadratic:
        return [m for m in sizes if m <= enough][-1:]
    return [m for m in sizes if m <= enough or costs.hessian(m) <= options.cheap_hessian]
