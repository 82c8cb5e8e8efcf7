"""The chain of small matrix inequalities against closed forms, PEPit and finite differences."""

import sys

import numpy as np
import pytest
from pep import pep_worst_case
from support import said_without

from ode2opt import InputError, Quadratic, Schedule, certify
from ode2opt.base.errors import Ode2OptError
from ode2opt.paper import DefaultCoefficients
from ode2opt.proofs import chain, program, worst_case
from ode2opt.proofs.table import two_step_rows
from ode2opt.proofs.theorem import classical_rows


def rows_of(name, N):
    """Rows of a method in float64."""
    if name == "gd":
        return np.array([[0.0, 1.0, 0.0]] * N)
    return np.array(classical_rows(name, N), dtype=float)


def some_rows(N, seed=0, size=0.05):
    """Rows near those of the theorem with eta = 1.5."""
    t = (np.arange(N + 1) + 2) / 2
    m = (t[:-1] - 1) / t[1:]
    rows = np.column_stack([m, 1 + (1.5 * t[:-1] - 1) / t[1:], m])
    rows *= 1 + size * np.random.default_rng(seed).standard_normal(rows.shape)
    rows[0, [0, 2]] = 0
    return rows


@pytest.mark.parametrize("N", [1, 2, 5, 20, 80, 160])
def test_gradient_descent_has_its_known_worst_case(N):
    """1/(4N + 2) (Drori and Teboulle); the schedule's idle iteration comes on top."""
    found = worst_case(Schedule.gradient_descent(1 / 3, N + 4), 3.0, N + 1)
    assert (found.N, found.value) == (N + 1, pytest.approx(1 / (4 * N + 2), rel=1e-6))
    assert worst_case(rows_of("gd", N + 3), N=N).tau == pytest.approx(found.tau, rel=1e-6)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_nesterovs_schedule_has_its_known_worst_case(n):
    """2/(n^2 + 5n + 6) after n steps with momentum (k-1)/(k+2) (Taylor, Hendrickx, Glineur 2017).

    That is for the points after a gradient step; the schedule's are the extrapolated ones, and the
    same where the last momentum is left out.
    """
    k = np.arange(n + 2)
    mu = np.maximum(k - 1, 0) / (k + 2)
    mu[n] = 0.0
    found = worst_case(Schedule.nesterov(1.0, mu), 1.0, n + 1)
    assert found.value == pytest.approx(2 / (n**2 + 5 * n + 6), rel=1e-5)


@pytest.mark.parametrize("N", [1, 2, 10, 80, 160])
@pytest.mark.parametrize(("name", "ratio"), [("nag", 1.0), ("ogm", 0.5)])
def test_the_classics_with_their_own_tails_have_their_theorems_bound(name, ratio, N):
    found = worst_case(rows_of(name, N), tail=name)
    assert found.tau == pytest.approx(0.5, rel=1e-6)
    assert found.ratio == pytest.approx(ratio, rel=1e-6)
    assert found.solved


def test_nesterov_is_certified_by_plain_convexity_and_ogm_is_not():
    """A run can check Nesterov's certificate by itself (docs/mathematics.md, section 15)."""
    found = worst_case(rows_of("nag", 30), tail="nag", star="convex")
    assert found.tau == pytest.approx(0.5, rel=1e-6)
    assert worst_case(rows_of("ogm", 30), star="convex").ratio > 3
    with pytest.raises(InputError, match="use the tail nag"):
        worst_case(rows_of("ogm", 30), tail="ogm", star="convex")


@pytest.mark.parametrize(
    "N", [2, 4, *(pytest.param(N, marks=pytest.mark.exhaustive) for N in (3, *range(5, 16)))]
)
@pytest.mark.parametrize("name", ["nag", "ogm", "gd"])
def test_the_chain_equals_the_full_program_for_the_classics(name, N):
    """PEPit uses the inequalities between all points, the chain those between neighbours."""
    rows = rows_of(name, N)
    assert worst_case(rows).tau == pytest.approx(pep_worst_case(rows), rel=1e-6)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_chain_is_never_below_the_full_program(seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.5, 1.5, (4, 3))
    rows[0, [0, 2]] = 0
    assert worst_case(rows).tau >= pep_worst_case(rows) * (1 - 1e-6)


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
    "goal", [{}, {"tail": "ogm"}, {"tail": "nag", "theta": 3}, {"tail": "nag", "star": "convex"}]
)
def test_the_derivative_is_that_of_finite_differences(goal):
    rows, h = some_rows(5), 1e-4
    found = worst_case(rows, **goal)
    for place in [(0, 1), *((k, j) for k in range(1, 5) for j in range(3))]:
        step = np.zeros_like(rows)
        step[place] = h
        ends = [worst_case(rows + side * step, **goal).tau for side in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * h)
        assert found.gradient[place] == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert not found.gradient[0, [0, 2]].any()


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ([[0, 1, 0]], {"N": 2}, "N is 2: the table has 1 to 1 steps"),
        ([[0, 1, 0]], {"N": 0}, "N is 0"),
        ([[0, 1, 0]] * 201, {}, "201 steps: give N, at most 200"),
        ([[0, 1]], {}, r"shape \(1, 2\)"),
        ([], {}, "shape"),
        ([[0, "one", 0]], {}, "rows of three numbers"),
        ([[0, np.nan, 0]], {}, "not finite"),
        ([[0.5, 1, 0]], {}, "must be 0, not 0.5, 0"),
        ([[0, 1, 0]], {"tail": "ogn"}, "did you mean 'ogm'"),
        ([[0, 1, 0]], {"star": "conve"}, "did you mean 'convex'"),
        ([[0, 1, 0]], {"theta": 2}, "theta belongs to a tail"),
        ([[0, 1, 0]], {"tail": "nag", "theta": 0.5}, "at least 1"),
        ([[0, 1, 0]], {"margin": -1.0}, "margin is -1.0"),
        ([[0, 1, 0]], {"L": 2.0}, "Rows .* are for L = 1"),
        (Schedule.gradient_descent(1.0, 1), {}, "does not move"),
        (Schedule.gradient_descent(1.0, 3), {"N": 4}, "3 iterations, fewer than N = 4"),
        (Schedule.gradient_descent(1.0, 500), {"N": 202}, "1 to 201 iterations"),
        (Schedule.gradient_descent(1.0, 50), {"N": 0}, "N is 0"),
        (Schedule.gradient_descent(1.0, 50), {"N": 2, "L": 0.0}, "L is 0"),
    ],
)
def test_bad_input_is_named(table, options, said):
    with pytest.raises(InputError, match=said):
        worst_case(table, **options)


def test_what_the_solver_cannot_do_is_said():
    for C, K in ((4.0, 40), (50.0, 20)):
        with pytest.raises(Ode2OptError, match=r"take fewer steps|have no proof"):
            worst_case(DefaultCoefficients(C).schedule(K))
    with pytest.raises(Ode2OptError, match="no proof by convex inequalities"):
        worst_case([[0, 1, 0]], tail="nag", star="convex")


def test_a_solution_that_is_almost_solved_is_marked(monkeypatch):
    monkeypatch.setattr(chain, "ACCURACY", 1e-30)
    assert not worst_case(rows_of("nag", 5)).solved


def test_scaling_the_program_changes_nothing_but_precision(monkeypatch):
    rows = some_rows(8)
    scaled = worst_case(rows, tail="ogm")
    monkeypatch.setattr(program, "units_of", lambda points: np.ones(points))
    plain = worst_case(rows, tail="ogm")
    assert plain.tau == pytest.approx(scaled.tau, rel=1e-5)
    assert plain.gradient == pytest.approx(scaled.gradient, abs=1e-3)


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
