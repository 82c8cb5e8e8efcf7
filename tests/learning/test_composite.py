"""Tables with a prox are learned: the count, its gradient, short runs, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Family, InputError, Method, Quadratic, certify, solve
from ode2opt.base.precision import double
from ode2opt.learning import learn
from ode2opt.learning.sequence.composite.objective import ProblemBatch, ResidualObjective
from ode2opt.learning.sequence.composite.rows import FreeRows, ProvedRows, table_of
from ode2opt.penalties import L1, Box
from ode2opt.penalties.families import box_mpc
from ode2opt.solvers import Guard

N = 20
WEIGHT = L1(0.5)


def family(kind=WEIGHT):
    """Quadratics with one matrix of condition 100 and another right side each."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    Q = V @ np.diag(np.logspace(-2, 0, N)) @ V.T
    Q = (Q + Q.T) / 2

    def draw(generator):
        return Quadratic(Q, generator.standard_normal(N))

    return Family.from_sampler(draw).with_penalty(kind)


def objective(penalty, tols=(1e-3, 1e-5)):
    return ResidualObjective(penalty, np.zeros(N), 1.0, tols, [50.0] * len(tols))


def problems(count):
    one = family()
    return [one.sample([9, i]) for i in range(count)]


@pytest.mark.parametrize("kind", [FreeRows, ProvedRows])
def test_residuals_are_those_of_a_solve(kind):
    rows, tasks = double(kind)(30), problems(3)
    found = objective(L1(0.5)).log_residuals(rows, ProblemBatch.of(tasks))
    method = Method(
        schedule=None, family="x", tol=1e-3, scale="family", family_scale=1.0,
        guard=Guard(fallback="fista"), proximal=table_of(rows),
    )  # fmt: skip
    for task, mine in zip(tasks, found, strict=True):
        result = solve(
            task, penalty=L1(0.5), method=method, tol=1e-12, handover="none", history=True
        )
        np.testing.assert_allclose(np.exp(mine), result.history.grad_norm, rtol=1e-6, atol=1e-12)


def test_shared_matrices_are_kept_once():
    batch = ProblemBatch.of(problems(3))
    assert sorted(map(str, batch.axes)) == ["0", "None"]
    assert ProblemBatch.of(problems(1)).axes == (0, 0)


@pytest.mark.parametrize("kind", [FreeRows, ProvedRows])
def test_the_gradient_is_that_of_finite_differences(kind):
    rows, batch, target = double(kind)(12), ProblemBatch.of(problems(2)), objective(Box(-1, 1))
    value, slope = target.count(rows, batch)
    leaves, tree = jax.tree.flatten(rows)
    rng, h = np.random.default_rng(1), 1e-6
    with_respect = [rng.standard_normal(np.shape(leaf)) for leaf in leaves]

    @double
    def moved(step):
        changed = [leaf + step * d for leaf, d in zip(leaves, with_respect, strict=True)]
        return target.count(jax.tree.unflatten(tree, changed), batch)[0]

    expected = (moved(h) - moved(-h)) / (2 * h)
    pairs = zip(jax.tree.leaves(slope), with_respect, strict=True)
    assert sum(float(np.sum(np.asarray(s) * d)) for s, d in pairs) == pytest.approx(
        expected, rel=1e-4
    )
    assert np.isfinite(value)


@double
def test_proved_rows_are_proved_whatever_is_learned():
    rng = np.random.default_rng(2)
    rows = ProvedRows(40)
    wild = (jnp.asarray(rng.normal(0, 5, 40)), jnp.asarray(rng.normal(0, 5, 40)))
    rows = eqx.tree_at(lambda r: (r.step, r.share), rows, wild)
    table, ages = rows.proof(40)
    factors = table.proved_factors(ages)
    assert np.all(factors > 0)
    assert np.all(table.p - table.q <= 1)


def test_a_handover_is_charged_the_fallback():
    target = objective(L1(0.5), tols=(np.exp(-2.0),))
    curves = np.array([[0.0, -1.0, -3.0, -4.0], [0.0, 9.0, -3.0, -4.0], [0.0, -1.0, -1.0, -1.0]])
    assert target.guarded_count(curves, 100.0) == pytest.approx((2 + (1 + 50) + (3 + 50)) / 3)


def test_a_short_training_beats_fista_and_its_file_says_the_same(tmp_path):
    one = family()
    out = tmp_path / "run"
    method = learn(
        one, target="sequence", tol=1e-5, steps=60, horizon=90, batch=2, validation=2,
        validate_every=10, out=out,
    )  # fmt: skip
    again = Method.load(out / "method.safetensors")
    fresh = [one.sample([77, i], part="test") for i in range(10)]
    for tol in (1e-3, 1e-5):
        mine = [solve(p, penalty=one.penalty, method=again, tol=tol) for p in fresh]
        fista = [solve(p, penalty=one.penalty, method="fista", tol=tol) for p in fresh]
        assert all(r.success for r in mine)
        assert np.mean([r.oracle_calls for r in mine]) < 0.7 * np.mean(
            [r.oracle_calls for r in fista]
        )
    same = solve(fresh[0], penalty=one.penalty, method=method, tol=1e-5)
    assert same.x.tolist() == mine[0].x.tolist()
    assert method.statistics["test"]["feasible"]
    assert method.guard.envelope
    assert method.statistics["statistical"]["problems"] == 20
    assert method.provenance["finished"]


def test_an_interrupted_run_goes_on_to_the_same_table(tmp_path):
    one = family(Box(-1.0, 2.0))
    options = {
        "target": "sequence", "tol": 1e-4, "steps": 12, "horizon": 60, "batch": 1, "validation": 1,
        "validate_every": 4,
    }  # fmt: skip
    whole = learn(one, **options)
    out = tmp_path / "run"
    learn(one, out=out, callback=lambda step: step.done == 6, **options)
    resumed = learn(one, out=out, resume=True, **options)
    for name in "mpqw":
        np.testing.assert_array_equal(
            getattr(resumed.proximal, name), getattr(whole.proximal, name)
        )


def test_a_proved_table_is_learned_inside_its_proof():
    method = learn(
        family(), target="sequence", coefficients="proved", tol=1e-3, steps=10, horizon=60, batch=1,
        validation=1,
    )  # fmt: skip
    assert len(method.proximal.proved_factors(method.proof["ages"])) == method.horizon
    assert "Proved" in method.certificate["verdict"][0]
    said = certify(method, [family().sample(0)]).words()
    assert said == method.certificate["verdict"]
    with pytest.raises(InputError, match="without a prox"):
        method.table()


def test_what_knows_no_prox_is_refused():
    one = box_mpc()
    for options, words in (
        ({}, "sequence"),
        ({"target": "sequence", "steps": 0}, "instant"),
        ({"target": "sequence", "certified": 2.0}, "proved"),
    ):
        with pytest.raises(InputError, match=words):
            learn(one, **options)
