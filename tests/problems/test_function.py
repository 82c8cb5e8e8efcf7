"""Problems made of plain functions."""

import jax.numpy as jnp
import numpy as np
import pytest
from support import said_without

from ode2opt import InputError, Logistic, Problem, solve


def test_jax_gives_the_gradient_and_hvp_in_double_precision(rng):
    A, b = rng.standard_normal((30, 4)), (rng.random(30) < 0.5).astype(float)
    reference = Logistic(A, b)
    problem = Problem.from_function(
        lambda x: jnp.mean(jnp.logaddexp(0.0, A @ x) - b * (A @ x)), n=4
    )
    x, v = rng.standard_normal(4), rng.standard_normal(4)
    assert problem.value(x) == pytest.approx(reference.value(x), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(x), reference.gradient(x), rtol=1e-11)
    np.testing.assert_allclose(problem.hvp(x, v), reference.hvp(x, v), rtol=1e-11)
    assert problem.scale(x).L == pytest.approx(4 * np.linalg.eigvalsh(reference.hessian(x))[-1])


def test_scale_from_gradients_alone_is_close(rng):
    M = rng.standard_normal((50, 20))
    Q = M.T @ M
    problem = Problem.from_function(lambda x: x @ Q @ x / 2, lambda x: Q @ x, n=20)
    top = np.linalg.eigvalsh(Q)[-1]
    assert problem.scale(rng.standard_normal(20)).L == pytest.approx(4 * top, rel=0.1)


def test_a_gradient_that_reuses_its_buffer_is_safe():
    buffer = np.zeros(2)

    def gradient(x):
        buffer[:] = x - 1
        return buffer

    result = solve(lambda x: ((x - 1) ** 2).sum() / 2, np.zeros(2), jac=gradient)
    assert result.success
    np.testing.assert_allclose(result.x, 1, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Problem.from_function(lambda x: np.float64(str(x)), n=2), "JAX cannot trace"),
        (lambda: Problem.from_function(lambda x: x, n=2), r"returns shape \(2,\)"),
        (lambda: Problem.from_function(lambda x: 0.0, lambda x: x, n=0), "n is 0"),
        (
            lambda: Problem.from_function(lambda x: 0.0, lambda x: x[:1], n=2).gradient(np.ones(2)),
            r"gradient has shape \(1,\)",
        ),
        (
            lambda: Problem.from_function(lambda x: 0.0, lambda x: x, n=2).hvp(
                np.ones(2), np.ones(2)
            ),
            "no Hessian-vector product",
        ),
    ],
)
def test_bad_functions_are_named(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_without_jax_the_error_is_the_line_that_installs_it():
    code = "from ode2opt import Problem; Problem.from_function(lambda x: x @ x, n=2)"
    assert "pip install 'ode2opt[learn]'" in said_without("jax", code)
