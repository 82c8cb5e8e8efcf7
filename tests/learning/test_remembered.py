"""Learning that begins with a memory: its metric, its start, and what is refused."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Family, InputError, Memory, Method, learn, solve
from ode2opt.learning import make_options
from ode2opt.learning.begin import start_run
from ode2opt.learning.comparison import calls_of
from ode2opt.learning.sequence import spectrum
from ode2opt.learning.sequence.remembered import Remembered
from ode2opt.learning.sequence.target import SequenceTarget
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.options import MemoryOptions

OPTIONS = {"steps": 0, "tol": 1e-4, "validation": 3}
N = 12


def family(kind="logistic", n=N):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1_500, n)) * np.logspace(0, -1.5, n)
    b = (A @ np.logspace(0, 1.5, n) + rng.standard_normal(1_500) > 0).astype(float)
    return Family.from_arrays(kind, A, b, size=150, l2=1e-4)


@pytest.fixture(scope="module")
def memory():
    """A memory of eight training problems, from the start point that training has, too.

    They are solved in so few calls that no Hessian would be formed unless it is asked for.
    """
    made = Memory(MemoryOptions(fewest_calls=2))
    for i in range(8):
        problem = family().sample([7, i])
        solve(problem, problem.start(), memory=made, tol=1e-4)
    return made


@pytest.fixture(scope="module")
def made(memory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("remembered") / "run"
    return folder, learn(family(), memory=memory, out=folder, **OPTIONS)


def square(metric):
    root = metric.matrix()
    return root @ root.T


def changed(memory, **fields):
    other = Memory()
    other.known = replace(memory.known, **fields)
    return other


def test_the_metric_is_the_memorys_and_nothing_is_solved_for_it(memory, monkeypatch):
    def refused(*args, **options):
        raise AssertionError("problems were solved to learn from")

    monkeypatch.setattr("ode2opt.learning.sequence.restarts.SolvedBeforehand", refused)
    method = learn(family(), memory=memory, **OPTIONS)
    assert method.instant
    assert memory.known.hessians
    expected = np.linalg.inv(memory.known.damped_hessian())
    np.testing.assert_allclose(square(method.metric), expected, rtol=1e-8)


def test_it_is_about_as_good_as_the_instant_method_from_scratch(made):
    scratch = learn(family(), target="sequence", **OPTIONS)
    problems = [family().sample([8, i]) for i in range(20)]
    calls = {
        name: np.mean([calls_of(solve(p, p.start(), method=by, tol=1e-4)) for p in problems])
        for name, by in (("memory", made[1]), ("scratch", scratch), ("lbfgs", "lbfgs"))
    }
    assert calls["memory"] <= 1.1 * calls["scratch"] + 1
    assert calls["memory"] < 0.6 * calls["lbfgs"]


@pytest.mark.parametrize(
    ("starts", "option", "taken"),
    [
        ((True, True, False), {}, True),
        ((True, False), {}, False),
        ((), {}, False),
        ((), {"start": "learned"}, True),
    ],
)
def test_the_mean_solution_is_the_start_where_it_has_proved_better(memory, starts, option, taken):
    known = changed(memory, mean_was_better=starts)
    method = learn(family(), memory=known, **option, **OPTIONS)
    assert method.start_rule == ("learned" if taken else "paper")
    if taken:
        np.testing.assert_array_equal(method.start, memory.known.mean)
        problem = family().sample([0, 2, 0], part="test")  # the first of the fresh ones
        first = solve(problem, method=method, tol=1e-4, history=True).history.grad_norm[0]
        assert first == pytest.approx(np.linalg.norm(problem.gradient(memory.known.mean)))


def test_a_table_is_learned_in_that_metric(memory):
    settings = OPTIONS | {"target": "sequence", "steps": 2, "batch": 2, "horizon": 30}
    run = start_run(family(), make_options(settings), None, False, memory=memory)
    method = run.run(lambda step: "restart" not in step.line)
    assert run.position.done == 2
    assert len(set(method.schedule.a)) > 2  # it has learned: no longer one step for all
    M, expected = square(method.metric), np.linalg.inv(memory.known.damped_hessian())
    np.testing.assert_allclose(M / M[0, 0], expected / expected[0, 0], rtol=1e-6)
    step = method.schedule.a[0] / method.family_scale * M[0, 0] / expected[0, 0]
    assert 0.2 < step < 2  # of Newton's


def test_a_memory_without_metric_gives_a_method_without(memory):
    bare = changed(memory, hessians=0, hessian=None, floor=None, inverse=None)
    method = learn(family(), memory=bare, **OPTIONS)
    assert method.metric is None
    options = make_options({"target": "sequence", **OPTIONS, "steps": 3})
    known = Remembered(family(), options, bare)
    (way,) = known.recipes()
    target = SequenceTarget(family(), options, way, known)
    assert target.method(target.start, 5).metric is None


@pytest.mark.parametrize("kind", ["lowrank", "spectral"])
def test_a_spectrum_of_a_metric_gives_the_metric_back(kind, x64):
    rng = np.random.default_rng(1)
    rank = 3 if kind == "lowrank" else 9
    V, _ = np.linalg.qr(rng.standard_normal((9, rank)))
    metric = Metric(kind, rng.uniform(1, 2, 9), V, rng.uniform(-0.9, 4, rank))
    found = spectrum.spectrum_of(metric, 9)
    squares = spectrum.filtered(found, spectrum.Filter.whitening())
    again = square(spectrum.metric_of(kind, found, squares))
    there = square(metric)
    np.testing.assert_allclose(again / again[0, 0], there / there[0, 0], rtol=1e-8)
    assert float(jnp.min(found.depth)) >= 0


@pytest.mark.parametrize(
    ("of", "options", "said"),
    [
        (family(n=9), {}, "of Logistic problems with 12 variables, not of Logistic with 9"),
        (family("lpp"), {}, "of Logistic problems with 12 variables, not of Lpp with 12"),
        (family(), {"target": "flow", "steps": 1}, "A memory is for --target sequence"),
        (family(), {"metric": "diagonal"}, "The metric is the memory's"),
        (family(), {"reference": "start"}, "The metric is the memory's"),
    ],
)
def test_what_does_not_fit_is_refused(memory, tmp_path, of, options, said):
    folder = tmp_path / "run"
    with pytest.raises(InputError, match=said):
        learn(of, memory=memory, out=folder, **OPTIONS | options)
    assert not folder.exists()


def test_an_empty_memory_is_refused():
    with pytest.raises(InputError, match="learned nothing yet"):
        learn(family(), memory=Memory(), **OPTIONS)


def test_the_run_knows_its_memory(made, memory):
    folder, method = made
    told = json.loads((folder / "config.json").read_text())["memory"]
    assert told["solves"] == 8
    assert method.provenance["memory"] == told
    (folder / "method.safetensors").unlink()  # as if it was broken off
    other = changed(memory, mean=memory.known.mean + 1e-9)
    with pytest.raises(InputError, match="hash is"):
        learn(family(), memory=other, out=folder, resume=True, **OPTIONS)
    with pytest.raises(InputError, match=r"memory is .* there and None here"):
        learn(family(), target="sequence", out=folder, resume=True, **OPTIONS)
    again = learn(family(), memory=memory, out=folder, resume=True, **OPTIONS)
    np.testing.assert_array_equal(again.metric.matrix(), method.metric.matrix())


def test_train_takes_a_memory(run_cli, tmp_path):
    there, memory = Family.from_dataset("logistic", "digits"), Memory()
    for i in range(4):
        solve(there.sample([5, i]), memory=memory, tol=1e-3)
    file, folder = tmp_path / "memory.safetensors", tmp_path / "run"
    memory.save(file)
    command = ("train", "logistic", "digits", "--memory", file, "--steps", 0, "--tol", 1e-3)
    code, out, _ = run_cli(*command, "--out", folder, "--json", "-")
    assert code == 0
    assert json.loads(out)["horizon"] == 0
    method = Method.load(folder / "method.safetensors")
    np.testing.assert_allclose(
        square(method.metric), np.linalg.inv(memory.known.damped_hessian()), rtol=1e-6, atol=1e-6
    )
    Memory().save(file)
    code, _, err = run_cli(*command, "--out", tmp_path / "other")
    assert code == 2
    assert "learned nothing yet" in err
