"""What a linear model knows of its rows: subsets, sampling errors, curvature not yet seen."""

import numpy as np
import pytest
import scipy.sparse

from ode2opt import LeastSquares, LinearModel, Logistic

ROWS = 40


def data(N=ROWS, n=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.6) * np.logspace(0, 1, n)
    return A, (rng.random(N) < 0.5).astype(float), rng.standard_normal(n) / 5


def test_the_error_of_a_gradient_is_what_samples_show():
    """At the minimum, gradients on rows drawn at random scatter by as much around zero."""
    A, b, _ = data(4000)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    rng, problem = np.random.default_rng(1), LeastSquares(A, b)
    draws = [problem.subset(rng.integers(0, 4000, 4000)).gradient(x) for _ in range(200)]
    seen = np.sqrt(np.mean(np.sum(np.square(draws), axis=1)))
    assert problem.gradient_error(x) == pytest.approx(seen, rel=0.1)


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


def test_operations_of_a_gradient_and_of_a_hessian():
    A, b, _ = data()
    dense, sparse = Logistic(A, b), Logistic(scipy.sparse.csr_array(A), b)
    assert dense.gradient_flops() == 4 * ROWS * 6 + 20 * ROWS
    assert sparse.gradient_flops() == 4 * 4 * np.count_nonzero(A) + 20 * ROWS
    assert dense.hessian_flops() == ROWS * 6 * 7
