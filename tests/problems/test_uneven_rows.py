"""A copy by columns where rows are short and uneven: the same numbers, and only there."""

import numpy as np
import pytest
import scipy.sparse

from ode2opt import Logistic, Softmax, solve
from ode2opt.problems import rows
from ode2opt.problems.rows import UnevenRows

N, n = 3000, 20
SMALL = UnevenRows(fewest_entries=1000)


def uneven(seed=0, rows=N, columns=n, share=0.2):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < share)
    return scipy.sparse.csr_array(A), (rng.random(rows) < 0.4).astype(float)


@pytest.fixture(autouse=True)
def small_is_enough(monkeypatch):
    monkeypatch.setattr(rows, "UNEVEN", SMALL)


def test_uneven_short_rows_are_copied_and_others_are_not():
    A, _ = uneven()
    found = SMALL.by_columns(A)
    assert found.format == "csc"
    np.testing.assert_array_equal(found.toarray(), A.toarray())
    alike = scipy.sparse.csr_array((A.data[:9000], A.indices[:9000], np.arange(0, 9001, 3)), (N, n))
    assert SMALL.by_columns(alike) is None
    assert SMALL.by_columns(uneven(columns=60, share=0.5)[0]) is None  # long rows
    assert SMALL.by_columns(uneven(rows=100, columns=300, share=0.04)[0]) is None  # short columns
    assert SMALL.by_columns(uneven(rows=200)[0]) is None  # small


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_derivatives_are_those_of_the_dense_matrix(intercept, dtype):
    A, b = uneven()
    sparse, dense = (
        Logistic(B, b, l2=0.01, intercept=intercept, weights=np.linspace(0, 2, N), offset=b - 0.5)
        for B in (A.astype(dtype), A.toarray().astype(dtype))
    )
    assert sparse.data.multiplied.format == "csc"
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, sparse.n)).astype(dtype)
    close = {"rtol": 2000 * np.finfo(dtype).eps, "atol": 2000 * np.finfo(dtype).eps}
    for name in ("value", "gradient", "hessian", "hessian_diagonal"):
        np.testing.assert_allclose(getattr(sparse, name)(x), getattr(dense, name)(x), **close)
    np.testing.assert_allclose(sparse.hvp(x, v), dense.hvp(x, v), **close)
    assert sparse.gradient(x).dtype == dtype


def test_a_subset_has_its_own_rows():
    A, b = uneven()
    problem = Logistic(A, b, l2=0.01)
    x = np.random.default_rng(2).standard_normal(n)
    rows = np.arange(5, 90)
    few = problem.subset(rows)
    assert few.data.multiplied is few.A
    expected = Logistic(A.toarray()[rows], b[rows], l2=0.01)
    np.testing.assert_allclose(few.gradient(x), expected.gradient(x), atol=1e-14)
    np.testing.assert_allclose(
        problem.penalised(1.0).gradient(x), problem.gradient(x) + 0.99 * x, atol=1e-14
    )


def test_a_solve_finds_the_same_point():
    A, b = uneven()
    found = solve(Logistic(A, b, l2=0.01), tol=1e-10)
    assert found.success
    np.testing.assert_allclose(
        found.x, solve(Logistic(A.toarray(), b, l2=0.01), tol=1e-10).x, atol=1e-8
    )


def test_several_scores_a_row_stay_with_rows():
    A, b = uneven()
    problem = Softmax(A, b, l2=0.01)
    assert problem.data.multiplied is problem.A
