"""q: each of its seven terms where it alone is positive (docs/mathematics.md, section 6)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt.learning import Rules
from ode2opt.paper import Coefficients
from ode2opt.paper.stopping_time import violation

pytestmark = pytest.mark.usefixtures("x64")

T = 1.5
TERMS = (
    "s above beta/h", "damping above s", "delta' above lam t w", "delta below 0", "w below 0",
    "beta below 0", "gamma below 0",
)  # fmt: skip


class Local(Coefficients):
    """Polynomials about T: beta, its two derivatives, gamma and its one are what one likes."""

    b: jax.Array
    g: jax.Array

    def beta(self, t):
        return self.b[0] + self.b[1] * (t - T) + self.b[2] * (t - T) ** 2 / 2

    def gamma(self, t):
        return self.g[0] + self.g[1] * (t - T)

    def fit_to(self, beta, gamma, *, t0=1.0, t1=21.0):
        raise NotImplementedError

    @property
    def settings(self):
        return {}


def terms_of(alpha, b, g, h, kappa, lam):
    """The seven numbers at T, written out from beta, beta', beta'', gamma, gamma'."""
    (b0, b1, b2), (g0, g1) = b, g
    s = g0 - b1
    w = s - b0 / T
    pull = kappa * (alpha - 2) - lam
    delta = T**2 * (g0 - kappa * b1) + pull * T * b0
    slope = 2 * T * (g0 - kappa * b1) + T**2 * (g1 - kappa * b2) + pull * (b0 + T * b1)
    return np.array(
        [s - b0 / h, alpha * b0 / T - s, slope - lam * T * w, -delta, -w, -b0, -g0]
    )  # fmt: skip


# alpha, (beta, beta', beta''), (gamma, gamma'), h, kappa, lam. w < 0 leaves alpha beta/t > s for
# every alpha above 1 and beta above 0: it is alone for a smaller alpha only. beta < 0 is alone for
# a step above t/alpha only.
ALONE = {
    "s above beta/h": (4.0, (1.0, 0.5, 0.3), (15.0, -50.0), 0.1, 1.0, 3.0),
    "damping above s": (4.0, (1.0, 0.5, 0.3), (2.0, -50.0), 0.1, 1.0, 3.0),
    "delta' above lam t w": (4.0, (1.0, 0.5, 0.3), (5.0, 9.0), 0.1, 1.0, 3.0),
    "delta below 0": (4.0, (1.0, -2.6, 0.3), (0.3, -50.0), 0.1, 0.2, 3.0),
    "w below 0": (0.5, (1.0, 0.1, 0.3), (0.6, -50.0), 0.1, 0.1, 0.1),
    "beta below 0": (4.0, (-1.0, 2.0, 0.3), (1.5, -50.0), 3.0, 1.0, 3.0),
    "gamma below 0": (4.0, (1.0, -5.0, 0.3), (-0.5, -50.0), 0.1, 1.0, 3.0),
}


@pytest.mark.parametrize("name", TERMS)
def test_each_term_alone_is_q_and_has_its_derivative(name):
    alpha, b, g, h, kappa, lam = ALONE[name]
    expected = terms_of(alpha, b, g, h, kappa, lam)
    assert [TERMS[i] for i in np.flatnonzero(expected > 0)] == [name]
    rules = Rules(jnp.asarray(1e-3), h=h, t0=T, kappa=kappa, lam=lam)
    coefficients = Local(np.float64(alpha), np.array(b), np.array(g))
    value, slope = eqx.filter_jit(eqx.filter_value_and_grad(violation))(
        coefficients, jnp.asarray(T), rules
    )
    assert float(value) == pytest.approx(h**2 * expected.max(), rel=1e-12)

    def q(flat):
        return h**2 * np.maximum(terms_of(flat[0], flat[1:4], flat[4:], h, kappa, lam), 0).sum()

    at = np.array([alpha, *b, *g])
    steps = 1e-6 * np.eye(len(at))
    differences = [(q(at + step) - q(at - step)) / 2e-6 for step in steps]
    found = np.concatenate([[slope.alpha], slope.b, slope.g])
    np.testing.assert_allclose(found, differences, rtol=1e-7, atol=1e-9)
    assert np.linalg.norm(found) > 1e-3


def test_without_violations_q_is_zero_and_flat():
    rules = Rules(jnp.asarray(1e-3), h=0.1, t0=T)
    b, g = np.array([1.0, 0.5, 0.3]), np.array([5.0, -50.0])
    assert terms_of(4.0, b, g, 0.1, 1.0, 3.0).max() < 0
    value, slope = eqx.filter_value_and_grad(violation)(
        Local(np.float64(4.0), b, g), jnp.asarray(T), rules
    )
    assert float(value) == 0
    assert all(np.all(np.asarray(leaf) == 0) for leaf in jax.tree.leaves(slope))
