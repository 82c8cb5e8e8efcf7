"""T, P and Q and their derivatives: against an independent adjoint, and against differences."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adjoint import Adjoint, Curves
from jax.flatten_util import ravel_pytree

from ode2opt import Logistic, Lpp, Problem, solve
from ode2opt.learning import Rules, stopping_time
from ode2opt.paper import (
    L0L1,
    DefaultCoefficients,
    Feasible,
    Neural,
    PowerIteration,
    Spline,
    flow,
    stack,
    to_jax,
)

pytestmark = pytest.mark.usefixtures("x64")

H, T0, EPS = 0.1, 1.0, 5e-3
X0 = np.full(3, 0.5)
SAFETY = 16.0  # so large that p > 0 all the way: a kink would cost the quadrature an order
DEFAULT = DefaultCoefficients(1.3, alpha=4.0, h=H)
CONVERGED = PowerIteration(100, tol=1e-14)


def boosted(t):
    """A gamma above beta/h, so that Q is not zero."""
    return 1.1 * DEFAULT.gamma(t)


def fitted(blank, gamma=boosted):
    return blank.fit_to(DEFAULT.beta, gamma, t1=7.0)


KINDS = {
    "softplus": lambda: fitted(Neural(4.0, width=8, t1=7.0)),
    "relu": lambda: fitted(Neural(4.0, width=8, t1=7.0, activation="relu")),
    "spline": lambda: fitted(Spline(4.0, knots=5, t1=7.0)),
    "feasible": lambda: fitted(Feasible(4.0, h=H, knots=5, t1=7.0), DEFAULT.gamma),
}
PROBLEMS = {
    "logistic": (Logistic, lambda z: _sigmoid(z) * (1 - _sigmoid(z)) * (1 - 2 * _sigmoid(z))),
    "lpp": (Lpp, None),
}


# Each kind once: a ReLU is differentiated by the test of its moving kinks, a spline in a batch.
QUICK_BY_ADJOINT, QUICK_BY_DIFFERENCES = {("softplus", "logistic")}, {"feasible"}


def _sigmoid(z):
    return 1 / (1 + np.exp(-z))


def make(name):
    rng = np.random.default_rng(3)
    kind, third = PROBLEMS[name]
    A = rng.standard_normal((30, 3)) * [1.0, 0.6, 0.3]
    b = rng.integers(0, 2, 30).astype(float)
    problem = kind(A, b, l2=0.01)
    if third is None:
        third = lambda z: 6 * (z - b)  # noqa: E731
    return problem, third


def scale_of(problem):
    return float(np.linalg.eigvalsh(problem.hessian(X0))[-1])


def rules(substeps=1, **options):
    return Rules(jnp.asarray(EPS), SAFETY, h=H, t0=T0, K=35, substeps=substeps, **options)


def along(coefficients, direction):
    """The coefficients' curves and their derivatives along a direction of the parameters."""
    arrays, rest = eqx.partition(coefficients, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)

    @jax.jit
    def values(t):
        def at(step):
            c = eqx.combine(unravel(flat + step * direction), rest)
            return jnp.stack([c.beta(t), c.gamma(t), c.dbeta(t)])

        return jnp.concatenate(jax.jvp(at, (0.0,), (1.0,)))

    remembered = {}

    def curve(i):
        def read(t):
            if t not in remembered:
                remembered[t] = np.asarray(values(jnp.asarray(float(t))))
            return remembered[t][i]

        return read

    return Curves(float(coefficients.alpha), *(curve(i) for i in range(6)))


def steepest(coefficients, slopes, moves_kinks=False):
    """The direction of a gradient in which alpha stays.

    (The adjoint's curves are functions of t alone.) The kinks of a ReLU network stay as well,
    unless asked for: where they move, P jumps.
    """
    relu = not coefficients.smooth and not moves_kinks
    free = {
        name: np.full_like(values, not (name == "alpha" or (relu and "W3" not in name)))
        for name, values in coefficients.parameters().items()
    }
    arrays = eqx.filter(coefficients.with_parameters(free), eqx.is_inexact_array)
    direction = np.asarray(slopes) * np.asarray(ravel_pytree(arrays)[0])
    return direction / np.linalg.norm(direction)


def jacobian(coefficients, problem, scale, rules):
    """The parameters, and a function of them that returns (T, P, Q) and the Jacobian."""
    arrays, rest = eqx.partition(coefficients, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)

    @jax.jit
    @partial(jax.grad, has_aux=True)
    def slope(flat, weights):
        found = stopping_time(
            eqx.combine(unravel(flat), rest), problem, jnp.asarray(X0), scale, rules
        )
        numbers = jnp.stack([found.T, found.P, found.Q])
        return weights @ numbers, numbers

    def both(flat):  # one number at a time: compiled in two thirds of the time of all at once
        slopes, numbers = zip(*(slope(flat, weights) for weights in jnp.eye(3)), strict=True)
        return numbers[0], jnp.stack(slopes)

    return flat, both


def q_of(coefficients, t, kappa=1.0):
    """q times h^2, written out with the curves' derivatives (docs/mathematics.md, section 6)."""
    _, b, g, db, dg, d2b = coefficients.curves(t)
    alpha = float(coefficients.alpha)
    lam = alpha - 1
    s, w = g - db, g - db - b / t
    delta = t**2 * (g - kappa * db) + (kappa * (alpha - 2) - lam) * t * b
    slope = 2 * t * (g - kappa * db) + t**2 * (dg - kappa * d2b)
    slope += (kappa * (alpha - 2) - lam) * (b + t * db)
    terms = [s - b / H, alpha * b / t - s, slope - lam * t * w, -delta, -w, -b, -g]
    return H**2 * sum(np.maximum(term, 0) for term in terms)


def dQ(coefficients, direction, T, dT):
    """int q_theta dt + q(T) dT, the first by differences of the curves."""
    arrays, rest = eqx.partition(coefficients, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)
    t = np.linspace(T0, T, 40_001)
    steps = (1e-6, -1e-6)
    up, down = (
        np.trapezoid(q_of(eqx.combine(unravel(flat + e * direction), rest), t), t) for e in steps
    )
    return (up - down) / 2e-6 + q_of(coefficients, np.array([T]))[0] * dT


EVERY = [
    pytest.param(
        kind, name, marks=[] if (kind, name) in QUICK_BY_ADJOINT else pytest.mark.exhaustive
    )
    for kind in KINDS
    for name in PROBLEMS
]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_derivatives_agree_with_the_adjoint(kind, name):
    (problem, third), coefficients = make(name), KINDS[kind]()
    scale = scale_of(problem)
    finer = 3200 if kind == "relu" else 400  # kinks cost an order
    flat, both = jacobian(
        coefficients, to_jax(problem), jnp.asarray(scale), rules(finer, estimator=CONVERGED)
    )
    (T, P, Q), slopes = both(flat)

    def checked(slope):
        direction = steepest(coefficients, slope)
        curves = along(coefficients, direction)
        return direction, Adjoint(problem, third, curves, X0, scale, EPS, H, T0, SAFETY)

    direction, adjoint = checked(slopes[0])
    assert float(T) == pytest.approx(adjoint.T, rel=1e-6)
    assert slopes[0] @ direction == pytest.approx(adjoint.dT(), rel=1e-5)
    if kind == "relu":
        return  # p jumps where beta bends: no quadrature is exact to 1e-5; see the differences
    direction, adjoint = checked(slopes[1])
    assert float(P) == pytest.approx(adjoint.P(), rel=1e-5)
    assert float(P) > 1e-2
    assert slopes[1] @ direction == pytest.approx(adjoint.dP(), rel=1e-5)
    expected = dQ(coefficients, direction, adjoint.T, adjoint.dT())
    assert slopes[2] @ direction == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert (float(Q) > 1e-3) == (kind != "feasible")


def spline_adjoint(name):
    problem, third = make(name)
    curves = along(KINDS["spline"](), np.arange(11.0) / 10)
    return Adjoint(problem, third, curves, X0, scale_of(problem), EPS, H, T0, SAFETY)


def test_the_start_velocitys_dependence_matters():
    adjoint = spline_adjoint("logistic")
    assert abs(adjoint.dT() - adjoint.dT(with_start=False)) > 1e-2 * abs(adjoint.dT())


def test_the_sequences_dependence_matters():
    """The formula for dP/dtheta needs what the parameters do to x_bar."""
    adjoint = spline_adjoint("lpp")
    assert adjoint.dP() == pytest.approx(-1.015, abs=1e-3)  # as docs/mathematics.md, section 6, has
    assert adjoint.dP(sequence_part=False) == pytest.approx(-1.172, abs=1e-3)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in QUICK_BY_DIFFERENCES else pytest.mark.exhaustive)
        for kind in KINDS
    ],
)
def test_derivatives_agree_with_differences(kind):
    """On the mesh that training uses."""
    problem, _ = make("lpp")
    coefficients, exact = KINDS[kind](), rules(estimator=CONVERGED)
    flat, both = jacobian(coefficients, to_jax(problem), jnp.asarray(scale_of(problem)), exact)
    slopes = np.asarray(both(flat)[1])
    direction = steepest(coefficients, slopes[0] + slopes[1])
    slopes = slopes @ direction
    up, down = (np.asarray(both(flat + e * direction)[0]) for e in (1e-5, -1e-5))
    np.testing.assert_allclose(slopes, (up - down) / 2e-5, rtol=1e-4, atol=1e-8)


def test_moving_kinks_are_differentiated():
    """beta' jumps where a ReLU bends; T does not, and its derivative knows where the bend goes."""
    problem, third = make("lpp")
    coefficients = KINDS["relu"]()
    scale = scale_of(problem)
    flat, both = jacobian(coefficients, to_jax(problem), jnp.asarray(scale), rules(400))
    slopes = np.asarray(both(flat)[1])
    direction = steepest(coefficients, slopes[0], moves_kinks=True)
    slope = slopes[0] @ direction
    arrays, rest = eqx.partition(coefficients, eqx.is_inexact_array)
    _, unravel = ravel_pytree(arrays)
    ends = []
    for step in (1e-4, -1e-4):
        moved = eqx.combine(unravel(flat + step * direction), rest)
        ends.append(Adjoint(problem, third, along(moved, direction), X0, scale, EPS, H, T0, 1.0).T)
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=3e-4)


def found_by(coefficients, problem, scale, **options):
    return stopping_time(coefficients, to_jax(problem), jnp.asarray(X0), scale, rules(**options))


def test_the_stopping_time_converges_to_the_flows():
    """Second order in the step, against an adaptive solver."""
    problem, _ = make("lpp")
    scale = scale_of(problem)
    exact = flow(KINDS["spline"](), problem, X0, t1=8.0, t0=T0, scale=scale, until=EPS).t
    coarse, fine = (
        abs(float(found_by(KINDS["spline"](), problem, jnp.asarray(scale), substeps=m).T - exact))
        for m in (4, 16)
    )
    assert fine < 1e-4
    assert np.log(coarse / fine) / np.log(4) == pytest.approx(2.0, abs=0.3)


def test_a_batch_agrees_with_its_problems_whatever_becomes_of_them():
    """vmap and grad over problems that reach the tolerance, do not, blow up, or were there."""
    rng = np.random.default_rng(0)
    problems = [
        Logistic(rng.standard_normal((30, 3)), rng.integers(0, 2, 30).astype(float), l2=0.05)
        for _ in range(4)
    ]
    scales = [scale_of(problem) for problem in problems]
    scales[1] *= 400.0  # so slow that the horizon ends it
    scales[2] /= 40.0  # so fast that it blows up
    starts = np.tile(X0, (4, 1))
    starts[3] = solve(problems[3], X0, tol=1e-8, method="lbfgs").x
    coefficients = KINDS["spline"]()

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def both(coefficients, batch, starts, scales):
        found = jax.vmap(
            lambda problem, x0, scale: stopping_time(coefficients, problem, x0, scale, rules())
        )(batch, starts, scales)
        return jnp.sum(jnp.where(found.reached, found.T, 0.0)), found

    batch = (stack(problems), jnp.asarray(starts), jnp.asarray(scales))
    (_, together), slopes = both(coefficients, *batch)
    assert together.reached.tolist() == [True, False, False, True]
    assert together.failed.tolist() == [False, False, True, False]
    assert float(together.T[3]) == T0
    for i, problem in enumerate(problems):
        alone = stopping_time(
            coefficients, to_jax(problem), jnp.asarray(starts[i]), jnp.asarray(scales[i]), rules()
        )
        for batched, single in zip(together, alone, strict=True):
            np.testing.assert_allclose(batched[i], single, rtol=1e-9)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))


def test_other_data_of_the_same_shape_does_not_recompile():
    counted = eqx.filter_jit(eqx.debug.assert_max_traces(found_by_arrays, max_traces=1))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        problem = Lpp(rng.standard_normal((20, 3)), rng.standard_normal(20), l2=0.1)
        counted(KINDS["spline"](), to_jax(problem), jnp.asarray(X0), jnp.asarray(2.0 + seed))


def found_by_arrays(coefficients, problem, x0, scale):
    return stopping_time(coefficients, problem, x0, scale, rules())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_averaged_hessian_is_the_integral(name):
    """Two Gauss-Legendre nodes against a fine quadrature; exact for lpp, whose H is quadratic."""
    problem, _ = make(name)
    y, v = X0 + np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -1.0])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    exact = sum(
        w / 2 * problem.hessian(X0 + (1 + t) / 2 * (y - X0)) @ v
        for t, w in zip(nodes, weights, strict=True)
    )
    found = problem.mean_hvp(problem.at(X0), problem.at(y), v)
    np.testing.assert_allclose(found, exact, rtol=1e-12 if name == "lpp" else 1e-3)
    plain = Problem.mean_hvp(problem, problem.at(X0), problem.at(y), v)
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_estimates_along_a_segment_average_those_at_its_points():
    problem, _ = make("lpp")
    twin, y = to_jax(problem), jnp.asarray(X0 + 0.2)
    ends = (twin.at(jnp.asarray(X0)), twin.at(y))
    taus = (np.polynomial.legendre.leggauss(2)[0] + 1) / 2
    points = [X0 + tau * 0.2 for tau in taus]
    top = np.linalg.eigvalsh(np.mean([problem.hessian(p) for p in points], axis=0))[-1]
    power = CONVERGED.along(twin, *ends, CONVERGED.start(twin))
    assert float(power.curvature) == pytest.approx(top, rel=1e-10)
    norm = L0L1(0.5, 2.0)
    expected = 0.5 + 2.0 * np.mean([np.linalg.norm(problem.gradient(p)) for p in points])
    assert float(norm.along(twin, *ends, None).curvature) == pytest.approx(expected, rel=1e-12)
