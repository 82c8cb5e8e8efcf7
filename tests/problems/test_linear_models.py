"""Every loss x the arrays of every library x weights, intercept and offset, against formulas."""

import numpy as np
import pytest
from written_losses import FORMS, LIBRARIES, LOSSES, Case, differences, there

from ode2opt.problems import ScaledHuber
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.jaxed import to_jax

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_values_and_derivatives_are_those_of_the_function_written_out(loss, form, library):
    case = Case(loss, form)
    problem, (x, v) = case.made(library), (there(library, u) for u in (case.x, case.v))
    assert problem.n == len(case.x)
    value, g = problem.value_and_gradient(x)
    assert float(value) == pytest.approx(case.value(case.x), rel=1e-12)
    assert float(problem.value(x)) == pytest.approx(float(value), rel=1e-13)
    assert problem.value_at_zero() == pytest.approx(case.value(0 * case.x), rel=1e-12)
    slopes = differences(case.value, case.x)
    np.testing.assert_allclose(np.asarray(g), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.asarray(problem.gradient(x)), np.asarray(g), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(problem.gradient_at(problem.at(x))), g, rtol=1e-13)

    def gradient(y):
        return np.asarray(problem.gradient(there(library, y)))

    H = np.asarray(problem.hessian(x))
    np.testing.assert_allclose(H, differences(gradient, case.x), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.asarray(problem.hvp(x, v)), H @ case.v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.asarray(problem.hessian_diagonal(x)), H.diagonal(), rtol=1e-12)
    top = np.linalg.eigvalsh(H)[-1]
    assert largest_curvature(problem, x)[0] == pytest.approx(top, rel=1e-6)
    assert problem.slope_bound is None or problem.smoothness() >= top
    here, beside = problem.at(x), problem.at(there(library, case.x + 1e-3 * case.v))
    mean = np.asarray(problem.mean_hvp(here, beside, v))
    due = (gradient(case.x + 1e-3 * case.v) - gradient(case.x)) / 1e-3
    np.testing.assert_allclose(mean, due, rtol=1e-6, atol=1e-4 if problem.kinked else 1e-7)
    plain = case.made()
    start = problem.start()
    assert start.L == pytest.approx(plain.start().L, rel=1e-7)
    np.testing.assert_allclose(np.asarray(start.x0), plain.start().x0, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_what_jax_traces_is_the_same(loss, form):
    case = Case(loss, form)
    problem = case.made()
    np.testing.assert_allclose(to_jax(problem).gradient(case.x), problem.gradient(case.x))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_subset_is_the_problem_of_its_rows(loss, library):
    case, index = Case(loss, "all"), np.array([3, 5, 5, 30, 11])
    whole = case.made(library)
    whole.hvp(there(library, case.x), there(library, case.x))  # what is kept is not passed on
    part = whole.subset(index)
    rows = {name: case.given[name][index] for name in ("weights", "offset") if name in case.given}
    expected = case.kind(case.A[index], case.b[index], **(case.options | rows))
    scale = np.mean(np.asarray(whole.weights)[index])  # whose mean is 1 in a problem of its own
    assert (part.N, part.rows, part.n, part.l2) == (5, 5, whole.n, whole.l2)
    ridge = expected.penalties()
    for found, due, penalty in (
        (part.gradient(case.x), expected.gradient(case.x), ridge * case.x),
        (part.hvp(case.x, case.v), expected.hvp(case.x, case.v), ridge * case.v),
        (part.hessian(case.x), expected.hessian(case.x), np.diag(ridge)),
    ):
        np.testing.assert_allclose(found - penalty, scale * (due - penalty), atol=1e-12)
    assert whole.N == len(case.A)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_tell_errors_of_gradients_and_curvature_not_yet_seen(loss, library):
    case = Case(loss)
    problem, x = case.made(library), there(library, case.x)
    rows = [case.made().subset(np.array([i])).gradient(case.x) for i in range(problem.N)]
    error = np.sqrt(np.sum(np.square(rows))) / problem.N
    assert problem.gradient_error(x) == pytest.approx(error, rel=1e-10)
    found = problem.unseen_curvature(x)
    assert (type(found), found.dtype) == (np.ndarray, np.float64)
    due = problem.largest_bend(x) * np.max(np.abs(case.A), axis=0) ** 2
    np.testing.assert_allclose(found, np.repeat(due, problem.width), rtol=1e-12)
    if problem.width == 1:
        bend = np.asarray(problem.curvature(problem.scores(x)))
        assert problem.largest_bend(x) == pytest.approx(bend.max() / problem.N, rel=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_functions_of_scores_are_derivatives_and_together_the_same(loss, library):
    case = Case(loss)
    problem = case.made(library)
    for size in (1e-3, 1.0, 40.0, 1e4):
        z = size * np.random.default_rng(1).standard_normal((problem.N, problem.width))
        z = there(library, z if problem.width > 1 else z[:, 0])
        with np.errstate(all="ignore"):  # a mean of e^1e4 counts
            both = problem.loss_and_slope(z)
            alone = problem.loss(z), problem.slope(z)
        for found, due in zip(both, alone, strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(due), rtol=1e-14)
    if problem.width == 1:
        z, h = there(library, np.linspace(-3, 3, problem.N) + 0.01), 1e-5
        slope, bend = ((f(z + h) - f(z - h)) / (2 * h) for f in (problem.loss, problem.slope))
        for found, due in ((problem.slope(z), slope), (problem.curvature(z), bend)):
            np.testing.assert_allclose(np.asarray(found), np.asarray(due), rtol=1e-6, atol=1e-7)


def test_whole_weights_are_repeated_rows(loss):
    case = Case(loss, seed=1)
    times = np.random.default_rng(1).integers(0, 4, len(case.A))
    options = case.options | {"l2": 0.1}
    weighted = case.kind(case.A, case.b, weights=times, **options)
    repeated = case.kind(np.repeat(case.A, times, axis=0), np.repeat(case.b, times), **options)
    for name in ("gradient", "hessian"):
        found, due = (getattr(problem, name)(case.x) for problem in (weighted, repeated))
        np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("library", ["numpy", "csr_array"])
def test_a_point_that_is_changed_in_place_is_another_point(loss, library):
    """Products come in rows at one point, so what they share is kept."""
    case = Case(loss)
    problem, x, v = case.made(library), case.x.copy(), np.ones(len(case.x))
    first = problem.hvp(x, v)
    for factor, step in ((-3, 0), (1, 1e-9)):
        x *= factor
        x += step
        for name in ("hessian", "hessian_diagonal", "unseen_curvature"):
            asked, due = (getattr(p, name)(x) for p in (problem, case.made(library)))
            np.testing.assert_array_equal(asked, due)
        asked = problem.hvp(x, v)
        asked[:] = 0  # the caller may overwrite what it was given
        np.testing.assert_array_equal(problem.hvp(x, v), case.made(library).hvp(x, v))
    assert not np.array_equal(first, problem.hvp(x, v)) or loss == "leastsquares"


@pytest.mark.parametrize("library", LIBRARIES)
def test_hubers_regression_with_its_scale_has_the_derivatives_of_its_value(library):
    case = Case("lpp", n=6)
    plain = ScaledHuber(case.A, case.b, delta=1.2, l2=0.1)
    problem = ScaledHuber(LIBRARIES[library](case.A), case.b, delta=1.2, l2=0.1)
    x, v = there(library, case.x), there(library, case.v)
    value, g = problem.value_and_gradient(x)
    assert float(value) == pytest.approx(plain.value(case.x), rel=1e-13)
    np.testing.assert_allclose(np.asarray(g), differences(plain.value, case.x), rtol=1e-6)
    H = np.asarray(problem.hessian(x))
    np.testing.assert_allclose(H, differences(plain.gradient, case.x), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.asarray(problem.hvp(x, v)), H @ case.v, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(problem.hessian_diagonal(x)), H.diagonal(), rtol=1e-12)
