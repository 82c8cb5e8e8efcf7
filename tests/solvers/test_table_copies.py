"""The loop that follows any table, crossed with its faster copies."""

import numpy as np
import pytest
from integrations.learned import COLUMNS, HORIZON, logistic, metrics, table

from ode2opt import Quadratic
from ode2opt.penalties import L1, ZERO
from ode2opt.proofs.table import Table
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.table import evaluated, follow, itself

START = np.linspace(-1, 1, COLUMNS)


def noted(oracle, run):
    """The points that a run goes through."""
    points = []
    oracle.callback = lambda progress: points.append(progress.x) and None
    run(oracle)
    return np.array(points)


def by_the_loop(problem, chosen, metric=None, penalty=ZERO):
    limits = {"tol": 1e-15, "max_iter": 10**4}
    oracle = Oracle(Objective(problem, penalty), **limits)
    product, prox = itself if metric is None else metric.on(problem), oracle.objective.prox
    return noted(
        oracle,
        lambda oracle: follow(
            oracle, chosen.rows(), evaluated(oracle, START, False, product), product=product,
            prox=prox,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("kind", metrics())
def test_eigac_in_place_is_the_loop(kind):
    problem, metric, schedule = logistic(), metrics()[kind], table().scaled(9.0)
    oracle = Oracle(Objective(problem), tol=1e-15, max_iter=10**4)
    there = None if metric is None else metric.on(problem)
    found = noted(oracle, lambda oracle: EigacIteration(oracle, schedule, START, there).run())
    due = by_the_loop(problem, Table.of(schedule), metric)
    assert len(due) == HORIZON
    np.testing.assert_allclose(found[1:], due, rtol=1e-12, atol=1e-14)
    assert oracle.calls == HORIZON


@pytest.mark.parametrize("chosen", [Table.fista(HORIZON), Table.of(table())], ids=["w", "q"])
@pytest.mark.parametrize("quadratic", [True, False])
def test_the_loop_is_its_formula(chosen, quadratic):
    """The two-step form, transcribed."""
    problem = Quadratic(np.diag(np.arange(1.0, 1 + COLUMNS)), np.ones(COLUMNS))
    problem, penalty, scaled = problem if quadratic else logistic(), L1(0.02), chosen.scaled(9.0)
    x = before = START
    g_before, due = problem.gradient(x), []
    for m, p, q, w in np.column_stack(scaled.columns()):
        g = problem.gradient(x + w * (x - before))
        v = x + m * (x - before) - p * g + q * g_before
        v, before, g_before = np.sign(v) * np.maximum(abs(v) - 0.02 * (p - q), 0), x, g
        x = v
        due.append(x)
    np.testing.assert_allclose(by_the_loop(problem, scaled, penalty=penalty), due, atol=1e-12)
