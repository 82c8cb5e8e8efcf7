"""Which tables a theorem speaks of, and that what it says is true."""

import numpy as np
import pytest

from ode2opt import Schedule
from ode2opt.paper import DefaultCoefficients
from ode2opt.proofs import theorem_of
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.table import schedule_of, two_step_rows
from ode2opt.proofs.theorem import member_of
from ode2opt.solvers.classics import nesterov_momenta


@pytest.mark.parametrize("step", [1.0, 0.3])
def test_gradient_descent_has_the_known_bound(step):
    """L R^2/(4 N h + 2) for steps h/L (Drori and Teboulle 2014), L R^2/(2 N h) for any point."""
    found = theorem_of(Schedule.gradient_descent(step, 11))
    assert found.steps == 10
    assert found.bound == pytest.approx(1 / (40 * step + 2))
    assert found.any_point == pytest.approx(1 / (20 * step))


@pytest.mark.parametrize("K", [3, 20, 500])
def test_nesterovs_method_has_at_least_the_bound_of_its_own_numbers(K):
    """t_k = (k + 2)/2: 2/(k + 2)^2 after k steps; other t_k may fit the table a little better."""
    found = theorem_of(Schedule.nesterov(1.0, nesterov_momenta(K)))
    known = 2 / (K + 1) ** 2
    assert 0.9 * known <= found.bound <= known
    assert found.any_point == found.bound


def test_random_members_of_the_theorem_are_recognised():
    rng = np.random.default_rng(0)
    for _ in range(20):
        member = member_of(rng.normal(0, 1, 13), rng.normal(1, 1, 12))
        found = theorem_of(schedule_of(member.rows()))
        assert found is not None
        assert found.bound <= member.bounds()[-1] * (1 + 1e-6)


def test_the_bound_is_never_below_the_worst_case():
    """With the last point's gradient step as one more row: f(y_N - g_N/L)."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        schedule = schedule_of(member_of(rng.normal(0, 1, 9), rng.normal(1, 1, 8)).rows())
        found = theorem_of(schedule)
        rows = two_step_rows(schedule)
        step = np.vstack([rows, [0.0, 1.0, 0.0]])
        assert worst_case(step).tau <= found.bound * (1 + 1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        DefaultCoefficients(1.0).schedule(20),
        DefaultCoefficients(2.0).schedule(20),
        Schedule.heavy_ball(0.1, 0.5, 20),
        Schedule.gradient_descent(2.1, 20),
        Schedule.nesterov(1.3, nesterov_momenta(20)),
        Schedule.nesterov(1.0, np.full(21, 0.9)),
        Schedule.gradient_descent(1.0, 1),
    ],
    ids=["C=1", "C=2", "heavy ball", "long steps", "longer steps", "more momentum", "idle"],
)
def test_other_tables_are_not(schedule):
    assert theorem_of(schedule) is None


def test_the_words_without_a_minimiser_hold_along_a_run():
    """f = exp(-x) + x^+ curvature at most 1 on x >= 0; it has no minimiser."""
    found = theorem_of(Schedule.nesterov(1.0, nesterov_momenta(30)))
    assert "every point z" in found.words_without_minimiser
    rows = two_step_rows(Schedule.nesterov(1.0, nesterov_momenta(30)))
    y = before = 0.0
    g_before, lowest = 0.0, np.inf
    for m, p, q in [*rows, (0.0, 0.0, 0.0)]:
        g = -np.exp(-y)
        lowest = min(lowest, np.exp(-(y - g)))
        y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
    for z in np.linspace(0, 40, 200):
        assert lowest <= np.exp(-z) + found.any_point * z**2
