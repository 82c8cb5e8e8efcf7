"""The multinomial loss against finite differences, scikit-learn and the logistic loss."""

import numpy as np
import pytest
import scipy.special
import sklearn.metrics

from ode2opt import InputError, Logistic, Memory, Softmax, solve
from ode2opt.solvers import METHODS

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
    assert problem.subset(np.flatnonzero(b == 0)).n == problem.n


def test_the_value_is_the_log_loss_of_scikit_learn(form):
    A, b = data()
    problem = Softmax(A, b, **form)
    V = points(problem)[0].reshape(-1, CLASSES)
    coef, intercept = (V[:-1], V[-1]) if "intercept" in form else (V, 0)
    p = scipy.special.softmax(A @ coef + intercept, axis=1)
    mean = sklearn.metrics.log_loss(b, p, sample_weight=form.get("weights"))
    expected = mean + form.get("l2", 0) / 2 * np.sum(coef**2)
    assert problem.value(V.ravel()) == pytest.approx(expected, rel=1e-12)


def test_hessians_of_classes_are_the_diagonal_blocks(form):
    problem = Softmax(*data(), **form)
    x, _ = points(problem)
    H = problem.hessian(x)
    blocks = H.reshape(-1, CLASSES, H.shape[0] // CLASSES, CLASSES)
    own = np.stack([blocks[:, k, :, k] for k in range(CLASSES)])
    np.testing.assert_allclose(problem.class_hessians(x), own, rtol=1e-10, atol=1e-15)
    shared = problem.class_hessians(x, each=False)
    np.testing.assert_allclose(shared, own.mean(axis=0)[None], rtol=1e-10, atol=1e-15)


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
