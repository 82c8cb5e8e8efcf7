"""Certificates: three levels, their margins, and where they are smallest."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import ode2opt
from ode2opt import InputError, Logistic, Lpp, Problem, Quadratic, Schedule, solve
from ode2opt.dynamics import L0L1, Default, Global, Table, certify

TIGHT = Quadratic(np.diag(np.linspace(0.01, 1, 10)), np.ones(10))


def along(coefficients, problem=TIGHT, **options):
    options = {"scales": [1.0], "estimator": Global(1.0)} | options
    return certify(coefficients, [problem], **options)


def test_C4_with_a_tight_L_is_refused_and_C39_accepted():
    accepted, refused = along(Default(3.9)), along(Default(4.0))
    assert accepted.levels == {"flow": True, "sequence": True, "guarded": True}
    assert refused.levels == {"flow": True, "sequence": False, "guarded": True}
    assert accepted.margins["stability"] == pytest.approx(1 - 3.9 / 3.9564, abs=1e-4)
    assert refused.margins["stability"] == pytest.approx(1 - 4 / 3.9564, abs=1e-4)
    assert refused.refused
    assert not accepted.refused


def test_the_counterexample_has_margin_zero_and_is_refused():
    d = 0.24 / (1 + 0.04 * np.arange(500))
    a = (1 + np.sqrt(1 - d)) ** 2
    found = along(Schedule(a, a, d))
    assert found.margins["stability"] == pytest.approx(0, abs=1e-9)
    assert not found.levels["sequence"]
    spared = along(Schedule(0.97 * a, 0.97 * a, d))
    assert spared.margins["stability"] == pytest.approx(0.03, abs=1e-9)
    assert spared.levels["sequence"]


def test_the_smallest_margin_is_where_it_is_said_to_be():
    rng = np.random.default_rng(0)
    problems = [
        Lpp(rng.standard_normal((40, 4)), rng.standard_normal(40) * size) for size in (1, 3)
    ]
    K, h = 60, 0.04
    found = certify(Default(2.0), problems, K=K, scales=[400.0] * 2, starts=[np.zeros(4)] * 2)
    worst = found.conditions["linear"]
    points = []
    solve(
        problems[worst.instance], np.zeros(4), method=Default(2.0).schedule(h, 1.0, K, 400.0),
        tol=1e-12,
        max_iter=K, handover="none", callback=lambda p: points.append(p.x.copy()) and None,
    )  # fmt: skip
    k = round((worst.t - 1) / h)
    curvature = np.linalg.eigvalsh(problems[worst.instance].hessian(points[k]))[-1]
    assert found.traces[worst.instance].curvature[k] == pytest.approx(1.01 * curvature, rel=5e-3)


def test_a_flow_that_does_not_meet_theorem_1_is_refused():
    found = along(Table([1.0, 30.0], [5.0, 5.0], [0.1, 0.1], 4.0))
    assert not found.levels["flow"]
    assert "not shown to converge" in found.words()[0]


def test_a_bare_schedule_says_nothing_of_a_flow():
    found = ode2opt.certify("gd", [TIGHT], scales=[1.0], estimator=Global(1.0))
    assert found.margins["convergence"] is None
    assert found.levels == {
        "flow": False,
        "sequence": False,
        "guarded": True,
    }  # d a = a = c, no room
    assert "nothing is said of a flow" in found.words()[0]


def test_nothing_is_ever_called_proved():
    for coefficients in (Default(1.0), Default(4.0)):
        said = " ".join(along(coefficients).words()).lower()
        assert "prove" not in said
        assert "guarded" in said


def test_a_diverging_sequence_is_a_failure_not_an_error():
    rng = np.random.default_rng(0)
    problem = Lpp(rng.standard_normal((40, 4)), rng.standard_normal(40))
    found = certify(Default(4.0), [problem], scales=[1e-3], starts=[np.full(4, 10.0)])
    assert not found.levels["sequence"]
    assert found.conditions["stability"].held == 0


def test_what_cannot_be_computed_does_not_hold():
    """A gradient that turns into NaN after the first steps."""
    problem = ode2opt.Problem.from_function(lambda x: jnp.sum(jnp.sqrt(1 - x**2) ** -1), n=2)
    found = certify(Default(1.0), [problem], K=30, scales=[1e-6], starts=[np.full(2, 0.5)])
    assert np.isnan(found.traces[0].curvature).any()
    assert found.margins["linear"] == -np.inf
    assert "Infinity" not in json.dumps(found.summary())
    assert not found.levels["sequence"]


def test_the_worst_case_can_be_added():
    found = ode2opt.certify(Default(1.0), [TIGHT], worst_case=3)
    assert found.summary()["worst_case"]["N"] == 3
    assert "Over all L-smooth convex functions" in found.words()[-1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: certify(Default(), []), "at least one problem"),
        (
            lambda: certify(Schedule.gradient_descent(1.0, 10), [TIGHT]),
            "10 iterations, fewer than K",
        ),
        (lambda: ode2opt.certify("lbfgs", [TIGHT]), "no schedule of three numbers"),
        (lambda: ode2opt.certify("eigac-c3", [TIGHT]), "Unknown method"),
        (lambda: certify(Default(), [TIGHT], t0=0.2), "must exceed alpha h"),
        (
            lambda: certify(
                Default(),
                [Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=2)],
            ),
            "PowerIteration needs Hessian-vector products",
        ),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_l0l1_margins_are_those_of_its_curvature():
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((30, 3)), rng.integers(0, 2, 30), l2=0.1)
    found = certify(Default(1.0), [problem], K=20, estimator=L0L1(np.float64(5.0), np.float64(0.0)))
    np.testing.assert_allclose(found.traces[0].curvature, 5.0)
