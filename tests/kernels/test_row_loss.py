"""Losses of users: plain functions of one row, compiled, against their methods on arrays."""

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("numba")

from ode2opt import InputError, LinearModel, solve
from ode2opt.kernels import RowLoss

rng = np.random.default_rng(0)
A, b = rng.standard_normal((700, 13)), rng.standard_normal(700)
X = rng.standard_normal(13)


def log_cosh(z, b):
    r = abs(z - b)
    return r + math.log1p(math.exp(-2 * r)) - math.log(2.0)


def tanh(z, b):
    return math.tanh(z - b)


class LogCosh(LinearModel):
    kernel = RowLoss(log_cosh, tanh)

    def loss(self, z):
        return np.logaddexp(z - self.b, self.b - z) - np.log(2.0)

    def slope(self, z):
        return np.tanh(z - self.b)

    def bend(self, z):
        return 1 / np.cosh(z - self.b) ** 2


class Quantile(LinearModel):
    """A smooth quantile loss, with a parameter."""

    kernel = RowLoss(
        lambda z, b, share: share * (z - b) + math.log1p(math.exp(b - z)),
        lambda z, b, share: share - 1 / (1 + math.exp(z - b)),
        parameter="share",
    )
    share = 0.3

    def loss(self, z):
        return self.share * (z - self.b) + np.log1p(np.exp(self.b - z))

    def slope(self, z):
        return self.share - 1 / (1 + np.exp(z - self.b))

    def bend(self, z):
        e = np.exp(-abs(z - self.b))
        return e / (1 + e) ** 2


@pytest.mark.parametrize("kind", [LogCosh, Quantile])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 3e-6)])
def test_functions_of_one_row_are_compiled(kind, dtype, tolerance, passes, numpy_form):
    weights, offset = rng.random(700), rng.standard_normal(700)
    problem = kind(A.astype(dtype), b, weights=weights, offset=offset, intercept=True, l2=0.1)
    x = np.append(X, 0.3).astype(dtype)
    problem.gradient(x)
    passes.clear()
    value, g = problem.value_and_gradient(x)
    assert passes == [np.dtype(dtype).name]
    expected = numpy_form(lambda: problem.value_and_gradient(x))
    assert len(passes) == 1
    assert value == pytest.approx(expected[0], rel=tolerance)
    np.testing.assert_allclose(g, expected[1], atol=tolerance * np.max(np.abs(expected[1])))


def test_a_solve_with_functions_of_one_row_ends_at_the_same_point(numpy_form):
    problem = LogCosh(A, b, l2=0.01)
    found = solve(problem, tol=1e-10).x
    np.testing.assert_allclose(found, numpy_form(lambda: solve(problem, tol=1e-10).x), atol=1e-8)


def test_functions_that_do_not_compile_are_told_once_and_numpy_goes_on(numpy_form, passes):
    class Written(LogCosh):
        kernel = RowLoss(log_cosh, lambda z, b: float(f"{z - b}"))

    problem = Written(A, b)
    with pytest.warns(RuntimeWarning, match=r"numba cannot compile.*NumPy"):
        found = problem.gradient(X)
    np.testing.assert_array_equal(found, numpy_form(lambda: problem.gradient(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not problem.has_kernel
        assert solve(problem, tol=1e-6).success
    assert passes == ["float64"] * len(passes)  # Hessian products need no loss


@pytest.mark.parametrize("wrong", ["loss", "slope"])
def test_functions_of_another_loss_are_refused(wrong):
    functions = {"loss": log_cosh, "slope": tanh, wrong: lambda z, b: 2 * math.tanh(z - b)}

    class Wrong(LogCosh):
        kernel = RowLoss(**functions)

    with pytest.raises(InputError, match=f"The kernel of Wrong has another {wrong}"):
        Wrong(A, b).gradient(X)


def test_a_subclass_with_a_loss_of_its_own_has_no_kernel(passes):
    class Steeper(LogCosh):
        def slope(self, z):
            return 2 * super().slope(z)

    assert not Steeper(A, b).has_kernel
    Steeper(A, b).gradient(X)
    assert passes == []
