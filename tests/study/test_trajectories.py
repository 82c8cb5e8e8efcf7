"""Flow and sequence of a method on a problem, against scipy, the solver and the theorem."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support import visited

from ode2opt import InputError, Logistic, Method, Problem, Quadratic, Schedule, solve, trajectories
from ode2opt.base.errors import Ode2OptError
from ode2opt.paper import Default, DefaultCoefficients
from ode2opt.solvers.method_file import Formula
from ode2opt.solvers.metric import Metric

K, H, T0, ALPHA = 60, 0.04, 1.0, 6.0
Q = np.diag([1.0, 4.0, 9.0])
PROBLEM = Quadratic(Q, np.array([1.0, 2.0, 3.0]))
BEST = np.linalg.solve(Q, PROBLEM.b)
X0 = np.array([1.0, -1.0, 2.0])


def learned(**options):
    coefficients = Default(2.0)
    formula = Formula("default", coefficients.settings, coefficients.parameters(), H, T0)
    schedule = coefficients.schedule(H, T0, K)
    return Method(schedule, "quadratic", 1e-6, "family", 9.0, formula=formula, **options)


@pytest.fixture(scope="module")
def both():
    return trajectories(learned(), PROBLEM, X0, minimiser=BEST)


def test_the_flow_is_that_of_the_second_order_equation(both):
    """x'' + alpha/t x' + beta H x' + gamma g = 0 at rest in x0, by scipy."""
    beta = lambda t: (50 - 6 / t) / 9.0  # noqa: E731  C/h - C alpha/(2t) for curvature 9

    def rate(t, state):
        x, v = state[:3], state[3:]
        g = Q @ x - PROBLEM.b
        return np.concatenate([v, -ALPHA / t * v - beta(t) * (Q @ v) - beta(t) / H * g])

    start = np.concatenate([X0, np.zeros(3)])
    found = solve_ivp(rate, (T0, both.flow.t[-1]), start, "DOP853", both.flow.t, rtol=1e-10,
                      atol=1e-12)  # fmt: skip
    assert np.allclose(both.flow.t, T0 + H / 4 * np.arange(4 * K + 1))
    assert np.allclose(both.flow.x, found.y[:3].T, atol=1e-7)


def test_the_sequence_is_that_of_a_solve(both):
    points = visited(PROBLEM, X0, learned(), K)
    assert np.allclose(both.sequence.x[: len(points)], points, rtol=1e-12, atol=1e-14)
    assert np.allclose(both.sequence.t, T0 + H * np.arange(K + 1))
    assert np.allclose(both.distance, np.linalg.norm(both.flow.x[::4] - points, axis=1))


@pytest.mark.parametrize("name", ["flow", "sequence"])
def test_what_is_measured_on_the_way_is_the_problems(both, name):
    path = getattr(both, name)
    for k in (0, 1, K):
        assert path.fun[k] == pytest.approx(PROBLEM.value(path.x[k]), rel=1e-12)
        assert path.grad_norm[k] == pytest.approx(np.linalg.norm(Q @ path.x[k] - PROBLEM.b))


def test_the_lyapunov_function_falls_and_bounds_the_values(both):
    """Theorem 1: f(x(t)) - f* <= E(t0)/delta(t)."""
    E, found = both.flow.energy, both.convergence
    assert found.margin > 0
    assert np.all(np.diff(E) <= 1e-9 * E[0])
    t, kappa, lam = both.flow.t, found.kappa, found.lam
    beta, dbeta = 50 - 6 / t, 6 / t**2
    delta = t**2 * (beta / H - kappa * dbeta) + (kappa * (ALPHA - 2) - lam) * t * beta
    assert np.all((both.flow.fun - PROBLEM.value(BEST)) / 9.0 <= E[0] / delta * (1 + 1e-9))
    away, g = X0 - BEST, (Q @ X0 - PROBLEM.b) / 9.0  # E at t0 = 1, where x' = 0
    first = (
        delta[0] * (PROBLEM.value(X0) - PROBLEM.value(BEST)) / 9.0
        + 0.5 * np.sum((lam * away + kappa * beta[0] * g) ** 2)
        + lam * (1 - kappa) * beta[0] * g @ away
        + kappa * (1 - kappa) / 2 * np.sum((beta[0] * g) ** 2)
        + lam * (ALPHA - 1 - lam) / 2 * away @ away
    )
    assert E[0] == pytest.approx(first, rel=1e-12)
    assert both.sequence.energy[0] == pytest.approx(first, rel=1e-12)


@pytest.mark.exhaustive
def test_the_sequence_nears_the_flow_as_the_step_shrinks():
    """Euler's method is of first order: half the step, half the distance."""
    coefficients = Default(1.0)
    far, near = (
        trajectories(coefficients, PROBLEM, X0, iterations=n, h=0.12 / n, scale=9.0).distance[-1]
        for n in (K, 2 * K)
    )
    assert near / far == pytest.approx(0.5, abs=0.05)


def test_a_method_in_a_metric_moves_as_its_solve_does():
    method = learned(metric=Metric("diagonal", np.array([2.0, 1.0, 0.5]) ** 0.5))
    both = trajectories(method, PROBLEM, X0, minimiser=BEST)
    points = visited(PROBLEM, X0, method, K)
    assert np.allclose(both.sequence.x, points, rtol=1e-10)
    assert np.allclose(both.flow.x[0], X0)
    assert np.all(np.diff(both.flow.energy) <= 1e-9 * both.flow.energy[0])


def test_names_and_default_coefficients_are_taken():
    by_name = trajectories("eigac-c2", PROBLEM, X0, iterations=K)
    plain = trajectories(DefaultCoefficients(2.0), PROBLEM, X0, iterations=K)
    assert by_name.method == "eigac-c2"
    assert np.array_equal(by_name.sequence.x, plain.sequence.x)
    assert by_name.scale == pytest.approx(9.0)
    assert by_name.flow.energy is None
    assert np.array_equal(by_name.flow.x[0], X0)


def test_they_are_shown_and_drawn(both):
    mpl.use("Agg")
    left, right = both.plot()
    names = [line.get_label() for line in (*left.get_lines(), *right.get_lines())]
    assert names == ["flow", "sequence", "E along the flow", "E along the sequence"]
    assert np.array_equal(left.get_lines()[1].get_ydata(), both.sequence.grad_norm)
    left.figure.canvas.draw()
    mpl.pyplot.close(left.figure)
    assert repr(both) == "Trajectories(method for quadratic, 60 iterations, t from 1 to 3.4)"
    assert "margin of convergence" in both._repr_html_()


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("nag", {}, "nag is no inertial system"),
        ("eigac-c3", {}, "did you mean"),
        (3, {}, "method must be"),
        (Schedule([1.0], [1.0], [1.0]), {}, "method must be"),
        (Method(Schedule([1.0], [1.0], [1.0]), "mine", 1e-6), {}, "has no coefficients"),
        ("eigac-c2", {"iterations": 0}, "iterations"),
        ("eigac-c2", {"h": 0.0}, "h "),
        ("eigac-c2", {"t0": 0.1}, "t0 = 0.1 must exceed"),
        ("eigac-c2", {"scale": -1.0}, "scale"),
        ("eigac-c2", {"x0": np.ones(2)}, r"x0 has shape \(2,\)"),
        ("eigac-c2", {"minimiser": np.ones(2)}, r"minimiser has shape \(2,\)"),
        ("eigac-c2", {"minimiser": BEST, "pair": (2.0, 1.0)}, "kappa is 2"),
        ("eigac-c2", {"minimiser": X0, "iterations": K}, "minimiser is none: f is .* on the way"),
    ],
)
def test_what_cannot_be_followed_is_refused(method, options, words):
    with pytest.raises(InputError, match=words):
        trajectories(method, PROBLEM, **options)


def test_a_problem_that_jax_cannot_trace_is_refused():
    problem = Problem.from_function(lambda x: float(x @ x), lambda x: 2 * x, n=3)
    with pytest.raises(InputError, match=r"cannot be traced by JAX"):
        trajectories("eigac-c2", problem, scale=2.0)


@pytest.mark.exhaustive
def test_a_flow_that_is_too_stiff_says_so():
    with pytest.raises(Ode2OptError, match="larger scale than 1e-05"):
        trajectories("eigac-c2", PROBLEM, X0, iterations=100, scale=1e-5)


@pytest.mark.exhaustive
def test_a_logistic_regression_is_followed():
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((20, 3)), rng.integers(0, 2, 20), l2=0.1)
    both = trajectories("eigac-c2", problem, iterations=K, minimiser=solve(problem, tol=1e-12).x)
    assert both.flow.grad_norm[-1] < both.flow.grad_norm[0]


def test_what_is_no_problem_is_told(rng):
    with pytest.raises(InputError, match="problem must be a Problem, not ndarray"):
        trajectories("eigac-c2", rng.standard_normal((4, 2)))
