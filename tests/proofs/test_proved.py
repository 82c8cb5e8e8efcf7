"""Coefficients "proved": the flow's theorem and the sequence's, whatever the parameters."""

import equinox as eqx
import jax
import numpy as np
import pytest

from ode2opt import InputError
from ode2opt.base.precision import jax_precision
from ode2opt.paper import DefaultCoefficients, Proved, convergence, restored
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.table import two_step_rows

h, T0 = 0.04, 1.0
EXTREME = 2


def some(seed, alpha=6.0, size=3.0):
    rng = np.random.default_rng(seed)
    blank = Proved(alpha)
    values = (size * rng.standard_normal(), size * rng.standard_normal(9))
    if seed == EXTREME:
        values = (-5.0, np.full(9, -20.0))  # eta grows as fast as it may
    return eqx.tree_at(lambda c: (c.level, c.slopes), blank, tuple(map(np.asarray, values)))


def eta_and_t(coefficients, K):
    """eta_k and t_k of the theorem, k = 0..K-1."""
    times = T0 + h * np.arange(K)
    with jax_precision():
        eta = np.asarray(jax.vmap(coefficients.eta)(times))
    return eta, (times - h) / ((float(coefficients.alpha) - 1) * h)


def test_with_eta_1_the_sequence_is_nesterovs():
    """beta = (2 - alpha h/(t-h))/h and gamma - beta' = (1 - alpha h/(t-h) + alpha h/t)/h^2."""
    t = np.linspace(1, 21, 500)
    curves, alpha = Proved(5.0).curves(t), 5.0
    np.testing.assert_allclose(curves.beta, (2 - alpha * h / (t - h)) / h, rtol=1e-12)
    expected = (1 - alpha * h / (t - h) + alpha * h / t) / h**2
    np.testing.assert_allclose(curves.gamma - curves.dbeta, expected, rtol=1e-11)


@pytest.mark.parametrize("alpha", [3.3, 6.0, 15.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_sequence_is_in_the_theorem_whatever_its_parameters(seed, alpha):
    coefficients, K = some(seed, alpha), 400
    eta, t = eta_and_t(coefficients, K + 1)
    m, p, q = two_step_rows(coefficients.schedule(h, T0, K)).T
    k = np.arange(1, K - 1)
    np.testing.assert_allclose(m[k], (t[k] - 1) / t[k + 1], atol=1e-12)
    np.testing.assert_allclose(q[k], m[k], atol=1e-11)
    np.testing.assert_allclose(p[k], 1 + (eta[k] * t[k] - 1) / t[k + 1], atol=1e-11)
    assert np.all((eta > 0) & (eta <= 2) & (t >= 1))
    assert np.all(eta[1:] * (t[1:] ** 2 - t[1:]) <= eta[:-1] * t[:-1] ** 2 * (1 + 1e-12))


@pytest.mark.parametrize("alpha", [3.3, 6.0, 15.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_flow_meets_theorem_1_whatever_its_parameters(seed, alpha):
    coefficients, t = some(seed, alpha), np.linspace(T0, 21.0, 500)
    assert convergence(coefficients, t, kappa=1.0, lam=alpha - 1).margin >= -1e-9
    curves = coefficients.curves(t)
    with jax_precision():
        eta = np.asarray(jax.vmap(coefficients.eta)(t - h))
    w = curves.gamma - curves.dbeta - curves.beta / t
    np.testing.assert_allclose(w, eta * (t - 2 * h) / (t * h**2), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_chain_confirms_the_rate_with_the_starts_constant(seed):
    """eta_k t_k^2 F_k <= |z_1 - x*|^2/2 + eta_1 (t_1^2 - t_1) F_0, F_0 <= R^2/2, |g_0| <= R."""
    coefficients, K = some(seed, size=1.0), 30
    eta, t = eta_and_t(coefficients, 401)
    rows = two_step_rows(coefficients.schedule(h, T0, 400).first(K))
    first = 1 + t[1] * (rows[0, 1] - 1)
    constant = ((1 + abs(first)) ** 2 + eta[1] * (t[1] ** 2 - t[1])) / 2
    last = np.append(rows, [[0.0, 1.0, 0.0]], axis=0)  # a gradient step from the last point
    bound = constant / (eta[K - 1] * t[K - 1] ** 2)
    assert worst_case(last).tau <= bound * (1 + 1e-6)


def test_a_fit_comes_near_what_is_in_the_theorem_and_stays_inside():
    t = np.linspace(1, 21, 500)
    truth = some(5, size=0.5)
    fitted = Proved().fit_to(truth.beta, truth.gamma)
    np.testing.assert_allclose(fitted.curves(t).beta, truth.curves(t).beta, rtol=1e-3)
    default = DefaultCoefficients(2.0)  # close to Nesterov's
    near = Proved().fit_to(default.beta, default.gamma)
    np.testing.assert_allclose(near.curves(t).beta, default.beta(t), rtol=0.02)
    wild = DefaultCoefficients(4.0)  # eta would be 3
    assert np.all(eta_and_t(Proved().fit_to(wild.beta, wild.gamma), 401)[0] <= 2)


def test_a_file_gives_them_back():
    coefficients = some(1)
    again = restored("proved", coefficients.settings, coefficients.parameters())
    t = np.linspace(1, 21, 500)
    np.testing.assert_array_equal(again.curves(t).gamma, coefficients.curves(t).gamma)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Proved(3.0), "alpha is 3: .* it must be above 3.087"),
        (lambda: Proved(30.0), "must exceed alpha h"),
        (lambda: Proved(knots=3), "at least 4 knots"),
        (lambda: Proved(t0=2.0, t1=1.0), "must exceed t0"),
    ],
)
def test_bad_arguments_are_named(make, said):
    with pytest.raises(InputError, match=said):
        make()
