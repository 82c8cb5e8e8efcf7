"""Weights, an intercept and an offset: against the same function written out, and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from written_losses import Case

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Memory,
    Poisson,
    SquaredHinge,
    solve,
)


def test_a_sample_of_all_rows_is_the_problem():
    case = Case("logistic", "all")
    problem = case.made("csr")
    part = problem.subset(np.arange(problem.N))
    np.testing.assert_array_equal(part.gradient(case.x), problem.gradient(case.x))
    assert part.unseen_curvature(case.x)[-1] == pytest.approx(problem.largest_bend(case.x))


def table(seed=3, rows=2_000):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, 6)) * np.array([1, 5, 0.2, 1, 1, 1]) + np.array(
        [0, 3, 1, 0, 0, 0]
    )
    A *= rng.random(A.shape) < 0.5
    z = 0.3 * A @ np.array([1, -0.3, 2, 0, 0.5, -1]) - 0.7
    return A, z, rng, rng.random(rows) * 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", ["auto", "newton", "lbfgs"])
def test_logistic_regression_is_that_of_scikit_learn(sparse, method):
    A, z, rng, weights = table()
    b = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float)
    A = scipy.sparse.csr_matrix(A) if sparse else A
    model = LogisticRegression(C=0.3, tol=1e-12, solver="newton-cholesky").fit(
        A.toarray() if sparse else A, b, sample_weight=weights
    )
    problem = Logistic(A, b, l2=1 / (0.3 * weights.sum()), weights=weights, intercept=True)
    result = solve(problem, method=method, tol=1e-9)
    assert result.success
    np.testing.assert_allclose(result.x, [*model.coef_[0], *model.intercept_], atol=1e-7)


def test_poisson_and_ridge_regression_are_those_of_scikit_learn():
    A, z, rng, weights = table()
    counts = rng.poisson(np.exp(z)).astype(float)
    model = PoissonRegressor(alpha=0.1, tol=1e-12, solver="newton-cholesky")
    model.fit(A, counts, sample_weight=weights)
    found = solve(Poisson(A, counts, l2=0.1, weights=weights, intercept=True), tol=1e-9)
    np.testing.assert_allclose(found.x, [*model.coef_, model.intercept_], rtol=1e-6)
    ridge = Ridge(alpha=5.0).fit(A, counts, sample_weight=weights)
    found = solve(
        LeastSquares(A, counts, l2=5.0 / weights.sum(), weights=weights, intercept=True), tol=1e-10
    )
    np.testing.assert_allclose(found.x, [*ridge.coef_, ridge.intercept_], rtol=1e-6)


def test_a_memory_learns_them_too():
    memory = Memory()
    for seed in range(6):
        A, z, rng, weights = table(seed)
        counts = rng.poisson(np.exp(z)).astype(float)
        result = solve(Poisson(A, counts, weights=weights, intercept=True), memory=memory)
        assert result.success
    assert memory.known.n == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": [1.0, -1.0]}, "weights must not be negative"),
        ({"weights": [0.0, 0.0]}, "weights sum to 0"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"weights": [np.nan, 1.0]}, r"weights\[0\] is nan"),
        ({"offset": [1.0, 2.0, 3.0]}, "offset has shape"),
        ({"offset": [np.inf, 2.0]}, r"offset\[0\] is inf"),
    ],
)
def test_weights_and_offsets_that_cannot_be_meant_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Logistic(np.eye(2), [0.0, 1.0], **options)


def test_targets_that_a_loss_is_not_made_for_are_refused():
    with pytest.raises(InputError, match="must not be negative"):
        Poisson(np.eye(2), [1.0, -1.0])
    with pytest.raises(InputError, match="must be 0 or 1"):
        SquaredHinge(np.eye(2), [1.0, -1.0])
    with pytest.raises(InputError, match="delta is 0"):
        Huber(np.eye(2), [1.0, -1.0], delta=0)
