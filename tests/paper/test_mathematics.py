"""Numbers and claims of docs/mathematics.md that no other test computes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Schedule
from ode2opt.paper import Default, Feasible, Proved, convergence, growth, stability_margin
from ode2opt.proofs import theorem_of

H = 0.04


class DyingOut(Default):
    """beta = c/t^3, gamma = ratio beta/h + beta' (section 3)."""

    c: float = eqx.field(static=True)
    ratio: float = eqx.field(static=True)

    def __init__(self, c, ratio):
        super().__init__(1.0)
        self.c, self.ratio = c, ratio

    def beta(self, t):
        return self.c / t**3

    def gamma(self, t):
        return self.ratio * self.beta(t) / H - 3 * self.c / t**4


def limit_of(schedule):
    """Where EIGAC on x^2/2 goes from 1, the position being its limit + a constant/t in the end."""
    K = len(schedule)
    (x, u), ends = (1.0, schedule.a[0]), []
    for k, (a, c, d) in enumerate(zip(schedule.a, schedule.c, schedule.d, strict=True), 1):
        e = u - a * x
        x, u = x + e, u - d * e - c * x
        if k in (K // 5, K):
            ends.append((x, 1 / (1 + H * k)))
    (x1, r1), (x2, r2) = ends
    return x2 - r2 * (x1 - x2) / (r1 - r2)


@pytest.mark.parametrize(
    ("c", "ratio", "limit", "used"),
    [
        (0.5 / H, 1.0, -1.76e-5, 0.378),
        (0.02 / H, 1.0, 0.0366, 0.0756),
        (0.5 / H, 0.9, -5.27e-6, 0.402),
        (0.02 / H, 0.9, 0.0633, 0.0804),
    ],
)
def test_the_printed_theorem_2_fails_with_a_margin_as_well(c, ratio, limit, used):
    """All hypotheses hold with room (for ratio 1 c = a is an edge), and x_k does not go to 0."""
    coefficients, t = DyingOut(c, ratio), np.concatenate([np.linspace(1, 21, 500), [1e2, 1e4, 1e6]])
    for kappa, lam in ((1.0, 5.0), (0.5, 3.0), (0.8, 4.0)):
        assert convergence(coefficients, t, kappa, lam).margin > 0.8
    found = growth(coefficients, t, H)
    assert found.holds
    assert (found.C1, found.C2) == pytest.approx((3, 3))
    assert found.C3 == pytest.approx(1 / (ratio / H - 1))
    schedule = coefficients.schedule(H, 1.0, 200_000)
    a, c_k, d = schedule.a, schedule.c, schedule.d
    np.testing.assert_allclose(c_k / a, ratio)
    assert np.all(d < ratio)
    room = stability_margin(a, c_k, d, np.ones(len(a)))
    assert np.sqrt(1 - room.min()) == pytest.approx(used, rel=5e-3)
    assert limit_of(schedule) == pytest.approx(limit, rel=5e-3)


def test_the_contraction_of_the_printed_proof_fails_at_small_curvatures():
    """rho <= 1 - d/2 if and only if the curvature is at least d^2/(4c - 2ad) (section 16)."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        d = rng.uniform(0.01, 0.9)
        ratio = rng.uniform(d, 1)
        a = rng.uniform(0, 1) * (np.sqrt(ratio) + np.sqrt(ratio - d)) ** 2
        least = d**2 / (4 * ratio * a - 2 * a * d)
        for curvature, holds in ((0.98 * least, False), (1.02 * least, True)):
            if curvature > 1:
                continue
            step = [[1 - a * curvature, 1], [-(ratio - d) * a * curvature, 1 - d]]
            assert (np.abs(np.linalg.eigvals(step)).max() <= 1 - d / 2) == holds


@pytest.mark.parametrize(("s", "value"), [(0.25, 0.0833), (0.6, 0.0385), (1.0, 0.0238)])
def test_gradient_descent_with_a_constant_step_meets_its_bounds(s, value):
    """A Huber function attains L R^2/(4 N s L + 2): with short steps above 1/(4N + 2), 1/(2N)."""
    N = 10
    kink = 1 / (2 * N * s + 1)
    x = 1.0
    for _ in range(N):
        x -= s * np.clip(x, -kink, kink)
    reached = kink * (x - kink / 2)
    found = theorem_of(Schedule.gradient_descent(s, N + 1))
    assert reached == pytest.approx(value, rel=2e-3)
    assert reached == pytest.approx(found.bound)
    assert reached <= found.any_point == pytest.approx(1 / (2 * N * s))
    assert (reached > 1 / (2 * N)) == (s < 0.4)


@pytest.mark.parametrize("alpha", [3.2, 3.5, 3.9])
def test_where_nesterovs_coefficients_meet_theorem_1(alpha):
    """With (1, alpha - 1) from t0 = 2h(alpha - 2)/(alpha - 3) on, and not before (section 15.1)."""
    edge = 2 * H * (alpha - 2) / (alpha - 3)
    nesterov = Proved(alpha, t0=30 * H)  # eta = 1: at every t
    after, before = (
        convergence(nesterov, edge * share * np.linspace(1, end, 50), 1.0, alpha - 1).slack
        for share, end in ((1.001, 100.0), (0.999, 1.0))
    )
    assert after.min() > 0 > before.max()


def test_the_step_enters_a_sequence_only_as_a_share_of_the_first_time():
    small, large = (Default(2.0, h=h).schedule(h, 25 * h, 100) for h in (0.04, 0.4))
    for name in "acd":
        np.testing.assert_allclose(getattr(small, name), getattr(large, name), rtol=1e-12)


def test_nesterovs_sequence_begins_with_a_plain_gradient_step():
    """No iterate depends on the momenta mu_0 and mu_1 (section 2)."""
    mu = np.array([0.0, 0.0, 0.3, 0.5, 0.6, 0.7])
    ends = []
    for first in ([0.0, 0.0], [0.9, 0.7]):
        schedule = Schedule.nesterov(0.5, np.array([*first, *mu[2:]]))
        x, u, points = 1.0, schedule.a[0], []
        for a, c, d in zip(schedule.a, schedule.c, schedule.d, strict=True):
            e = u - a * x
            x, u = x + e, u - d * e - c * x
            points.append(x)
        ends.append(points)
    assert ends[0][:2] == pytest.approx([1.0, 0.5])
    assert ends[0] == pytest.approx(ends[1])


def test_feasible_coefficients_may_miss_theorem_1_and_a_positive_gamma():
    t = np.linspace(1, 21, 200)
    blank = Feasible()
    knots = np.linspace(0, 1, len(blank.log_curvature.parameters))
    rising, falling = (
        eqx.tree_at(lambda f: f.log_curvature.parameters, blank, slope * knots)
        for slope in (150.0, -40.0)
    )
    curves = rising.curves(t)
    assert curves.gamma.min() < 0
    assert np.all(curves.gamma - curves.dbeta - curves.beta / t > 0)  # w
    assert convergence(falling, t).slack.min() < 0  # delta' > lam t w


def test_what_automatic_differentiation_makes_of_a_kink():
    """Both are z: a conservative gradient need not be a subgradient (section 17)."""
    by_max = jax.grad(lambda z: jnp.maximum(z, 0.0) - jnp.maximum(-z, 0.0))
    by_relu = jax.grad(lambda z: jax.nn.relu(z) - jax.nn.relu(-z))
    assert (float(by_max(0.0)), float(by_relu(0.0))) == (1.0, 0.0)
