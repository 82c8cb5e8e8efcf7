"""Every kind of coefficients: derivatives, fits, schedules, feasibility."""

import equinox as eqx
import jax
import numpy as np
import pytest

from ode2opt import InputError
from ode2opt.base.precision import jax_precision
from ode2opt.paper import (  # fmt: skip
    Default,
    DefaultCoefficients,
    Feasible,
    Neural,
    Polynomial,
    Spline,
    Table,
    stability_margin,
)

TARGET = DefaultCoefficients(3.0)
T = np.linspace(1.0, 21.0, 301)
KINDS = {
    "default": (Default(1.0), 1e-12),
    "neural": (Neural(), 1e-3),
    "elu": (Neural(activation="elu"), 1e-3),
    "relu": (Neural(activation="relu"), 2e-3),
    "spline": (Spline(), 3e-3),
    "polynomial": (Polynomial(), 1e-3),
    "feasible": (Feasible(), 3e-3),
    "table": (Table([1.0, 2.0], [1.0, 1.0], [1.0, 1.0]), 1e-3),
}
SMOOTH = [name for name in KINDS if name not in ("relu", "table", "elu")]


def jittered(coefficients, seed=0, size=0.05):
    """The same kind with every parameter moved a little."""
    rng = np.random.default_rng(seed)
    arrays, rest = eqx.partition(coefficients, eqx.is_array)
    moved = jax.tree.map(lambda p: p + size * rng.standard_normal(p.shape), arrays)
    return eqx.combine(moved, rest)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_to_reaches_the_given_curves(kind):
    coefficients, accuracy = KINDS[kind]
    found = coefficients.fit_to(TARGET.beta, TARGET.gamma).curves(T)
    np.testing.assert_allclose(found.beta, TARGET.beta(T), rtol=accuracy)
    np.testing.assert_allclose(found.gamma, TARGET.gamma(T), rtol=accuracy)


def test_fit_to_takes_plain_numpy_functions():
    found = Spline().fit_to(lambda t: np.sqrt(float(t)), lambda t: 2 * float(t)).curves(T)
    np.testing.assert_allclose(found.beta, np.sqrt(T), rtol=1e-6)
    np.testing.assert_allclose(found.gamma, 2 * T, rtol=1e-6)


@pytest.mark.parametrize("kind", SMOOTH)
def test_derivatives_are_those_of_the_curves(kind):
    coefficients = jittered(KINDS[kind][0])
    step, inner = 1e-5, np.linspace(1.01, 20.99, 301)
    ends = coefficients.curves(np.array([1.0, 1.0 + 1e-9, 21.0 - 1e-9, 21.0]))
    np.testing.assert_allclose(ends.d2beta[[0, 3]], ends.d2beta[[1, 2]], rtol=1e-5, atol=1e-5)
    low, mid, high = (coefficients.curves(inner + shift) for shift in (-step, 0, step))
    central = lambda name: (getattr(high, name) - getattr(low, name)) / (2 * step)  # noqa: E731
    scale = np.abs(mid.gamma).max()
    np.testing.assert_allclose(mid.dbeta, central("beta"), atol=1e-7 * scale)
    np.testing.assert_allclose(mid.dgamma, central("gamma"), atol=1e-6 * scale)
    if kind != "spline":  # its third derivative jumps at the knots
        np.testing.assert_allclose(mid.d2beta, central("dbeta"), atol=1e-6 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schedule_is_the_discretised_coefficients(kind):
    coefficients = KINDS[kind][0].fit_to(TARGET.beta, TARGET.gamma)
    h, t0, L = 0.04, 1.0, 2.5
    t = t0 + h * np.arange(50)
    curves, schedule = coefficients.curves(t), coefficients.schedule(h, t0, 50, scale=L)
    np.testing.assert_allclose(schedule.a, h * curves.beta / L, rtol=1e-12)
    np.testing.assert_allclose(schedule.c, h**2 * (curves.gamma - curves.dbeta) / L, rtol=1e-10)
    np.testing.assert_allclose(schedule.d, float(coefficients.alpha) * h / t, rtol=1e-12)


def test_default_as_a_module_is_the_plain_formula():
    ours, plain = (
        Default(4.0).schedule(0.04, 1.0, 500, 7.0),
        DefaultCoefficients(4.0).schedule(500, 7.0),
    )
    for name in "acd":
        np.testing.assert_allclose(getattr(ours, name), getattr(plain, name), rtol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_feasible_is_feasible_whatever_its_parameters(seed):
    coefficients = Feasible(margin=0.9)
    rng = np.random.default_rng(seed)
    coefficients = eqx.tree_at(
        lambda c: (c.shape.parameters, c.log_curvature.parameters),
        coefficients,
        (3 * rng.standard_normal(9), rng.standard_normal(9)),
    )
    h, t = 0.04, 1 + 0.04 * np.arange(500)
    schedule, curves = coefficients.schedule(h, 1.0, 500), coefficients.curves(t)
    with jax_precision():
        curvature = np.exp(np.asarray(jax.vmap(coefficients.log_curvature)(t)))
    margins = stability_margin(schedule.a, schedule.c, schedule.d, curvature)
    np.testing.assert_allclose(margins, 0.1, atol=1e-9)
    assert np.all(curves.gamma - curves.dbeta - curves.beta / t > 0)


def test_curves_go_on_straight_beyond_their_ends():
    """In log t: the value and slope at the last knot are kept."""
    for kind in (Spline(), Polynomial()):
        log_beta = np.log(kind.curves(np.array([20.9, 21.0, 30.0, 60.0])).beta)
        slope = (log_beta[1] - log_beta[0]) / np.log(21.0 / 20.9)
        np.testing.assert_allclose(
            log_beta[2:], log_beta[1] + slope * np.log(np.array([30.0, 60.0]) / 21.0), rtol=2e-3
        )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Default(alpha=1.0), "alpha is 1: it must be above 1"),
        (lambda: Default(C=-1.0), "C is -1"),
        (lambda: Neural(alpha=0.5), "alpha is 0.5"),
        (lambda: Neural(activation="softpls"), "did you mean 'softplus'"),
        (lambda: Spline(knots=2), "at least 3 knots"),
        (lambda: Polynomial(degree=0), "degree of at least 1"),
        (lambda: Feasible(margin=1.5), "margin is 1.5"),
        (lambda: Feasible(alpha=30.0), "must exceed alpha h"),
        (lambda: Table([1.0, 1.0], [1.0, 1.0], [1.0, 1.0]), "times must rise"),
        (
            lambda: Table([1.0, 2.0], [-1.0, 1.0], [1.0, 1.0]),
            "beta must be finite and not negative",
        ),
        (lambda: Table([1.0], [1.0], [1.0]), "three rows of one length"),
        (lambda: Default().schedule(0.04, 0.24, 5), r"t0 = 0.24 must exceed alpha h = 0.24"),
        (lambda: Default().schedule(-1.0, 1.0, 5), "h is -1"),
        (lambda: Spline().fit_to(lambda t: -t, lambda t: t), "beta is -21 .* must be positive"),
        (lambda: Spline().fit_to(lambda t: t, lambda t: t * np.nan), "gamma is not finite"),
        (lambda: Spline().fit_to(TARGET.beta, TARGET.gamma, t0=2.0, t1=1.0), "0 < t0 < t1"),
    ],
)
def test_bad_input_is_named(make, said):
    with pytest.raises(InputError, match=said):
        make()
