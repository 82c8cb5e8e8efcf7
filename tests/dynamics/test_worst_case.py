"""Worst cases by computer against the known ones."""

import numpy as np
import pytest
from support import said_without

from ode2opt import InputError, Schedule
from ode2opt.dynamics import DefaultCoefficients, worst_case
from ode2opt.errors import Ode2OptError


@pytest.mark.parametrize("N", [1, 2, 5])
def test_gradient_descent(N):
    """1/(4N + 2) after N steps of length 1/L; the schedule's idle iteration comes on top."""
    L = 3.0
    found = worst_case(Schedule.gradient_descent(1 / L, N + 1), L, N + 1)
    assert found.value == pytest.approx(1 / (4 * N + 2), abs=1e-4)
    assert found.error < 1e-5


@pytest.mark.parametrize("n", [1, 3, 6])
def test_nesterov(n):
    """2/(n^2 + 5n + 6) after n steps with momentum (k-1)/(k+2) (Taylor, Hendrickx, Glineur 2017).

    That is for the points after a gradient step; the schedule's are the extrapolated ones, and the
    same where the last momentum is left out.
    """
    k = np.arange(n + 2)
    mu = np.maximum(k - 1, 0) / (k + 2)
    mu[n] = 0.0
    found = worst_case(Schedule.nesterov(1.0, mu), 1.0, n + 1)
    assert found.value == pytest.approx(2 / (n**2 + 5 * n + 6), abs=1e-4)


def test_default_coefficients_can_be_driven_away():
    """docs/mathematics.md, section 3: 0.27 for C = 1 and 0.80 for C = 2 after five iterations."""
    for C, expected in ((1.0, 0.27), (2.0, 0.80), (3.9, 23.0)):
        found = worst_case(DefaultCoefficients(C).schedule(5), 1.0, 5)
        assert found.value == pytest.approx(expected, rel=0.02)


def test_the_gradient_of_one_idle_iteration_is_at_most_the_start():
    found = worst_case(Schedule.gradient_descent(1.0, 1), 1.0, 1)
    assert found.grad_norm_squared == pytest.approx(1.0, abs=1e-5)
    assert found.value == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize(
    ("schedule", "L", "N", "said"),
    [
        (Schedule.gradient_descent(1.0, 3), 1.0, 4, "3 iterations, fewer than N = 4"),
        (Schedule.gradient_descent(1.0, 50), 1.0, 31, "1 to 30 iterations"),
        (Schedule.gradient_descent(1.0, 50), 1.0, 0, "N is 0"),
        (Schedule.gradient_descent(1.0, 50), 0.0, 2, "L is 0"),
    ],
)
def test_bad_input_is_named(schedule, L, N, said):
    with pytest.raises(InputError, match=said):
        worst_case(schedule, L, N)


def test_what_the_solver_cannot_do_is_said():
    with pytest.raises(Ode2OptError, match="could not be solved"):
        worst_case(DefaultCoefficients(50.0).schedule(20), 1.0, 20)


def test_without_pepit_the_error_is_the_line_that_installs_it():
    code = (
        "from ode2opt import Schedule; from ode2opt.dynamics import worst_case; "
        "worst_case(Schedule.gradient_descent(1.0, 2), 1.0, 2)"
    )
    assert "pip install 'ode2opt[proofs]'" in said_without("PEPit", code)
