"""What a certificate grants, it grants for a reason that holds."""

import json

import equinox as eqx
import numpy as np
import pytest

from ode2opt import Logistic, Lpp, Poisson, Quadratic, Schedule, certify
from ode2opt.paper import Default, Global, Spline, flow
from ode2opt.proofs import certificate_of, worst_case

H = 0.04


def quadratic():
    return Quadratic(np.diag([1.0, 0.5, 0.1, 0.01]), np.array([1.0, -1.0, 0.3, 0.02]))


def logistic(l2=0.0):
    rng = np.random.default_rng(0)
    return Logistic(rng.standard_normal((40, 4)), rng.integers(0, 2, 40).astype(float), l2=l2)


def dying_out(c=0.5 / H):
    """beta = c/t^3, gamma = beta/h + beta': Theorem 1 holds, and nothing moves after a while."""
    gamma = lambda t: c / t**3 / H - 3 * c / t**4  # noqa: E731
    return Spline(6.0).fit_to(lambda t: c / t**3, gamma)


@pytest.mark.parametrize("problem", [quadratic(), logistic()], ids=["quadratic", "logistic"])
def test_a_flow_whose_bound_is_above_its_start_is_not_granted(problem):
    found = certify(dying_out(), [problem])
    assert found.margins["convergence"] > 0 < found.margins["linear"]
    assert not found.levels["flow"]
    assert found.refused
    assert "not below where the flow begins" in found.refusal
    (one,) = found.flow_bounds
    start = problem.value(problem.start().x0) - one.reference
    assert one.start == pytest.approx(start)
    assert one.value > start
    assert found.bound is None
    assert found.summary()["flow_bound"]["below_start"] == 0
    said = " ".join(found.words())
    assert f"{one.value:.3g} is not below where the flow begins, {start:.3g} above f*" in said


def test_without_a_minimiser_the_start_is_compared_with_the_point_of_the_bound():
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, 30).astype(float)
    problem = Logistic(np.column_stack([rng.standard_normal(30), 2 * b - 1]), b)
    found = certify(dying_out(), [problem])
    assert not found.levels["flow"]
    (one,) = found.flow_bounds
    assert one.reference + one.value >= problem.value(problem.start().x0)
    assert "above f(z), z the point" in " ".join(found.words())
    assert certify(Default(1.0), [problem]).levels["flow"]


def random_spline(rng, blank=Spline()):  # noqa: B008
    """Level, trend and wiggle of beta and of gamma/beta, and alpha in (1, 12), at random."""
    wiggle, position = [0.02, 0.1, 0.5], np.linspace(0, np.log(21), 9)
    trend = rng.integers(2) * rng.uniform(-4, 1)
    beta = np.log(1 / H) + rng.normal() + trend * position + rng.normal(0, rng.choice(wiggle), 9)
    ratio = np.log(1 / H) + rng.normal(0, 0.3) * position + rng.normal(0, rng.choice(wiggle), 9)
    return eqx.tree_at(
        lambda c: (c.alpha, c.log_beta.parameters, c.log_gamma.parameters),
        blank, (np.asarray(rng.uniform(1, 12)), beta, beta + ratio),
    )  # fmt: skip


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_every_granted_flow_ends_below_its_bound_and_that_below_its_start(count, x64):
    rng, problems = np.random.default_rng(1), (quadratic(), logistic())
    theorem, granted = [0, 0], [0, 0]
    for _ in range(count):
        coefficients = random_spline(rng)
        for i, problem in enumerate(problems):
            x0, L = problem.start().x0, problem.start().L
            found = certificate_of(coefficients, [problem], estimator=Global(1.0), worst_case=1)
            theorem[i] += found.margins["convergence"] > 0
            if not found.levels["flow"]:
                continue
            granted[i] += 1
            (one,) = found.flow_bounds
            end = flow(coefficients, problem, x0, t1=21.0, scale=L, rtol=1e-7, atol=1e-9)
            assert problem.value(np.asarray(end.x)) - one.reference <= one.value
            assert one.reference + one.value < problem.value(x0)
    print(f"{count} sets: Theorem 1 holds for {theorem}, granted {granted}")
    assert min(granted) >= count // 4
    assert all(t > g for t, g in zip(theorem, granted, strict=True))


def verdict_of(found):
    return found.levels, found.refused, found.refusal, found.bound


@pytest.mark.parametrize(
    ("C", "decides"), [(1.0, "after N = 80 iterations"), (2.0, "cannot be computed")]
)
def test_how_many_iterations_are_bounded_changes_no_verdict(C, decides):
    options = {"scales": [1.0], "estimator": Global(1.0), "K": 250}
    usual, *others = (
        certificate_of(Default(C), [quadratic()], worst_case=N, **options) for N in (None, 1, 5)
    )
    assert usual.refused
    for N, found in zip((1, 5), others, strict=True):
        assert verdict_of(found) == verdict_of(usual)
        assert found.instances_case == usual.instances_case
        said = " ".join(found.words())
        assert f"after N = {N} iterations" in said
        assert decides in said


@pytest.mark.parametrize("N", [1, 2])
def test_the_command_line_buys_no_grant(run_cli, N):
    options = ("leastsquares", "digits", "--instances", 1, "--json", "-", "--worst-case", N)
    code, out, err = run_cli("certify", "eigac-c2", *options)
    assert code == 1
    assert json.loads(out)["worst_case"]["N"] == N
    assert json.loads(out)["worst_case"]["value"] <= 0.5
    assert "refused" in err


def without_known_curvature():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    return {"lpp": Lpp(A, rng.standard_normal(40)), "poisson": Poisson(A, rng.poisson(1.0, 40))}


@pytest.mark.parametrize("name", without_known_curvature())
@pytest.mark.parametrize("method", ["nag", "gd", "eigac-c1"])
def test_bounds_over_smooth_functions_grant_nothing_to_families_without_an_L(method, name):
    found = certify(method, [without_known_curvature()[name]], scales=[400.0], K=90)
    assert not found.levels["proved"]
    assert found.driven_away
    assert found.refused
    assert "curvature has no known limit" in found.refusal
    assert "their curvature has no known limit" in " ".join(found.words())


@pytest.mark.parametrize(
    ("name", "scale", "share"), [("eigac-c1", 4.0, 0.25), ("nag", 0.9, 10 / 9)]
)
def test_the_bound_that_decides_is_for_functions_as_curved_as_the_instances(name, scale, share):
    found = certify(name, [quadratic()], scales=[scale], K=250)
    decided = found.instances_case
    assert (found.refused, decided.N) == (False, 80)
    assert decided.start == pytest.approx(share / 2)  # where every such function starts at most
    schedule = {"eigac-c1": Default(share).schedule(H, 1.0, 80), "nag": nesterov(share)}[name]
    assert decided.value == pytest.approx(worst_case(schedule, 1.0, 80).value * share, rel=1e-4)
    assert f"(at the start: {share / 2:.3g})" in " ".join(found.words())


def nesterov(step):
    k = np.arange(81)
    return Schedule.nesterov(step, np.maximum(k - 1, 0) / (k + 2))


def test_a_short_bound_that_can_be_computed_is_no_substitute_for_the_one_that_cannot():
    """C = 0.5 for 45 iterations, then 3.9: linearly stable, and 80 are beyond the solver."""
    tame, wild = (Default(C).schedule(H, 1.0, 250) for C in (0.5, 3.9))
    late = np.arange(250) >= 45
    table = Schedule(np.where(late, wild.a, tame.a), np.where(late, wild.c, tame.c), tame.d)
    found = certificate_of(table, [quadratic()], scales=[1.0], K=250, estimator=Global(1.0))
    assert found.levels["linear"]
    assert found.worst_case.value < 0.1
    assert found.refused
    assert "cannot be computed" in " ".join(found.words())
