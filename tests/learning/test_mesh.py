"""How exact T is: the steps of the flow in each step of the sequence, and what a run says of it."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Family, InputError, Lpp, learn
from ode2opt.learning import FlowOptions, Rules, make_options, stopping_time
from ode2opt.paper import Default, flow, to_jax

pytestmark = pytest.mark.usefixtures("x64")

H, TOL = 0.04, 3e-3
SHORT = {"steps": 3, "validate_every": 2, "validation": 1, "batch": 1, "horizon": 100}


def short():
    """A problem whose flow takes few steps of h."""
    A = np.random.default_rng(0).standard_normal((60, 3))
    return Lpp(A, np.repeat([1.0, 0.0], 30))


def scale_at(problem, x0):
    return float(np.linalg.eigvalsh(problem.hessian(np.asarray(x0)))[-1])


def test_eleven_steps_of_h_are_too_few_and_eight_times_as_many_are_not():
    problem, x0, eps = short(), np.full(3, 0.5), 0.02
    coefficients, scale = Default(2.5), scale_at(problem, x0)
    exact = float(flow(coefficients, problem, x0, t1=3.0, scale=scale, until=eps).t) - 1

    def found(substeps):
        rules = Rules(jnp.asarray(eps), h=H, K=50, substeps=substeps)
        one = (to_jax(problem), jnp.asarray(x0), jnp.asarray(scale))
        return float(stopping_time(coefficients, *one, rules).T) - 1

    assert exact == pytest.approx(0.439, abs=1e-3)
    assert exact / H == pytest.approx(11, abs=0.1)
    assert found(1) == pytest.approx(0.400, abs=1e-3)
    assert found(8) == pytest.approx(exact, rel=0.01)


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_takes_so_many_substeps_that_T_is_within_one_percent_and_says_so(tmp_path):
    problem = short()
    family = Family.from_sampler(lambda rng: problem)  # always the same one
    options = SHORT | {"tol": TOL}
    method = learn(family, out=tmp_path / "run", **options)
    lines = lines_of(tmp_path / "run")
    x0 = problem.start().x0
    first, scale = make_options(options).first_coefficients(), scale_at(problem, x0)
    exact = float(flow(first, problem, x0, t1=5.0, scale=scale, until=TOL).t) - 1
    assert lines[0]["substeps"] > 1
    assert lines[0]["mesh_error"] < 0.01
    assert lines[0]["stopping_time"] - 1 == pytest.approx(exact, rel=0.01)
    assert ["mesh_error" in line for line in lines] == [True, True, True]  # first, due, last
    assert method.statistics["mesh"]["substeps"] == lines[0]["substeps"]


def test_substeps_are_counted_from_one_and_a_sequence_has_none():
    assert FlowOptions().substeps is None
    assert make_options({"substeps": 3, "protocol": "paper"}).substeps == 3
    with pytest.raises(InputError, match="substeps"):
        make_options({"substeps": 0})
    with pytest.raises(InputError, match="substeps is for --target flow"):
        make_options({"target": "sequence", "substeps": 2})
