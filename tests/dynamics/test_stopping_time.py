"""The stopping time's derivative: through the event, by an independent adjoint, by differences.

The adjoint is SPEC.md section 6 with scipy: r' = -psi_s^T r backwards from (H g; 0) at T, and
dT/dtheta = -(int r . psi_theta dt + r(t0) . ds0/dtheta) / (g . H (v - beta g)).
"""

import equinox as eqx
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ode2opt import Logistic, Lpp
from ode2opt.dynamics import Default, DefaultCoefficients, Neural, Spline, flow, to_jax

pytestmark = pytest.mark.usefixtures("x64")

EPS, L, T1 = 1e-2, 2.0, 80.0
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def make(kind):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((30, 4)), rng.integers(0, 2, 30).astype(float)
    return kind(A, b, l2=0.05)


def stopping_time(coefficients, problem):
    found = flow(
        coefficients, problem, np.ones(4), t1=T1, until=EPS, scale=L, max_steps=4096, **TIGHT
    )
    return found.t


def adjoint(problem, C, with_start=True):
    """dT/dC for the default coefficients, whose dependence on C is a factor."""
    formula, x0, n = DefaultCoefficients(C), np.ones(4), 4
    alpha = formula.alpha
    beta, gamma, dbeta = (
        lambda t, f=f: f(t) / L for f in (formula.beta, formula.gamma, formula.dbeta)
    )

    def psi(t, s):
        x, v = s[:n], s[n:]
        g = problem.gradient(x)
        moved = v - beta(t) * g
        return np.concatenate([moved, -alpha / t * moved + (dbeta(t) - gamma(t)) * g])

    def reached(t, s):
        return np.linalg.norm(problem.gradient(s[:n])) - EPS

    reached.terminal, reached.direction = True, -1
    s0 = np.concatenate([x0, beta(1.0) * problem.gradient(x0)])
    options = {"rtol": 1e-11, "atol": 1e-13, "method": "DOP853", "dense_output": True}
    forward = solve_ivp(psi, (1.0, T1), s0, events=reached, **options)
    T, end = forward.t[-1], forward.y[:, -1]

    def backward(t, state):
        """r and the integral of r . psi_theta, both backwards in time."""
        x = forward.sol(t)[:n]
        rx, rv = state[:n], state[n : 2 * n]
        H, g = problem.hessian(x), problem.gradient(x)
        pull = -beta(t) * rx + (alpha * beta(t) / t + dbeta(t) - gamma(t)) * rv
        slope = -(beta(t) / C) * g @ rx
        slope += ((alpha / t * beta(t) + dbeta(t) - gamma(t)) / C) * g @ rv
        return np.concatenate([-(H @ pull), -rx + alpha / t * rv, [-slope]])

    g, H = problem.gradient(end[:n]), problem.hessian(end[:n])
    final = np.concatenate([H @ g, np.zeros(n + 1)])
    back = solve_ivp(backward, (T, 1.0), final, rtol=1e-10, atol=1e-13, method="DOP853")
    r0, integral = back.y[: 2 * n, -1], back.y[-1, -1]
    start = r0[n:] @ problem.gradient(x0) * beta(1.0) / C if with_start else 0.0
    return -(integral + start) / (g @ H @ (end[n:] - beta(T) * g))


@pytest.mark.parametrize("kind", [Logistic, Lpp])
def test_automatic_differentiation_agrees_with_the_adjoint(kind):
    problem, C = make(kind), 0.8
    slope = eqx.filter_grad(stopping_time)(Default(C), to_jax(problem)).C
    assert float(slope) == pytest.approx(adjoint(problem, C), rel=1e-5)


def test_the_start_velocitys_dependence_matters():
    problem, C = make(Logistic), 0.8
    with_it, without = adjoint(problem, C), adjoint(problem, C, with_start=False)
    assert abs(with_it - without) > 1e-2 * abs(with_it)


@pytest.mark.parametrize("make_coefficients", [lambda: Spline(4.0, C=0.8), lambda: Neural(C=0.8)])
def test_automatic_differentiation_agrees_with_differences(make_coefficients):
    coefficients, twin = make_coefficients(), to_jax(make(Lpp))
    arrays, rest = eqx.partition(coefficients, eqx.is_array)
    flat, unravel = ravel(arrays)
    slope = ravel(eqx.filter_grad(stopping_time)(coefficients, twin))[0]
    rng = np.random.default_rng(0)
    for _ in range(2):
        direction = rng.standard_normal(flat.shape) * np.maximum(np.abs(flat), 0.1)
        direction /= np.linalg.norm(direction)
        at = lambda step, d=direction: float(  # noqa: E731
            stopping_time(eqx.combine(unravel(flat + step * d), rest), twin)
        )
        central = (at(1e-5) - at(-1e-5)) / 2e-5
        assert float(slope @ direction) == pytest.approx(central, rel=1e-4)


def ravel(tree):
    from jax.flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(tree)
    return np.asarray(flat), unravel
