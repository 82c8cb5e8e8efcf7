"""A table with a prox as a method: it is run, watched, saved and read."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import ode2opt
from ode2opt import Guard, InputError, Logistic, Method, Quadratic, Relay, solve
from ode2opt.penalties import L1, Box, Simplex
from ode2opt.proofs.table import Table, proved_ages
from ode2opt.solvers import Status

FISTA_GUARD = Guard(fallback="fista", blowup=100.0)


@pytest.fixture
def problem(rng):
    A = rng.standard_normal((30, 12))
    return Quadratic(A.T @ A, A.T @ rng.standard_normal(30))


def curvature(problem):
    return float(np.linalg.eigvalsh(problem.Q)[-1])


def on_iterates(K):
    """FISTA for quadratics with all gradients at iterates: (1 + m) g - m g_before."""
    m = Table.fista(K).m
    return Table(m, 1 + m, m, 0 * m)


def method(problem, table, **fields):
    given = {
        "schedule": None, "family": "made up", "tol": 1e-6, "scale": "family",
        "family_scale": curvature(problem), "guard": FISTA_GUARD, "proximal": table,
    }  # fmt: skip
    return Method(**(given | fields))


def plain_fista(problem, weight, steps):
    """Return the residuals of FISTA for |x|_1, written by hand."""
    L, t, x = curvature(problem), 1.0, np.zeros(problem.n)
    y, norms = x, []
    for _ in range(steps + 1):
        v = x - problem.gradient(x)
        norms.append(np.linalg.norm(x - np.sign(v) * np.maximum(np.abs(v) - weight, 0)))
        v = y - problem.gradient(y) / L
        before, x = x, np.sign(v) * np.maximum(np.abs(v) - weight / L, 0)
        t, t_before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        y = x + (t_before - 1) / t * (x - before)
    return norms


@pytest.mark.parametrize("make", [Table.fista, on_iterates])
def test_fista_as_a_table_is_fista(problem, make):
    result = solve(
        problem, penalty=L1(2.0), method=method(problem, make(40)), tol=1e-14, max_iter=40,
        history=True, handover="none",
    )  # fmt: skip
    expected = plain_fista(problem, 2.0, 40)
    np.testing.assert_allclose(result.history.grad_norm, expected, rtol=1e-6, atol=1e-11)
    assert result.iterations == 40
    assert result.oracle_calls <= 43


def test_gradients_elsewhere_are_counted_where_they_do_not_add_up(rng):
    problem = Logistic(rng.standard_normal((50, 4)), rng.integers(0, 2, 50).astype(float))
    table = Table.fista(20)
    learned = Method(
        schedule=None, family="made up", tol=1e-6, scale="family",
        family_scale=problem.smoothness(), guard=FISTA_GUARD, proximal=table,
    )  # fmt: skip
    result = solve(problem, penalty=L1(0.01), method=learned, tol=1e-12, max_iter=10)
    assert result.oracle_calls == pytest.approx(20, abs=2)


@pytest.mark.parametrize("penalty", [L1(1.0), Box(-0.1, 0.2), Simplex()])
def test_a_wild_table_is_handed_over_and_the_solve_arrives(problem, penalty):
    wild = Table(np.ones(50), np.full(50, 40.0), np.zeros(50), np.zeros(50))
    result = solve(problem, penalty=penalty, method=method(problem, wild), tol=1e-7)
    assert result.success
    assert result.handovers[0].to == "fista"
    sure = solve(problem, penalty=penalty, tol=1e-9)
    np.testing.assert_allclose(result.x, sure.x, atol=1e-5)
    r = result.x - penalty.prox(result.x - problem.gradient(result.x), 1.0)
    assert np.linalg.norm(r) <= 1e-7


def test_a_table_that_ends_is_handed_over(problem):
    result = solve(problem, penalty=L1(2.0), method=method(problem, on_iterates(3)), tol=1e-7)
    assert result.success
    assert "horizon" in result.handovers[0].reason


def test_the_envelope_hands_over(problem):
    guard = Guard(fallback="fista", envelope=(1e-9,) * 50)
    result = solve(
        problem, penalty=L1(2.0), method=method(problem, on_iterates(50), guard=guard), tol=1e-7
    )
    assert result.success
    assert "held-out" in result.handovers[0].reason
    assert result.handovers[0].iteration == 1


def test_a_value_above_the_start_hands_over(problem):
    growing = Table(np.full(40, 1.5), np.full(40, 1e-3), np.zeros(40), np.zeros(40))
    x0 = solve(problem, penalty=L1(2.0), tol=1e-2, method="fista").x
    guard = Guard(fallback="fista", blowup=1e9, patience=1000)
    learned = method(problem, growing, guard=guard)
    result = solve(problem, x0, penalty=L1(2.0), method=learned, tol=1e-7)
    assert result.success
    assert "value" in result.handovers[0].reason
    assert result.handovers[0].iteration % 10 == 0


def test_without_a_guard_it_ends_with_the_table(problem):
    result = solve(
        problem, penalty=L1(2.0), method=method(problem, on_iterates(3)), tol=1e-9, handover="none"
    )
    assert result.status is Status.HORIZON
    assert not result.handovers
    assert result.iterations == 3


def test_a_file_gives_back_the_table(problem, tmp_path):
    steps, shares = [1.0, 0.5, 0.9], [1.0, 0.7, 1.0]
    ages = proved_ages(steps, shares)
    proved = Table.proved(steps, ages)
    saved = method(problem, proved, proof={"kind": "fista", "ages": ages})
    saved.save(tmp_path / "m.safetensors")
    again = Method.load(tmp_path / "m.safetensors")
    for name in "mpqw":
        np.testing.assert_array_equal(getattr(again.proximal, name), getattr(proved, name))
    assert again.horizon == 3
    assert not again.instant
    assert again.guard == FISTA_GUARD
    assert again.proof["ages"] == ages
    assert "proved table" in again.words
    by_file = solve(problem, penalty=L1(2.0), method=tmp_path / "m.safetensors", tol=1e-6)
    assert by_file.x.tolist() == solve(problem, penalty=L1(2.0), method=saved, tol=1e-6).x.tolist()


def tampered(path, into, arrays=None, about=None):
    """Write a changed copy of a method's file."""
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        header = json.loads(file.metadata()["ode2opt"])
    found = load_file(path) | (arrays or {})
    header = {k: v for k, v in (header | (about or {})).items() if v is not ...}
    save_file(found, into, metadata={"ode2opt": json.dumps(header)})
    return into


@pytest.mark.parametrize(
    ("arrays", "about", "sentence"),
    [
        ({"proximal.p": np.array([1.0, np.nan, 1.0])}, {}, "finite"),
        ({"proximal.p": np.ones(4)}, {}, "proximal.p"),
        ({"proximal.q": np.array([0.0, 2.0, 0.0])}, {}, "positive"),
        ({}, {"proximal": 0}, "proximal"),
        ({}, {"proximal": 10**9}, "proximal.m"),
        ({}, {"proximal": ...}, "a table that has a prox"),
        ({}, {"proof": {"ages": [1.0, 9.0, 9.0]}}, "outside of what is proved"),
        ({}, {"proof": {"ages": "many"}}, "ages"),
        ({}, {"scale": "instance"}, "one scale"),
    ],
)
def test_a_hostile_file_is_refused_in_a_sentence(problem, tmp_path, arrays, about, sentence):
    path = tmp_path / "m.safetensors"
    method(problem, Table.fista(3)).save(path)
    Method.load(tampered(path, tmp_path / "same.safetensors"))
    with pytest.raises(InputError, match=sentence):
        Method.load(tampered(path, tmp_path / "other.safetensors", arrays, about))


def test_what_does_not_fit_is_refused(problem, rng):
    learned = method(problem, on_iterates(5))
    with pytest.raises(InputError, match="penalty"):
        solve(problem, method=learned)
    for handover in (Relay(), Guard()):
        with pytest.raises(InputError, match="FISTA"):
            solve(problem, penalty=L1(1.0), method=learned, handover=handover)
    with pytest.raises(InputError, match="path"):
        ode2opt.path(problem, L1(1.0), method=learned)
    with pytest.raises(InputError, match="fista"):
        method(problem, on_iterates(5), guard=Guard())
    with pytest.raises(InputError, match="fista"):
        Method(schedule=ode2opt.Schedule.gradient_descent(1.0, 3), family="x", tol=1e-3,
               guard=FISTA_GUARD)  # fmt: skip
    with pytest.raises(InputError, match="for smooth functions"):
        solve(problem, penalty=L1(1.0), method="lbfgs")
