"""What a linear model knows of its rows: subsets, sampling errors, curvature not yet seen."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import torch

from ode2opt import LeastSquares, LinearModel, Logistic, Lpp

pytestmark = pytest.mark.usefixtures("x64")

ROWS = 40
LOSSES = {
    "logistic": lambda A, b: Logistic(A, b, l2=0.1),
    "lpp4": lambda A, b: Lpp(A, b, l2=0.1),
    "lpp6": lambda A, b: Lpp(A, b, p=6),
    "leastsquares": lambda A, b: LeastSquares(A, b, l2=0.2),
}
LIBRARIES = {
    "numpy": np.asarray,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "jax": jnp.asarray,
    "torch": torch.asarray,
}


def data(N=ROWS, n=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.6) * np.logspace(0, 1, n)
    return A, (rng.random(N) < 0.5).astype(float), rng.standard_normal(n) / 5


def there(library, x):
    return x if "csr" in library else LIBRARIES[library](x)


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_subset_is_the_problem_of_its_rows(loss, library):
    A, b, x = data()
    index = np.array([3, 5, 5, 30, 11])
    whole, expected = loss(LIBRARIES[library](A), b), loss(A[index], b[index])
    whole.hvp(there(library, x), there(library, x))  # what is kept for products is not passed on
    part = whole.subset(index)
    assert (part.N, part.rows, part.n, part.l2) == (5, 5, 6, whole.l2)
    assert part.value(x) == pytest.approx(expected.value(x), rel=1e-13)
    np.testing.assert_allclose(part.gradient(x), expected.gradient(x), rtol=1e-12)
    np.testing.assert_allclose(part.hvp(x, x), expected.hvp(x, x), rtol=1e-12)
    np.testing.assert_allclose(part.hessian(x), expected.hessian(x), atol=1e-12)
    assert whole.N == ROWS
    assert float(whole.value(there(library, x))) == pytest.approx(loss(A, b).value(x))


@pytest.mark.parametrize("library", LIBRARIES)
def test_loss_and_slope_are_loss_and_slope(loss, library):
    A, b, _ = data()
    problem = loss(LIBRARIES[library](A), b)
    for size in (1e-3, 1.0, 40.0, 1e4):
        z = there(library, size * np.random.default_rng(1).standard_normal(ROWS))
        both = problem.loss_and_slope(z)
        for found, alone in zip(both, (problem.loss(z), problem.slope(z)), strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(alone), rtol=1e-14)


def test_slope_and_bend_are_derivatives_of_the_loss(loss):
    A, b, _ = data()
    problem, z, h = loss(A, b), np.linspace(-3, 3, ROWS) + 0.01, 1e-5
    slope = (problem.loss(z + h) - problem.loss(z - h)) / (2 * h)
    bend = (problem.slope(z + h) - problem.slope(z - h)) / (2 * h)
    np.testing.assert_allclose(problem.slope(z), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(problem.bend(z), bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_error_of_a_gradient_is_that_of_a_mean_of_rows(loss, library):
    A, b, x = data()
    problem = loss(LIBRARIES[library](A), b)
    rows = problem.slope(there(library, A @ x))
    rows = np.asarray(rows)[:, None] * A  # the gradients of the rows
    expected = np.sqrt(np.mean(np.sum(rows**2, axis=1)) / len(rows))
    assert problem.gradient_error(there(library, x)) == pytest.approx(expected, rel=1e-12)


def test_the_error_of_a_gradient_is_what_samples_show():
    """At the minimum, gradients on rows drawn at random scatter by as much around zero."""
    A, b, _ = data(4000)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    rng, problem = np.random.default_rng(1), LeastSquares(A, b)
    draws = [problem.subset(rng.integers(0, 4000, 4000)).gradient(x) for _ in range(200)]
    seen = np.sqrt(np.mean(np.sum(np.square(draws), axis=1)))
    assert problem.gradient_error(x) == pytest.approx(seen, rel=0.1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_unseen_curvature_is_what_the_largest_row_would_add(loss, library):
    A, b, x = data()
    problem = loss(LIBRARIES[library](A), b)
    found = problem.unseen_curvature(there(library, x))
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    bend = np.asarray(problem.bend(there(library, A @ x)))
    np.testing.assert_allclose(
        found, bend.max() / ROWS * np.max(np.abs(A), axis=0) ** 2, rtol=1e-12
    )


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_columns_of_zeros_are_given_the_mean_of_the_others(form):
    A, b, x = data()
    A[:, [0, 3]] = 0
    found = LeastSquares(form(A), b).unseen_curvature(x)
    others = found[[1, 2, 4, 5]]
    np.testing.assert_allclose(found[[0, 3]], others.mean())
    np.testing.assert_allclose(others, np.max(A[:, [1, 2, 4, 5]] ** 2, axis=0) / ROWS)
    nothing = LeastSquares(form(np.zeros((5, 2))), np.ones(5)).unseen_curvature(np.zeros(2))
    np.testing.assert_allclose(nothing, 1 / 5)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_point_that_is_changed_in_place_is_another_point(loss, form):
    """Products come in rows at one point, so what they share is kept."""
    A, b, x = data()
    problem, v = loss(form(A), b), np.ones(6)
    first = problem.hvp(x, v)
    x *= -3
    fresh = loss(form(A), b)
    np.testing.assert_array_equal(problem.hvp(x, v), fresh.hvp(x, v))
    x[2] += 1e-9
    for name in ("hessian", "hessian_diagonal", "unseen_curvature"):
        asked, expected = (getattr(p, name)(x) for p in (problem, loss(form(A), b)))
        np.testing.assert_array_equal(asked, expected)
    x += 1e-9
    asked = problem.hvp(x, v)
    asked[:] = 0  # the caller may overwrite what it was given
    np.testing.assert_array_equal(problem.hvp(x, v), loss(form(A), b).hvp(x, v))
    assert not np.array_equal(first, problem.hvp(x, v)) or isinstance(problem, LeastSquares)


@pytest.mark.parametrize("name", ["curvature", "bend"])
def test_products_at_one_point_share_its_curvature_whatever_its_name(name):
    def counting(self, z):
        self.bends += 1
        return getattr(super(type(self), self), name)(z)

    A, b, x = data()
    problem = type("Counted", (Logistic,), {"bends": 0, name: counting})(A, b)
    for _ in range(5):
        problem.hvp(x, x)
    problem.hessian(x)
    assert problem.bends == 1
    problem.hvp(x + 1, x)
    problem.hvp(x, x)
    assert problem.bends == 3


def test_a_class_without_a_loss_says_what_it_lacks():
    class Half(LinearModel):
        def loss(self, z):
            return z

    with pytest.raises(TypeError, match="Half needs the methods slope, curvature"):
        Half(np.eye(2), np.ones(2))


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_diagonal_is_that_of_the_hessian(loss, library):
    A, b, x = data()
    problem = loss(LIBRARIES[library](A), b)
    expected = np.diag(np.asarray(problem.hessian(there(library, x))))
    found = np.asarray(problem.hessian_diagonal(there(library, x)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_operations_of_a_gradient_and_of_a_hessian():
    A, b, _ = data()
    dense, sparse = Logistic(A, b), Logistic(scipy.sparse.csr_array(A), b)
    assert dense.gradient_flops() == 4 * ROWS * 6 + 20 * ROWS
    assert sparse.gradient_flops() == 4 * 4 * np.count_nonzero(A) + 20 * ROWS
    assert dense.hessian_flops() == ROWS * 6 * 7
