"""Paths of weights: every point against an independent residual, scikit-learn's path, by hand."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import enet_path

import ode2opt
from ode2opt import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    InputError,
    LeastSquares,
    Logistic,
    NonNegative,
    Quadratic,
    Simplex,
    Softmax,
    Status,
)
from ode2opt.solvers import penalty_path
from ode2opt.solvers.screening import Screen

TOL = 1e-7


@pytest.fixture(autouse=True)
def _narrow_matrices_are_cut(monkeypatch):
    monkeypatch.setattr(Screen, "fewest", 200)


def data(N=60, n=300, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) + rng.standard_normal((N, 1))
    return A, A[:, :4] @ [2.0, -1.5, 1.0, 0.5] + 0.3 * rng.standard_normal(N)


def soft(v, reach):
    return np.sign(v) * np.maximum(np.abs(v) - reach, 0)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_each_point_solves_the_full_problem(ratio):
    A, y = data()
    found = ode2opt.path(LeastSquares(A, y), ElasticNet(1.0, ratio), n=12, ratio=0.05, tol=TOL)
    assert found.success
    assert len(found) == 12
    for k, scale in enumerate(found.scales):
        x = found.x(k)
        g = A.T @ (A @ x - y) / len(y)
        due = x - soft(x - g, scale * ratio) / (1 + scale * (1 - ratio))
        assert np.linalg.norm(due) <= TOL * (1 + 1e-6)
        assert found.residuals[k] == pytest.approx(np.linalg.norm(due), rel=1e-6, abs=1e-12)
        assert found.supports[k].tolist() == np.flatnonzero(x).tolist()
    options = {"l1_ratio": ratio, "tol": 1e-12, "max_iter": 100_000}
    theirs = enet_path(A, y, alphas=found.scales, **options)[1]
    np.testing.assert_allclose(found.coefficients, theirs.T, atol=1e-5)
    assert (found.gaps >= 0).all()
    assert found.gaps.max() < 1e-5


def test_the_largest_scale_is_the_least_with_nothing_but_an_intercept():
    A, y = data()
    found = ode2opt.path(Logistic(A, y > 1, intercept=True), L1(1.0), n=3, ratio=0.9, tol=1e-9)
    share = np.mean(y > 1)
    assert found.scales[0] == pytest.approx(np.abs(A.T @ (share - (y > 1))).max() / len(y))
    assert [len(one) for one in found.supports[:2]] == [1, 2]
    assert found.x(0)[-1] == pytest.approx(np.log(share / (1 - share)), abs=1e-6)


def test_groups_go_through_a_path_together():
    A, y = data(n=240)
    groups = np.arange(240).reshape(-1, 4)
    found = ode2opt.path(
        LeastSquares(A, y, intercept=True), GroupL1(1.0, groups), n=8, ratio=0.1, tol=TOL
    )
    assert found.success
    centred, g0 = A - A.mean(axis=0), A.T @ (y.mean() - y) / len(y)
    assert found.scales[0] == pytest.approx(np.linalg.norm(g0[groups], axis=1).max())
    for k, scale in enumerate(found.scales):
        x = found.x(k)[:-1]
        assert found.x(k)[-1] == pytest.approx(np.mean(y - A @ x), abs=1e-6)
        moved = (x - centred.T @ (centred @ x - (y - y.mean())) / len(y))[groups]
        norms = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300)
        due = np.maximum(1 - scale / norms, 0) * moved
        assert np.linalg.norm(x[groups] - due) <= 10 * TOL
    assert len(found.supports[0]) == 1
    assert all((len(one) - 1) % 4 == 0 for one in found.supports)


def test_columns_that_were_left_out_wrongly_are_put_back(monkeypatch):
    A, y = data()
    problem, asked = LeastSquares(A, y, intercept=True), {"n": 10, "ratio": 0.05, "tol": TOL}
    due = ode2opt.path(problem, L1(1.0), **asked)
    strong = Screen.strong

    def wrong(self, penalty, x, g):
        columns = strong(self, penalty, x, g)
        return None if columns is None else columns & (np.arange(len(columns)) % 3 == 0)

    monkeypatch.setattr(Screen, "strong", wrong)
    found = ode2opt.path(problem, L1(1.0), **asked)
    assert found.success
    np.testing.assert_allclose(found.coefficients, due.coefficients, atol=1e-5)


def test_what_is_left_out_saves_calls(monkeypatch):
    problem = LeastSquares(*data(n=900))
    screened = ode2opt.path(problem, L1(1.0), n=10, ratio=0.1, method="fista")
    monkeypatch.setattr(Screen, "of", lambda problem: None)
    full = ode2opt.path(problem, L1(1.0), n=10, ratio=0.1, method="fista")
    assert screened.calls.sum() < full.calls.sum()
    np.testing.assert_allclose(screened.coefficients, full.coefficients, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_tall_squares_share_their_gram_matrix(monkeypatch, intercept):
    """With it or without, every point is a solution of the rows; it saves calls on them."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((400, 20)) @ rng.standard_normal((20, 20)) + 1
    y, w = A[:, 0] - 2 * A[:, 3] + rng.standard_normal(400), rng.uniform(0, 2, 400)
    problem = LeastSquares(A, y, weights=w, intercept=intercept, l2=0.01)
    by_rows = ode2opt.path(problem, L1(1.0), n=10, tol=TOL)
    rules = penalty_path.RULES._replace(fewest_entries=0)
    monkeypatch.setattr(penalty_path, "RULES", rules)
    found = ode2opt.path(problem, L1(1.0), n=10, tol=TOL)
    assert found.success
    for k, scale in enumerate(found.scales):
        again = ode2opt.solve(problem, found.x(k), penalty=L1(scale), tol=TOL)
        assert again.iterations == 0
        assert found.residuals[k] == pytest.approx(again.residual, rel=1e-6)
    np.testing.assert_allclose(found.coefficients, by_rows.coefficients, atol=1e-5)
    assert found.calls.sum() < by_rows.calls.sum()


@pytest.mark.parametrize("sparse", [False, True])
def test_wide_solutions_are_sparse(sparse):
    A, y = data(N=40, n=1200)
    A[np.abs(A) < 1] = 0
    problem = LeastSquares(scipy.sparse.csr_array(A) if sparse else A, y)
    found = ode2opt.path(problem, L1(1.0), n=6, ratio=0.3)
    assert scipy.sparse.issparse(found.coefficients)
    assert found.coefficients.shape == (6, 1200)
    theirs = enet_path(A, y, alphas=found.scales, l1_ratio=1.0, tol=1e-12)[1]
    np.testing.assert_allclose(found.coefficients.toarray(), theirs.T, atol=1e-4)
    assert found.x(-1).tolist() == found.coefficients[[-1]].toarray()[0].tolist()


def test_classes_limits_and_quadratics():
    A, y = data(n=250)
    labels = np.digitize(y, [-1, 1])
    found = ode2opt.path(Softmax(A, labels, intercept=True), L1(1.0), n=5, ratio=0.3)
    assert found.success
    assert found.coefficients.shape == (5, 753)
    assert len(found.supports[0]) == 3
    found = ode2opt.path(LeastSquares(A, y), L1(1.0) + NonNegative(), n=5, ratio=0.3)
    assert found.success
    assert found.coefficients.min() == 0
    Q = np.diag([1.0, 2.0])
    found = ode2opt.path(Quadratic(Q, np.array([3.0, 1.0])), L1(2.0), scales=[1.5, 0.5], tol=1e-10)
    np.testing.assert_allclose(found.coefficients, [[0, 0], [2, 0]], atol=1e-9)  # by hand


def test_it_goes_on_after_a_point_that_misses_its_tolerance():
    found = ode2opt.path(
        LeastSquares(*data(n=30)), L1(1.0), n=5, ratio=0.01, max_iter=3, method="fista"
    )
    assert not found.success
    assert len(found) == 5
    assert found.status is Status.MAX_ITER
    assert "The iteration limit was reached." in str(found)


def test_a_callback_sees_each_scale_and_may_stop():
    seen = []

    def watch(progress):
        seen.append((progress.done, progress.total, progress.scale, progress.result.success))
        return progress.done == 3

    found = ode2opt.path(LeastSquares(*data(n=30)), L1(1.0), n=5, callback=watch)
    assert (len(found), found.status) == (3, Status.CALLBACK)
    assert seen == [(k + 1, 5, scale, True) for k, scale in enumerate(found.scales)]


class Interrupting(LeastSquares):
    """Least squares at which somebody presses Ctrl-C; cut copies count with it."""

    def value_and_gradient(self, x):
        self.left[0] -= 1
        if self.left[0] < 0:
            raise KeyboardInterrupt
        return super().value_and_gradient(x)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("n", [30, 300])
def test_what_is_done_is_kept_after_an_interruption(n, share):
    problem, asked = Interrupting(*data(n=n)), {"n": 8, "ratio": 0.1}
    problem.left = [10**6]
    whole = ode2opt.path(problem, L1(1.0), **asked)
    problem.left = [int(share * (10**6 - problem.left[0]))]
    found = ode2opt.path(problem, L1(1.0), **asked)
    assert found.status is Status.INTERRUPTED
    assert (len(found) > 1) == (share > 0)
    assert len(found) < 8
    assert found.coefficients.tolist() == whole.coefficients[: len(found)].tolist()
    assert "Interrupted" in str(found)


def test_single_precision_and_an_own_start():
    A, y = (one.astype(np.float32) for one in data(n=30))
    problem = LeastSquares(A, y)
    found = ode2opt.path(problem, L1(1.0), n=5, ratio=0.1, tol=1e-4)
    assert found.success
    again = ode2opt.path(
        problem, L1(1.0), scales=found.scales[-1:], x0=found.x(-1).astype(float), tol=1e-4
    )
    assert again.calls[0] <= 2


BAD = {
    "Box has no weight": lambda p: ode2opt.path(p, Box(0, 1)),
    "Simplex has no weight": lambda p: ode2opt.path(p, Simplex()),
    "ElasticNet has no weight of": lambda p: ode2opt.path(p, ElasticNet(1.0, 0.0)),
    "or does not allow 0": lambda p: ode2opt.path(p, L1(1.0) + Box(1, 2)),
    "penalty must be a Penalty": lambda p: ode2opt.path(p, 0.1),
    "A path needs a Problem, not ndarray": lambda p: ode2opt.path(np.eye(2), L1(1.0)),
    "ratio is 2": lambda p: ode2opt.path(p, L1(1.0), ratio=2),
    "ratio is nan": lambda p: ode2opt.path(p, L1(1.0), ratio=np.nan),
    "n is 0": lambda p: ode2opt.path(p, L1(1.0), n=0),
    "scales must be positive numbers that fall": lambda p: ode2opt.path(p, L1(1.0), scales=[1, 2]),
    "scales must be a row": lambda p: ode2opt.path(p, L1(1.0), scales=[]),
    "x0 must have 30 finite": lambda p: ode2opt.path(p, L1(1.0), x0=np.zeros(2)),
    "callback must be a function": lambda p: ode2opt.path(p, L1(1.0), callback=3),
    "there is no path": lambda p: ode2opt.path(Quadratic(np.eye(2), np.zeros(2)), L1(1.0)),
    "for smooth functions": lambda p: ode2opt.path(p, L1(1.0), method="lbfgs"),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_told_in_a_sentence(sentence):
    with pytest.raises(InputError, match=sentence):
        BAD[sentence](LeastSquares(*data(n=30)))
