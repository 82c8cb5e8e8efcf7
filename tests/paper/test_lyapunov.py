"""The Lyapunov function: its derivative's identity, and that it falls when it must."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from ode2opt import InputError, Logistic, Lpp, Quadratic
from ode2opt.paper import (
    Default,
    Neural,
    Pair,
    ReferencePoint,
    Spline,
    State,
    Table,
    best_pair,
    convergence,
    energy,
    energy_rate,
    flow,
    integral_estimates,
    starting_energy,
    to_jax,
)
from ode2opt.paper.check_flow import velocity
from ode2opt.proofs import flow_bound

pytestmark = pytest.mark.usefixtures("x64")


def problems():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 4)), rng.integers(0, 2, 40).astype(float)
    M = rng.standard_normal((4, 4))
    return {
        "logistic": Logistic(A, b, l2=0.02),
        "lpp": Lpp(A, b),
        "quadratic": Quadratic(M @ M.T, b[:4]),
    }


def minimum_of(problem):
    found = scipy.optimize.minimize(
        problem.value, np.zeros(problem.n), jac=problem.gradient, method="BFGS",
        options={"gtol": 1e-12},
    )  # fmt: skip
    return ReferencePoint(jnp.asarray(found.x), found.fun)


def random_coefficients(rng):
    kind = [Default(2.0, 1 + 5 * rng.random()), Spline(1.5 + rng.random()), Neural(3.0)][
        rng.integers(3)
    ]
    arrays, rest = eqx.partition(kind, eqx.is_array)
    moved = jax.tree.map(lambda p: p + 0.1 * rng.standard_normal(p.shape) if p.ndim else p, arrays)
    return eqx.combine(moved, rest)


@eqx.filter_jit
def rates(coefficients, twin, pair, minimum, t, state):
    """E, its derivative along the flow by automatic differentiation, and by the formula."""
    scale = 1.7
    moving = velocity(coefficients, twin, scale, t, state)
    E = lambda time, s: energy(coefficients, twin, pair, minimum, time, s, scale)  # noqa: E731
    value, rate = jax.jvp(E, (t, state), (jnp.ones(()), moving))
    return value, rate, energy_rate(coefficients, twin, pair, minimum, t, state, scale)


@eqx.filter_jit
def energies_at(t, found, coefficients, twin, pair, minimum, L=1.0):
    """E at all times of a flow."""
    one = lambda time, x, v: energy(coefficients, twin, pair, minimum, time, State(x, v), L)  # noqa: E731
    return jax.vmap(one)(jnp.asarray(t), found.x, found.v)


@pytest.mark.parametrize("name", problems())
def test_the_derivative_along_the_flow_is_the_formula(name):
    problem = problems()[name]
    twin, minimum, rng = to_jax(problem), minimum_of(problem), np.random.default_rng(1)
    for _ in range(8):
        coefficients = random_coefficients(rng)
        shares = rng.uniform(0.05, 1, 2) * np.array([1.0, float(coefficients.alpha) - 1])
        pair = Pair(*map(jnp.asarray, shares))
        t = jnp.asarray(rng.uniform(1, 10))
        state = State(*jnp.asarray(rng.standard_normal((2, 4))))
        value, rate, formula = rates(coefficients, twin, pair, minimum, t, state)
        assert float(abs(rate - formula)) <= 1e-10 * float(abs(value) + abs(rate))


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize("strict", [False, True])
def test_energy_never_rises_when_the_conditions_hold(name, strict):
    problem = problems()[name]
    minimum, coefficients = minimum_of(problem), Default(1.0)
    t = np.linspace(1, 15, 200)
    checked = best_pair(coefficients, t) if strict else convergence(coefficients, t)
    assert checked.margin > 0
    L = 10.0
    twin = to_jax(problem)
    found = flow(coefficients, twin, np.ones(4), t1=15.0, ts=t, scale=L, rtol=1e-10, atol=1e-12)
    pair = Pair(*map(jnp.asarray, (checked.kappa, checked.lam)))
    energies = energies_at(t, found, coefficients, twin, pair, minimum, L)
    assert np.all(np.diff(energies) <= 1e-8 * float(energies[0]))
    assert float(energies[-1]) < float(energies[0])


def test_energy_can_rise_where_w_is_negative():
    """gamma too small for beta: w = gamma - beta' - beta/t < 0."""
    coefficients = Table([1.0, 30.0], [5.0, 5.0], [0.1, 0.1], 4.0)
    t = np.linspace(1, 5, 100)
    assert convergence(coefficients, t).margin < 0
    problem = problems()["quadratic"]
    twin, minimum = to_jax(problem), minimum_of(problem)
    found = flow(coefficients, twin, np.ones(4), t1=5.0, ts=t)
    energies = energies_at(t, found, coefficients, twin, Pair(1.0, 3.0), minimum)
    assert np.any(np.diff(energies) > 1e-3 * abs(energies[0]))


class Independent:
    """The default coefficients' flow by SciPy, with E and the four integrands in NumPy."""

    alpha, h, C = 6.0, 0.04, 1.0

    def __init__(self, problem, kappa, lam, z, scale):
        self.problem, self.kappa, self.lam, self.z, self.scale = problem, kappa, lam, z, scale

    def beta(self, t):
        return self.C / self.h - self.C * self.alpha / (2 * t)

    def dbeta(self, t):
        return self.C * self.alpha / (2 * t**2)

    def delta(self, t):
        kappa, lam, alpha, beta = self.kappa, self.lam, self.alpha, self.beta(t)
        inner = beta / self.h - kappa * self.dbeta(t) - kappa * beta / t
        return (
            t**2 * inner + (kappa * (alpha - 1 - lam) - lam * (1 - kappa)) * t * beta
        )  # as printed

    def energy(self, t, x, v):
        kappa, lam, g = self.kappa, self.lam, self.problem.gradient(x) / self.scale
        away, moved, beta = x - self.z, v - self.beta(t) * g, self.beta(t)
        f = (self.problem.value(x) - self.problem.value(self.z)) / self.scale
        return (
            self.delta(t) * f
            + np.sum((lam * away + t * (moved + kappa * beta * g)) ** 2) / 2
            + lam * (1 - kappa) * t * beta * g @ away
            + kappa * (1 - kappa) / 2 * np.sum((t * beta * g) ** 2)
            + lam * (self.alpha - 1 - lam) / 2 * away @ away
        )

    def integrands(self, t, x, v):
        g = self.problem.gradient(x) / self.scale
        moved, beta = v - self.beta(t) * g, self.beta(t)
        w = beta / self.h - self.dbeta(t) - beta / t
        slope = (self.delta(t * (1 + 1e-6)) - self.delta(t * (1 - 1e-6))) / (2e-6 * t)
        f = (self.problem.value(x) - self.problem.value(self.z)) / self.scale
        H = self.problem.hessian(x) / self.scale
        return np.array([
            (self.lam * t * w - slope) * f,
            (self.alpha - 1 - self.lam) * t * moved @ moved,
            self.kappa * t**2 * beta * w * g @ g,
            (1 - self.kappa) * t**2 * beta * moved @ H @ moved,
        ])  # fmt: skip

    def solve(self, x0, t1):
        n = len(x0)

        def rate(t, y):
            x, v = y[:n], y[n : 2 * n]
            g = self.problem.gradient(x) / self.scale
            moved = v - self.beta(t) * g
            pull = (self.dbeta(t) - self.beta(t) / self.h) * g
            return np.concatenate([moved, -self.alpha / t * moved + pull, self.integrands(t, x, v)])

        start = np.concatenate(
            [x0, self.beta(1.0) * self.problem.gradient(x0) / self.scale, np.zeros(4)]
        )
        options = {"rtol": 1e-10, "atol": 1e-12, "method": "DOP853", "dense_output": True}
        return scipy.integrate.solve_ivp(rate, (1.0, t1), start, **options)


@pytest.mark.parametrize(
    "name", ["logistic", pytest.param("quadratic", marks=pytest.mark.exhaustive)]
)
def test_energy_its_rate_and_the_integrals_agree_with_scipy(name):
    """Against solve_ivp with the integrals as further variables, and finite differences of E."""
    problem, coefficients, L = problems()[name], Default(1.0), 10.0
    t = np.linspace(1, 3, 1001)
    checked = best_pair(coefficients, t)
    minimum = minimum_of(problem)
    ours = Independent(problem, checked.kappa, checked.lam, np.asarray(minimum.x), L)
    solved = ours.solve(np.ones(4), 3.0)
    pair, twin = Pair(checked.kappa, checked.lam), to_jax(problem)
    for time in (1.5, 2.5):
        around = [
            ours.energy(s, *np.split(solved.sol(s)[:8], 2)) for s in (time - 1e-4, time + 1e-4)
        ]
        state = State(*map(jnp.asarray, np.split(solved.sol(time)[:8], 2)))
        rate = energy_rate(coefficients, twin, pair, minimum, jnp.asarray(time), state, L)
        assert float(rate) == pytest.approx((around[1] - around[0]) / 2e-4, rel=1e-5)
    found = flow(coefficients, twin, np.ones(4), t1=3.0, ts=t, scale=L, rtol=1e-10, atol=1e-12)
    estimates = integral_estimates(coefficients, problem, pair, minimum, found, L)
    np.testing.assert_allclose(estimates[:4], solved.y[8:, -1], rtol=1e-4)
    assert estimates.first == pytest.approx(
        ours.energy(1.0, *np.split(solved.y[:8, 0], 2)), rel=1e-9
    )
    assert 0.5 * estimates.first < estimates.total <= estimates.first * (1 + 1e-9)
    assert min(estimates) >= 0


def test_what_E_is_at_the_start_has_a_short_form():
    problem, coefficients = problems()["lpp"], Default(1.0)
    z = np.arange(4.0)
    point = ReferencePoint(z, problem.value(z))
    ours = Independent(problem, 0.7, 3.0, z, 5.0)
    x0 = np.ones(4)
    first = starting_energy(coefficients, problem, Pair(0.7, 3.0), point, x0, 1.0, 5.0)
    v = ours.beta(1.0) * problem.gradient(x0) / 5.0
    assert float(first) == pytest.approx(ours.energy(1.0, x0, v), rel=1e-9)


def test_integrals_need_times():
    problem, coefficients = problems()["quadratic"], Default(1.0)
    found = flow(coefficients, problem, np.ones(4), t1=2.0)
    with pytest.raises(InputError, match="at least three of its times"):
        integral_estimates(coefficients, problem, Pair(1.0, 5.0), minimum_of(problem), found)


@pytest.mark.parametrize("l2", [0.02, 0.0], ids=["minimiser", "no minimiser"])
def test_the_number_of_the_flow_bounds_its_values(l2):
    """With a minimiser f(x(t)) - f* <= E(t0)/delta(t); without one the lowest value is bounded."""
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, 40).astype(float)
    A = rng.standard_normal((40, 4))
    A[:, 1] = (2 * b - 1) * rng.random(40)  # along it the loss falls for ever
    problem, coefficients, L = Logistic(A, b, l2=l2), Default(1.0), 0.5
    x0, t = np.array([1.0, -2.0, 0.0, 1.0]), np.linspace(1, 12, 200)
    checked = best_pair(coefficients, t)
    pair = (checked.kappa, checked.lam)
    bound = flow_bound(coefficients, problem, x0, pair=pair, t0=1.0, t1=12.0, scale=L)
    found = flow(coefficients, problem, x0, t1=12.0, ts=t, scale=L, rtol=1e-10, atol=1e-12)
    values = np.array([problem.value(x) for x in np.asarray(found.x)])
    ours = Independent(problem, *pair, np.zeros(4), L)
    assert bound.minimiser is (l2 > 0)
    if l2:
        ours.z = np.asarray(minimum_of(problem).x)
        first = L * ours.energy(1.0, x0, ours.beta(1.0) * problem.gradient(x0) / L)
        assert bound.reference == pytest.approx(problem.value(ours.z), abs=1e-10)
        assert bound.value == pytest.approx(first / ours.delta(12.0), rel=1e-6)
        assert np.all(values - problem.value(ours.z) <= first / ours.delta(t))
        return
    assert "column 1" in bound.why
    assert values.min() <= bound.reference + bound.value
    # No point z with f(z) <= f(x0) is contradicted, and none promises more.
    for z in rng.normal(0, 5, (50, 4)):
        if problem.value(z) <= problem.value(x0):
            point = ReferencePoint(z, problem.value(z))
            first = starting_energy(coefficients, problem, Pair(*pair), point, x0, 1.0, L)
            promised = problem.value(z) + L * float(first) / ours.delta(12.0)
            assert values.min() <= promised
            assert bound.reference + bound.value <= promised * (1 + 1e-6)
