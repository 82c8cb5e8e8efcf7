"""The multinomial loss against finite differences, scikit-learn and the logistic loss."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import sklearn.metrics
import torch

from ode2opt import InputError, Logistic, Memory, Softmax, solve
from ode2opt.solvers import METHODS

pytestmark = pytest.mark.usefixtures("x64")

LIBRARIES = {
    "csr": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "jax": jnp.asarray,
    "torch": torch.asarray,
}
N, COLUMNS, CLASSES = 60, 4, 3
FORMS = [
    {},
    {"l2": 0.1, "intercept": True},
    {"l2": 0.1, "intercept": True, "weights": np.arange(N) % 4},
]


def data(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, COLUMNS)) * (rng.random((N, COLUMNS)) < 0.6)
    return A, rng.integers(0, CLASSES, N)


def points(problem, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(problem.n), rng.standard_normal(problem.n)


@pytest.fixture(params=FORMS, ids=["plain", "intercept", "weights"])
def form(request):
    return request.param


def test_value_is_the_log_loss(form):
    A, b = data()
    problem = Softmax(A, b, **form)
    x, _ = points(problem)
    V = x.reshape(-1, CLASSES)
    coef, intercept = (V[:-1], V[-1]) if "intercept" in form else (V, 0)
    p = np.exp(A @ coef + intercept)
    p /= p.sum(axis=1, keepdims=True)
    mean = sklearn.metrics.log_loss(b, p, sample_weight=form.get("weights"))
    expected = mean + form.get("l2", 0) / 2 * np.sum(coef**2)
    assert problem.value(x) == pytest.approx(expected, rel=1e-12)
    assert problem.value_at_zero() == pytest.approx(problem.value(0 * x))


def test_derivatives_are_those_of_the_value(form):
    A, b = data()
    problem, step = Softmax(A, b, **form), 1e-5
    x, v = points(problem)
    slope = (problem.value(x + step * v) - problem.value(x - step * v)) / (2 * step)
    assert problem.gradient(x) @ v == pytest.approx(slope, rel=1e-7)
    change = (problem.gradient(x + step * v) - problem.gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(problem.hvp(x, v), change, rtol=1e-6, atol=1e-9)
    H = problem.hessian(x)
    np.testing.assert_allclose(H @ v, problem.hvp(x, v), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(np.diag(H), problem.hessian_diagonal(x), rtol=1e-12)
    blocks = H.reshape(-1, CLASSES, H.shape[0] // CLASSES, CLASSES)
    own = np.stack([blocks[:, k, :, k] for k in range(CLASSES)])
    np.testing.assert_allclose(problem.class_hessians(x), own, rtol=1e-10, atol=1e-15)
    shared = problem.class_hessians(x, each=False)
    np.testing.assert_allclose(shared, own.mean(axis=0)[None], rtol=1e-10, atol=1e-15)
    here, there = problem.at(x), problem.at(x + 1e-3 * v)
    expected = (problem.gradient(there.x) - problem.gradient(here.x)) / 1e-3
    np.testing.assert_allclose(problem.mean_hvp(here, there, v), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_array_library_gives_the_same_numbers(library):
    A, b = data()
    form = FORMS[-1]
    plain, other = Softmax(A, b, **form), Softmax(LIBRARIES[library](A), b, **form)
    x, v = points(plain)
    there = (lambda u: u) if "csr" in library else LIBRARIES[library]
    value, gradient = other.value_and_gradient(there(x))
    assert float(value) == pytest.approx(plain.value(x), rel=1e-13)
    np.testing.assert_allclose(np.asarray(gradient), plain.gradient(x), rtol=1e-11, atol=1e-15)
    for name in ("hessian", "hessian_diagonal"):
        found = np.asarray(getattr(other, name)(there(x)))
        np.testing.assert_allclose(found, getattr(plain, name)(x), atol=1e-13)
    np.testing.assert_allclose(
        np.asarray(other.hvp(there(x), there(v))), plain.hvp(x, v), atol=1e-13
    )


def test_two_classes_are_the_logistic_loss():
    A, b = data()
    two, logistic = Softmax(A, b > 0, l2=0.1), Logistic(A, b > 0, l2=0.05)
    x = solve(two, tol=1e-10).x.reshape(-1, 2)
    np.testing.assert_allclose(x[:, 1] - x[:, 0], solve(logistic, tol=1e-10).x, atol=1e-8)


def test_the_loss_is_safe_far_out():
    problem = Softmax(np.ones((2, 1)), [0, 2])
    value, g = problem.value_and_gradient(np.array([1e4, 0.0, -1e4]))
    assert value == pytest.approx(1e4)
    np.testing.assert_allclose(g, [0.5, 0, -0.5])


def test_bounds_and_samples_fit_the_whole(form):
    A, b = data()
    problem = Softmax(A, b, **form)
    bound = problem.smoothness()
    for seed in range(10):
        x, _ = points(problem, seed)
        assert np.linalg.eigvalsh(problem.hessian(seed * x))[-1] <= bound
    part = problem.subset(np.arange(N))
    x, _ = points(problem)
    np.testing.assert_allclose(part.gradient(x), problem.gradient(x))
    assert problem.subset(np.flatnonzero(b == 0)).n == problem.n
    rows = [problem.subset(np.array([i])).gradient(x) for i in range(N)] if not form else None
    if rows is not None:
        error = np.sqrt(np.sum(np.square(rows))) / N
        assert problem.gradient_error(x) == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("method", ["auto", "newton", "lbfgs"])
@pytest.mark.parametrize("rows", [N, 4000])
def test_every_method_finds_the_minimum(method, rows, rng):
    A = rng.standard_normal((rows, COLUMNS))
    b = np.argmax(A[:, :CLASSES] + rng.gumbel(size=(rows, CLASSES)), axis=1)
    problem = Softmax(A, b, l2=1e-3, intercept=True)
    assert method in METHODS
    result = solve(problem, method=method, tol=1e-9)
    assert result.success
    assert np.linalg.norm(problem.gradient(result.x)) <= 1e-9


def test_the_metric_that_classes_share_saves_most_evaluations(rng):
    A = rng.standard_normal((500, 12)) @ rng.standard_normal((12, 12))
    b = rng.integers(0, 4, 500)
    problem = Softmax(A, b, l2=1e-3, intercept=True)
    shared, plain = (solve(problem, method=name, tol=1e-6) for name in ("auto", "lbfgs"))
    assert "classes share" in shared.method
    assert shared.oracle_calls < plain.oracle_calls / 3
    np.testing.assert_allclose(shared.fun, plain.fun, rtol=1e-8)


def test_a_memory_learns_from_multinomial_fits(rng):
    memory = Memory()
    for seed in range(3):
        A, b = data(seed)
        assert solve(Softmax(A, b, l2=0.1), memory=memory, tol=1e-8).success
    assert memory.solves == 3


@pytest.mark.parametrize("b", [[0, 1, -1], [0, 1, 1.5], [0, 1, 7]])
def test_labels_that_count_no_class_are_refused(b):
    with pytest.raises(InputError, match="whole numbers from 0 to 2"):
        Softmax(np.eye(3), b, classes=3)
