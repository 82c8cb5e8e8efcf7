"""Deconvolution by FFT against the matrix of the convolution."""

import numpy as np
import pytest
import scipy.linalg

from ode2opt import Deconvolution, InputError, solve
from ode2opt.paper import double, to_jax


def matrix(kernel, n, origin):
    return scipy.linalg.circulant(np.roll(np.append(kernel, np.zeros(n - len(kernel))), -origin))


@pytest.mark.parametrize(("n", "origin"), [(16, 0), (17, 2)])
def test_value_gradient_and_curvature_are_those_of_the_matrix(n, origin):
    rng = np.random.default_rng(n)
    kernel, b, x, v = (rng.standard_normal(size) for size in (4, n, n, n))
    C = matrix(kernel, n, origin)
    problem = Deconvolution(kernel, b, origin=origin)
    residual = C @ x - b
    assert float(problem.value(x)) == pytest.approx(0.5 * residual @ residual)
    np.testing.assert_allclose(problem.gradient(x), C.T @ residual, atol=1e-12)
    value, g = problem.value_and_gradient(x)
    assert value == pytest.approx(0.5 * residual @ residual)
    np.testing.assert_allclose(g, C.T @ residual, atol=1e-12)
    np.testing.assert_allclose(problem.hvp(x, v), C.T @ (C @ v), atol=1e-12)
    np.testing.assert_allclose(problem.hessian_diagonal(x), np.diag(C.T @ C), atol=1e-12)
    exact = np.linalg.norm(C, 2) ** 2
    assert exact <= problem.smoothness() <= exact * (1 + 1e-9)
    error = np.linalg.norm(problem.gradient(x) - C.T @ residual)
    assert error <= problem.gradient_rounding(x)
    found = solve(problem, tol=1e-9)
    np.testing.assert_allclose(found.x, np.linalg.solve(C, b), rtol=1e-5, atol=1e-6)


def test_it_is_the_same_on_jax_arrays():
    rng = np.random.default_rng(0)
    problem, x = Deconvolution(rng.standard_normal(5), rng.standard_normal(12)), np.ones(12)
    traced = to_jax(problem)
    np.testing.assert_allclose(double(traced.gradient)(x), problem.gradient(x), atol=1e-12)


@pytest.mark.parametrize("arguments", [(np.ones(5), np.ones(4), 0), (np.ones(3), np.ones(4), 3)])
def test_a_kernel_that_does_not_fit_is_refused(arguments):
    kernel, b, origin = arguments
    with pytest.raises(InputError, match="must lie within"):
        Deconvolution(kernel, b, origin=origin)
