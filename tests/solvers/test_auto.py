"""The default method: right on every kind of data, the same twice, clear about what is wrong."""

import math
import time

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression
from support import random_sparse

from ode2opt import (
    AutoOptions,
    Family,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Problem,
    Quadratic,
    Status,
    solve,
)
from ode2opt.problems.linear_model import LinearModel
from ode2opt.solvers.costs import Costs

SHAPES = [(300, 8), (2000, 60), (8000, 100), (60, 90)]  # each is solved in another way
LIBRARIES = {
    "dense": np.asarray,
    "sparse": scipy.sparse.csr_array,
    "jax": jnp.asarray,
    "torch": torch.asarray,
}


def data(N, n, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) * np.logspace(0, -1, n)
    likely = 1 / (1 + np.exp(-A @ rng.standard_normal(n)))
    return A, (rng.random(N) < likely).astype(float)


def wide(N=500, n=3000):
    rng = np.random.default_rng(0)
    A = random_sparse(rng, (N, n), 0.01)
    return A, (rng.random(N) < 0.5).astype(float)


def by_sklearn(A, b, l2):
    """The minimiser by scikit-learn's Newton solver."""
    model = LogisticRegression(
        solver="newton-cholesky", fit_intercept=False, tol=1e-12, max_iter=300,
        C=1 / (len(b) * l2) if l2 else np.inf,
    )  # fmt: skip
    return model.fit(A, b).coef_[0]


def assert_as_sklearn(problem, A, b, l2, tol=1e-8, atol=1e-5):
    result = solve(problem, tol=tol)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(np.asarray(result.x), by_sklearn(A, b, l2), atol=atol)
    return result


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("library", ["dense", "sparse", "torch"])
def test_it_finds_what_scikit_learn_finds(shape, library):
    A, b = data(*shape)
    assert_as_sklearn(Logistic(LIBRARIES[library](A), b, l2=1e-3), A, b, 1e-3)


@pytest.mark.usefixtures("x64")
def test_it_solves_on_jax():
    A, b = data(8000, 100)
    result = assert_as_sklearn(Logistic(jnp.asarray(A), jnp.asarray(b), l2=1e-3), A, b, 1e-3)
    assert type(result.x) is type(jnp.ones(1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("library", ["dense", "sparse", "torch"])
def test_it_solves_in_float32(shape, library):
    A, b = data(*shape)
    single = A.astype(np.float32)
    problem = Logistic(LIBRARIES[library](single), b.astype(np.float32), l2=1e-2)
    result = assert_as_sklearn(problem, A, b, 1e-2, tol=1e-5, atol=3e-3)
    assert np.asarray(result.x).dtype == np.float32


def test_it_solves_wide_sparse_data_without_a_dense_matrix(monkeypatch):
    def forbidden(self, x):
        raise AssertionError("a dense Hessian of a wide problem")

    monkeypatch.setattr(LinearModel, "hessian", forbidden)
    for N, n in ((500, 3000), (3200, 3000), (7000, 6000)):
        A, b = wide(N, n)
        problem = Logistic(A, b, l2=1e-3)
        result = solve(problem, tol=1e-8)
        assert result.status is Status.CONVERGED
        reference = scipy.optimize.minimize(
            problem.value, np.zeros(n), jac=problem.gradient, method="L-BFGS-B",
            options={"maxiter": 1000, "gtol": 1e-8, "ftol": 0},
        )  # fmt: skip
        np.testing.assert_allclose(result.x, reference.x, atol=1e-3)


def odd_columns(A):
    """Columns of zeros, of one number, twice the same, and one that a single row has."""
    A = A.copy()
    A[:, 1], A[:, 2], A[:, 3], A[:, 5] = 0.0, 5.0, A[:, 4], 0.0
    A[7, 5] = 1.0
    return A


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("library", ["dense", "sparse"])
def test_columns_that_say_little_are_no_obstacle(shape, library):
    A, b = data(*shape)
    A = odd_columns(A)
    assert_as_sklearn(Logistic(LIBRARIES[library](A), b, l2=1e-3), A, b, 1e-3)
    without = solve(Logistic(LIBRARIES[library](A), b), tol=1e-6)
    assert without.status is Status.CONVERGED
    assert np.all(np.isfinite(without.x))
    assert without.oracle_calls < 1500


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
@pytest.mark.parametrize("library", ["dense", "sparse"])
def test_columns_of_any_size_are_no_obstacle(shape, library):
    """From 1e-6 to 1e6; the predictions are those of columns of size one."""
    A, b = data(*shape)
    scales = np.logspace(-6, 6, shape[1])[np.random.default_rng(1).permutation(shape[1])]
    scaled = A * scales
    result = solve(Logistic(LIBRARIES[library](scaled), b), tol=1e-6)
    assert result.status is Status.CONVERGED
    large = scales >= 1e-2  # a gradient of 1e-6 leaves the others open
    plain = by_sklearn(A[:, large], b, 0)
    assert result.fun <= Logistic(A[:, large], b).value(plain) + 1e-6
    assert result.oracle_calls < 150


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_a_class_that_most_samples_lack_is_no_obstacle(shape):
    A, _ = data(*shape)
    b = np.zeros(len(A))
    b[[3, 50]] = 1
    assert_as_sklearn(Logistic(A, b, l2=1e-2), A, b, 1e-2)
    alone = solve(Logistic(A, np.ones(len(A)), l2=1e-2), tol=1e-8)
    assert alone.status is Status.CONVERGED


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_separable_data_without_l2_end_at_a_finite_point(shape):
    A, _ = data(*shape)
    problem = Logistic(A, (A @ np.ones(shape[1]) > 0).astype(float))
    result = solve(problem, tol=1e-6)
    assert result.status is Status.CONVERGED
    assert np.all(np.isfinite(result.x))
    assert np.linalg.norm(problem.gradient(result.x)) <= 1e-6
    assert result.iterations < 200


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("library", ["dense", "sparse"])
def test_least_squares_are_those_of_linear_algebra(shape, library):
    A, b = data(*shape)
    N, n = shape
    result = solve(LeastSquares(LIBRARIES[library](A), b, l2=1e-3), tol=1e-10)
    assert result.status is Status.CONVERGED
    expected = np.linalg.solve(A.T @ A / N + 1e-3 * np.eye(n), A.T @ b / N)
    np.testing.assert_allclose(result.x, expected, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("p", [4, 10])
def test_lpp_is_solved_from_near_and_far(shape, p):
    A, b = data(*shape)
    problem = Lpp(A, b, p=p, l2=1e-3)
    near, far = (solve(problem, np.full(shape[1], x), tol=1e-9) for x in (0.0, 30.0))
    assert near.success
    assert far.success
    np.testing.assert_allclose(far.x, near.x, atol=1e-5)
    assert np.linalg.norm(problem.gradient(near.x)) <= 1e-9


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_solve_twice_gives_the_same_bits(shape):
    A, b = data(*shape)
    one, two = (solve(Logistic(A, b, l2=1e-4)) for _ in range(2))
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.oracle_calls, one.method) == (two.oracle_calls, two.method)


def test_what_was_done_is_said_in_words():
    assert solve(lambda x: x @ x, np.ones(2), jac=lambda x: 2 * x).method == "L-BFGS"
    newton = "Newton's method by Cholesky"
    assert solve(Quadratic(np.eye(3), np.ones(3))).method == newton
    assert solve(Logistic(*data(300, 8), l2=1e-3)).method == newton
    assert solve(Logistic(*wide(), l2=1e-3)).method == "Newton's method by conjugate gradients"
    sampled = solve(Logistic(*data(8000, 100), l2=1e-3)).method
    assert sampled.startswith("1,600 of 8,000 rows solved, then L-BFGS in their metric")
    problem = Logistic(*data(300, 8), l2=1e-3)
    done = solve(problem, solve(problem, tol=1e-9).x)
    assert "start" in done.method


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"callback": lambda progress: True}])
def test_a_solve_that_was_cut_short_does_not_say_that_its_start_was_good(limit):
    result = solve(Logistic(*data(300, 8), l2=1e-3), **limit)
    assert not result.success
    assert "meets" not in result.method


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_limit_of_iterations_holds(shape, most):
    problem = Logistic(*data(*shape), l2=1e-3)
    result = solve(problem, tol=1e-12, max_iter=most, history=True)
    assert (result.status, result.iterations) == (Status.MAX_ITER, most)
    assert len(result.history.grad_norm) == most + 1
    assert result.grad_norm == pytest.approx(np.linalg.norm(problem.gradient(result.x)))


class SlowHessian(Logistic):
    def hessian(self, x):
        time.sleep(0.1)
        return super().hessian(x)


@pytest.mark.parametrize("shape", [(300, 8), (20_000, 50)], ids=str)
def test_the_limit_of_time_holds_between_hessians(shape):
    """Also those of a sample: at most the one that is under way, and one more, are waited for."""
    problem, x0 = SlowHessian(*data(*shape), l2=1e-6), np.full(shape[1], 10.0)
    result = solve(problem, x0, tol=1e-8, max_seconds=0.05)
    assert result.status is Status.MAX_SECONDS
    assert result.seconds < 0.05 + 2 * 0.1 + 0.1
    assert np.all(np.isfinite(result.x))


def test_ctrl_c_while_a_sample_is_solved_returns_the_best_point():
    class Interrupted(Logistic):
        def value_and_gradient(self, x):
            if self.N < 8000 and np.any(x):
                raise KeyboardInterrupt
            return super().value_and_gradient(x)

    problem = Interrupted(*data(8000, 100), l2=1e-3)
    result = solve(problem)
    assert result.status is Status.INTERRUPTED
    np.testing.assert_array_equal(result.x, 0)
    assert result.fun == pytest.approx(np.log(2))


@pytest.mark.parametrize("method", ["auto", "lbfgs", "lbfgs-scipy"])
@pytest.mark.parametrize("nothing", [np.nan, np.inf])
def test_a_function_that_is_no_number_is_said_in_a_sentence(method, nothing):
    with pytest.raises(InputError, match=rf"^The function is {nothing} at the start point: .*\.$"):
        solve(lambda x: nothing, np.ones(3), jac=lambda x: 2 * x, method=method)
    with pytest.raises(InputError, match=r"^The gradient is not finite at the start point: .*\.$"):
        solve(lambda x: x @ x, np.ones(3), jac=lambda x: nothing * x, method=method)


def test_a_function_that_is_a_number_near_its_start_only_ends_with_a_true_status():
    def value(x):
        return float(x @ x) if x @ x > 1 else np.nan

    result = solve(value, np.ones(3), jac=lambda x: 2 * x if x @ x > 1 else np.nan * x)
    assert not result.success
    assert result.status in (Status.STALLED, Status.LINE_SEARCH)
    assert np.all(np.isfinite(result.x))
    assert np.isfinite(result.fun)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_may_be_the_start_of_a_function(dtype):
    x0 = torch.zeros(3, dtype=dtype)
    result = solve(lambda x: np.sum((x - 1) ** 2), x0, jac=lambda x: 2 * (x - 1))
    assert result.success
    assert type(result.x) is np.ndarray
    np.testing.assert_allclose(result.x, 1, atol=1e-6)
    np.testing.assert_array_equal(x0, 0)


class Weighted(LinearModel):
    """A loss of one's own with a weight for every row."""

    arrays = ("A", "b", "w")

    def __init__(self, A, b, w, l2=0.0):
        super().__init__(A, b, l2=l2)
        self.w = w

    def loss(self, z):
        return self.w * (z - self.b) ** 2 / 2 + self.w * (z - self.b) ** 4 / 4

    def slope(self, z):
        return self.w * (z - self.b) + self.w * (z - self.b) ** 3

    def bend(self, z):
        return self.w * (1 + 3 * (z - self.b) ** 2)


@pytest.mark.parametrize("shape", [(300, 8), (2000, 60), (20_000, 50)], ids=str)
def test_a_loss_of_ones_own_may_have_something_for_every_row(shape):
    A, b = data(*shape)
    w = np.random.default_rng(2).uniform(0.1, 2.0, len(b))
    problem = Weighted(A, b, w, l2=1e-3)
    result = solve(problem, tol=1e-6)
    assert result.success
    assert np.linalg.norm(problem.gradient(result.x)) <= 1e-6


def test_a_problem_of_ones_own_needs_value_and_gradient_only():
    class Mine(Problem):
        n, xp, dtype, has_hvp = 4, np, np.dtype(float), False
        A = "something else"

        def value(self, x):
            return float(np.sum(np.cosh(x - 1)))

        def gradient(self, x):
            return np.sinh(x - 1)

    np.testing.assert_allclose(solve(Mine(), tol=1e-9).x, 1, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [Logistic, LeastSquares, Lpp])
@pytest.mark.parametrize("method", ["auto", "newton", "lbfgs"])
def test_a_tolerance_below_rounding_ends_as_stalled(kind, dtype, method):
    A, b = data(1000, 20)
    problem = kind((1e4 * A).astype(dtype), b, l2=1e-3)
    tol = 1e-6 if dtype is np.float32 else 1e-15
    result = solve(problem, method=method, tol=tol, max_iter=3000)
    assert result.status is Status.STALLED
    assert np.all(np.isfinite(result.x))


def test_the_solution_of_a_sample_may_have_no_value_on_other_rows():
    """A few rows are so large that what fits the others overflows; the start is fine."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20_000, 50)).astype(np.float32)
    A[::700] *= 1e10
    problem = Lpp(A, rng.standard_normal(20_000))
    result = solve(problem, tol=1e-2, max_iter=50)
    assert np.isfinite(result.fun)
    assert result.fun <= problem.value(np.zeros(50, np.float32))


def test_a_metric_must_be_clearly_cheaper_than_what_is_left(real_data):
    """There metrics lose: L-BFGS alone takes no longer than it does without auto."""
    family = Family.from_dataset("logistic", "w3a", split="shuffled")
    problems = [family.sample([7, i]) for i in (9, 24, 31, 44)]
    for problem in problems:
        auto, plain = (solve(problem, method=m, tol=1e-6) for m in ("auto", "lbfgs"))
        assert auto.oracle_calls <= plain.oracle_calls


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows_per_column": (16, 4)}, "growing order"),
        ({"rows_per_column": (0,)}, "rows_per_column"),
        ({"damping_rows": 0.0}, "damping_rows is 0: it must be positive"),
        ({"clearly": math.inf}, "clearly"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        AutoOptions(**options)


def test_options_change_the_plan():
    problem = Logistic(*data(8000, 100), l2=1e-3)
    without = solve(problem, options=AutoOptions(rows_per_column=()))
    few = solve(problem, options=AutoOptions((4,), affordable_hessian=1))
    anew = solve(problem, options=AutoOptions((4,), affordable_hessian=100))
    assert without.success
    assert "rows solved" not in without.method
    assert few.method.startswith("400 of 8,000 rows solved")
    assert anew.method.startswith("L-BFGS in metrics of all 8,000 rows")
    other = solve(problem, options=AutoOptions((4,), affordable_hessian=1, seed=1))
    assert not np.array_equal(few.x, other.x)
    with pytest.raises(InputError, match="for the method 'auto' only"):
        solve(problem, method="lbfgs", options=AutoOptions())
    with pytest.raises(InputError, match="must be AutoOptions, not dict"):
        solve(problem, options={})


def test_least_squares_needs_one_subsample_and_no_solution_on_it(monkeypatch):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((20_000, 60)) * (rng.random((20_000, 60)) < 0.05)
    b = A @ rng.standard_normal(60) + rng.standard_normal(20_000)
    problem = LeastSquares(scipy.sparse.csr_array(A), b, l2=1e-3)
    monkeypatch.setattr(Costs, "hessian", lambda self, m=None: 100.0 if m is None else 1.0)
    result = solve(problem)
    assert result.success
    assert result.method == "L-BFGS in the metric of 960 of 20,000 rows"
    exact = np.linalg.solve(A.T @ A / 20_000 + 1e-3 * np.eye(60), A.T @ b / 20_000)
    np.testing.assert_allclose(result.x, exact, atol=1e-3)


def test_the_price_of_a_plan_is_in_evaluations():
    """A Hessian counts the gradients of as many operations; BLAS makes it quicker than these."""
    costs = Costs(Logistic(*data(20_000, 100)))
    calls = costs.problem.hessian_flops() / costs.problem.gradient_flops()
    assert 1 < costs.hessian() < calls
    assert costs.hessian(2_000) < costs.hessian()
    assert Costs(costs.problem, count_calls=True).hessian() == calls
    assert costs.subsamples([400, 1600]) > costs.hessian(400) + costs.hessian(1600)
