"""A short soak: hostile problems by every method; `make soak` runs it for longer."""

import math

import numpy as np
import pytest
from fuzz import soak_estimators, wild
from fuzz.exact import Exact, by_row
from fuzz.hostile import FUNCTIONS, KINDS, LIBRARIES, make_case
from fuzz.reference import Reference
from fuzz.row_losses import power
from fuzz.soak_solves import FREE, GUARDED, Soak, judged
from support import counting

from ode2opt import LeastSquares, Status, solve
from ode2opt.base.precision import jax_precision


@pytest.fixture(autouse=True)
def double():
    with jax_precision():
        yield


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_hostile_problems_break_no_promise(first):
    soak = Soak()
    soak.run(range(first, first + 10), methods=2)
    assert soak.broken == []
    assert soak.counts["solves"] == 20


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # losses with walls, as users write them
@pytest.mark.parametrize("first", range(0, 20, 10))
def test_wild_problems_break_no_promise(first):
    soak = Soak(wild.make_case, most=1_000)
    soak.run(range(first, first + 10), methods=1)
    assert soak.broken == []
    assert soak.counts["solves"] == 10


@pytest.mark.parametrize(
    ("seed", "method"),
    [(6044, "auto"), (6304, "eigac-c1"), (6353, "eigac-c4"), (1708, "eigac-c1")],
)
def test_what_a_long_soak_found_is_mended(seed, method):
    """No pace of Newton; a curvature that overflows when halved, one below zero; rounded scores."""
    soak = Soak()
    soak.run(range(seed, seed + 1), only=method)
    assert soak.broken == []


@pytest.mark.parametrize("name", [*GUARDED, *FREE])
def test_every_method_is_soaked(name):
    soak = Soak()
    soak.run(range(100, 103), only=name)
    assert soak.broken == []


def test_adversarial_fits_end_where_their_namesakes_do():
    assert soak_estimators.soak(range(30)) == []
    names = {soak_estimators.make_case(seed).name for seed in range(30)}
    assert names == set(soak_estimators.LOSSES)


def test_a_fit_that_is_off_is_found(monkeypatch):
    def halved(model, case, w, _loss=soak_estimators.LOSSES["Ridge"]):
        if type(model).__module__.startswith("ode2opt"):
            model.intercept_ = model.intercept_ / 2 + 1
        return _loss(model, case, w)

    monkeypatch.setitem(soak_estimators.LOSSES, "Ridge", halved)
    assert {found[1] for found in soak_estimators.soak(range(12))} == {"Ridge"}


def test_the_problems_are_of_all_kinds():
    cases = [make_case(seed) for seed in range(150)]
    assert {case.kind for case in cases} == set(KINDS)
    assert {case.library for case in cases} == set(LIBRARIES)
    assert {str(case.problem.dtype).split(".")[-1] for case in cases} == {"float32", "float64"}
    assert min(case.problem.n for case in cases) == 1
    assert max(case.problem.n for case in cases) > 200


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_the_exact_norm_is_that_of_the_problem_within_its_bound(seed):
    case = make_case(seed)
    norm, bound = case.true_norm(case.x0)
    ours = np.linalg.norm(np.asarray(case.problem.gradient(case.x0)).astype(np.longdouble))
    assert abs(norm - float(ours)) <= bound + 1e-6 * norm
    if case.kind in FUNCTIONS:  # the function is its gradient's
        direction = np.random.default_rng(seed).standard_normal(case.problem.n)
        h = 1e-6 * (np.linalg.norm(case.x0) or 1e-3) / np.linalg.norm(direction)
        up, down = (case.problem.value(case.x0 + s * h * direction) for s in (1, -1))
        slope = float(case.problem.gradient(case.x0) @ direction)
        scale = norm * np.linalg.norm(direction) + 1e-9 * abs(up) / h
        assert abs((up - down) / (2 * h) - slope) <= 0.05 * scale


def test_the_wild_problems_are_of_all_kinds_and_their_norms_exact():
    cases = [wild.make_case(seed) for seed in range(150)]
    assert {case.kind for case in cases} == set(wild.KINDS)
    assert {case.library for case in cases} == {*wild.FORMS, "function"}
    for case in cases:
        norm, bound = case.first_norm
        g = np.asarray(case.problem.gradient(case.x0)).astype(np.longdouble)
        assert abs(norm - float(np.sqrt(np.sum(g**2)))) <= bound + 1e-6 * norm


@pytest.mark.parametrize("kind", wild.LOSSES)
def test_slopes_and_bends_are_those_of_the_losses(kind):
    loss = wild.LOSSES[kind]
    b = np.array([0.0, 1.0, 1.0, 0.0]) if kind in ("hinge", "logistic") else np.full(4, 0.7)
    z, h = np.array([-0.45, 0.3, -0.2, 0.5], dtype=np.longdouble), np.longdouble(1e-6)
    slope = (loss.value(z + h, b) - loss.value(z - h, b)) / (2 * h)
    bend = (loss.slope(z + h, b) - loss.slope(z - h, b)) / (2 * h)
    np.testing.assert_allclose(loss.slope(z, b), slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(loss.bend(z, b), bend, rtol=1e-6, atol=1e-9)


def falsified(result, **fields):
    wrong = object.__new__(type(result))
    wrong.__dict__.update(result.__dict__ | fields)
    return wrong


def test_lies_are_found():
    """What the soak checks, it finds: each field of a true result is made untrue."""
    case = next(
        c for c in map(make_case, range(99)) if c.kind == "logistic" and c.library == "numpy"
    )
    problem = counting(case.problem)
    result = solve(problem, case.x0, method="lbfgs", tol=case.tol)
    calls = problem.tally.calls
    assert judged(case, result, calls) == "ok"
    assert "wrong count" in judged(case, result, calls + 1)
    assert "not finite" in judged(case, falsified(result, x=result.x * math.inf), calls)
    assert "untrue norm" in judged(case, falsified(result, x=np.asarray(case.x0)), calls)
    assert "untrue status" in judged(case, falsified(result, status=Status.STALLED), calls)
    assert "untrue success" in judged(case, falsified(result, reached=None), calls)


def test_the_reference_is_scipy_and_runs_no_further_than_asked():
    case = make_case(0)
    needed = Reference(case).within(15_000)
    assert needed < math.inf
    reference = Reference(case)
    assert reference.within(int(needed) - 1) == math.inf
    assert reference.within(15_000) == needed


def test_the_bound_holds_in_single_precision():
    rng = np.random.default_rng(0)
    A, b, x = rng.standard_normal((80, 40)), rng.standard_normal(80), rng.standard_normal(40)
    A, b, x = (v.astype(np.float32) for v in (A, b, x))
    exact = Exact(*(v.astype(float) for v in (A, b)), np.zeros(40), np.ones(80), by_row(power(2)))
    norm, bound = exact.norm(x.astype(np.longdouble), np.finfo(np.float32))
    ours = float(np.linalg.norm(LeastSquares(A, b).gradient(x).astype(float)))
    assert 0 < abs(norm - ours) <= bound < 0.01 * norm
