"""How well predictions fit: as scikit-learn's metrics have it, on all rows and in parts."""

import numpy as np
import pytest
from sklearn import metrics

from ode2opt import (
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Parts,
    Poisson,
    Softmax,
    SquaredHinge,
)
from ode2opt.data.preparing import held_out
from ode2opt.problems.quality import quality_of_fit


@pytest.fixture
def rows(rng):
    A = rng.standard_normal((90, 3))
    return A, A @ rng.standard_normal(3) + rng.standard_normal(90), rng.uniform(0.1, 3, 90)


TARGETS = {
    Logistic: lambda z, rng: (z > 0) * 1.0,
    SquaredHinge: lambda z, rng: (z > 0) * 1.0,
    Softmax: lambda z, rng: np.digitize(z, [-1, 1]) * 1.0,
    Poisson: lambda z, rng: rng.poisson(np.exp(z / 2)) * 1.0,
    LeastSquares: lambda z, rng: 1e6 + z,
    Lpp: lambda z, rng: z,
    Huber: lambda z, rng: z,
}


def expected(kind, b, z, weights):
    """Return what scikit-learn says of scores."""
    told = {"sample_weight": weights}
    if kind is SquaredHinge:
        return {"accuracy": metrics.accuracy_score(b, z > 0, **told)}
    if kind in (Logistic, Softmax):
        e = np.exp(z) if z.ndim > 1 else np.column_stack([np.ones(len(z)), np.exp(z)])
        p = e / e.sum(axis=1, keepdims=True)
        return {
            "accuracy": metrics.accuracy_score(b, p.argmax(axis=1), **told),
            "log_loss": metrics.log_loss(b, p, **told),
        }
    found = np.exp(z) if kind is Poisson else z
    squares = {"r2": metrics.r2_score(b, found, **told)}
    if kind is not Poisson:
        return squares
    return squares | {"d2": metrics.d2_tweedie_score(b, found, power=1, **told)}


@pytest.mark.parametrize("kind", TARGETS)
def test_the_measures_are_scikit_learns(kind, rows, rng):
    A, z, weights = rows
    b = TARGETS[kind](z, rng)
    problem = kind(A, b, weights=weights, intercept=True)
    x = 0.3 * rng.standard_normal(problem.n)
    if kind is LeastSquares:
        x[-1] = 1e6
    found = quality_of_fit(problem, x)
    due = expected(kind, b, problem.scores(x), weights)
    assert found.rows == 90
    assert set(found.summary()) == {"rows", *due}
    for name, value in due.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", TARGETS)
def test_parts_are_measured_like_all_rows_together(kind, rows, rng):
    A, z, _ = rows
    b = TARGETS[kind](z, rng)
    whole = kind(A, b, intercept=True)
    parts = Parts(kind, [(A[:20], b[:20]), (A[20:70], b[20:70]), (A[70:], b[70:])], intercept=True)
    x = 0.3 * rng.standard_normal(whole.n)
    one, other = quality_of_fit(whole, x).summary(), quality_of_fit(parts, x).summary()
    assert one == pytest.approx(other, rel=1e-9)


def test_where_all_targets_are_the_same_nothing_can_be_explained(rng):
    A = rng.standard_normal((9, 2))
    for kind, b in ((LeastSquares, np.full(9, 0.1)), (Poisson, np.full(9, 3.0))):
        assert quality_of_fit(kind(A, b), np.ones(2)).summary() == {"rows": 9}


def test_means_beyond_the_largest_number_have_no_measure(rng):
    problem = Poisson(np.ones((4, 1)), np.array([1.0, 2, 3, 4]))
    assert quality_of_fit(problem, np.array([800.0])).summary() == {"rows": 4}


def test_a_share_of_each_class_is_held_back_at_random_and_the_same_for_a_seed():
    labels = np.repeat(["a", "b", "c"], [50, 30, 1])
    for seed in range(5):
        held = held_out(labels, 0.2, seed, classes=True)
        assert [int(held[labels == one].sum()) for one in "abc"] == [10, 6, 0]
    held = held_out(labels, 0.2, 0, classes=True)
    assert np.array_equal(held, held_out(labels, 0.2, 0, classes=True))
    assert not np.array_equal(held, held_out(labels, 0.2, 1, classes=True))
    assert not np.array_equal(held[:50], np.arange(50) < 10)


def test_of_numbers_a_share_of_all_rows_is_held_back(rng):
    assert held_out(rng.standard_normal(40), 0.25, 3, classes=False).sum() == 10


@pytest.mark.parametrize("share", [1, 0, -0.1, 1.5, np.nan, np.inf])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(InputError, match="more than 0 and less than 1"):
        held_out(np.arange(10.0), share, 0, classes=False)


def test_a_share_of_no_row_is_refused():
    with pytest.raises(InputError, match="10 rows holds none back"):
        held_out(np.arange(10.0), 0.01, 0, classes=False)
    with pytest.raises(InputError, match="every class has one row only"):
        held_out(np.arange(10.0), 0.5, 0, classes=True)
