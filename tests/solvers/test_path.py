"""Paths of penalties on near-equal sets of rows: what they promise, and what sharing saves."""

import pickle

import numpy as np
import pytest

from ode2opt import Logistic, Softmax, solve
from ode2opt.solvers import path as paths
from ode2opt.solvers.path import Guide, Path

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


def solved(guide, problem, penalties=PENALTIES):
    path = Path(guide)
    return [path.solve(problem.penalised(l2), tol=TOL, max_iter=1000) for l2 in penalties]


@pytest.mark.parametrize("classes", [2, 4])
def test_every_point_of_every_path_is_a_solution(classes, rng):
    guide = Guide(4)
    for problem in folds(rng, classes):
        for l2, result in zip(PENALTIES, solved(guide, problem), strict=True):
            assert result.success
            assert np.linalg.norm(problem.penalised(l2).gradient(result.x)) <= TOL


@pytest.mark.parametrize("classes", [2, 4])
def test_those_that_follow_need_far_fewer_steps_than_alone(classes, rng):
    guide, shared, alone = Guide(4), 0, 0
    for problem in folds(rng, classes):
        shared += sum(result.iterations for result in solved(guide, problem))
        x = None
        for l2 in PENALTIES:
            result = solve(problem.penalised(l2), x, method="lbfgs", tol=TOL)
            x, alone = result.x, alone + result.iterations
    assert shared < alone / 2


def test_the_same_rows_are_followed_without_a_step(rng):
    guide = Guide(2)
    problem = next(folds(rng))
    lead, follow = solved(guide, problem), solved(guide, problem)
    assert all(result.iterations > 0 for result in lead)
    assert not any(result.iterations for result in follow)


def test_a_leader_that_leads_astray_is_not_followed_twice(rng):
    one, *_ = folds(rng)
    *_, other = folds(np.random.default_rng(5))  # of another population
    guide = Guide(2)
    solved(guide, one)
    path = Path(guide)
    for l2 in PENALTIES:
        assert path.solve(other.penalised(l2), tol=TOL, max_iter=1000).success
    assert not path._beside


@pytest.mark.parametrize("shape", [(40, 60), (300, 10)])
def test_without_room_for_metrics_paths_are_still_solved(shape, rng, monkeypatch):
    monkeypatch.setattr(paths, "FEW_NUMBERS", 0)
    rows, columns = shape
    A = rng.standard_normal(shape)
    guide = Guide(2)
    for half in (slice(0, rows - 10), slice(10, None)):
        problem = Logistic(A[half], (A[half, 0] > 0.1) * 1.0)
        assert all(result.success for result in solved(guide, problem))
    assert guide._kept <= rows * columns


def test_a_guide_goes_to_other_processes_without_its_metrics(rng):
    guide = Guide(2)
    one, other, *_ = folds(rng)
    solved(guide, one)
    assert guide.steps[0].metric is not None
    sent = pickle.loads(pickle.dumps(guide))
    assert all(step.metric is None for step in sent.steps)
    np.testing.assert_array_equal(sent.steps[-1].x, guide.steps[-1].x)
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
