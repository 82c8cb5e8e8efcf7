"""Worst cases of the first iterations against the known ones and PEPit's."""

import sys

import numpy as np
import pytest
from pep import pep_worst_case
from support import said_without

from ode2opt import InputError, Quadratic, Schedule, certify
from ode2opt.base.errors import Ode2OptError
from ode2opt.paper import DefaultCoefficients
from ode2opt.proofs import worst_case
from ode2opt.proofs.table import two_step_rows


@pytest.mark.parametrize("N", [1, 2, 5, 60])
def test_gradient_descent(N):
    """1/(4N + 2) after N steps of length 1/L; the schedule's idle iteration comes on top."""
    L = 3.0
    found = worst_case(Schedule.gradient_descent(1 / L, N + 1), L, N + 1)
    assert found.value == pytest.approx(1 / (4 * N + 2), rel=1e-6)


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
    assert found.value == pytest.approx(2 / (n**2 + 5 * n + 6), rel=1e-5)


@pytest.mark.parametrize(("C", "printed"), [(1.0, 0.27), (2.0, 0.80)])
def test_default_coefficients_can_be_driven_away(C, printed):
    """docs/mathematics.md, section 3, has the exact values; the chain's are at most 1.4 times."""
    schedule = DefaultCoefficients(C).schedule(5)
    exact = pep_worst_case(two_step_rows(schedule))
    assert exact == pytest.approx(printed, rel=0.02)
    assert exact * (1 - 1e-6) <= worst_case(schedule, 1.0, 5).value <= 1.4 * exact


def test_the_idle_iteration_leaves_what_the_start_has():
    assert worst_case(Schedule.gradient_descent(1.0, 1), 1.0, 1).value == 0.5


@pytest.mark.parametrize(
    ("schedule", "L", "N", "said"),
    [
        (Schedule.gradient_descent(1.0, 3), 1.0, 4, "3 iterations, fewer than N = 4"),
        (Schedule.gradient_descent(1.0, 500), 1.0, 202, "1 to 201 iterations"),
        (Schedule.gradient_descent(1.0, 50), 1.0, 0, "N is 0"),
        (Schedule.gradient_descent(1.0, 50), 0.0, 2, "L is 0"),
    ],
)
def test_bad_input_is_named(schedule, L, N, said):
    with pytest.raises(InputError, match=said):
        worst_case(schedule, L, N)


def test_what_the_solver_cannot_do_is_said():
    with pytest.raises(Ode2OptError, match=r"could not be computed|have no proof"):
        worst_case(DefaultCoefficients(50.0).schedule(20), 1.0, 20)


def test_without_clarabel_the_error_is_the_line_that_installs_it():
    code = (
        "from ode2opt import Schedule; from ode2opt.proofs import worst_case; "
        "worst_case(Schedule.gradient_descent(1.0, 2), 1.0, 2)"
    )
    assert "pip install 'ode2opt[proofs]'" in said_without("clarabel", code)


def test_a_certificate_without_clarabel_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    problem = Quadratic(np.eye(2), np.ones(2))
    found = certify("eigac-c1", [problem], K=10)
    assert found.worst_case is None
    assert found.refused
    assert "This needs clarabel" in found.words()[-1]
    assert not certify("nag", [problem], K=10).refused  # a theorem needs no solver
