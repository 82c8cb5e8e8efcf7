"""Curvature estimators: values against dense eigenvalues, gradients against finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Family, InputError, Logistic, Lpp, Problem
from ode2opt.learning.flow.smoothness import SCATTER_METHODS, fit_l0l1, scatter
from ode2opt.paper import L0L1, Global, PowerIteration, to_jax

pytestmark = pytest.mark.usefixtures("x64")


def problem_of(kind, seed=0, n=6):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((50, n)), rng.integers(0, 2, 50).astype(float)
    return kind(A, b)


def top(problem, x):
    return np.linalg.eigvalsh(problem.hessian(np.asarray(x)))[-1]


KINDS = pytest.mark.parametrize("kind", [Logistic, Lpp])


@KINDS
def test_power_iteration_finds_the_largest_eigenvalue(kind):
    problem, x = problem_of(kind), np.linspace(-1, 1, 6)
    twin, power = to_jax(problem), PowerIteration(steps=2000, tol=1e-12)
    found = power(twin, x, power.start(twin))
    assert float(found.curvature) == pytest.approx(top(problem, x), rel=1e-9)
    safe = PowerIteration(steps=2000, tol=1e-12, safety=1.05)(twin, x, found.z)
    assert float(safe.curvature) == pytest.approx(1.05 * top(problem, x), rel=1e-9)


@KINDS
def test_ten_cold_steps_never_overestimate(kind):
    for seed in range(10):
        problem, x = problem_of(kind, seed, 30), np.random.default_rng(seed).standard_normal(30) / 5
        twin, power = to_jax(problem), PowerIteration()
        ratio = float(power(twin, x, power.start(twin)).curvature) / top(problem, x)
        assert 0.6 < ratio <= 1 + 1e-12


def test_a_warm_start_follows_eigenvalues_that_change_places():
    """H = diag(1 + s, 2 - s): at s = 0.5 the largest moves from the second to the first."""
    problem = Problem.from_function(
        lambda x: x[0] ** 2 / 2 * 1.0 + x[1] ** 2 + x[2] * (x[0] ** 2 - x[1] ** 2) / 2, n=3
    )
    twin, power = to_jax(problem), PowerIteration()
    z, found_at = power.start(twin), eqx.filter_jit(power)
    for s in np.linspace(0, 2, 41):
        estimate = found_at(twin, jnp.array([0.0, 0.0, s]), z)
        z = estimate.z
        allowed = 0.01 if abs(s - 0.5) > 0.2 else 0.1  # two close eigenvalues take longer to part
        assert float(estimate.curvature) == pytest.approx(max(1 + s, 2 - s), rel=allowed), s
    stuck = PowerIteration(stir=0.0)(twin, jnp.array([0.0, 0.0, 2.0]), jnp.array([0.0, 1.0, 0.0]))
    assert float(stuck.curvature) == pytest.approx(0.0, abs=1e-12)


@KINDS
@pytest.mark.parametrize("name", ["power", "global", "l0l1"])
def test_gradients_agree_with_finite_differences(kind, name):
    estimator = {
        "power": PowerIteration(steps=500, tol=1e-14),
        "global": Global(3.0),
        "l0l1": L0L1(np.float64(0.3), np.float64(2.0)),
    }[name]
    problem, x = problem_of(kind), jnp.linspace(-1, 1, 6)
    twin = to_jax(problem)
    z = estimator.start(twin)
    value = eqx.filter_jit(lambda p: estimator(twin, p, z).curvature)
    slope, step = jax.grad(value)(x), 1e-5
    for i in range(6):
        e = step * jnp.eye(6)[i]
        central = float(value(x + e) - value(x - e)) / (2 * step)
        assert float(slope[i]) == pytest.approx(central, rel=1e-6, abs=1e-6)
    if name == "power":  # the truth's own derivative, from dense eigenvalues
        exact = [
            (top(problem, x + step * e) - top(problem, x - step * e)) / (2 * step)
            for e in np.eye(6)
        ]
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-7)


def test_the_l0l1_gradient_is_finite_where_the_gradient_vanishes():
    twin = to_jax(Problem.from_function(lambda x: jnp.sum(x**2), n=2))
    estimator = L0L1(np.float64(1.0), np.float64(1.0))
    slope = jax.grad(lambda x: estimator(twin, x, x).curvature)(jnp.zeros(2))
    assert np.all(np.isfinite(slope))


def test_the_l0l1_fit_is_an_upper_envelope():
    rng = np.random.default_rng(0)
    norms = rng.uniform(0, 5, 200)
    curvatures = 1.5 + 0.7 * norms - rng.uniform(0, 1, 200) ** 2
    found = L0L1.fit(norms, curvatures)
    assert np.all(found.L0 + found.L1 * norms >= curvatures - 1e-9)
    assert float(found.L0) == pytest.approx(1.5, abs=0.1)
    assert float(found.L1) == pytest.approx(0.7, abs=0.05)


def test_the_scatter_follows_the_papers_four_methods():
    family = Family.from_dataset("logistic", "breast_cancer")
    problem = family.sample(0)
    points = scatter(problem)
    assert set(points) == set(SCATTER_METHODS)
    assert all(p.shape == (11, 2) for p in points.values())
    x0 = problem.start().x0
    expected = [np.linalg.norm(problem.gradient(x0)), top(problem, x0)]
    for p in points.values():
        np.testing.assert_allclose(p[0], expected, rtol=1e-6)
    fitted = fit_l0l1(family, instances=2)
    held = scatter(family.sample([0, 1]))["nag"]
    assert np.all(fitted.L0 + fitted.L1 * held[:, 0] >= held[:, 1] * (1 - 1e-9))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: PowerIteration(steps=-1), "steps is -1"),
        (lambda: PowerIteration(safety=0.9), "safety is 0.9"),
        (lambda: L0L1.fit([1.0], [1.0, 2.0]), "as many gradient norms as curvatures"),
        (lambda: L0L1.fit([np.nan], [1.0]), "finite"),
        (
            lambda: PowerIteration()(
                Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=2), np.ones(2), np.ones(2)
            ),
            "PowerIteration needs Hessian-vector products, which FunctionProblem does not have",
        ),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
