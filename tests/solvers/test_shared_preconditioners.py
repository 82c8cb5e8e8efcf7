"""Paths of penalties on sets of rows that overlap: what they promise, and what sharing saves."""

import pickle

import numpy as np
import pytest

from ode2opt import Logistic, Softmax, solve
from ode2opt.solvers import shared_preconditioners as paths
from ode2opt.solvers.shared_preconditioners import SharedPreconditioners

PENALTIES = 10.0 ** np.arange(0, -5, -1)
TOL = 1e-6


def folds(rng, classes=2, rows=400, columns=8, count=4):
    """Return the problems of all rows but one part each."""
    A = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns))
    scores = A @ rng.standard_normal((columns, classes)) / 3
    b = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    kind = Logistic if classes == 2 else Softmax
    for part in np.array_split(np.arange(rows), count):
        rest = np.setdiff1d(np.arange(rows), part)
        yield kind(A[rest], b[rest], intercept=True)


def solved(shared, problem, penalties=PENALTIES, tol=TOL):
    results, x = [], None
    for k, l2 in enumerate(penalties):
        results.append(shared.solve(problem.penalised(l2), k, x, tol=tol, max_iter=1000))
        x = results[-1].x
    return results


@pytest.mark.parametrize("classes", [2, 4])
def test_every_point_of_every_path_is_a_solution(classes, rng):
    shared = SharedPreconditioners(4)
    for problem in folds(rng, classes):
        for l2, result in zip(PENALTIES, solved(shared, problem), strict=True):
            assert result.success
            assert np.linalg.norm(problem.penalised(l2).gradient(result.x)) <= TOL


@pytest.mark.parametrize("classes", [2, 4])
def test_those_that_follow_need_far_fewer_steps_than_alone(classes, rng):
    common, shared, alone = SharedPreconditioners(4), 0, 0
    for problem in folds(rng, classes):
        shared += sum(result.iterations for result in solved(common, problem))
        x = None
        for l2 in PENALTIES:
            result = solve(problem.penalised(l2), x, method="lbfgs", tol=TOL)
            x, alone = result.x, alone + result.iterations
    assert shared < alone / 2


@pytest.mark.parametrize("classes", [2, 4])
def test_no_point_of_another_path_is_a_start(classes, rng):
    """A tolerance that every point meets leaves each path where it starts: at zero."""
    shared = SharedPreconditioners(4)
    first, *others = folds(rng, classes)
    solved(shared, first)
    for problem in others:
        for result in solved(shared, problem, tol=1e3):
            np.testing.assert_array_equal(result.x, 0)


def test_preconditioners_of_another_population_do_no_harm(rng):
    one, *_ = folds(rng)
    *_, other = folds(np.random.default_rng(5))
    shared = SharedPreconditioners(2)
    solved(shared, one)
    assert all(result.success for result in solved(shared, other))


@pytest.mark.parametrize("shape", [(40, 60), (300, 10)])
def test_without_room_for_metrics_paths_are_still_solved(shape, rng, monkeypatch):
    monkeypatch.setattr(paths, "FEW_NUMBERS", 0)
    rows, columns = shape
    A = rng.standard_normal(shape)
    shared = SharedPreconditioners(2)
    for half in (slice(0, rows - 10), slice(10, None)):
        problem = Logistic(A[half], (A[half, 0] > 0.1) * 1.0)
        assert all(result.success for result in solved(shared, problem))
    assert shared._kept <= rows * columns


def test_they_go_to_other_processes_empty(rng):
    shared = SharedPreconditioners(2)
    one, other, *_ = folds(rng)
    solved(shared, one)
    assert shared.found[0] is not None
    sent = pickle.loads(pickle.dumps(shared))
    assert sent.found == [None] * len(PENALTIES)
    assert all(result.success for result in solved(sent, other))


def test_another_penalty_shares_the_arrays(rng):
    problem = next(folds(rng))
    x = rng.standard_normal(problem.n)
    before = problem.start()
    other = problem.penalised(0.5)
    assert other.A is problem.A
    fresh = Logistic(problem.A, problem.b, l2=0.5, intercept=True)
    np.testing.assert_array_equal(other.gradient(x), fresh.gradient(x))
    assert other.start().L > before.L
