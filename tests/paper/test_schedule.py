"""The three numbers: classical methods are members, and the Euler steps are those of the ODE."""

import numpy as np
import pytest
from support import visited

from ode2opt import InputError, Logistic, Schedule
from ode2opt.solvers import DefaultCoefficients

K = 60
STEP = 0.3


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    return Logistic(rng.standard_normal((50, 8)), rng.integers(0, 2, 50), l2=0.01)


def iterates(problem, schedule, x0):
    """The points x_0, x_1, ... of a schedule, of which the first two are the same."""
    points = visited(problem, x0, schedule, len(schedule))
    np.testing.assert_array_equal(points[0], points[1])
    return np.array(points)


def test_the_first_iterations():
    whole = Schedule(np.arange(1.0, 6.0), np.arange(2.0, 7.0), np.full(5, 0.5))
    part = whole.first(2)
    assert [list(row) for row in (part.a, part.c, part.d)] == [[1, 2], [2, 3], [0.5, 0.5]]
    assert len(whole.first(9)) == 5
    with pytest.raises(InputError, match="K"):
        whole.first(0)


def test_gradient_descent_is_a_member(problem):
    x = x0 = np.linspace(-1, 1, 8)
    found = iterates(problem, Schedule.gradient_descent(STEP, K), x0)[1:]
    for point in found:
        np.testing.assert_allclose(point, x, rtol=1e-12, atol=1e-14)
        x = x - STEP * problem.gradient(x)


def test_the_loop_is_euler_on_the_first_order_system(problem):
    """x' = v - beta g, v' = -(alpha/t)(v - beta g) + (beta' - gamma) g.

    See docs/mathematics.md, section 1.
    """
    alpha, h, t0 = 4.0, 0.05, 1.5
    beta, dbeta = (lambda t: 2 + np.sin(t)), np.cos
    gamma = lambda t: 5 + t  # noqa: E731
    schedule = Schedule.from_coefficients(alpha, beta, gamma, dbeta, h=h, t0=t0, K=K)
    x = np.linspace(-1, 1, 8)
    v = beta(t0) * problem.gradient(x)
    for k, point in enumerate(iterates(problem, schedule, x)):
        np.testing.assert_allclose(point, x, rtol=1e-12, atol=1e-14)
        t, g = t0 + k * h, problem.gradient(x)
        velocity = v - beta(t) * g
        x, v = x + h * velocity, v + h * (-alpha / t * velocity + (dbeta(t) - gamma(t)) * g)


def test_two_step_form(problem):
    """x_{k+2} = x_{k+1} + (1-d)(x_{k+1}-x_k) - a'(g_{k+1}-g_k) - (c + a' - a) g_k (section 2)."""
    rng = np.random.default_rng(0)
    schedule = Schedule(rng.random(K), rng.random(K) / 2, rng.random(K))
    x = iterates(problem, schedule, np.linspace(-1, 1, 8))
    g = np.array([problem.gradient(point) for point in x])
    a, c, d = schedule.a[:, None], schedule.c[:, None], schedule.d[:, None]
    predicted = (
        x[1:-1]
        + (1 - d[:-1]) * (x[1:-1] - x[:-2])
        - a[1:] * (g[1:-1] - g[:-2])
        - (c[:-1] + a[1:] - a[:-1]) * g[:-2]
    )
    np.testing.assert_allclose(x[2:], predicted, rtol=1e-10, atol=1e-12)


def test_default_coefficients_are_consistent():
    default = DefaultCoefficients(4.0)
    t, step = np.linspace(1, 20, 50), 1e-6
    slope = (default.beta(t + step) - default.beta(t - step)) / (2 * step)
    np.testing.assert_allclose(default.dbeta(t), slope, rtol=1e-6, atol=1e-8)
    schedule = default.schedule(100, L=3.0)
    # In the three numbers: a = (C - C d/2)/L and c = a - h^2 beta'/L.
    np.testing.assert_allclose(schedule.a, (4 - 2 * schedule.d) / 3, rtol=1e-13)
    assert schedule.d[0] == pytest.approx(6 * 0.04)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Schedule([1.0], [1.0, 2.0], [1.0]), "of one length, not 1, 2 and 1"),
        (lambda: Schedule([], [], []), "a has shape"),
        (lambda: Schedule([1.0, np.nan], [1, 1], [1, 1]), "a is nan at iteration 1"),
        (lambda: Schedule(["x"], [1], [1]), "must be numbers"),
        (lambda: Schedule.gradient_descent(1.0, 0), "K is 0"),
        (lambda: Schedule.gradient_descent(1.0, 5).scaled(0), "scale is 0"),
        (lambda: Schedule.nesterov(1.0, [0.5]), "K \\+ 1 momenta"),
        (lambda: DefaultCoefficients(1.0, t0=0.1).schedule(5), "t0 = 0.1 must exceed"),
    ],
)
def test_bad_schedules_are_named(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_a_schedule_cannot_be_changed_by_accident():
    schedule = Schedule.gradient_descent(1.0, 3)
    with pytest.raises(ValueError, match="read-only"):
        schedule.a[0] = 2
