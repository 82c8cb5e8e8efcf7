"""The flow against closed forms, against the Euler sequence, and under JAX's transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jv, yv
from support import visited

from ode2opt import InputError, Logistic, Lpp, Problem, Quadratic, Schedule
from ode2opt.base.precision import jax_precision
from ode2opt.paper import Default, Spline, Table, double, flow, stack, to_jax
from ode2opt.proofs.following import iterates

pytestmark = pytest.mark.usefixtures("x64")


def logistic(seed=0, N=40, n=5):
    rng = np.random.default_rng(seed)
    return Logistic(rng.standard_normal((N, n)), rng.integers(0, 2, N).astype(float), l2=0.05)


def test_without_damping_it_is_a_bessel_function():
    """x'' + (alpha/t) x' + l x = 0: t^-nu (A J_nu + B Y_nu)(sqrt(l) t), nu = (alpha - 1)/2."""
    alpha, modes, t0 = 4.0, np.array([1.0, 3.0]), 1.0
    coefficients = Table([1.0, 50.0], [0.0, 0.0], [1.0, 1.0], alpha)
    t = np.linspace(1.0, 12.0, 12)
    found = flow(
        coefficients, to_jax(Quadratic(np.diag(modes), np.zeros(2))), np.ones(2), t1=12.0, ts=t,
        rtol=1e-11, atol=1e-13,
    )  # fmt: skip
    nu = (alpha - 1) / 2
    for j, root in enumerate(np.sqrt(modes)):
        basis = lambda s, f, r=root: s**-nu * f(nu, r * s)  # noqa: E731
        slope = lambda s, f, r=root: -r * s**-nu * f(nu + 1, r * s)  # noqa: E731
        A, B = np.linalg.solve(
            [[basis(t0, jv), basis(t0, yv)], [slope(t0, jv), slope(t0, yv)]], [1.0, 0.0]
        )
        np.testing.assert_allclose(found.x[:, j], A * basis(t, jv) + B * basis(t, yv), atol=1e-9)


def test_it_starts_at_rest_and_meets_the_second_order_equation():
    problem, coefficients = logistic(), Spline(5.0)
    twin, x0, L = to_jax(problem), np.ones(5), 0.5
    found = flow(coefficients, twin, x0, t1=4.0, scale=L, dense=True, rtol=1e-11, atol=1e-13)
    x = lambda t: found(t).x  # noqa: E731
    slope = jax.jacfwd(x)
    np.testing.assert_allclose(slope(1.0), 0, atol=1e-6)
    t, step = 2.3, 1e-3
    c = coefficients.curves(np.array([t]))
    g, velocity = problem.gradient(np.asarray(x(t))), np.asarray(slope(t))
    bend = (np.asarray(x(t + step)) - 2 * np.asarray(x(t)) + np.asarray(x(t - step))) / step**2
    rest = 5.0 / t * velocity + (c.beta * problem.hvp(np.asarray(x(t)), velocity) + c.gamma * g) / L
    np.testing.assert_allclose(bend, -rest, rtol=2e-3)


def test_the_euler_sequence_is_first_order_accurate():
    problem, coefficients, L = logistic(), Spline(3.0, C=0.1), 1.0
    twin, x0 = to_jax(problem), np.ones(5)
    exact = flow(coefficients, twin, x0, t1=3.0, scale=L, rtol=1e-11, atol=1e-13).x
    errors = []
    for h in (0.01, 0.005, 0.0025, 0.00125):
        schedule = coefficients.schedule(h, 1.0, round(2.0 / h), L)
        tables = tuple(map(jnp.asarray, (schedule.a, schedule.c, schedule.d)))
        last = jax.jit(iterates)(tables, twin, jnp.asarray(x0))[-1]
        errors.append(np.linalg.norm(last - exact))
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(order, 1.0, atol=0.1)


def test_euler_with_the_schedules_step_is_the_sequence():
    coefficients, twin, x0 = Default(1.0), to_jax(logistic()), np.ones(5)
    L = 2.0
    found = flow(
        coefficients, twin, x0, t1=1.0 + 0.04 * 50, scale=L, solver="euler", h=0.04,
        ts=1.0 + 0.04 * np.arange(51),
    )  # fmt: skip
    schedule = coefficients.schedule(0.04, 1.0, 50, L)
    points = iterates((schedule.a, schedule.c, schedule.d), twin, jnp.asarray(x0))
    np.testing.assert_allclose(found.x, points, rtol=1e-9, atol=1e-11)


def test_the_jax_sequence_is_the_solvers():
    problem = logistic()
    rng = np.random.default_rng(2)
    schedule = Schedule(rng.random(40), rng.random(40) / 2, rng.random(40))
    points = visited(problem, np.ones(5), schedule, 40)
    tables = (schedule.a, schedule.c, schedule.d)
    np.testing.assert_allclose(
        iterates(tables, to_jax(problem), jnp.ones(5)), points, rtol=1e-10, atol=1e-12
    )


def stopped_by(solver, **options):
    twin = to_jax(logistic())
    return flow(
        Default(1.0), twin, np.ones(5), solver=solver, t1=40.0, until=1e-2, scale=0.5, **options
    )


@pytest.fixture(scope="module")
def reference():
    with jax_precision():
        return stopped_by("dopri8", rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("solver", "options", "allowed"),
    [
        ("tsit5", {"rtol": 1e-9, "atol": 1e-12}, 1e-6),
        ("euler", {"h": 1e-3}, 1e-2),
        pytest.param("dopri5", {"rtol": 1e-9, "atol": 1e-12}, 1e-6, marks=pytest.mark.exhaustive),
        pytest.param("heun", {"rtol": 1e-6, "atol": 1e-12}, 1e-4, marks=pytest.mark.exhaustive),
    ],
)
def test_all_solvers_agree_on_the_stopping_time(solver, options, allowed, reference):
    assert bool(reference.reached)
    norm = np.linalg.norm(logistic().gradient(np.asarray(reference.x)))
    assert norm == pytest.approx(1e-2, rel=1e-7)
    found = stopped_by(solver, **options)
    assert float(found.t) == pytest.approx(float(reference.t), rel=allowed)


def test_a_norm_that_is_not_reached_is_said():
    found = flow(Default(1.0), to_jax(logistic()), np.ones(5), t1=1.5, until=1e-6)
    assert not bool(found.reached)
    assert float(found.t) == 1.5
    assert bool(found.succeeded)
    failed = flow(Default(1.0), to_jax(logistic()), np.ones(5), t1=9.0, max_steps=3)
    assert not bool(failed.succeeded)


def test_a_norm_that_is_reached_already_stops_at_once():
    found = flow(Default(1.0), to_jax(logistic()), np.ones(5), t1=6.0, until=100.0)
    assert (float(found.t), bool(found.reached)) == (1.0, True)
    np.testing.assert_array_equal(found.x, 1.0)


def test_a_flow_that_overflows_did_not_succeed():
    steep = to_jax(Quadratic(np.diag([100.0, 1.0]), np.zeros(2)))
    found = flow(Default(4.0), steep, np.ones(2), t1=30.0, solver="euler", h=0.04)
    assert not bool(found.succeeded)


def test_it_works_under_vmap_and_grad():
    problems = [logistic(seed) for seed in range(3)]
    batch, x0 = stack(problems), jnp.ones(5)
    end = lambda problem, C: flow(Default(1.0), problem, C * x0, t1=3.0).x  # noqa: E731
    together = jax.vmap(lambda problem: end(problem, 1.0))(batch)
    for row, problem in zip(together, problems, strict=True):
        np.testing.assert_allclose(row, end(to_jax(problem), 1.0), rtol=1e-6)
    value = lambda C: jnp.sum(end(to_jax(problems[0]), C) ** 2)  # noqa: E731
    slope = (value(1.0 + 1e-4) - value(1.0 - 1e-4)) / 2e-4
    assert float(jax.grad(value)(1.0)) == pytest.approx(float(slope), rel=1e-5)


class CountingTraces(Default):
    def beta(self, t):
        TRACES.append(1)
        return super().beta(t)


TRACES: list[int] = []


def test_other_data_of_the_same_shape_do_not_recompile():
    first, second = to_jax(logistic(1)), to_jax(logistic(2))
    flow(CountingTraces(1.0), first, np.ones(5), t1=2.0, until=1e-3)
    traced = len(TRACES)
    assert traced > 0
    flow(CountingTraces(2.0), second, np.zeros(5), t1=3.0, scale=2.0, until=1e-4, rtol=1e-6)
    assert len(TRACES) == traced


def test_problems_of_all_kinds_become_jax_problems(rng):
    A, b = rng.standard_normal((9, 3)), rng.integers(0, 2, 9).astype(float)
    x = rng.standard_normal(3)
    for problem in (Logistic(A, b, l2=0.1), Lpp(A, b, p=6), Quadratic(A.T @ A, b[:3])):
        twin = to_jax(problem)
        leaves, structure = jax.tree.flatten(twin)
        again = jax.tree.unflatten(structure, leaves)
        np.testing.assert_allclose(jax.jit(lambda p: p.gradient(x))(again), problem.gradient(x))
    problem.start()
    assert isinstance(to_jax(problem).start().x0, jax.Array)
    twin = to_jax(Problem.from_function(lambda x: jnp.sum(x**4), n=3))
    np.testing.assert_allclose(jax.jit(lambda p: p.gradient(x))(twin), 4 * x**3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0, solver="tsit"), "did you mean 'tsit5'"),
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0, solver="euler"), "give it a step h"),
        (lambda p: flow(Default(), p, np.ones(5), t1=0.5), "t1 > t0 > 0"),
        (lambda p: flow(Default(), p, np.ones(4), t1=2.0), r"x0 has shape \(4,\)"),
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0, h=-1.0), "h is -1"),
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0, ts=[1.5, 1.2]), "must rise from 1 to 2"),
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0, until=-1), "until is -1"),
        (lambda p: flow(Default(), p, np.ones(5), t1=2.0)(1.5), "without dense=True"),
        (lambda p: stack([logistic(), logistic(n=4)]), "cannot be stacked"),
        (
            lambda p: to_jax(Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=2)),
            "cannot be traced by JAX",
        ),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call(to_jax(logistic()))


def test_precision_does_not_depend_on_a_global_switch():
    with jax_precision(False):
        found = flow(Default(1.0), logistic(), np.ones(5), t1=2.0, dense=True)
        assert found.x.dtype == found(1.5).x.dtype == np.float64
        end = lambda x: flow(Default(1.0), logistic(), x, t1=2.0).x.sum()  # noqa: E731
        with pytest.raises(InputError, match="wrap the function that you transform"):
            jax.grad(end)(np.ones(5))
        assert double(jax.grad(end))(np.ones(5)).dtype == np.float64
