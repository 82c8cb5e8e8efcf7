"""OGM, and Nesterov's method that checks its proof while it runs."""

import subprocess
import sys

import numpy as np
import pytest
from support import visited

from ode2opt import InputError, Logistic, Quadratic, solve
from ode2opt.problems.base import Scale, Start
from ode2opt.problems.function import FunctionProblem
from ode2opt.proofs.theorem import classical_rows, monitored_rows
from ode2opt.solvers import METHODS
from ode2opt.solvers.monitored import violations
from ode2opt.solvers.table import TablePoint


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    return Logistic(rng.standard_normal((80, 10)), rng.integers(0, 2, 80), l2=0.01)


def evaluated(problem, x) -> TablePoint:
    g = problem.gradient(x)
    return TablePoint(x, float(problem.value(x)), g, g)


def at_full_length(problem, rho=1.0):
    """The start with a step constant of which ``nag-monitored`` takes 1/16."""
    x0, L = problem.start()
    return Start(x0, Scale(16 * rho * L, 0, 0.0))


def two_step(problem, x0, L, rows):
    """The points of rows (m, p, q), transcribed."""
    y = before = x0
    g_before, points = 0.0, [y]
    for m, p, q in np.array(rows, float):
        g = problem.gradient(y)
        y, before, g_before = y + m * (y - before) - (p * g - q * g_before) / L, y, g
        points.append(y)
    return points


@pytest.mark.parametrize(
    ("name", "rows"), [("ogm", classical_rows("ogm", 40)), ("nag-monitored", monitored_rows(40))]
)
def test_the_methods_run_the_rows_that_are_proved(problem, name, rows):
    x0, L = problem.start()
    start = at_full_length(problem) if name == "nag-monitored" else problem.start()
    found = visited(problem, start, name, 40)
    np.testing.assert_allclose(found, two_step(problem, x0, L, rows)[: len(found)], atol=1e-10)


@pytest.mark.parametrize("name", ["ogm", "nag-monitored"])
def test_their_schedules_are_these_methods(problem, name):
    """The table's first iteration is idle."""
    start = at_full_length(problem) if name == "nag-monitored" else problem.start()
    table = METHODS[name].schedule(31).scaled(problem.start().L)
    by_table = visited(problem, start, table, 30)
    np.testing.assert_allclose(by_table[1:], visited(problem, start, name, 29), atol=1e-10)


@pytest.mark.parametrize("rho", [2.0**-14, 2.0**-4, 1.0])
def test_it_finds_the_smoothness_wherever_it_begins(rho):
    """Steps of 1/L' with a far too small L' would diverge; each restart costs three moves."""
    problem = Quadratic(np.diag(np.logspace(0, -2, 20)), np.ones(20))
    start = Start(np.zeros(20), Scale(16 * rho, 0, 0.0))
    result = solve(problem, start, method="nag-monitored", tol=1e-6)
    assert result.success
    assert result.method.count("restarted") <= max(0, -np.log2(rho))
    assert result.iterations < 3 * solve(problem, method="nag", tol=1e-6).iterations


def test_the_bound_holds_for_every_point_with_the_violations_counted():
    """Along one run at L' far below L, whose first moves violate the inequality."""
    rng = np.random.default_rng(3)
    problem = Logistic(np.abs(rng.standard_normal((40, 5))), np.ones(40))  # no minimiser
    x0, L = problem.start()
    L /= 8
    points = [evaluated(problem, x) for x in two_step(problem, x0, L, monitored_rows(30))]
    n = [k * (k + 3) / 4 for k in range(32)]
    paid = 0.0
    for k in range(31):
        if k:
            paid += n[k] * max(violations(points[k - 1], points[k], L)[0], 0.0)
        left = points[k].value - points[k].g @ points[k].g / (2 * L)
        for size in (0.1, 1.0, 10.0, 100.0):
            z = size * rng.uniform(-1, 1, 5)
            right = problem.value(z) + (L * (x0 - z) @ (x0 - z) / 2 + paid) / n[k + 1]
            assert left <= right + 1e-12


def test_an_l_smooth_function_never_violates(problem):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    quadratic = Quadratic(A @ A.T, rng.standard_normal(6))
    L = float(np.linalg.norm(A @ A.T, 2))
    for _ in range(50):
        one, other = (rng.standard_normal(6) for _ in range(2))
        one, other = (evaluated(quadratic, x) for x in (one, other))
        assert max(violations(one, other, L)) <= 1e-12
        assert min(violations(one, other, L / 50)) > 0


def test_a_problem_without_values_is_told_what_to_use():
    class Gradients(FunctionProblem):
        def value_and_gradient(self, x):
            raise NotImplementedError

    problem = Gradients(lambda x: 0.0, lambda x: x, n=2)
    with pytest.raises(InputError, match=r"checks its proof by values; .* use method='nag'"):
        solve(problem, np.ones(2), method="nag-monitored")


def test_solving_does_not_load_what_certificates_need():
    code = (
        "import sys, numpy, ode2opt; problem = ode2opt.Quadratic(numpy.eye(2), numpy.ones(2)); "
        "[ode2opt.solve(problem, method=m) for m in ('ogm', 'nag-monitored')]; "
        "print({'clarabel', 'jax', 'PEPit'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
