"""Problems as JAX sees them."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from ode2opt import InputError, LeastSquares, Logistic, Quadratic
from ode2opt.paper import stack, to_jax
from ode2opt.problems.family import KINDS


@pytest.mark.parametrize("kind", KINDS.values())
def test_problems_of_one_kind_and_shape_are_one_tree(kind, x64):
    """What is compiled for one serves the other: nothing of their data is static."""
    problems = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        b = rng.integers(0, 2, 9).astype(float)
        problem = kind(rng.standard_normal((9, 2)), b, l2=0.1)
        problem.start()
        x = np.ones(problem.n)
        problem.value_and_gradient(x)
        problem.hvp(x, x)
        problems.append(problem)
    one, other = map(to_jax, problems)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for twin, problem in zip((one, other), problems, strict=True):
        assert float(twin.value(x)) == pytest.approx(problem.value(x), rel=1e-12)
        np.testing.assert_allclose(twin.gradient(x), problem.gradient(x), rtol=1e-10, atol=1e-13)


def test_a_batch_has_the_numbers_of_its_problems_in_their_order():
    """Dense, sparse and of single precision, by rows and by columns."""
    rng = np.random.default_rng(0)
    matrices = [np.round(rng.standard_normal((5, 3)) * 4) / 4 for _ in range(6)]
    labels = [rng.integers(0, 2, 5).astype(float) for _ in matrices]
    forms = (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix, np.float32, single)
    given = [form(A) for form, A in zip(forms, matrices, strict=True)]
    batch = stack([Logistic(A, b) for A, b in zip(given, labels, strict=True)])
    assert batch.A.T.dtype == batch.b.dtype == np.float64
    np.testing.assert_array_equal(batch.A.T, np.stack([A.T for A in matrices]))
    np.testing.assert_array_equal(batch.b, np.stack(labels))


def single(A):
    return sp.csr_array(A.astype(np.float32))


def test_a_batch_is_of_one_kind_and_shape():
    A, b = np.eye(3), np.ones(3)
    for other in (LeastSquares(A, b), Logistic(A[:2], b[:2]), Quadratic(A, b)):
        with pytest.raises(InputError, match="different kinds or shapes"):
            stack([Logistic(A, b), other])
