"""What a result says of f(x) - f* is true, and is said where it is known."""

import json

import numpy as np
import pytest
import scipy.sparse

from ode2opt import (
    Huber,
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
from ode2opt.problems import ScaledHuber
from ode2opt.problems.parts import Parts
from ode2opt.solvers import monitored
from ode2opt.solvers.bound import Bound, LowerBound, by_strong_convexity, rounded_up
from ode2opt.solvers.classics import gradient_descent
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.solve import minimised

KINDS = [Logistic, LeastSquares, Huber, SquaredHinge, Softmax, Poisson, Lpp]
EXTENDED = np.finfo(np.longdouble).eps < 1e-18


def drawn(i):
    """The i-th of many problems: every loss, weights, scales of columns, penalties."""
    rng = np.random.default_rng([7, i])
    kind, n = KINDS[i % len(KINDS)], int(rng.integers(1, 8))
    N = int(rng.integers(n + 1, 60))
    A = rng.standard_normal((N, n)) * 10 ** rng.uniform(-1, 1, n)
    z = A @ rng.standard_normal(n) / np.linalg.norm(A, axis=1).max()
    b = z + 0.3 * rng.standard_normal(N)
    if kind in (Logistic, SquaredHinge):
        b = (b > 0).astype(float)
    elif kind in (Softmax, Poisson):
        b = np.clip(np.round(b + 1), 0, 2)
    options = {"weights": rng.random(N)} if i % 2 else {}
    options |= {"classes": 3} if kind is Softmax else {}
    return kind(A, b, l2=10 ** rng.uniform(-4, 1), **options), 10 ** rng.uniform(-11, -1)


def in_long_double(problem):
    """Value and gradient of a problem, by the formulas of its loss, in extended precision."""
    long = np.longdouble
    A, b, l2, N = problem.A.astype(long), problem.b.astype(long), long(problem.l2), problem.N
    w = np.ones(N, long) if problem.weights is None else problem.weights.astype(long)

    def loss_and_slope(z):
        if isinstance(problem, Logistic):
            return np.logaddexp(0, z) - b * z, 1 / (1 + np.exp(-z)) - b
        if isinstance(problem, Poisson):
            return np.exp(z) - b * z, np.exp(z) - b
        if isinstance(problem, Lpp):
            return (z - b) ** problem.p / problem.p, (z - b) ** (problem.p - 1)
        if isinstance(problem, Huber):
            near = np.clip(z - b, -problem.delta, problem.delta)
            return near * (z - b - near / 2), near
        if isinstance(problem, SquaredHinge):
            missed = np.maximum(1 - (2 * b - 1) * z, 0)
            return missed**2, -2 * (2 * b - 1) * missed
        e = np.exp(z - z.max(axis=1, keepdims=True))
        chosen = b[:, None] == np.arange(problem.classes)
        total = e.sum(axis=1)
        loss = np.log(total) + z.max(axis=1) - (z * chosen).sum(axis=1)
        return loss, e / total[:, None] - chosen

    def both(x):
        x = x.astype(long)
        X = x if problem.width == 1 else x.reshape(-1, problem.width)
        loss, slope = loss_and_slope(A @ X)
        pulled = A.T @ (w * slope.T).T / N
        return w @ loss / N + l2 / 2 * (x @ x), pulled.reshape(-1) + l2 * x

    return both


def lowest_value(problem, x, both):
    """f* in extended precision: Newton steps from x, with gradients of that precision."""
    best = np.inf
    x = x.astype(np.longdouble)
    for _ in range(60):
        value, g = both(x)
        best = min(best, value)
        step = np.linalg.solve(problem.hessian(x.astype(float)), g.astype(float))
        if float(abs(g @ step)) <= 1e-24 * max(float(abs(value)), 1e-3):
            return best
        length = 1.0
        while both(x - length * step)[0] > value and length > 1e-6:
            length /= 2
        x = x - length * step
    raise AssertionError("the reference did not converge")


@pytest.mark.skipif(not EXTENDED, reason="long doubles are doubles here")
def test_it_is_never_below_the_true_gap_on_300_problems():
    """For Newton, L-BFGS and gradient descent that stop early, late, and at the last digits."""
    ratios = []
    for i in range(300):
        problem, tol = drawn(i)
        method = ("newton", "lbfgs", "gd", "auto")[i % 4]
        result = solve(problem, method=method, tol=tol, max_iter=40)
        both = in_long_double(problem)
        gap = float(both(result.x)[0] - lowest_value(problem, result.x, both))
        assert result.bound.value >= gap, i
        assert result.bound.value >= result.fun - float(both(result.x)[0]) + gap, i
        if gap > 1e-11 * abs(result.fun):
            ratios.append(result.bound.value / gap)
    assert len(ratios) > 100
    assert np.median(ratios) < 100


def test_a_quadratic_of_one_curvature_meets_it():
    """f = l2/2 |x - c|^2: the bound is the gap itself."""
    c = np.arange(1.0, 5.0)
    result = solve(Quadratic(np.zeros((4, 4)), 0.5 * c, l2=0.5), np.zeros(4), max_iter=0)
    gap = 0.25 * c @ c
    assert gap <= result.bound.value <= gap * (1 + 1e-9)
    assert result.bound.source == "strong convexity"
    assert result.bound.radius is None


@pytest.mark.parametrize("kind", [*KINDS, ScaledHuber, Quadratic])
def test_the_allowance_for_rounding_covers_single_precision(kind):
    """Gradients of float32 problems against the same in float64."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A = (rng.standard_normal((200, 5)) * 10 ** rng.uniform(-2, 2, 5)).astype(np.float32)
        x = (rng.standard_normal(15 if kind is Softmax else 5) / 20).astype(np.float32)
        b = rng.integers(0, 2, 200).astype(np.float32)
        if kind is Quadratic:
            A, b = (A.T @ A).astype(np.float32), b[:5]
            A = (A + A.T) / 2
        options = {"l2": 0.5} | ({"classes": 3} if kind is Softmax else {})
        if seed % 2 and kind is not Quadratic:
            options["weights"] = np.arange(1.0, 201.0).astype(np.float32)
        rough = kind(A, b, **options)
        exact = kind(A.astype(float), b.astype(float), **options)
        if rough.rows and rough.weights is not None:
            exact.weights = rough.weights.astype(float)
        error = np.linalg.norm(rough.gradient(x) - exact.gradient(x.astype(float)))
        x64 = x.astype(float)
        for value in (None, exact.value(x64)):
            allowed = rough.gradient_rounding(x, value)
            assert 0 < error <= allowed < np.inf
            assert exact.gradient_rounding(x64, value) < 1e-6 * allowed


A, B = np.array([[1.0, 2.0], [0.5, -1.0], [-1.0, 1.0], [2.0, 0.0]]), np.array([0.0, 1.0, 0.0, 1.0])
WITHOUT = {
    "no penalty": Logistic(A, B),
    "an intercept that is not penalised": Logistic(A, B, l2=0.1, intercept=True),
    "intercepts of classes": Softmax(A, B, l2=0.1, intercept=True),
    "a function": Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=2),
    "l2 below the rounding of Q": Quadratic(A.T @ A, B[:2], l2=1e-17),
}


@pytest.mark.parametrize("why", WITHOUT)
def test_nothing_is_said_where_nothing_is_known(why):
    result = solve(WITHOUT[why], max_iter=3)
    assert result.bound is None
    assert result.summary()["bound"] is None
    assert result.summary()["bound_from"] is None
    assert "bound" not in str(result)


def test_a_penalised_intercept_counts_with_its_own_weight():
    problem = SquaredHinge(A, B, l2=0.5, intercept=True, intercept_l2=0.1)
    assert problem.strong_convexity() == 0.1
    assert problem.penalised(0.01).strong_convexity() == 0.01
    result = solve(problem, method="gd", tol=1e-3)
    gap = result.fun - solve(problem, tol=1e-12).fun
    assert gap <= result.bound.value <= result.grad_norm**2 / 0.2 * (1 + 1e-6)


@pytest.mark.parametrize("as_matrix", [np.asarray, scipy.sparse.csr_array])
def test_it_costs_no_evaluation(as_matrix):
    class Counted(Logistic):
        asked = 0

        def scores(self, x):
            self.asked += 1
            return super().scores(x)

    rng = np.random.default_rng(0)
    rows = as_matrix(rng.standard_normal((200, 5)))
    b = (rng.random(200) < 0.5).astype(float)
    problem = Counted(rows, b, l2=0.1)
    result = solve(problem, method="gd", tol=1e-5)
    before = problem.asked
    assert by_strong_convexity(problem, result.x, result.grad_norm, result.fun, 1e-13)
    assert problem.asked == before
    assert before <= result.oracle_calls + 1


def test_problems_in_parts_have_it_too():
    rng = np.random.default_rng(0)
    rows, b = rng.standard_normal((90, 4)), (rng.random(90) < 0.5).astype(float)
    whole = solve(Logistic(rows, b, l2=0.1), tol=1e-4)
    parts = solve(Parts(Logistic, [(rows[:40], b[:40]), (rows[40:], b[40:])], l2=0.1), tol=1e-4)
    assert parts.bound.source == whole.bound.source == "strong convexity"
    for result in (whole, parts):
        assert result.bound.value == pytest.approx(result.grad_norm**2 / 0.2, rel=1e-6)


def test_it_is_said_in_words_and_in_json():
    result = solve(Logistic(A, B, l2=0.1), tol=1e-4)
    assert f"f(x) - f* is at most {rounded_up(result.bound.value)}, by strong" in str(result)
    document = json.loads(json.dumps(result.summary()))
    assert document["bound"] == result.bound.value
    assert document["bound_from"] == "strong convexity"
    near = Bound(0.01, "a certificate", radius=2.0)
    assert str(near) == (
        "f(x) - f(z) is at most 1.00e-02 for every z within 2 of the start point, by a certificate."
    )


@pytest.mark.parametrize("value", [0.0, 1e-300, 1.234e-7, 1.2341e-7, 9.999e5, 9.994e5, 1.0, 3e200])
def test_a_printed_bound_is_not_below_it(value):
    assert value <= float(rounded_up(value)) <= value * 1.0101


def test_a_method_may_report_what_it_proves_of_f_from_below():
    """Where l2 says nothing: f(z) >= 0 for all z, and a weaker statement, which does not count."""
    x0 = np.zeros(2)
    proved = [LowerBound(0.0, 0.0, x0, x0), LowerBound(-9.0, 1.0, x0, x0)]

    def proving(x, given):
        oracle.lower_bounds = proved
        gradient_descent(oracle, x, 10.0)

    for l2, due in ((0.0, "the monitored certificate"), (0.1, "strong convexity")):
        oracle = Oracle(Objective(Logistic(A, B, l2=l2)), tol=1e-6, max_iter=5)
        result = minimised(oracle, None, proving)
        assert result.bound.source == due
        if not l2:
            assert result.bound.value == pytest.approx(result.fun)
            assert result.bound.radius == pytest.approx(2 * np.linalg.norm(result.x))


def lowest_near(problem, x0, radius):
    """About the least value of f within a ball, by projected gradient steps."""
    x, step = x0, 1 / problem.smoothness()
    for _ in range(300):
        moved = x - step * problem.gradient(x) - x0
        x = x0 + moved * min(1.0, radius / max(np.linalg.norm(moved), 1e-300))
    return problem.value(x)


def test_the_monitored_method_bounds_its_value_against_every_point():
    """Logistic rows of which some have no minimiser: f falls for ever, the bound holds near x0."""
    rng, told = np.random.default_rng(3), []
    for seed in range(8):
        rows = np.abs(rng.standard_normal((40, 5))) * 10 ** rng.uniform(-1, 1, 5)
        labels = (rng.random(40) < 0.2 + 0.8 * (seed % 2)).astype(float)
        problem, x0 = Logistic(rows, labels), rng.standard_normal(5)
        for most in (1, 3, 10, 200):
            result = solve(problem, x0, method="nag-monitored", max_iter=most, tol=1e-12)
            assert result.bound.source == "the monitored certificate"
            gap = result.fun - lowest_near(problem, x0, result.bound.radius)
            assert gap <= result.bound.value
        told.append(result.bound.value / result.fun)
    assert np.median(told[::2]) < 0.1  # with both labels there is a minimiser


def test_what_the_monitored_method_tells_is_its_theorem_with_violations_paid():
    """Two moves at L' = L/64, which both violate the inequality: the formula, written out."""
    problem = Quadratic(np.diag([1.0, 0.5]), np.zeros(2))
    oracle = Oracle(Objective(problem), tol=1e-9, max_iter=3)
    y = []
    oracle.callback = lambda progress: y.append(progress.x) and None
    with pytest.raises(Stop):
        monitored.nag_monitored(oracle, np.array([1.0, -2.0]), 1.0, rho=1 / 64)
    f, g, L = [*map(problem.value, y)], [*map(problem.gradient, y)], 1 / 64
    missed = [
        f[k] + g[k] @ (y[k - 1] - y[k]) + (g[k] - g[k - 1]) @ (g[k] - g[k - 1]) / (2 * L) - f[k - 1]
        for k in (1, 2)
    ]
    assert min(missed) > 1
    told, last = oracle.lower_bounds
    assert last.factor == pytest.approx(L / (2 * 7))
    assert told.factor == pytest.approx(L / (2 * 4.5))
    due = f[2] - g[2] @ g[2] / (2 * L) - (1 * missed[0] + 2.5 * missed[1]) / 4.5
    assert told.level == pytest.approx(due, rel=1e-9)
    np.testing.assert_array_equal(told.center, y[0])


def test_a_run_that_was_restarted_speaks_of_points_near_the_first_start():
    start = np.array([1.0, 2.0])
    told = LowerBound(0.25, 0.5, start + np.array([3.0, 4.0]), start)
    bound = told.against(start + np.array([1.0, 0.0]), 1.0, 1e-13)
    assert bound.radius == pytest.approx(2)
    assert bound.value == pytest.approx(1.0 - 0.25 + 0.5 * (2 + 5) ** 2)


def test_a_statement_about_lower_points_is_no_better_than_what_was_seen():
    """f(z) >= min(0.5, 2 - 3 d - d^2), d twice the Euclidean distance: by hand, both sides."""
    start, x = np.zeros(2), np.array([0.0, 0.1])
    told = LowerBound(
        2.0, 1.0, start, start, "a proof", 3.0, 0.5, lambda x, y: 2 * np.linalg.norm(x - y)
    )
    near = told.against(x, 1.0, 0.0)  # radius 0.4: 2 - 1.2 - 0.16 = 0.64 is above 0.5
    assert (near.value, near.radius) == (pytest.approx(1.0 - 0.5), pytest.approx(0.4))
    assert near.source == "a proof, distances being those of the preconditioner"
    far = told.against(2 * x, 1.0, 0.0)  # radius 0.8: 2 - 2.4 - 0.64
    assert far.value == pytest.approx(1.0 + 1.04)


def test_the_command_prints_it_or_says_that_nothing_is_known(run_cli, tmp_path):
    np.savez(tmp_path / "rows.npz", A=A, b=B)
    solve_rows = ("solve", tmp_path / "rows.npz", "--problem", "logistic", "--l2", 0.1)
    code, out, _ = run_cli(*solve_rows, "--json", tmp_path / "found.json")
    document = json.loads((tmp_path / "found.json").read_text())
    said = f"f(x) - f* is at most {rounded_up(document['bound'])}, by strong convexity."
    assert (code, document["bound_from"]) == (0, "strong convexity")
    assert said in " ".join(out.replace("│", " ").split())
    _, out, _ = run_cli(*solve_rows, "--intercept")
    assert "nothing is known of f(x) - f*" in " ".join(out.replace("│", " ").split())


def test_numbers_whose_square_overflows_give_no_bound_and_no_error():
    problem = Huber([[1.0]], [0.0], l2=1e-3)
    assert by_strong_convexity(problem, np.ones(1), 1e160, 1.0, 1e-13) is None
    large = solve(Huber([[1e160]], [0.0], l2=1e-3), np.ones(1), method="lbfgs", max_iter=0)
    assert large.bound is None
