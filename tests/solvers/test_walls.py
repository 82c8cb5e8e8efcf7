"""Functions that end in a wall, overflow early or escape to infinity: solved all the same."""

import math

import numpy as np
import pytest
from support import counting

from ode2opt import (
    Guard,
    InputError,
    LinearModel,
    Lpp,
    Quadratic,
    Schedule,
    SquaredHinge,
    solve,
)
from ode2opt.problems.curvature import curvature_along
from ode2opt.solvers.stages.line_search import Trial, search


class LogWall(LinearModel):
    """-log(1 - z) for scores below 1, as a user writes it."""

    def loss(self, z):
        return np.where(z < 1, -np.log(np.maximum(1 - z, 1e-300)), np.inf)

    def slope(self, z):
        return np.where(z < 1, 1 / np.where(z < 1, 1 - z, 1), np.inf)

    def bend(self, z):
        return np.where(z < 1, 1 / np.where(z < 1, 1 - z, 1) ** 2, np.inf)


@pytest.mark.parametrize("method", ["auto", "lbfgs"])
@pytest.mark.parametrize("unit", [1.0, 1e4, 1e-4])
@pytest.mark.parametrize(("light", "start"), [(1e-6, 0.5), (1e-6, -0.9999), (1e-8, 0.0)])
def test_a_wall_is_approached_and_not_run_into(method, unit, light, start):
    """Between two walls, one of a small weight: w1 / (1 - x) = w2 / (1 + x) has one solution."""
    weights = np.array([light, 1.0])
    problem = LogWall(unit * np.array([[1.0], [-1.0]]), np.zeros(2), weights=weights)
    result = solve(problem, [start / unit], method=method, tol=1e-6 * unit)
    assert result.success
    assert not result.handovers
    assert result.oracle_calls < 150
    assert unit * result.x[0] == pytest.approx((1 - light) / (1 + light), abs=1e-10)


def test_a_line_search_steps_short_of_the_shortest_step_without_a_number():
    """A line that falls until a wall: most of the way is taken, in few trials."""
    wall, asked = 0.0463, []

    def at(step):
        asked.append(step)
        return Trial(step, -6e3 * step, -6e3) if step < wall else Trial(step, math.inf, math.inf)

    found = search(Trial(0.0, 0.0, -6.4e3), 1.0, at, 1e-13)
    assert found is not None
    assert wall / 2 < found.step < wall
    assert asked[-1] == found.step
    assert len(asked) < 12


@pytest.mark.parametrize("l2", [10.0, 100.0])
def test_a_kink_between_a_flat_and_a_steep_side_is_found_in_few_trials(l2):
    """One row of a squared hinge: x = 2 a / (l2 + 2 |a|^2)."""
    a = 1e3 * np.array([0.6, 0.8])
    problem, x0 = SquaredHinge(a[None, :], [1.0], l2=l2), np.array([-3e-3, 2e-3])
    tol = 1e-8 * np.linalg.norm(problem.gradient(x0))
    result = solve(problem, x0, method="lbfgs", tol=tol)
    assert result.success
    assert not result.handovers
    assert result.oracle_calls < 200
    np.testing.assert_allclose(result.x, 2 * a / (l2 + 2 * a @ a), rtol=1e-9)


@pytest.mark.parametrize("n", [5, 9])
@pytest.mark.parametrize("l2", [1e-3, 1.0])
def test_lbfgs_that_gets_nowhere_lets_others_go_on(n, l2):
    """-log(1 - a x - c) + l2/2 |x|^2 falls for ever along c, while x should go to zero."""
    a = np.random.default_rng(n).standard_normal(n)
    problem = LogWall(a[None, :], [0.0], l2=l2, intercept=True)
    x0 = np.append(-5 * a, 0.0)
    tol = 1e-6 * np.linalg.norm(problem.gradient(x0))
    result = solve(problem, x0, method="lbfgs", tol=tol)
    assert result.success
    assert result.oracle_calls < 700
    x, c = result.x[:-1].astype(np.longdouble), result.x[-1].astype(np.longdouble)
    slope = 1 / (1 - a @ x - c)
    assert np.sqrt(np.sum((slope * a + l2 * x) ** 2) + slope**2) <= 1.000001 * tol


@pytest.mark.parametrize("method", ["auto", "lbfgs"])
def test_a_start_that_overflows_is_refused_with_one_that_does_not(method):
    problem = Lpp(np.eye(3), np.ones(3), p=10)
    with pytest.raises(InputError, match=r"x0 / 1e4 will do") as told:
        solve(problem, np.full(3, 1e33), method=method)
    assert "start" in str(told.value)
    assert solve(problem, np.full(3, 1e29), method=method, tol=1e-3).success


def test_where_even_zero_overflows_in_single_precision_double_is_named():
    A, b = np.eye(3, dtype=np.float32), np.full(3, 1e5, np.float32)
    with pytest.raises(InputError, match="use double precision"):
        solve(Lpp(A, b, p=10))
    assert solve(Lpp(A.astype(float), b, p=10), tol=1.0).success


@pytest.mark.parametrize("size", [1.0, 1e200, 1e307])
def test_the_curvature_along_a_gradient_is_known_where_squares_overflow(size):
    """For f = x1^2/2 + 3 x2^2/2 at (1, 1) it is (1 + 27) / (1 + 9)."""
    problem = counting(Quadratic(np.diag([1.0, 3.0]), np.zeros(2)))
    x = np.full(2, size)
    g = problem.gradient(x)
    with np.errstate(over="ignore"):
        found = curvature_along(problem, x, g, g)
    assert found == pytest.approx(2.8)
    assert problem.tally.calls == 2


class BareWall(LogWall):
    """-log(1 - z), where nobody says what lies beyond: no value, and slopes of the wrong sign."""

    def loss(self, z):
        return np.log(1 / (1 - z))

    def slope(self, z):
        return 1 / (1 - z)

    def bend(self, z):
        return 1 / (1 - z) ** 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", ["auto", "lbfgs", "nesterov"])
@pytest.mark.parametrize("start", [-0.999999, 0.0, 0.9])
def test_a_small_gradient_where_the_function_is_not_defined_is_no_solution(method, start):
    """Far beyond the wall slopes are small; the minimum is at (w2 - w1) / (w1 + w2)."""
    options = {"method": method}
    if method == "nesterov":
        schedule = Schedule.gradient_descent(1e-30, 1)
        options = {"method": schedule, "handover": Guard(fallback="nesterov")}
    problem = BareWall([[1.0], [-1.0]], np.zeros(2), weights=[1e-3, 1.0])
    result = solve(problem, [start], tol=1e-5, **options)
    assert result.success
    assert np.isfinite(result.fun)
    assert result.x[0] == pytest.approx(0.999 / 1.001, abs=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("step", [3.0, 30.0, 1e4])
def test_a_schedule_that_leaps_over_a_wall_is_taken_over_on_this_side(step):
    """Its gradients are small over there; the next stage begins where there is a value."""
    problem = BareWall([[1.0], [-1.0]], np.zeros(2), weights=[1e-3, 1.0])
    result = solve(problem, [0.0], method=Schedule.gradient_descent(step, 50), tol=1e-7)
    assert result.success
    assert np.isfinite(result.fun)
    assert result.x[0] == pytest.approx(0.999 / 1.001, abs=1e-6)
