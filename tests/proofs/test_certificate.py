"""Certificates: four levels, their margins, and where they are smallest."""

import json
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from pep import pep_worst_case
from support import visited

import ode2opt
from ode2opt import InputError, Logistic, Lpp, Problem, Quadratic, Schedule
from ode2opt.paper import L0L1, Default, Global, Neural, Table
from ode2opt.proofs import certificate_of, worst_case
from ode2opt.proofs.exact import exact_proof
from ode2opt.proofs.table import exact_rows, schedule_of, two_step_rows
from ode2opt.proofs.theorem import classical_rows

TIGHT = Quadratic(np.diag(np.linspace(0.01, 1, 10)), np.ones(10))


def along(coefficients, problem=TIGHT, **options):
    options = {"scales": [1.0], "estimator": Global(1.0)} | options
    return certificate_of(coefficients, [problem], **options)


def test_eigac_is_never_proved_and_refused_where_it_may_be_driven_away():
    tame, driven, unstable = (along(Default(C), worst_case=20) for C in (1.0, 2.0, 4.0))
    for found, linear in ((tame, True), (driven, True), (unstable, False)):
        assert found.levels == {"flow": True, "linear": linear, "proved": False, "guarded": True}
        assert found.summary()["proof"] is None
        assert found.refused  # with C = 1 the bound rises again: 6.5 after 80 iterations
    assert tame.instances_case.value == pytest.approx(6.49, rel=1e-3)
    assert driven.worst_case.value > 7.23 > 0.5 > tame.worst_case.value > 0.148  # PEPit's values
    assert along(Default(1.0)).worst_case.N == 80
    assert driven.margins["stability"] == pytest.approx(1 - 2 / 3.9564, abs=1e-4)
    assert unstable.margins["stability"] == pytest.approx(1 - 4 / 3.9564, abs=1e-4)


@pytest.mark.parametrize("name", ["nag", "gd"])
def test_what_is_proved_is_granted_whatever_the_papers_condition_says(name):
    found = ode2opt.certify(name, [TIGHT])
    assert found.margins["stability"] < 0 < found.margins["linear"]
    assert found.levels == {"flow": False, "linear": True, "proved": True, "guarded": True}
    assert not found.refused
    assert found.summary()["proof"] == "theorem"
    assert found.bound in " ".join(found.words())


def test_the_margin_that_is_printed_is_that_of_linear_stability():
    found = along(Schedule.gradient_descent(0.5, 500))
    assert found.margins["linear"] == pytest.approx(0.75)  # 1 - (a - c/2) l / (2 - d)
    assert "margin 0.75 of the exact condition" in " ".join(found.words())


def test_the_counterexample_has_margin_zero_and_is_refused():
    d = 0.24 / (1 + 0.04 * np.arange(500))
    a = (1 + np.sqrt(1 - d)) ** 2
    found = along(Schedule(a, a, d))
    assert found.margins["stability"] == pytest.approx(0, abs=1e-9)
    assert found.levels["linear"]  # every matrix is, and still their product grows
    assert found.refused


def test_a_proof_says_nothing_of_functions_that_are_more_curved():
    found = ode2opt.certify("nag", [TIGHT], scales=[0.9])
    assert not found.levels["proved"]
    assert "curvatures up to 1.111 times the method's L" in " ".join(found.words())
    rng = np.random.default_rng(0)
    lpp = Lpp(rng.standard_normal((40, 4)), rng.standard_normal(40))
    found = ode2opt.certify("nag", [lpp], K=30, scales=[400.0])
    assert not found.levels["proved"]
    assert "their curvature has no known limit" in " ".join(found.words())


def test_functions_no_more_curved_than_the_instances_are_bounded_apart():
    """With L four times too large C = 1 is a quarter of that."""
    found = along(Default(1.0), scales=[4.0])
    assert found.worst_case.value > 0.5
    quarter = worst_case(Default(0.25).schedule(0.04, 1.0, 80), 1.0, 80).value / 4
    assert found.instances_case.value == pytest.approx(quarter, rel=1e-5)
    assert not found.refused
    shorter = along(Default(1.0), scales=[4.0], K=60)
    assert shorter.levels["proved"]
    assert "curvatures up to 0.25 L" in shorter.bound


def separable_rows():
    """Logistic regression whose second column has the sign of the labels: no minimiser."""
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, 30).astype(float)
    A = np.column_stack([rng.standard_normal(30), (2 * b - 1) * rng.random(30)])
    return A, b


def test_without_a_minimiser_no_convergence_is_claimed():
    A, b = separable_rows()
    found = certificate_of(Default(1.0), [Logistic(A, b)], K=100)
    said = " ".join(found.words())
    assert found.levels["flow"]
    assert "no minimiser: column 1" in said
    assert "f(x(t)) <= f(z) +" in found.bound
    assert found.summary()["flow_bound"]["minimisers"] == 0
    spared = certificate_of(Default(1.0), [Logistic(A, b, l2=0.1)], K=100)
    assert "no minimiser" not in " ".join(spared.words())
    assert "- f* <= E(t0)/delta(5)" in " ".join(spared.words())
    assert spared.summary()["flow_bound"]["minimisers"] == 1


def test_what_is_proved_without_a_minimiser_is_said_of_every_point():
    A, b = separable_rows()
    found = ode2opt.certify("nag", [Logistic(A, b)], K=20)
    assert found.levels["proved"]
    assert "every point z" in found.bound
    # OGM's theorem needs a minimiser.
    ogm = schedule_of(classical_rows("ogm", 19))
    assert ode2opt.certify(ogm, [Logistic(A, b, l2=0.1)], K=20, scales=[9.0]).levels["proved"]
    found = ode2opt.certify(ogm, [Logistic(A, b)], K=20, scales=[9.0])
    assert not found.levels["proved"]
    assert not found.refused
    assert "instance 0 has no known minimiser: column 1" in " ".join(found.words())


def test_a_table_near_nesterovs_is_proved_by_matrix_inequalities():
    rows = np.array(classical_rows("nag", 19), dtype=float)
    near = schedule_of(rows * [1.0, 1.0, 0.97])  # m and q differ: no theorem
    found = along(near, K=20)
    assert found.summary()["proof"] == "lmi"
    assert not found.refused
    exact = pep_worst_case(two_step_rows(near)[:6])
    assert worst_case(near, 1.0, 7).value == pytest.approx(exact, rel=0.02)


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
    assert "not shown to hold" in found.words()[0]


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
    assert found.levels["linear"]


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
    assert not found.levels["flow"]
    assert "nothing is said of a flow" in found.words()[0]
    assert found.summary()["kappa"] is None


def test_a_file_brings_its_proof():
    rows = [tuple(map(Fraction, row)) for row in np.array(classical_rows("nag", 9), dtype=float)]
    document = exact_proof(exact_rows(schedule_of(rows))).document
    method = ode2opt.Method(
        schedule_of(rows), "test", 1e-3, "family", 1.0, proof=document,
    )  # fmt: skip
    found = ode2opt.certify(method, [TIGHT])
    assert found.summary()["proof"] == "lmi"
    assert found.bound.startswith("For every L-smooth convex function")
    steeper = ode2opt.certify(method.replace(family_scale=0.5), [TIGHT])
    assert not steeper.levels["proved"]
    assert "curvatures up to 2 times the method's L" in " ".join(steeper.words())
    other = method.replace(schedule=Schedule.gradient_descent(1.0, 10))
    with pytest.raises(InputError, match="another table"):
        ode2opt.certify(other, [TIGHT])


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
    assert found.levels == {"flow": False, "linear": False, "proved": False, "guarded": True}
    assert found.margins == {"convergence": None, "stability": None, "linear": None}
    assert found.refused
    assert found.summary()["instances"] == 3
    (sentence,) = found.words()
    assert sentence.startswith("There is no table to certify: the method is L-BFGS from the start")


def test_a_diverging_sequence_is_a_failure_not_an_error():
    rng = np.random.default_rng(0)
    problem = Lpp(rng.standard_normal((40, 4)), rng.standard_normal(40))
    found = certificate_of(Default(4.0), [problem], scales=[1e-3], starts=[np.full(4, 10.0)])
    assert not found.levels["linear"]
    assert found.conditions["stability"].held == 0


def test_what_cannot_be_computed_does_not_hold():
    """A gradient that turns into NaN after the first steps."""
    problem = ode2opt.Problem.from_function(lambda x: jnp.sum(jnp.sqrt(1 - x**2) ** -1), n=2)
    found = certificate_of(Default(1.0), [problem], K=30, scales=[1e-6], starts=[np.full(2, 0.5)])
    assert np.isnan(found.traces[0].curvature).any()
    assert found.margins["linear"] == -np.inf
    assert "Infinity" not in json.dumps(found.summary())
    assert not found.levels["linear"]


def test_the_worst_case_can_be_added():
    found = ode2opt.certify(Default(1.0), [TIGHT], worst_case=3)
    assert found.summary()["worst_case"]["N"] == 3
    assert "after N = 3 iterations is at most 0.2" in " ".join(found.words())


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
        (lambda: ode2opt.certify(Default(), [TIGHT], worst_case=202), "1 to 201"),
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
