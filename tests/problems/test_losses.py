"""Single losses against closed forms, their digits far out, their blocks; what is refused."""

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import torch
from support import random_sparse

from ode2opt import (
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Quadratic,
    solve,
)
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.logistic import BLOCK

pytestmark = pytest.mark.usefixtures("x64")


def data(seed=0, N=40, n=6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.6)
    return A, (rng.random(N) < 0.5).astype(float), rng.standard_normal(n), rng.standard_normal(n)


def test_a_sparse_matrix_stays_sparse():
    A, b, *_ = data()
    assert scipy.sparse.issparse(Logistic(scipy.sparse.coo_matrix(A), b).A)


def test_logistic_is_the_negative_log_likelihood():
    A, b, x, _ = data()
    z = A @ x
    expected = -np.mean(b * scipy.special.log_expit(z) + (1 - b) * scipy.special.log_expit(-z))
    assert Logistic(A, b).value(x) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("score", [1e4, -1e4, 40.0, -40.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_logistic_is_safe_far_out(score, label):
    problem = Logistic(np.array([[1.0]]), np.array([label]))
    x = np.array([score])
    sign = 1 if label else -1
    with np.errstate(all="raise", under="ignore"):
        assert problem.value(x) == pytest.approx(-scipy.special.log_expit(sign * score), rel=1e-12)
        expected = -sign * scipy.special.expit(-sign * score)
        np.testing.assert_allclose(problem.gradient(x), [expected], rtol=1e-12)
        assert np.isfinite(problem.hvp(x, x)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_by_blocks_of_rows(dtype, weighted, rng):
    """More rows than a block, scores from the saturated to the tiny, one of them overflowing."""
    N = 2 * BLOCK + 17
    A = (rng.standard_normal((N, 1)) * 10.0 ** rng.uniform(-3, 2, (N, 1))).astype(dtype)
    A[BLOCK + 1] = 1e4
    b = (rng.random(N) < 0.5).astype(dtype)
    weights = rng.random(N) if weighted else np.ones(N)
    problem = Logistic(A, b, weights=weights if weighted else None)
    value, g = problem.value_and_gradient(np.ones(1, dtype=dtype))
    z, weights = A[:, 0].astype(float), weights / weights.sum()
    s = 2.0 * b - 1
    close = {"rtol": 1e-13 if dtype == np.float64 else 2e-5}
    np.testing.assert_allclose(value, -weights @ scipy.special.log_expit(s * z), **close)
    expected = A.T.astype(float) @ (-s * scipy.special.expit(-s * z) * weights)
    np.testing.assert_allclose(g, expected, **close)
    np.testing.assert_allclose(problem.gradient(np.ones(1, dtype=dtype)), g, rtol=0)
    assert g.dtype == dtype
    assert value.dtype == (dtype if np.__version__ >= "2" else np.float64)  # NumPy 1 widens scalars


def test_indices_of_64_bits_become_short_ones(rng):
    A = random_sparse(rng, (30, 5), 0.5)
    long = A.copy()
    long.indices, long.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    problem = Logistic(long, np.arange(30) % 2)
    assert problem.A.indices.dtype == problem.A.indptr.dtype == np.int32
    assert long.indices.dtype == np.int64
    assert (problem.A != A).nnz == 0


def test_least_squares_solves_the_normal_equations():
    A, b, *_ = data()
    solution = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(LeastSquares(A, b).gradient(solution), 0, atol=1e-14)


def test_quadratic_and_its_sparse_form(rng):
    M = rng.standard_normal((12, 12))
    Q, b, x, v = M @ M.T, rng.standard_normal(12), rng.standard_normal(12), rng.standard_normal(12)
    for matrix in (Q, scipy.sparse.csr_array(Q)):
        problem = Quadratic(matrix, b, l2=0.5)
        assert problem.value(x) == pytest.approx(0.5 * x @ Q @ x - b @ x + 0.25 * x @ x)
        assert problem.value_and_gradient(x)[0] == pytest.approx(problem.value(x))
        np.testing.assert_allclose(problem.gradient(x), Q @ x - b + 0.5 * x)
        np.testing.assert_allclose(problem.hvp(x, v), Q @ v + 0.5 * v)
        top = np.linalg.eigvalsh(Q)[-1] + 0.5
        assert problem.smoothness() == pytest.approx(top, rel=1e-6)


@pytest.mark.parametrize("n", [1, 5, 40, 600])
def test_start_is_the_papers(n):
    A, b, *_ = data(N=50, n=n)
    for problem in (Logistic(A, b), Lpp(A, b)):
        uniform = np.full(n, 1 / n)
        gram = np.linalg.eigvalsh(A @ A.T)[-1] / 50
        L = min(gram, 4 * np.linalg.eigvalsh(problem.hessian(uniform))[-1])
        x0, found = problem.start()
        assert found == pytest.approx(L, rel=1e-6)
        np.testing.assert_allclose(x0, uniform - problem.gradient(uniform) / L, rtol=1e-5)


def test_other_floats_become_float64():
    for dtype in (np.float16, np.longdouble, np.int8, bool):
        assert Logistic(np.eye(3).astype(dtype), [0, 1, 1]).dtype == np.float64


@pytest.mark.parametrize("shape", [(700, 600), (30, 600), (600, 30)])
def test_curvature_is_found_on_either_side_of_the_matrix(shape, rng):
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    problem = LeastSquares(A, b, l2=0.7)
    top = np.linalg.svd(A, compute_uv=False)[0] ** 2 / shape[0] + 0.7
    assert problem.smoothness() == pytest.approx(top, rel=1e-6)
    assert problem.scale(np.zeros(shape[1])).L == pytest.approx(top, rel=1e-6)
    quartic = Lpp(A, b, l2=0.7)
    x = rng.standard_normal(shape[1]) / 100
    found, _ = largest_curvature(quartic, x)
    assert found == pytest.approx(np.linalg.eigvalsh(quartic.hessian(x))[-1], rel=1e-6)


def test_float32_stays_float32():
    A, b, x, _ = data()
    problem = Logistic(A.astype(np.float32), b, l2=0.1)
    x = x.astype(np.float32)
    assert problem.gradient(x).dtype == np.float32
    assert problem.hvp(x, x).dtype == np.float32
    assert problem.start().x0.dtype == np.float32


A, B = np.eye(3), np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Logistic([[1.0, np.nan]], [1.0]), r"A\[0, 1\] is nan"),
        (
            lambda: Logistic(scipy.sparse.csr_array([[0, 1.0], [np.inf, 0]]), [0, 1]),
            r"A\[1, 0\] is",
        ),
        (lambda: Logistic(A, [0, 1, np.nan]), r"b\[2\] is nan"),
        (lambda: Logistic(A, [-1.0, 1.0, 1.0]), r"must be 0 or 1 .* but range from -1 to 1"),
        (lambda: Logistic(A, [0.0, 1.0]), r"b has shape \(2,\), but 3"),
        (lambda: Logistic(np.zeros((0, 3)), []), r"0 rows"),
        (lambda: Logistic(np.ones(3), B), r"must be a matrix"),
        (lambda: Logistic(A, B, l2=-1), r"l2 is -1"),
        (lambda: Logistic([["a", "b"]], [1]), r"array of numbers"),
        (lambda: Logistic(A, B + 1j), r"b must hold real numbers"),
        (lambda: Logistic(A + 1j, B), r"A must hold real numbers"),
        (lambda: Logistic(scipy.sparse.csr_array(A + 1j), B), r"A must hold real numbers"),
        (lambda: Logistic(A, B, l2="a"), r"l2 is 'a': it must be a number"),
        (lambda: Lpp(A, B, p=None), r"p is None"),
        (lambda: Logistic(1e200 * A, B).start(), r"scale them"),
        (lambda: Lpp(A, B, p=3), r"p is 3: .* even p"),
        (lambda: Lpp(A, B, p=0), r"p is 0"),
        (lambda: Lpp(A, B, p=2.5), r"p is 2.5"),
        (lambda: Quadratic(np.ones((2, 3)), [1, 1]), r"must be square, not 2 x 3"),
        (lambda: Quadratic([[1.0, 5.0], [0.0, 1.0]], [1, 1]), r"not symmetric"),
    ],
)
def test_bad_input_is_named(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_torch_tensors_that_require_gradients_are_taken_without_their_history():
    A = torch.eye(3, dtype=torch.float64, requires_grad=True)
    b, x0 = A.sum(0), torch.zeros(3, dtype=torch.float64, requires_grad=True)
    result = solve(LeastSquares(A, b), x0)
    assert result.success
    assert not result.x.requires_grad
    np.testing.assert_allclose(result.x, np.ones(3), atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_matrix_times_zero_is_not_formed_and_right(form, intercept, dtype):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((2000, 60)).astype(dtype), np.arange(2000) % 2
    problem = Logistic(form(A), b, l2=0.1, intercept=intercept, offset=b - 0.3)
    slope = 1 / (1 + np.exp(0.3 - b)) - b
    expected = A.T.astype(float) @ slope / 2000
    expected = np.append(expected, slope.mean()) if intercept else expected
    zero = np.zeros(problem.n, dtype)
    value, g = problem.value_and_gradient(zero)
    assert g.dtype == problem.scores(zero).dtype == dtype
    np.testing.assert_allclose(g, expected, atol=100 * np.finfo(dtype).eps)
    loss = np.log1p(np.exp(b - 0.3)) - b * (b - 0.3)
    np.testing.assert_allclose(value, loss.mean(), rtol=1e-5)
    assert problem.scores(zero + 1).dtype == dtype
