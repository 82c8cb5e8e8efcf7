"""What a user may set of ``auto`` and of a memory, each with its meaning and range."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from ode2opt.base.arrays import as_count, as_number
from ode2opt.base.errors import InputError


@dataclass(frozen=True)
class AutoOptions:
    """How ``auto`` plans; every number is positive. Prices are in evaluations.

    The defaults were compared on a5a, w3a, phishing, mushrooms, covtype20k, digits, breast_cancer
    and twelve made-up tables, six losses each, by the cost model of :mod:`ode2opt.solvers.costs`.

    Attributes:
        rows_per_column: rows of the subsamples that a linear model is solved on first, in columns
            and in growing order. Those of more than a quarter of all rows are left out; an empty
            tuple goes without subsamples.
        damping_rows: curvature added to a subsample's Hessian, in rows that it may have missed.
        cheap_hessian: where a Hessian costs no more, Newton's method may come first; subsamples
            of more than 16 rows a column must have such a Hessian.
        affordable_hessian: where a subsample's Hessian costs more, plain L-BFGS is tried first;
            where that of all rows costs more, no solve begins with it.
        clearly: how many times as dear as a Hessian and the steps after it plain L-BFGS must be
            before it is left.
        seed: of the rows that are drawn; 0 or more.

    Examples:
        >>> solve(problem, options=AutoOptions(rows_per_column=()))
    """

    rows_per_column: tuple[int, ...] = (4, 16, 64, 256)
    damping_rows: float = 1.0
    cheap_hessian: float = 3.0
    affordable_hessian: float = 8.0
    clearly: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        rows = tuple(as_count(count, "rows_per_column") for count in self.rows_per_column)
        if list(rows) != sorted(set(rows)):
            raise InputError(f"rows_per_column is {rows}: it must be in growing order.")
        as_count(self.seed, "seed", least=0)
        _check_positive(self, "rows_per_column", "seed")


@dataclass(frozen=True)
class MemoryOptions:
    """How a memory learns; every number is positive.

    The defaults were chosen on streams of problems from a5a, phishing and mushrooms.

    Attributes:
        recent: solves whose calls tell the usual cost.
        judged_after: solves with the memory before they are compared with those without.
        start_trials: solves in which two starts are compared before one of them is trusted.
        mean_of: solutions that the mean solution is of, about.
        hessians_of: Hessians that the mean Hessian is of, about.
        damping_rows: curvature added to the mean Hessian, in rows that may have been missed.
        damping_rows_first: the same in addition for one Hessian, less with each that follows.
        floor: curvature that is added for problems that are no sums over rows, as a share of the
            largest.
        largest_matrix: variables up to which the whole Hessian is kept; above, a low rank of it.
        fewest_calls: calls of a solve that no preconditioner is expected to go below.
        retry_after: solves after which, at powers of two, a memory that did not help is tried.
        clearly: share of the calls without memory at which earlier failures are forgotten.
        slow_factor: a solve is slow that takes more than so many usual costs, plus ``slow_calls``;
            two slow solves in a row mean that problems have changed.
        slow_calls: calls beside the usual costs.
    """

    recent: int = 8
    judged_after: int = 3
    start_trials: int = 4
    mean_of: int = 32
    hessians_of: int = 8
    damping_rows: float = 1.0
    damping_rows_first: float = 2.0
    floor: float = 1e-3
    largest_matrix: int = 1_000
    fewest_calls: float = 14.0
    retry_after: int = 8
    clearly: float = 0.75
    slow_factor: float = 1.5
    slow_calls: float = 5.0

    def __post_init__(self) -> None:
        _check_positive(self)


def _check_positive(options: Any, *but: str) -> None:
    """Refuse numbers that are not positive, and counts that are not whole."""
    for one in fields(options):
        if one.name in but:
            continue
        value = as_number(getattr(options, one.name), one.name)
        if not 0 < value < math.inf:
            raise InputError(f"{one.name} is {value:g}: it must be positive.")
        if one.type == "int" and value != int(value):
            raise InputError(f"{one.name} is {value:g}: it must be a whole number.")


DEFAULTS = AutoOptions()
