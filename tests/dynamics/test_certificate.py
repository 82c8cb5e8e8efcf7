"""Certificates: three levels, their margins, and where they are smallest."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from support import visited

import ode2opt
from ode2opt import InputError, Logistic, Lpp, Problem, Quadratic, Schedule
from ode2opt.dynamics import L0L1, Default, Global, Neural, Table, certificate_of

TIGHT = Quadratic(np.diag(np.linspace(0.01, 1, 10)), np.ones(10))


def along(coefficients, problem=TIGHT, **options):
    options = {"scales": [1.0], "estimator": Global(1.0)} | options
    return certificate_of(coefficients, [problem], **options)


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
    found = certificate_of(
        Default(2.0), problems, K=K, scales=[400.0] * 2, starts=[np.zeros(4)] * 2
    )
    worst = found.conditions["linear"]
    schedule = Default(2.0).schedule(h, 1.0, K, 400.0)
    points = visited(problems[worst.instance], np.zeros(4), schedule, K)
    k = round((worst.t - 1) / h)
    curvature = np.linalg.eigvalsh(problems[worst.instance].hessian(points[k]))[-1]
    assert found.traces[worst.instance].curvature[k] == pytest.approx(1.01 * curvature, rel=5e-3)


def test_a_flow_that_does_not_meet_theorem_1_is_refused():
    found = along(Table([1.0, 30.0], [5.0, 5.0], [0.1, 0.1], 4.0))
    assert not found.levels["flow"]
    assert "not shown to converge" in found.words()[0]


def test_kinks_are_no_matter_for_theorem_1():
    t = np.linspace(1, 30, 300)
    found = along(Table(t, 1 + 0 * t, 40 + t, 6.0))
    assert found.margins["convergence"] > 0
    assert not found.levels["flow"]
    assert "beta has kinks" in found.words()[0]
    assert not along(Neural(activation="relu")).levels["flow"]
    assert along(Neural()).levels["flow"]


def test_the_flow_is_checked_between_the_iterations_too():
    """gamma dips to nothing between two iterations of the sequence."""
    dipping = _Dipping(1.0)
    found = along(dipping)
    assert not found.levels["flow"]
    assert found.conditions["convergence"].t == pytest.approx(1.06, abs=0.02)


class _Dipping(Default):
    def gamma(self, t):
        return super().gamma(t) * (1 - 0.999 * jnp.exp(-(((t - 1.06) / 0.008) ** 2)))


@pytest.mark.parametrize("dtype", [np.float32, int])
def test_problems_and_starts_of_other_types(dtype):
    rng = np.random.default_rng(0)
    A = (3 * rng.standard_normal((30, 3))).astype(dtype)
    found = certificate_of(
        Default(1.0), [Logistic(A, rng.integers(0, 2, 30))], K=20, starts=[np.zeros(3, dtype)]
    )
    assert found.levels["sequence"]


@pytest.mark.parametrize("estimator", [None, L0L1(1.0, 1.0), Global(1.0)])
def test_iterates_that_are_not_finite_are_a_failure_for_every_estimator(estimator):
    problem = ode2opt.Problem.from_function(
        lambda x: jnp.where(x[0] < -3, jnp.nan, 1.0) * jnp.sum(x**2) / 2, n=2
    )
    found = certificate_of(
        Default(3.9), [problem], K=100, scales=[0.9], starts=[[3.0, 1.0]], estimator=estimator
    )
    assert found.margins["linear"] == -np.inf


def test_a_bare_schedule_says_nothing_of_a_flow():
    found = ode2opt.certify("gd", [TIGHT], scales=[1.0], estimator=Global(1.0))
    assert found.margins["convergence"] is None
    assert found.levels == {
        "flow": False,
        "sequence": False,
        "guarded": True,
    }  # d a = a = c, no room
    assert "nothing is said of a flow" in found.words()[0]


def test_what_cannot_be_followed_has_the_guard_alone(tmp_path):
    method = ode2opt.Method(
        None, "test", 1e-3, "family", 1.0, guard=ode2opt.Guard(fallback="metric-lbfgs")
    )
    method.save(tmp_path / "mine.safetensors")
    found, by_path = (
        ode2opt.certify(m, [TIGHT] * 3) for m in (method, tmp_path / "mine.safetensors")
    )
    assert by_path.summary() == found.summary()
    assert ode2opt.certify("logistic-phishing", [TIGHT] * 3).summary() == found.summary()
    assert found.levels == {"flow": False, "sequence": False, "guarded": True}
    assert found.margins == {"convergence": None, "stability": None, "linear": None}
    assert found.refused
    assert found.summary()["instances"] == 3
    (sentence,) = found.words()
    assert sentence.startswith("There is no table to certify: the method is L-BFGS from the start")


def test_nothing_is_ever_called_proved():
    for coefficients in (Default(1.0), Default(4.0)):
        said = " ".join(along(coefficients).words()).lower()
        assert "prove" not in said
        assert "guarded" in said


def test_a_diverging_sequence_is_a_failure_not_an_error():
    rng = np.random.default_rng(0)
    problem = Lpp(rng.standard_normal((40, 4)), rng.standard_normal(40))
    found = certificate_of(Default(4.0), [problem], scales=[1e-3], starts=[np.full(4, 10.0)])
    assert not found.levels["sequence"]
    assert found.conditions["stability"].held == 0


def test_what_cannot_be_computed_does_not_hold():
    """A gradient that turns into NaN after the first steps."""
    problem = ode2opt.Problem.from_function(lambda x: jnp.sum(jnp.sqrt(1 - x**2) ** -1), n=2)
    found = certificate_of(Default(1.0), [problem], K=30, scales=[1e-6], starts=[np.full(2, 0.5)])
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
        (lambda: certificate_of(Default(), []), "at least one problem"),
        (lambda: certificate_of(Default(), [TIGHT] * 2, scales=[1.0]), "2 problems but 1 scales"),
        (lambda: certificate_of(Default(), [TIGHT], scales=[0.0]), "A scale is 0"),
        (
            lambda: certificate_of(Default(), [TIGHT], starts=[np.ones(3)]),
            r"A start has shape \(3,\)",
        ),
        (lambda: certificate_of(Default(), [TIGHT], K=2.5), "K is 2.5"),
        (lambda: certificate_of("eigac-c1", [TIGHT]), "neither coefficients nor a schedule"),
        (lambda: ode2opt.certify(Default(), [TIGHT], worst_case=31), "1 to 30"),
        (
            lambda: certificate_of(Schedule.gradient_descent(1.0, 10), [TIGHT]),
            "10 iterations, fewer than K",
        ),
        (lambda: ode2opt.certify("lbfgs", [TIGHT]), "no schedule of three numbers"),
        (lambda: ode2opt.certify("eigac-c3", [TIGHT]), "Unknown method"),
        (lambda: ode2opt.certify("mine.safetensors", [TIGHT]), "pathlib.Path"),
        (lambda: ode2opt.certify(3, [TIGHT]), "not int"),
        (lambda: certificate_of(Default(), [TIGHT], t0=0.2), "must exceed alpha h"),
        (
            lambda: certificate_of(
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
    found = certificate_of(
        Default(1.0), [problem], K=20, estimator=L0L1(np.float64(5.0), np.float64(0.0))
    )
    np.testing.assert_allclose(found.traces[0].curvature, 5.0)
