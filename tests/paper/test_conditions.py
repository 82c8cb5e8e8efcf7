"""Conditions against eigenvalues, closed forms and the paper's counterexample."""

import jax
import numpy as np
import pytest
from support import visited

from ode2opt import InputError, Quadratic, Schedule
from ode2opt.paper import (  # fmt: skip
    Default,
    Growth,
    Spline,
    Table,
    best_pair,
    contraction,
    convergence,
    growth,
    largest_stable_C,
    linear_margin,
    stability_margin,
)

DRAWS = 20_000
T = np.linspace(1, 21, 501)


def random_numbers(feasible):
    rng = np.random.default_rng(0)
    if feasible:
        d = rng.uniform(0, 1, DRAWS)
        a = rng.uniform(0, 6, DRAWS)
        return a, a * rng.uniform(d, 1), d, rng.uniform(0, 2, DRAWS)
    a, c = rng.uniform(-1, 5, (2, DRAWS))
    return a, c, rng.uniform(0.001, 1.999, DRAWS), rng.uniform(1e-3, 2, DRAWS)


def radii(a, c, d, mode):
    one, zero = np.ones_like(a), np.zeros_like(a)
    matrices = np.stack([one - a * mode, one + zero, -(c - d * a) * mode, 1 - d], axis=-1)
    return np.abs(np.linalg.eigvals(matrices.reshape(-1, 2, 2))).max(axis=1)


@pytest.mark.parametrize("feasible", [True, False])
def test_rho_is_the_spectral_radius_of_the_one_step_matrix(feasible):
    numbers = random_numbers(feasible)
    found = contraction(*numbers)
    exact = radii(*numbers)
    # Where both eigenvalues meet, numpy's own are good to the square root of rounding only.
    smooth = np.abs(found.C) > 1e-6
    assert np.mean(smooth) > 0.999
    np.testing.assert_allclose(found.rho[smooth], exact[smooth], atol=1e-10)


@pytest.mark.parametrize("feasible", [True, False])
def test_the_exact_condition_is_a_radius_below_one(feasible):
    numbers = random_numbers(feasible)
    exact = radii(*numbers)
    clear = np.abs(exact - 1) > 1e-9
    # linear_margin speaks of all modes up to this one, which decides: conditions are linear in it
    # and hold towards 0 when 0 < d < 2.
    assert np.array_equal(linear_margin(*numbers)[clear] > 0, exact[clear] < 1)


def test_rho_over_a_spectrum_is_at_one_of_its_ends():
    a, c, d, _ = (values[:300, None] for values in random_numbers(True))
    modes = np.linspace(0.05, 2, 200)[None]
    rho = contraction(*np.broadcast_arrays(a, c, d, modes)).rho
    ends = np.maximum(rho[:, 0], rho[:, -1])
    stable = stability_margin(a[:, 0], c[:, 0], d[:, 0], np.full(300, 2.0)) > 0
    assert stable.sum() > 20
    assert np.all(rho[stable].max(axis=1) <= ends[stable] + 1e-12)
    zero = contraction(a[:, 0], c[:, 0], d[:, 0], np.zeros(300)).rho
    np.testing.assert_allclose(zero, 1, atol=1e-12)


def test_the_papers_condition_implies_linear_stability():
    a, c, d, mode = random_numbers(True)
    held = (stability_margin(a, c, d, mode) > 1e-9) & (mode > 0.01) & (c > 1e-6)
    assert held.sum() > 1000
    assert np.all(radii(a, c, d, mode)[held] < 1)


def counterexample(share, K, alpha=6.0, h=0.04):
    t = 1 + h * np.arange(K)
    d = alpha * h / t
    a = share * (1 + np.sqrt(1 - d)) ** 2
    return Schedule(a, a, d), t


def test_the_papers_sequence_theorem_fails_at_equality():
    """Every hypothesis holds with margin zero, and |x_k| grows like t^0.54.

    See docs/mathematics.md, section 3.
    """
    K = 20_000
    schedule, t = counterexample(1.0, K)
    margin = stability_margin(schedule.a, schedule.c, schedule.d, np.ones(K))
    np.testing.assert_allclose(margin, 0, atol=1e-12)
    x = sizes(schedule, K)
    late = slice(K // 10, K, 10)
    growth_rate = np.polyfit(np.log(t[late]), np.log(x[late]), 1)[0]
    assert growth_rate == pytest.approx(0.54, abs=0.03)


def test_with_a_little_less_the_same_sequence_falls_like_the_theorem_says():
    """0.1% less beta: t^-3, which is t^(-alpha/2)."""
    schedule, t = counterexample(0.999, 20_000)
    x = sizes(schedule, 20_000)
    late = np.arange(2_000, 20_000 - 100, 100)
    largest = [x[k : k + 100].max() for k in late]  # the sequence oscillates
    assert np.polyfit(np.log(t[late]), np.log(largest), 1)[0] == pytest.approx(-3, abs=0.1)


def test_with_a_margin_the_same_sequence_decays():
    schedule, _ = counterexample(0.97, 5_000)
    margin = stability_margin(schedule.a, schedule.c, schedule.d, np.ones(5_000))
    np.testing.assert_allclose(margin, 0.03, atol=1e-12)
    x = sizes(schedule, 5_000)
    assert x[-1] < 1e-6 * x[0]


def sizes(schedule, K):
    """|x_k| on f = x^2/2; the largest of neighbours, as the sequence oscillates."""
    points = visited(Quadratic(np.eye(1), np.zeros(1)), np.ones(1), schedule, K)
    x = np.abs(np.array(points)[:K, 0])
    return np.maximum(x, np.roll(x, 1))


def test_the_largest_stable_C():
    assert largest_stable_C() == pytest.approx(3.956, abs=5e-4)
    assert largest_stable_C(corrected=True) == pytest.approx(3.981, abs=5e-4)


def test_convergence_of_the_papers_pair_is_the_short_form():
    """kappa = 1, lam = alpha - 1: delta = t^2 w and t w' <= (alpha - 3) w."""
    coefficients = Spline(6.0).fit_to(lambda t: 1 + t, lambda t: 30 + t**2)
    found, c = convergence(coefficients, T), coefficients.curves(T)
    w = c.gamma - c.dbeta - c.beta / T
    np.testing.assert_allclose(found.delta, w / c.gamma, rtol=1e-9)
    dw = c.dgamma - c.d2beta - c.dbeta / T + c.beta / T**2
    np.testing.assert_allclose(found.slack, (3 * w - T * dw) / c.gamma, rtol=1e-6, atol=1e-9)


def test_the_search_beats_a_grid_of_pairs():
    coefficients = Table(T, 1 + 0.3 * np.sin(T), 5 + T, 4.0)
    best = best_pair(coefficients, T)
    grid = max(
        convergence(coefficients, T, kappa, lam).margin
        for kappa in np.linspace(0.01, 0.99, 15)
        for lam in np.linspace(0.01, 2.99, 15)
    )
    assert best.margin >= grid - 1e-9
    assert 0 < best.kappa < 1
    assert 0 < best.lam < 3


def test_growth_constants_of_known_curves():
    """beta = t, gamma = 10 t: C1 = 1, |gamma'| / (10 t - 1) at t = 1, t / (10 t - 2) at t = 1."""
    coefficients = Table(T, T, 10 * T)
    found = growth(coefficients, T[:-1], 0.04)
    assert found[:3] == pytest.approx((1.0, 10 / 9, 1 / 8), rel=1e-9)
    assert found.limit == pytest.approx(24.0)
    assert found.holds


@pytest.mark.parametrize(
    ("constants", "holds"),
    [
        ((30.0, 1.0, 1.0), True),  # the paper bounds C2 alone
        ((0.0, 24.0, 1e9), True),
        ((1.0, 24.1, 1.0), False),
        ((np.inf, 1.0, 1.0), False),
        ((1.0, 1.0, np.inf), False),
    ],
)
def test_growth_bounds_C2_alone(constants, holds):
    assert Growth(*constants, 24.0).holds is holds


def test_a_spectral_radius_is_no_norm():
    """The numbers of docs/mathematics.md, section 16, which the paper's Theorem 2 trips over."""
    edge = (1 + np.sqrt(0.76)) ** 2  # alpha = 6, h = 0.04, t = 1, curvature 1
    one = contracted(edge, edge, 0.24)
    assert radius_of(one) == pytest.approx(0.872, abs=5e-4)
    assert radius_of(one) <= 1 - 6 * 0.04 / 2
    powers = [np.linalg.norm(np.linalg.matrix_power(one, k), 2) for k in (1, 2, 4, 8)]
    assert powers == pytest.approx([3.86, 6.5, 9.7, 11.2], rel=0.01)
    # Two members that are stable by themselves, taken in turns, are not.
    first, second = (contracted(*row) for row in TURNS)
    assert [radius_of(matrix) for matrix in (first, second)] == pytest.approx([0.872] * 2, abs=5e-4)
    assert radius_of(first @ second) == pytest.approx(3.46, abs=0.01)
    turns = np.array([TURNS[k % 2] for k in range(40)])
    assert sizes(Schedule(*turns.T), 40)[-1] > 1e6


def radius_of(matrix):
    return np.abs(np.linalg.eigvals(matrix)).max()


def contracted(a, c, d):
    """The one-step matrix of (x, u) on a mode of curvature 1."""
    return np.array([[1 - a, 1.0], [-(c - d * a), 1 - d]])


TURNS = ((3.2, 3.2, 0.24), (0.3, 0.3, 0.24))


def test_the_turns_of_the_counterexample_meet_the_papers_condition():
    for (a, c, d), margin in zip(np.array(TURNS)[:, :, None], (0.087, 0.914), strict=True):
        assert stability_margin(a, c, d, np.ones(1))[0] == pytest.approx(margin, abs=1e-3)
        assert linear_margin(a, c, d, np.ones(1))[0] > 0.05


def test_growth_constants_of_the_default_coefficients():
    """beta'' does not vanish here: |gamma' - beta''| / (gamma - beta') by the formulas."""
    C, alpha, h = 2.0, 6.0, 0.04
    beta, slope, bend = C / h - C * alpha / (2 * T), C * alpha / (2 * T**2), -C * alpha / T**3
    found = growth(Default(C), T, h)
    assert found.C1 == pytest.approx(np.max(slope / beta), rel=1e-9)
    assert found.C2 == pytest.approx(np.max(abs(slope / h - bend) / (beta / h - slope)), rel=1e-9)


def test_the_order_of_a_and_c_matters_at_any_curvature():
    """c > a and c < d a violate the paper's condition however small the curvature is."""
    one = np.ones(1)
    for c, d, expected in ((1.2, 0.1, -0.2), (0.3, 0.5, -0.2), (1.0, 0.1, None), (0.5, 0.5, None)):
        margin = stability_margin(one, c * one, d * one, 1e-3 * one)[0]
        assert margin == pytest.approx(expected) if expected else margin > 0.9
    assert stability_margin(-one, -0.5 * one, 0.1 * one, one)[0] < 0
    assert stability_margin(one, 0.5 * one, -0.1 * one, one)[0] < 0


def test_modes_without_curvature_need_friction():
    """At l = 0 the one-step matrix has the eigenvalue 1 - d: stable modes need 0 < d < 2."""
    one = np.ones(1)
    for d in (-0.1, 2.1):
        assert linear_margin(one, 0.5 * one, d * one, 0.9 * one)[0] < 0
        assert radii(one, 0.5 * one, d * one, 1e-6 * one)[0] > 1


def test_margins_work_in_jax_and_have_finite_derivatives(x64):
    a, c, d = np.array([1.0, 2.0]), np.array([1.0, 0.1]), np.array([0.5, 0.5])
    for margin in (stability_margin, linear_margin, lambda *n: contraction(*n).rho):
        ours = margin(a, c, d, np.ones(2))
        traced = jax.jit(margin)(*map(jax.numpy.asarray, (a, c, d, np.ones(2))))
        np.testing.assert_allclose(traced, ours, rtol=1e-12)
        slopes = jax.jacobian(lambda z, m=margin: m(z, *map(jax.numpy.asarray, (c, d)), z / z))(
            jax.numpy.asarray(a)
        )
        assert np.all(np.isfinite(slopes))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: convergence(Default(), T, kappa=0.0), r"kappa is 0: it must lie in \(0, 1\]"),
        (lambda: convergence(Default(), T, kappa=1.5), "kappa is 1.5"),
        (lambda: convergence(Default(), T, lam=6.0), r"lam is 6: .* \(0, 5\]"),
        (lambda: convergence(Default(), T, lam=-1.0), "lam is -1"),
        (lambda: convergence(Default(), np.array([-1.0])), "grid of positive times"),
        (
            lambda: convergence(Default(alpha=60.0), T),
            "beta is negative at t = 1: the theory needs beta >= 0",
        ),
        (lambda: convergence(Table(T, T, T).fit_to(lambda t: t, lambda t: t), T * 0), "positive"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
