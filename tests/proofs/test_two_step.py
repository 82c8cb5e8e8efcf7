"""The two-step form is EIGAC, and fractions go both ways without rounding."""

from fractions import Fraction

import numpy as np
import pytest

from ode2opt import InputError, Schedule
from ode2opt.paper.ishd import eigac_step
from ode2opt.proofs.two_step import (
    exact_rows,
    schedule_of,
    table_gradient,
    table_of,
    two_step_rows,
)

RNG = np.random.default_rng(7)


def schedule(K=6):
    return Schedule(*RNG.uniform(0.1, 1.0, (3, K)))


def test_the_rows_give_the_iterates_of_eigac():
    """On a function with a nonlinear gradient, y_k is x_{k+1}."""
    table = schedule()
    gradient = np.tanh
    x = np.array([0.7, -1.3])
    u, eigac = table.a[0] * gradient(x), []
    for a, c, d in table.rows():
        e, u = eigac_step(u, gradient(x), a, c, d)
        x = x + e
        eigac.append(x)
    y = before = np.array([0.7, -1.3])
    g_before, found = np.zeros(2), [y]
    for m, p, q in two_step_rows(table):
        g = gradient(y)
        y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
        found.append(y)
    np.testing.assert_allclose(found, eigac, rtol=1e-12)


def test_fractions_go_both_ways_without_rounding():
    rows = exact_rows(schedule())
    a, c, d = zip(*table_of(rows), strict=True)
    assert rows[0] == (0, a[1] - a[0] + c[0], 0)
    assert rows[1:] == [(1 - d[k], a[k + 1], a[k] - c[k]) for k in range(1, len(rows))]
    assert all(isinstance(x, Fraction) for row in rows for x in row)


def test_a_table_from_rows_has_these_rows():
    rows = np.array([[0, 1, 0], [0.25, 1.25, 0.5], [0.5, 1.5, 0.25]])
    np.testing.assert_array_equal(two_step_rows(schedule_of(rows)), rows)


def test_derivatives_by_the_table_follow_those_by_the_rows():
    table, weights = schedule(), RNG.standard_normal((5, 3))
    for name, found in zip("acd", table_gradient(weights), strict=True):
        for k in range(6):
            numbers = {key: getattr(table, key).copy() for key in "acd"}
            numbers[name][k] += 1.0
            moved = two_step_rows(Schedule(**numbers)) - two_step_rows(table)
            assert found[k] == pytest.approx(np.sum(weights * moved), abs=1e-12)


@pytest.mark.parametrize("rows", [[], [[0.5, 1, 0]], [[0, 1, 0.5]]])
def test_rows_that_are_no_table_are_refused(rows):
    with pytest.raises(InputError):
        table_of(rows)
