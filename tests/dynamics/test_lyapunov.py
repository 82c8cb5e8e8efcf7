"""The Lyapunov function: its derivative's identity, and that it falls when it must."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from ode2opt import Logistic, Lpp, Quadratic
from ode2opt.dynamics import Default, Neural, Spline, Table, best_pair, convergence, flow, to_jax
from ode2opt.dynamics.diffrax_flow import State, velocity
from ode2opt.dynamics.lyapunov import Minimum, Pair, energy, energy_rate

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
    return Minimum(jnp.asarray(found.x), found.fun)


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


def test_the_promised_rate_holds_along_the_flow():
    """f(x(t)) - f* <= E(t0)/delta(t) (Theorem 1)."""
    from ode2opt.dynamics.lyapunov import delta

    problem = problems()["logistic"]
    minimum, coefficients, pair = minimum_of(problem), Default(0.1), Pair(1.0, 5.0)
    t = np.linspace(1, 10, 50)
    twin = to_jax(problem)
    found = flow(coefficients, twin, np.ones(4), t1=10.0, ts=t)
    start = energy(coefficients, twin, pair, minimum, t[0], State(found.x[0], found.v[0]))
    for time, x in zip(t, found.x, strict=True):
        gap = problem.value(np.asarray(x)) - minimum.value
        assert gap <= float(start / delta(coefficients, pair, time)) * (1 + 1e-9)
