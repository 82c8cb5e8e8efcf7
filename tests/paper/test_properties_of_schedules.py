"""What holds for every schedule: units, prefixes, and the two forms of the iteration."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support import visited

from ode2opt import Guard, Logistic, Quadratic, Schedule, solve

HESSIAN = np.array([[1.0, 0.3, 0.0], [0.3, 0.7, -0.2], [0.0, -0.2, 0.5]])
LINEAR, X0 = np.array([1.0, -2.0, 0.5]), np.array([0.5, 0.25, -1.0])
BOWL = Quadratic(HESSIAN, LINEAR)


@st.composite
def schedules(draw, longest=12, size=1.0):
    """Tables of numbers that are no larger than ``size``, subnormal ones left out."""
    K = draw(st.integers(1, longest))
    numbers = st.floats(-size, size, allow_subnormal=False)
    return Schedule(*(draw(arrays(np.float64, K, elements=numbers)) for _ in "acd"))


def followed(schedule, x, gradient):
    """The iteration as docs/mathematics.md, section 2, has it; its points."""
    u, points = schedule.a[0] * gradient(x), [x]
    for a, c, d in zip(schedule.a, schedule.c, schedule.d, strict=True):
        g = gradient(x)
        e = u - a * g
        x, u = x + e, u - d * e - c * g
        points.append(x)
    return np.array(points)


def points_of(problem, schedule):
    return np.array(visited(problem, X0, schedule, len(schedule)))


@given(schedule=schedules())
def test_a_solve_follows_the_table(schedule):
    expected = followed(schedule, X0, lambda x: HESSIAN @ x - LINEAR)
    np.testing.assert_allclose(points_of(BOWL, schedule), expected, rtol=1e-10, atol=1e-12)


@given(schedule=schedules(), power=st.integers(-20, 20))
def test_a_scaled_schedule_is_that_of_a_scaled_function(schedule, power):
    """Powers of two: not even rounding tells f and L f apart."""
    L = 2.0**power
    steep = Quadratic(L * HESSIAN, L * LINEAR)
    plain = points_of(BOWL, schedule)
    options = {"handover": "none", "max_iter": len(schedule), "stop_at_tol": False}
    points = []
    solve(
        steep, X0, method=schedule.scaled(L), **options,
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    np.testing.assert_array_equal(np.array(points), plain)


@given(schedule=schedules(), K=st.integers(1, 15))
def test_the_first_iterations_do_not_know_the_later_ones(schedule, K):
    part = schedule.first(K)
    assert len(part) == min(K, len(schedule))
    np.testing.assert_array_equal(points_of(BOWL, part), points_of(BOWL, schedule)[: len(part) + 1])


@given(schedule=schedules(longest=3000), first=st.integers(0, 3000))
def test_rows_are_the_tables_numbers_from_any_iteration_on(schedule, first):
    table = np.column_stack([schedule.a, schedule.c, schedule.d])
    found = np.array(list(schedule.rows(first))).reshape(-1, 3)
    np.testing.assert_array_equal(found, table[first:])


@given(
    s=st.floats(1e-3, 1.0), mu=st.lists(st.floats(0, 1), min_size=2, max_size=12),
    momentum=st.floats(0, 1),
)  # fmt: skip
def test_the_classical_methods_are_members_for_all_steps_and_momenta(s, mu, momentum):
    """Iteration 1 is idle: x_1 = x_0; from there on they are the textbooks', mu_0 = mu_1 = 0."""
    gradient, K = BOWL.gradient, len(mu) - 1
    x = previous = X0
    for point in points_of(BOWL, Schedule.heavy_ball(s, momentum, K))[1:]:
        np.testing.assert_allclose(point, x, rtol=1e-9, atol=1e-11)
        x, previous = x - s * gradient(x) + momentum * (x - previous), x
    x = y = X0
    mu[:2] = 0.0, 0.0
    for k, point in enumerate(points_of(BOWL, Schedule.nesterov(s, np.array(mu)))[1:], 1):
        np.testing.assert_allclose(point, x, rtol=1e-9, atol=1e-11)
        new = x - s * gradient(x)
        x, y = new + mu[min(k, K)] * (new - y), new


@given(
    schedule=schedules(size=1e6), seed=st.integers(0, 2**32 - 1),
    fallback=st.sampled_from(["nesterov", "lbfgs", "metric-lbfgs"]),
)  # fmt: skip
def test_under_the_guard_every_schedule_arrives(schedule, seed, fallback):
    """What the level "guarded" of a certificate says of any table whatever."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((20, 3)), rng.integers(0, 2, 20).astype(float)
    problem = Logistic(A, b, l2=0.01)
    result = solve(problem, X0, method=schedule, handover=Guard(fallback=fallback), tol=1e-7)
    assert result.success
    assert np.linalg.norm(problem.gradient(result.x)) <= 1e-7
