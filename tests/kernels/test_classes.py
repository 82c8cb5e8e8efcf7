"""Several classes: the kernel against NumPy's form, finite differences and hostile scores."""

import numpy as np
import pytest

pytest.importorskip("numba")

from ode2opt import Softmax, solve, threads


def made(dtype=np.float64, N=1003, n=37, classes=5, everything=True):
    """A problem with weights and intercepts, and a point."""
    rng = np.random.default_rng(N + n)
    A, b = rng.standard_normal((N, n)).astype(dtype), np.arange(N) % classes
    options = {"weights": rng.random(N), "intercept": True, "l2": 0.01} if everything else {}
    problem = Softmax(A, b, classes=classes, **options)
    return problem, (0.3 * rng.standard_normal(problem.n)).astype(dtype)


def assert_near(found, expected, tolerance):
    assert found[0].dtype == expected[0].dtype
    assert found[0] == pytest.approx(expected[0], rel=tolerance, nan_ok=True)
    assert found[1].dtype == expected[1].dtype
    size = np.max(np.abs(expected[1]), initial=0.0)
    size = size if np.isfinite(size) else 1.0
    np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance * size)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 3e-6)])
@pytest.mark.parametrize("classes", [2, 3, 10, 30])
@pytest.mark.parametrize("everything", [True, False])
def test_the_kernel_returns_what_numpy_returns(
    everything, classes, dtype, tolerance, numpy_form, passes
):
    problem, x = made(dtype, classes=classes, everything=everything)
    found = problem.value_and_gradient(x)
    np.testing.assert_array_equal(problem.gradient(x), found[1])
    assert passes == [np.dtype(dtype).name] * 2
    assert_near(found, numpy_form(lambda: problem.value_and_gradient(x)), tolerance)
    assert len(passes) == 2


@pytest.mark.parametrize("N", [1, 15, 16, 17, 64, 65])
@pytest.mark.parametrize("n", [1, 9])
def test_few_rows_and_columns(N, n, numpy_form):
    problem, x = made(N=N, n=n, classes=3)
    found = problem.value_and_gradient(x)
    assert_near(found, numpy_form(lambda: problem.value_and_gradient(x)), 1e-13)


def test_the_gradient_is_the_difference_of_values():
    problem, x = made()
    v, step = np.sin(1 + np.arange(problem.n)), 1e-5
    ahead, behind = problem.value(x + step * v), problem.value(x - step * v)  # NumPy's
    assert problem.gradient(x) @ v == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


@pytest.mark.parametrize("score", [1e4, -1e4, 1e300, np.inf, np.nan, 5e-324, 0.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hostile_scores_are_treated_as_by_numpy(score, dtype, numpy_form):
    A = np.array([[1.0, 0.25], [-1.0, 0.5], [0.5, 1.0], [1.0, -1.0]], dtype)
    problem = Softmax(A, np.array([0, 1, 2, 0]))
    with np.errstate(all="ignore"):
        x = np.array([score, 0.5, -0.5, 1, 2, 3]).astype(dtype)

        def evaluated():
            return problem.value_and_gradient(x)

        found, expected = evaluated(), numpy_form(evaluated)
        assert_near(found, expected, 1e-12 if dtype == np.float64 else 1e-5)


def test_the_number_of_threads_changes_no_bit():
    problem, x = made(N=5003)
    results = set()
    for count in (1, 2, 4):
        with threads(count):
            value, g = problem.value_and_gradient(x)
            results.add((value.tobytes(), g.tobytes(), solve(problem, tol=1e-6).x.tobytes()))
    assert len(results) == 1


def test_other_matrices_and_many_classes_are_left_to_numpy(passes):
    problem, x = made(everything=False)
    Softmax(np.asfortranarray(problem.A), problem.b).gradient(x)
    problem.gradient(x.astype(np.float32))
    many, y = made(classes=31)
    many.gradient(y)
    assert passes == []
