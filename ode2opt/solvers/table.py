"""One loop follows every table: in a metric, with a prox, watched, or checking its own proof.

See docs/mathematics.md, sections 2, 11, 15 and 19. The same loop stands in place in
``solvers.eigac``, compiled in ``kernels.compiled_table``, inside JAX in
``integrations.jax_table`` and in C; ``tests/solvers/test_table_copies.py`` crosses them with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.proofs.table import Prox, TableRow, no_penalty
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.oracle import Oracle, Outcome, Stop, Watch
from ode2opt.solvers.stages.lbfgs import Product

IDLE = TableRow(0.0, 0.0, 0.0, 0.0)
"""The first iteration of a schedule, which stays where it is and asks for nothing."""


class TablePoint(NamedTuple):
    """A point of a table.

    Attributes:
        x: the point.
        value: f(x); None where it was not asked for.
        g: the gradient.
        slope: M g; the gradient itself without a metric.
    """

    x: np.ndarray
    value: float | None
    g: np.ndarray
    slope: np.ndarray


class Check:
    """What a run looks at beside its watch: this one at nothing."""

    def wants_value(self, k: int) -> bool:
        """Whether point k is evaluated with its value."""
        return False

    def __call__(self, k: int, here: TablePoint, new: TablePoint) -> Outcome | None:
        """Look at point k before the solve may end there; says why the table should."""
        return None


def itself(g: np.ndarray) -> np.ndarray:
    """Return g, the product with the identity."""
    return g


def evaluated(
    oracle: Oracle, x: np.ndarray, with_value: bool, product: Product = itself
) -> TablePoint:
    """Evaluate a point; counted, but not yet an iterate of the solve."""
    point, value = oracle.to_problem(x), None
    if with_value:
        value, g = oracle.value_and_gradient(point)
    else:
        g = oracle.gradient(point)
    g = oracle.to_numpy(g)
    return TablePoint(x, value, g, product(g))


def follow(
    oracle: Oracle,
    rows: Iterable[TableRow],
    here: TablePoint,
    *,
    prox: Prox = no_penalty,
    product: Product = itself,
    check: Check | None = None,
) -> Outcome:
    """Follow rows until the watch or the check ends it, or there are no more.

    The oracle observes the iterates. Where a gradient is taken elsewhere (w), that is one more call
    an iteration, or none for a quadratic, whose gradients add up.
    """
    check = check or Check()
    affine = "quadratic" in oracle.objective.provides
    before, slope_before = here, here.slope
    for k, row in enumerate(rows, start=1):
        slope = here.slope
        if row.w and k > 1 and affine:
            slope = product(row.ahead(here.g, before.g))
        elif row.w and k > 1:
            slope = evaluated(oracle, row.ahead(here.x, before.x), False, product).slope
        new = here
        if row != IDLE:
            x = row.step(here.x, before.x, slope, slope_before, prox)
            new = evaluated(oracle, x, check.wants_value(k), product)
        found = check(k, here, new)
        oracle.observe(oracle.to_problem(new.x), oracle.to_problem(new.g), new.value)
        outcome = oracle.judge() or found
        if outcome is not None:
            return outcome
        before, here, slope_before = here, new, slope
    return Outcome(Ended.HORIZON)


class UnderWay(Protocol):
    """A table at work, as policies take it over."""

    @property
    def oracle(self) -> Oracle:
        """The solve."""

    @property
    def start(self) -> Any:
        """Where it began: the point, or all that is known there."""

    @property
    def scale(self) -> float:
        """The curvature that the table is divided by."""

    @property
    def metric(self) -> Operator | None:
        """The metric that it runs in."""

    def run(self) -> Outcome:
        """Run until the watch ends it; a solve that is over raises Stop."""


class Handing(Protocol):
    """Lets others go on where a table ends: the guard, or the paper's relay."""

    def watch(self) -> Watch:
        """Return what watches one run of a table."""

    def take_over(self, oracle: Oracle, table: Any, outcome: Outcome) -> NoReturn:
        """Go on after a table; leaves by Stop."""


def run_watched(table: UnderWay, policy: Handing | None) -> NoReturn:
    """Run a table under a policy, which lets others go on where it ends; leaves by Stop."""
    oracle = table.oracle
    oracle.watch = None if policy is None else policy.watch()
    outcome = table.run()
    if policy is None:
        raise Stop(Ended.HORIZON)
    policy.take_over(oracle, table, outcome)
