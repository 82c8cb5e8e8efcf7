"""A smoothness constant bounds the eigenvalues of the Hessian at every point, and is tight."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import torch
from support import random_sparse

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    LinearModel,
    Logistic,
    Lpp,
    Poisson,
    Problem,
    Quadratic,
    Softmax,
    SquaredHinge,
)
from ode2opt.problems import ScaledHuber, smoothness
from ode2opt.problems.parts import Parts
from ode2opt.problems.smoothness import CurvatureBound
from ode2opt.problems.transformed import Transformed
from ode2opt.solvers.metric import Metric

pytestmark = pytest.mark.usefixtures("x64")

N, n = 30, 6
LOSSES = {
    "logistic": lambda A, b, **o: Logistic(A, b, **o),
    "leastsquares": lambda A, b, **o: LeastSquares(A, b, **o),
    "huber": lambda A, b, **o: Huber(A, b, delta=0.7, **o),
    "squaredhinge": lambda A, b, **o: SquaredHinge(A, b, **o),
    "softmax": lambda A, b, **o: Softmax(A, np.arange(len(b)) % 3, **o),
}
OPTIONS = {
    "plain": {},
    "penalised": {"l2": 0.3},
    "intercept": {"l2": 1e-3, "intercept": True},
    "weights": {"l2": 1e-3, "intercept": True, "weights": np.linspace(0, 3, N)},
}


def rows(seed=0, shape=(N, n), share=0.6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape) * (rng.random(shape) < share) * np.logspace(0, -1, shape[1])
    return A, (rng.random(shape[0]) < 0.5).astype(float)


def metrics(problem, seed=1):
    """None, and a preconditioner of every kind; the spectral one is that of Newton's method."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.standard_normal(problem.n))
    V, _ = np.linalg.qr(rng.standard_normal((problem.n, 2)))
    H = np.asarray(problem.hessian_bound()) + 1e-3 * np.eye(problem.n)
    return {
        "none": None,
        "diagonal": Metric("diagonal", scale),
        "lowrank": Metric("lowrank", scale, V, np.array([-0.7, 3.0])),
        "shrinking": Metric("lowrank", scale, V, np.array([-0.9, -0.99])),
        "spectral": Metric.inverse_of(H),
    }


def points(problem, seed=2):
    """Points of all sizes, and those where most rows have their largest second derivative."""
    rng = np.random.default_rng(seed)
    yield np.zeros(problem.n)
    for power in np.linspace(-3, 3, 6):
        yield 10**power * rng.standard_normal(problem.n)
    if isinstance(problem, Huber):
        yield np.linalg.lstsq(problem.A, problem.b)[0] if not problem.intercept else 0
    if isinstance(problem, Softmax):  # two classes share all rows: the bound of 1/2 is met
        yield np.tile([0.0, 0.0, -1e3], problem.n // 3) if problem.intercept else 0


def top(problem, x, metric):
    H = np.asarray(problem.hessian(x + np.zeros(problem.n)))
    S = np.eye(problem.n) if metric is None else metric.matrix()
    return np.linalg.eigvalsh(S.T @ H @ S)[-1]


def longest(metric):
    """At least the norm of S."""
    if metric is None:
        return 1.0
    stretch = 0.0 if metric.stretch is None else max(metric.stretch.max(), 0.0)
    return metric.scale.max() * (1 + stretch) * (1 + 1e-5)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_hessian_exceeds_it(loss, options):
    problem = LOSSES[loss](*rows(), **OPTIONS[options])
    for metric in metrics(problem).values():
        L = problem.smoothness(metric)
        assert all(top(problem, x, metric) <= L for x in points(problem))


@pytest.mark.parametrize("kind", ["none", "diagonal", "lowrank", "shrinking", "spectral"])
def test_it_is_met_where_rows_bend_most(kind):
    """At 0 logistic rows bend by 1/4 each, those of squares by 1 everywhere, of hinges by 2."""
    A, b = rows()
    for problem in (
        Logistic(A, b, l2=1e-2, intercept=True),
        LeastSquares(A, b, l2=1e-2),
        SquaredHinge(A, b, l2=1e-2, intercept=True, intercept_l2=0.5),
        Softmax(A, b, l2=1e-2),
        Quadratic(A.T @ A, b[:n], l2=0.1),
        Quadratic(scipy.sparse.csr_array(A.T @ A), b[:n]),
    ):
        metric = metrics(problem)[kind]
        assert problem.smoothness(metric) == pytest.approx(
            top(problem, np.zeros(problem.n), metric), rel=1e-10
        )


def test_a_line_through_all_classes_costs_softmax_nothing():
    """Adding the same to every class's score has no curvature: a preconditioner may stretch it."""
    problem = Softmax(*rows()[:1], np.arange(N) % 3, l2=1e-6, intercept=True, classes=3)
    H = problem.hessian(np.zeros(problem.n)) + 1e-6 * np.eye(problem.n)
    assert problem.smoothness(Metric.inverse_of(H)) < 2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("few_rows", [False, True])
def test_wide_problems_have_a_bound_too(loss, sparse, few_rows, monkeypatch):
    """As if n and N were large: by rows where these are fewer, else by absolute values."""
    A, b = rows(shape=(N, 8))
    A = scipy.sparse.csr_array(A) if sparse else A
    problem = LOSSES[loss](A, b, **OPTIONS["weights"])
    kinds = metrics(problem)
    exact = {kind: problem.smoothness(metric) for kind, metric in kinds.items()}
    monkeypatch.setattr(smoothness, "BOUND", CurvatureBound(exact=0))
    monkeypatch.setattr(smoothness, "_few_rows", lambda problem: few_rows)
    for kind, metric in kinds.items():
        L = problem.smoothness(metric)
        assert L >= exact[kind] * (1 - 1e-12)
        assert all(top(problem, x, metric) <= L for x in points(problem))
        if few_rows and (problem.width == 1 or metric is None):
            assert L <= (exact[kind] + 1e-3 * longest(metric) ** 2) * (1 + 1e-9)
        elif metric is None:
            assert L <= 3 * exact[kind]


def test_a_wide_matrix_of_one_sign_has_a_tight_one(rng):
    """Text, counts, categories: the bound by absolute values is the eigenvalue."""
    A = random_sparse(rng, (3_000, 2_500), 0.002)
    problem = LeastSquares(A, np.zeros(3_000), l2=1e-3)
    L = problem.smoothness()
    exact = scipy.sparse.linalg.svds(A, k=1, return_singular_vectors=False)[0] ** 2 / 3_000 + 1e-3
    assert exact * (1 - 1e-9) <= L <= 1.05 * exact
    scale = rng.random(2_500) + 0.5
    scaled = scipy.sparse.linalg.svds(A.multiply(scale).tocsr(), k=1)[1][0] ** 2 / 3_000
    found = problem.smoothness(Metric("diagonal", scale))
    assert scaled * (1 - 1e-9) <= found <= 1.05 * scaled + 3e-3
    wide = Quadratic(A.T @ A / 3_000, np.zeros(2_500), l2=1e-3)
    assert wide.smoothness() == pytest.approx(L, rel=1e-3)


def test_rounding_goes_upwards():
    """Sums in single precision are off by more than their last digit; the bound is not."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        A = rng.standard_normal((400, 3)) + 10
        L = LeastSquares(A.astype(np.float32), np.zeros(400)).smoothness()
        kept = A.astype(np.float32).astype(np.longdouble)
        true = np.linalg.eigvalsh((kept.T @ kept / 400).astype(float))[-1]
        assert true <= L <= 1.001 * true
        Q = A.T @ A
        assert Quadratic(Q, np.zeros(3)).smoothness() >= np.linalg.norm(Q, 2)


@pytest.mark.parametrize(
    "as_array", [np.asarray, scipy.sparse.csr_array, jnp.asarray, torch.asarray]
)
def test_every_array_library_has_the_same(as_array):
    A, b = rows()
    problem = Logistic(as_array(A), b, l2=0.1, intercept=True)
    due = Logistic(A, b, l2=0.1, intercept=True)
    assert problem.smoothness() == pytest.approx(due.smoothness(), rel=1e-9)
    halves = Parts(Logistic, [(A[:11], b[:11]), (A[11:], b[11:])], l2=0.1, intercept=True)
    v = np.linspace(0, 1, n + 1)
    assert halves.smoothness() == pytest.approx(due.smoothness(), rel=1e-9)
    for other in (halves, problem):
        np.testing.assert_allclose(other.absolute_product(v), due.absolute_product(v))


def test_other_coordinates_are_a_preconditioner(monkeypatch):
    problem = Logistic(*rows(), l2=0.1)
    metric = metrics(problem)["lowrank"]
    moved = Transformed(problem, metric.matrix())
    assert moved.smoothness() == pytest.approx(problem.smoothness(metric), rel=1e-9)
    monkeypatch.setattr(smoothness, "BOUND", CurvatureBound(exact=0))
    assert moved.smoothness() >= problem.smoothness(metric) / 50


def test_a_loss_of_ones_own_gives_its_largest_second_derivative():
    class Cosh(LinearModel):
        """log cosh, whose second derivative is at most one."""

        slope_bound = 1.0

        def loss(self, z):
            return np.logaddexp(z - self.b, self.b - z)

        def slope(self, z):
            return np.tanh(z - self.b)

        def bend(self, z):
            return 1 - np.tanh(z - self.b) ** 2

    A, b = rows()
    problem = Cosh(A, 0 * b)
    assert problem.smoothness() == pytest.approx(top(problem, np.zeros(n), None))


NO_BOUND = {
    "Lpp": lambda A, b: Lpp(A, b),
    "Poisson": lambda A, b: Poisson(A, b),
    "ScaledHuber": lambda A, b: ScaledHuber(A, b),
    "FunctionProblem": lambda A, b: Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=3),
    "in parts": lambda A, b: Parts(Poisson, [(A[:9], b[:9]), (A[9:], b[9:])]),
}


@pytest.mark.parametrize("kind", NO_BOUND)
def test_without_a_limit_it_is_refused_in_a_sentence(kind, monkeypatch):
    problem = NO_BOUND[kind](*rows())
    for limit in (CurvatureBound().exact, 0):
        monkeypatch.setattr(smoothness, "BOUND", CurvatureBound(exact=limit))
        with pytest.raises(InputError, match=f"^{problem.kind} has no known smoothness constant"):
            problem.smoothness()


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (Metric("diagonal", np.ones(3)), "for 3 variables; this problem has 6"),
        (0.5, "must be a Metric or None, not float"),
        (Metric("diagonal", np.full(n, 1e70)), None),
    ],
)
def test_unfit_preconditioners_are_refused(metric, words):
    problem = Logistic(*rows())
    if words is None:
        assert np.isfinite(problem.smoothness(metric))
        problem, words = LeastSquares(1e90 * rows()[0], rows()[1]), "overflows: scale the columns"
    with pytest.raises(InputError, match=words):
        problem.smoothness(metric)
