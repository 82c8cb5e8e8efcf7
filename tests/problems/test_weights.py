"""Weights, an intercept and an offset: against the same function written out, and scikit-learn."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Memory,
    Poisson,
    SquaredHinge,
    solve,
)
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.jaxed import to_jax

pytestmark = pytest.mark.usefixtures("x64")

ROWS, COLUMNS, L2 = 50, 5, 0.1
KINDS = {
    "logistic": (Logistic, lambda z, b: np.log1p(np.exp(z)) - b * z),
    "lpp": (Lpp, lambda z, b: (z - b) ** 4 / 4),
    "leastsquares": (LeastSquares, lambda z, b: (z - b) ** 2 / 2),
    "poisson": (Poisson, lambda z, b: np.exp(z) - b * z),
    "huber": (
        Huber,
        lambda z, b: np.where(abs(z - b) < 1, (z - b) ** 2 / 2, abs(z - b) - 0.5),
    ),
    "squaredhinge": (SquaredHinge, lambda z, b: np.maximum(0, 1 - (2 * b - 1) * z) ** 2),
}
LIBRARIES = {
    "numpy": np.asarray,
    "csr": scipy.sparse.csr_matrix,
    "jax": jnp.asarray,
    "torch": torch.asarray,
}


class Case:
    """Rows with weights and an offset, and where to look."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.A = rng.standard_normal((ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.7)
        self.b = (rng.random(ROWS) < 0.5).astype(float)
        self.options = {
            "l2": L2,
            "weights": rng.random(ROWS) * (rng.random(ROWS) < 0.9),
            "offset": rng.standard_normal(ROWS),
            "intercept": True,
        }
        self.x, self.v = rng.standard_normal((2, COLUMNS + 1))

    def written_out(self, loss, x):
        z = self.A @ x[:-1] + x[-1] + self.options["offset"]
        return (
            np.average(loss(z, self.b), weights=self.options["weights"]) + L2 / 2 * x[:-1] @ x[:-1]
        )


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("library", LIBRARIES)
def test_value_and_gradient_are_those_of_the_function_written_out(kind, library):
    case, (make, loss) = Case(), kind
    as_array = LIBRARIES["numpy" if library == "csr" else library]
    problem = make(LIBRARIES[library](case.A), as_array(case.b), **case.options)
    assert problem.n == COLUMNS + 1
    value, g = problem.value_and_gradient(as_array(case.x))
    assert float(value) == pytest.approx(case.written_out(loss, case.x), rel=1e-12)
    assert float(problem.value(as_array(case.x))) == pytest.approx(float(value), rel=1e-13)
    assert problem.value_at_zero() == pytest.approx(case.written_out(loss, 0 * case.x), rel=1e-12)
    steps = 1e-6 * np.eye(COLUMNS + 1)
    slopes = [
        (case.written_out(loss, case.x + h) - case.written_out(loss, case.x - h)) / 2e-6
        for h in steps
    ]
    np.testing.assert_allclose(np.asarray(g), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(np.asarray(problem.gradient(as_array(case.x))), np.asarray(g))


@pytest.mark.parametrize("library", LIBRARIES)
def test_second_derivatives_agree(kind, library):
    case, (make, _) = Case(), kind
    as_array = LIBRARIES["numpy" if library == "csr" else library]
    problem = make(LIBRARIES[library](case.A), as_array(case.b), **case.options)
    x = as_array(case.x)
    change = (
        np.asarray(problem.gradient(as_array(case.x + 1e-6 * case.v)))
        - np.asarray(problem.gradient(as_array(case.x - 1e-6 * case.v)))
    ) / 2e-6
    np.testing.assert_allclose(np.asarray(problem.hvp(x, as_array(case.v))), change, atol=1e-6)
    H = np.asarray(problem.hessian(x))
    np.testing.assert_allclose(H @ case.v, np.asarray(problem.hvp(x, as_array(case.v))), atol=1e-12)
    np.testing.assert_allclose(np.asarray(problem.hessian_diagonal(x)), H.diagonal(), rtol=1e-12)
    top = np.linalg.eigvalsh(H)[-1]
    assert largest_curvature(problem, x)[0] == pytest.approx(top, rel=1e-6)
    assert problem.slope_bound is None or problem.smoothness() >= top
    here, there = problem.at(x), problem.at(as_array(case.x + 1e-9))
    np.testing.assert_allclose(
        np.asarray(problem.mean_hvp(here, there, as_array(case.v))), H @ case.v, atol=1e-6
    )


def test_the_traced_problem_is_the_same(kind):
    case, (make, _) = Case(), kind
    problem = make(case.A, case.b, **case.options)
    twin = to_jax(problem)
    np.testing.assert_allclose(twin.gradient(jnp.asarray(case.x)), problem.gradient(case.x))


def test_whole_weights_are_repeated_rows(kind):
    case, (make, _) = Case(), kind
    times = np.random.default_rng(1).integers(0, 4, ROWS)
    weighted = make(case.A, case.b, weights=times, l2=L2)
    repeated = make(np.repeat(case.A, times, axis=0), np.repeat(case.b, times), l2=L2)
    x = case.x[:-1]
    np.testing.assert_allclose(weighted.gradient(x), repeated.gradient(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(weighted.hessian(x), repeated.hessian(x), rtol=1e-12, atol=1e-14)


def test_a_sample_of_all_rows_is_the_problem():
    case = Case()
    problem = Logistic(scipy.sparse.csr_matrix(case.A), case.b, **case.options)
    part = problem.subset(np.arange(ROWS))
    np.testing.assert_array_equal(part.gradient(case.x), problem.gradient(case.x))
    assert part.unseen_curvature(case.x)[-1] == pytest.approx(np.max(problem._bend_shares(case.x)))


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
