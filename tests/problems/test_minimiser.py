"""Whether a problem has a minimiser, against exact geometry in the plane and against solves."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from ode2opt import (
    Family,
    Huber,
    InputError,
    LeastSquares,
    Logistic,
    Lpp,
    Poisson,
    Problem,
    Quadratic,
    Softmax,
    SquaredHinge,
    solve,
)
from ode2opt.problems import separation
from ode2opt.problems.minimiser import check_minimiser, has_minimiser, separable
from ode2opt.problems.transformed import Transformed


def falls_in_the_plane(sides, fixed):
    """Whether a direction has no row against it and some for it: whole numbers, no rounding.

    The cone of such directions in the plane has an edge across some row, or along one.
    """
    rows = [*sides, *fixed]
    across = [(-y, x) for x, y in rows]
    for d in [*across, *rows]:
        for s in (1, -1):
            margins = [s * (d[0] * x + d[1] * y) for x, y in sides]
            still = all(d[0] * x + d[1] * y == 0 for x, y in fixed)
            if still and min(margins, default=0) >= 0 and max(margins, default=0) > 0:
                return True
    return False


def whole_numbers(seed, rows):
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, (rows, 2)), rng.integers(0, 2, rows)


@pytest.mark.parametrize("sparse", [False, True])
def test_logistic_rows_in_the_plane_are_judged_as_exact_geometry_does(sparse):
    answers = set()
    for seed, rows in itertools.product(range(40), (3, 5, 8)):
        A, b = whole_numbers(seed, rows)
        expected = not falls_in_the_plane(np.where(b == 1, 1, -1)[:, None] * A, A[:0])
        matrix = scipy.sparse.csr_array(A.astype(float)) if sparse else A.astype(float)
        assert has_minimiser(Logistic(matrix, b.astype(float))) is expected
        answers.add(expected)
    assert answers == {True, False}


def test_counts_in_the_plane_are_judged_as_exact_geometry_does():
    answers = set()
    for seed, rows in itertools.product(range(40), (3, 5, 8)):
        A, b = whole_numbers(seed, rows)
        expected = not falls_in_the_plane(-A[b == 0], A[b > 0])
        assert has_minimiser(Poisson(A.astype(float), b.astype(float))) is expected
        answers.add(expected)
    assert answers == {True, False}


def overlapping(rows=300, n=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, n))
    return A, (A[:, 0] + rng.standard_normal(rows) > 0).astype(float)


def test_classes_that_overlap_have_a_minimiser_which_a_solve_finds():
    problem = Logistic(*overlapping())
    assert check_minimiser(problem).words == (
        "a minimiser: along every direction the loss of some row grows"
    )
    found = solve(problem, tol=1e-10)
    assert found.success
    assert np.linalg.norm(found.x) < 10
    assert separable(problem) is False


def test_a_column_that_goes_with_one_class_is_named():
    A, b = overlapping()
    A[:, 4] = np.where(b == 1, np.abs(A[:, 4]), 0)
    sentence = "no minimiser: column 4, signed by the labels, has one sign and no penalty"
    assert check_minimiser(Logistic(A, b)).words == sentence
    assert check_minimiser(Logistic(scipy.sparse.csr_matrix(A), b)).words == sentence
    assert has_minimiser(Logistic(A, b, l2=1e-6)) is True
    assert has_minimiser(Logistic(A, b, l2=1e-6, intercept=True)) is True
    assert has_minimiser(Logistic(A, b, intercept=True)) is False


def test_an_intercept_without_a_penalty_needs_both_classes():
    A, b = overlapping()
    found = check_minimiser(Logistic(A, np.ones(len(b)), l2=0.1, intercept=True))
    assert found.words == (
        "no minimiser: the intercept has no penalty, and all rows pull it the same way"
    )
    assert has_minimiser(Logistic(A, np.ones(len(b)), l2=0.1)) is True


def test_rows_without_weight_and_labels_between_count_as_the_loss_has_them():
    A, b = overlapping()
    A[:, 4] = np.where(b == 1, np.abs(A[:, 4]), 0)
    A[0, 4], b[0] = 1.0, 0.0  # the only row against it
    assert has_minimiser(Logistic(A, b)) is True
    weights = np.ones(len(b))
    weights[0] = 0
    assert has_minimiser(Logistic(A, b, weights=weights)) is False
    b[0] = 0.5  # a probability: its loss grows either way
    assert has_minimiser(Logistic(A, b)) is True


def test_a_plane_that_separates_is_found_and_one_row_across_it_too():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((5_000, 8))
    b = (A @ np.arange(1, 9) > 0).astype(float)
    assert separable(Logistic(A, b)) is True
    assert has_minimiser(Logistic(A, b)) is False
    far = int(np.argmax(np.abs(A @ np.arange(1, 9))))
    b[far] = 1 - b[far]
    assert separable(Logistic(A, b)) is False
    assert has_minimiser(Logistic(A, b)) is True
    assert separable(SquaredHinge(A, b)) is False


def test_rows_on_the_plane_leave_no_minimiser_though_nothing_separates_strictly():
    A = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    A = A @ np.array([[2.0, 1.0], [1.0, 3.0]])  # no column has one sign
    b = np.array([1.0, 1.0, 1.0, 1.0])
    assert check_minimiser(Logistic(A, b)).words.endswith("for ever and raises that of none")
    assert separable(Logistic(A, b)) is False


def test_many_rows_are_taken_into_the_program_as_they_are_needed(monkeypatch):
    A, b = overlapping(rows=400, n=4)
    whole = has_minimiser(Logistic(A, b)), separable(Logistic(A, b))
    plain = A @ np.arange(1, 5) > 0
    monkeypatch.setattr(separation, "PROGRAMS", separation.LinearPrograms(first_rows=10))
    assert (has_minimiser(Logistic(A, b)), separable(Logistic(A, b))) == whole == (True, False)
    assert has_minimiser(Logistic(A, plain.astype(float))) is False
    assert separable(Logistic(A, plain.astype(float))) is True
    for row in np.argsort(np.abs(A @ np.arange(1, 5)))[-8:]:  # most are in no first program
        crossed = np.where(np.arange(400) == row, ~plain, plain).astype(float)
        assert has_minimiser(Logistic(A, crossed)) is True
        assert separable(Logistic(A, crossed)) is False


def test_several_classes_are_judged_pair_by_pair():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 3))
    mixed = rng.integers(0, 3, 400).astype(float)
    assert has_minimiser(Softmax(A, mixed)) is True
    assert separable(Softmax(A, mixed)) is False
    apart = np.argmax(A, axis=1).astype(float)
    assert has_minimiser(Softmax(A, apart)) is False
    assert separable(Softmax(A, apart)) is True
    lonely = A.copy()  # column 1 is that of class 2 alone: it may lower the score of class 0
    lonely[:, 1] = np.where(mixed == 2, np.abs(A[:, 1]), 0)
    assert check_minimiser(Softmax(lonely, mixed)).words == (
        "no minimiser: column 1 for class 0, signed by the labels, has one sign and no penalty"
    )


@pytest.mark.parametrize("loss", [Lpp, LeastSquares, Huber, SquaredHinge])
def test_losses_that_are_attained_on_any_rows(loss):
    A, b = overlapping()
    A[:, 3] = A[:, 2]  # a direction that changes nothing
    assert has_minimiser(loss(A, b)) is True
    assert solve(loss(A, b), tol=1e-8).success


def test_quadratics_need_their_linear_part_in_the_range():
    Q = np.diag([1.0, 0.0])
    assert has_minimiser(Quadratic(np.eye(2), np.ones(2))) is True
    assert has_minimiser(Quadratic(Q, np.array([1.0, 0.0]))) is True
    assert has_minimiser(Quadratic(Q, np.array([1.0, 0.1]))) is False
    assert has_minimiser(Quadratic(Q, np.ones(2), l2=0.1)) is True


def test_what_is_not_known_is_said():
    function = Problem.from_function(lambda x: (x**2).sum(), lambda x: 2 * x, n=3)
    assert check_minimiser(function).words == (
        "a minimiser is not known: the function is known by its values only"
    )
    A, b = overlapping()
    assert has_minimiser(Transformed(Logistic(A, b), 2 * np.eye(6))) is True
    with pytest.raises(InputError, match="LeastSquares has no classes"):
        separable(LeastSquares(A, b))
    with pytest.raises(InputError, match="between 0 and 1"):
        separable(Logistic(A, 0.5 * b))


@pytest.mark.parametrize(
    ("dataset", "strictly"), [("a5a", False), ("mushrooms", True), ("separable", True)]
)
def test_test_problems_of_the_paper_have_no_minimiser(dataset, strictly):
    problem = Family.from_dataset("logistic", dataset, split="paper").sample(0, part="test")
    assert has_minimiser(problem) is False
    assert separable(problem) is strictly
