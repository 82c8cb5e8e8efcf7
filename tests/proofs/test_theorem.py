"""The corrected Theorem 2: members against the chain, its potential along runs, its tables."""

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from ode2opt import InputError, Schedule
from ode2opt.paper import DefaultCoefficients
from ode2opt.proofs import theorem_of, worst_case
from ode2opt.proofs.table import schedule_of, two_step_rows
from ode2opt.proofs.theorem import (
    Member,
    classical_rows,
    member_of,
    member_without_minimiser,
    monitored_rows,
    rows_after,
    rows_for_every_point,
    tail_rows,
)
from ode2opt.solvers.classics import nesterov_momenta


def random_member(rng, R=None, without_minimiser=False):
    R = int(rng.integers(1, 13)) if R is None else R
    if without_minimiser:
        return member_without_minimiser(rng.normal(-2, 2, R), rng.uniform(0.05, 1))
    return member_of(rng.normal(0, 2, R + 1), rng.normal(0, 3, R))


def violation(member):
    """By how much the chain's worst case exceeds the theorem's bound after a gradient step."""
    last = np.append(member.rows()[:-1], [[0.0, 1.0, 0.0]], axis=0)
    if len(last) > 1:  # f(y_M - g_M/L): the last step is one of gradient descent
        return worst_case(last).tau / member.bounds()[-2] - 1
    return worst_case(last).tau / member.bounds()[0] - 1


@pytest.mark.parametrize("count", [25, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_random_members_never_violate_the_theorem(count):
    rng = np.random.default_rng(count)
    assert max(violation(random_member(rng)) for _ in range(count)) <= 1e-6


def test_the_theorem_is_tight_for_ogm():
    """With equality in the recursion no smaller number will do, and the chain finds the same."""
    member = member_of(np.full(11, 40.0), np.full(10, 40.0))
    t = np.append(member.t, member.t[-1] + 0.5)  # as the tail goes on
    found = worst_case(Member(np.full(12, 2.0), t).rows(), tail="ogm", theta=t[-2])
    assert found.tau == pytest.approx(0.5, rel=1e-6)
    assert found.tau / float(found.goal.weight) == pytest.approx(member.bounds()[-1], rel=1e-6)


def huber(rng, n=6, rows=9):
    """A random convex function with L = 1 and a minimiser: a sum of Huber functions."""
    A, star = rng.standard_normal((rows, n)), rng.standard_normal(n)
    A /= np.linalg.norm(A, 2)
    width = rng.uniform(0.05, 1.0)

    def value(x):
        r = np.abs(A @ (x - star))
        return np.sum(np.where(r <= width, r**2 / 2, width * r - width**2 / 2))

    return value, lambda x: A.T @ np.clip(A @ (x - star), -width, width), star


def logistic(rng, n=5, rows=8):
    """A random separable logistic function with L = 1: its infimum is not attained."""
    A = np.abs(rng.standard_normal((rows, n)))
    A *= 2 / np.linalg.norm(A, 2)
    value = lambda x: np.sum(np.logaddexp(0, -A @ x))  # noqa: E731
    return value, lambda x: -A.T @ (1 / (1 + np.exp(A @ x)))


def points(member, gradient, x0):
    """Yield y_k, g_k, k = 0..R."""
    y, before, g_before = x0, x0, 0.0
    for m, p, q in member.rows():
        g = gradient(y)
        yield y, g
        y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
    yield y, gradient(y)


@pytest.mark.parametrize("seed", range(10))
def test_the_potential_of_the_proof_never_rises(seed):
    """eta t^2 (f - |g|^2/2 - f*) + |z - x*|^2/2, with z <- z - eta t g from x0."""
    rng = np.random.default_rng(seed)
    value, gradient, star = huber(rng)
    member, z = random_member(rng, R=60), np.zeros(6)
    potentials = [z @ z - 2 * z @ star + star @ star]
    potentials[0] /= 2
    for k, (y, g) in enumerate(points(member, gradient, np.zeros(6))):
        weight = member.eta[k] * member.t[k]
        z = z - weight * g
        gap = value(y) - g @ g / 2
        potentials.append(weight * member.t[k] * gap + (z - star) @ (z - star) / 2)
        assert gap <= member.bounds()[k] * (star @ star) * (1 + 1e-9) + 1e-12
    assert np.all(np.diff(potentials) <= 1e-9 * potentials[0])


@pytest.mark.parametrize("seed", range(10))
def test_without_a_minimiser_the_bound_holds_for_every_point(seed):
    rng = np.random.default_rng(seed)
    value, gradient = logistic(rng)
    member = random_member(rng, R=60, without_minimiser=True)
    others = [s * rng.uniform(0, 1, 5) for s in (0.1, 1, 10, 100)]
    for bound, (y, g) in zip(member.bounds(), points(member, gradient, np.zeros(5)), strict=True):
        for other in others:
            assert value(y) - g @ g / 2 <= value(other) + bound * (other @ other) + 1e-9


def test_members_without_minimiser_are_certified_by_plain_convexity():
    member = member_without_minimiser(np.full(12, -3.0))
    found = worst_case(member.rows()[:-1], star="convex")
    assert found.tau <= member.bounds()[-2] * (1 + 1e-6)


def test_nesterov_of_this_package_and_its_tail_are_members():
    schedule = Schedule.nesterov(1.0, nesterov_momenta(12))
    exact = classical_rows("nag", 11)
    np.testing.assert_allclose(two_step_rows(schedule), np.array(exact, float), atol=1e-15)
    assert exact[5:] == tail_rows("nag", Fraction(3), 6)
    assert classical_rows("ogm", 9)[4:] == tail_rows("ogm", Fraction(5, 2), 5)


@pytest.mark.parametrize(
    ("eta", "t", "options", "said"),
    [
        ([1, 2.5], [1, 1], {}, "eta_1 is 2.5"),
        ([1, 0], [1, 1], {}, "eta_1 is 0"),
        ([1, 1], [1, 0.5], {}, "at least 1"),
        ([1, 1], [2, 2], {}, "t_0 must be 1"),
        ([1, 1], [1, 3], {}, "does not hold: 6 and 1"),
        ([1, 1], [1, 1.2], {"without_minimiser": True}, "= eta_0 t_0"),
        ([2, 2], [1, 1], {"without_minimiser": True}, r"eta_0 is 2: it must be in \(0, 1\]"),
        ([1, 1, 1], [1, 1], {}, "3 eta but 2 t"),
        ([1, np.nan], [1, 1], {}, "finite"),
    ],
)
def test_what_is_outside_the_theorem_is_refused(eta, t, options, said):
    with pytest.raises(InputError, match=said):
        Member(eta, t, **options)


@pytest.mark.parametrize("tail", ["nag", "ogm"])
def test_runs_take_their_rows_from_the_formulas_of_the_proof(tail):
    exact = np.array(tail_rows(tail, Fraction(13, 2), 50), float)
    np.testing.assert_allclose(list(islice(rows_after(tail, 6.5), 50)), exact, rtol=1e-14)
    exact = np.array(monitored_rows(50), float)
    np.testing.assert_allclose(list(islice(rows_for_every_point(float), 50)), exact, rtol=1e-14)


def test_bad_tails_are_named():
    with pytest.raises(InputError, match="did you mean 'nag'"):
        tail_rows("nagg", 2, 1)
    with pytest.raises(InputError, match="at least 1"):
        tail_rows("nag", 0.5, 1)
    with pytest.raises(InputError, match="count"):
        tail_rows("nag", 2, 0)


# Which tables a theorem speaks of ---------------------------------------------------------------


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
    """With a bound between the worst case and their own, at f(y_N - g_N/L): one more row."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        member = member_of(rng.normal(0, 1, 13), rng.normal(1, 1, 12))
        found = theorem_of(schedule_of(member.rows()))
        assert found is not None
        assert found.bound <= member.bounds()[-1] * (1 + 1e-6)
        step = np.vstack([member.rows(), [0.0, 1.0, 0.0]])
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
