"""A table is EIGAC without a prox, FISTA with one; what it tends to, what is proved; fractions."""

from fractions import Fraction

import numpy as np
import pytest

from ode2opt import Guard, InputError, Method, Schedule
from ode2opt.proofs.table import exact_rows, proved_ages, schedule_of, two_step_rows
from ode2opt.solvers import Table

RNG = np.random.default_rng(0)


def shrink(v, s):
    return np.sign(v) * np.maximum(np.abs(v) - 0.3 * s, 0)


def nothing(v, s):
    return v


def quadratic(n=12, seed=0):
    """Q, b and the largest eigenvalue of 1/2 x.Qx - b.x."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) * np.geomspace(1, 0.03, n)
    Q = A @ A.T
    return Q, rng.standard_normal(n), np.linalg.eigvalsh(Q)[-1]


def run(table, gradient, prox, x0):
    """All iterates x_0, x_1, ..."""
    points, before, g_before = [x0], x0, None
    for k in range(len(table)):
        x = points[-1]
        g = gradient(table[k].ahead(x, before))
        points.append(table.step(x, before, g, g if g_before is None else g_before, prox, k=k))
        before, g_before = x, g
    return points


def eigac(schedule, gradient, x):
    """EIGAC as section 2 prints it."""
    u = schedule.a[0] * gradient(x)
    points = [x]
    for a, c, d in schedule.rows():
        g = gradient(x)
        e = u - a * g
        x, u = x + e, u - d * e - c * g
        points.append(x)
    return points


def random_schedule(K=60, L=1.0):
    d = 3 / (np.arange(K) + 6)
    a = (0.5 + 0.1 * RNG.random(K)) / L
    return Schedule(a, a * (d + (1 - d) * RNG.uniform(0.4, 1, K)), d)


def test_without_a_penalty_it_is_eigac():
    """The first iteration is idle; without it the table is the two-step form."""
    start = np.array([0.7, -1.3])
    schedule = random_schedule()
    theirs = eigac(schedule, np.tanh, start)
    ours = run(Table.from_acd(*schedule.columns()), np.tanh, nothing, start)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    moving = run(Table.from_schedule(schedule), np.tanh, nothing, start)
    np.testing.assert_allclose(moving, theirs[1:], rtol=1e-12)
    m, p, q, w = Table.from_schedule(schedule).columns()
    np.testing.assert_array_equal(np.column_stack([m, p, q]), two_step_rows(schedule))
    assert not w.any()


def test_without_the_gradient_before_it_is_fista():
    Q, b, L = quadratic()
    x = y = np.zeros(12)
    t, theirs = 1.0, [np.zeros(12)]
    for _ in range(50):
        new = shrink(y - (Q @ y - b) / L, 1 / L)
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = new + (t - 1) / t_new * (new - x)
        x, t = new, t_new
        theirs.append(x)
    ours = run(Table.fista(50).scaled(L), lambda x: Q @ x - b, shrink, np.zeros(12))
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("w", [0.0, 0.5, 1.0])
def test_it_tends_to_the_minimiser_because_the_prox_has_the_step_p_minus_q(w):
    """f = (x - 2)^2/2, h = |x|: the minimiser is 1. A prox of step p would lead to 0."""

    def gradient(x):
        return x - 2

    def soft(v, s):
        return np.sign(v) * np.maximum(np.abs(v) - s, 0)

    K = 400
    later = np.arange(K) > 0
    table = Table(0.3 * later, np.full(K, 0.6), 0.3 * later, w * 0.3 * later)
    assert run(table, gradient, soft, np.zeros(1))[-1] == pytest.approx(1.0, abs=1e-9)
    literal = run(table, gradient, lambda v, s: soft(v, 0.6 if s < 0.5 else s), np.zeros(1))
    assert literal[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_the_proved_set_keep_their_bound_on_hard_functions(seed):
    """Random members of the set, on quadratics + l1 with curvature exactly L."""
    rng = np.random.default_rng(seed)
    Q, b, L = quadratic(seed=seed)
    steps, shares = rng.uniform(0.2, 1, 40), rng.uniform(0, 1, 40) ** rng.choice([0, 0.2, 1])
    ages = proved_ages(steps, shares)
    table = Table.proved(steps, ages)
    factors = table.proved_factors(ages)

    def value(x):
        return 0.5 * x @ Q @ x - b @ x + 0.3 * np.abs(x).sum()

    best = run(Table.fista(4000).scaled(L), lambda x: Q @ x - b, shrink, np.zeros(12))[-1]
    start = best + rng.standard_normal(12)
    R2 = np.sum((start - best) ** 2)
    points = run(table.scaled(L), lambda x: Q @ x - b, shrink, start)
    for x, c in zip(points[1:], factors, strict=True):
        assert value(x) - value(best) <= L * R2 / (2 * c) + 1e-9


def test_the_bound_of_one_step_is_tight_and_ages_that_lie_are_refused():
    ages = proved_ages([1.0] * 5, [1.0] * 5)
    table = Table.proved([1.0] * 5, ages)
    t = 1.0
    for factor in table.proved_factors(ages):
        assert factor == pytest.approx(t * t)
        t = (1 + np.sqrt(1 + 4 * t * t)) / 2
    for wrong in (np.array(ages) * [1, 1, 1, 1, 1.01], np.array(ages) * 1.01, ages[:4]):
        with pytest.raises(InputError):
            table.proved_factors(wrong)
    for k, name in ((2, "q"), (3, "w"), (1, "m"), (4, "p")):
        columns = {each: getattr(table, each).copy() for each in "mpqw"}
        columns[name][k] += 0.1
        with pytest.raises(InputError, match=f"Iteration {k}"):
            Table(**columns).proved_factors(ages)


def test_bad_tables_are_refused_in_a_sentence():
    one = np.ones(3)
    for columns, words in (
        ((one, one, one, one), "first q must be 0"),
        ((one, one, [0, 0], one), "one length"),
        ((one, [1, np.nan, 1], 0 * one, one), "p is nan at iteration 1"),
    ):
        with pytest.raises(InputError, match=words):
            Table(*columns)
    for bad in (Table(one, one, [0, 0, 2], one), Table.of(random_schedule(4))):
        with pytest.raises(InputError, match=r"prox of iteration \d has the step p - q = -?\d"):
            Method(
                schedule=None, family="x", tol=1.0, scale="family", family_scale=1.0,
                guard=Guard(fallback="fista"), proximal=bad,
            )  # fmt: skip
    assert len(Table.fista(9).first(4)) == 4
    assert repr(Table.fista(1)) == "Table(1 iteration, m 0, p 1, q 0, w 0)"


def test_the_old_name_is_the_new_one_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"use ode2opt.solvers.Table"):
        from ode2opt.solvers import ProximalTable
    assert ProximalTable is Table


def test_fractions_go_both_ways_without_rounding():
    schedule = random_schedule(6)
    rows = exact_rows(schedule)
    a, c, d = ([Fraction(x) for x in column.tolist()] for column in schedule.columns())
    assert rows[0] == (0, a[1] - a[0] + c[0], 0)
    assert rows[1:] == [(1 - d[k], a[k + 1], a[k] - c[k]) for k in range(1, len(rows))]
    assert all(isinstance(x, Fraction) for row in rows for x in row)


def test_a_schedule_from_rows_has_these_rows():
    rows = np.array([[0, 1, 0], [0.25, 1.25, 0.5], [0.5, 1.5, 0.25]])
    np.testing.assert_array_equal(two_step_rows(schedule_of(rows)), rows)


@pytest.mark.parametrize("rows", [[], [[0.5, 1, 0]], [[0, 1, 0.5]]])
def test_rows_that_are_no_table_are_refused(rows):
    with pytest.raises(InputError):
        schedule_of(rows)
