"""Coefficients and penalties of one's own go through the same run as those by name."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ode2opt import Family, InputError, Method, learn, solve
from ode2opt.base.precision import double
from ode2opt.coefficients import Coefficients
from ode2opt.learning import ConvergenceQ, Rules, StabilityP, stopping_time
from ode2opt.learning.flow.given import OwnPenalties
from ode2opt.paper.stopping_time import FlowInstance

SHORT = {
    "steps": 4,
    "batch": 1,
    "validation": 2,
    "validate_every": 2,
    "tol": 1e-2,
    "horizon": 80,
    "keep": "last",
}


def family():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 3))
    b = (A @ np.ones(3) + 0.5 * rng.standard_normal(200) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=60, l2=0.05)


class Power(eqx.Module):
    """beta = exp(level) t^slope, gamma = beta/h + beta'."""

    alpha: jax.Array
    level: jax.Array
    slope: jax.Array

    def beta(self, t):
        return jnp.exp(self.level) * t**self.slope

    def gamma(self, t):
        return self.beta(t) / 0.04 + jax.grad(self.beta)(t)


class PowerCoefficients(Coefficients):
    """The same as a subclass of Coefficients, whose derivative is made."""

    level: jax.Array
    slope: jax.Array

    def beta(self, t):
        return jnp.exp(self.level) * t**self.slope

    def gamma(self, t):
        return self.beta(t) / 0.04 + self.dbeta(t)


NUMBERS = (6.0, 3.0, 0.1)


def arrays(numbers=NUMBERS):
    return map(np.float64, numbers)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open") / "run"
    return learn(family(), coefficients=Power(*arrays()), out=folder, **SHORT), folder


def test_a_module_of_ones_own_is_learned_and_solves(made):
    method, folder = made
    learned = method.training.learned
    assert isinstance(learned, Power)
    assert float(learned.alpha) == 6.0
    assert float(learned.level) != 3.0
    assert method.formula is None
    loaded = Method.load(folder / "method.safetensors")
    np.testing.assert_array_equal(loaded.schedule.a, method.schedule.a)
    assert solve(family().sample(1), method=loaded, tol=1e-2).success
    beta = np.exp(learned.level) * (1 + 0.04 * np.arange(method.horizon)) ** learned.slope
    np.testing.assert_allclose(method.schedule.a, 0.04 * beta, rtol=1e-6)


def test_a_subclass_of_coefficients_learns_the_same(made):
    """Derivatives by JAX or by hand; alpha and the arrays are the same."""
    method = learn(family(), coefficients=PowerCoefficients(*arrays()), **SHORT)
    np.testing.assert_allclose(method.schedule.c, made[0].schedule.c, rtol=1e-8)
    assert isinstance(method.training.learned, PowerCoefficients)


def test_alpha_is_learned_where_that_is_asked():
    method = learn(family(), coefficients=Power(*arrays()), learn_alpha=True, **SHORT)
    learned = method.training.learned
    assert float(learned.alpha) != 6.0
    np.testing.assert_allclose(method.schedule.d[0], float(learned.alpha) * 0.04)


def test_history_and_figure(made):
    method, folder = made
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert list(method.training) == lines
    np.testing.assert_array_equal(
        method.training.column("stopping_time"), [line["stopping_time"] for line in lines]
    )
    with pytest.raises(InputError, match="Unknown column 'T'"):
        method.training.column("T")
    pytest.importorskip("matplotlib")
    assert len(method.plot_training().axes) == 2
    with pytest.raises(InputError, match=r"no training: that is in metrics\.jsonl"):
        Method.load(folder / "method.safetensors").plot_training()


def test_it_is_resumed_with_the_same_module_only(made, tmp_path):
    out = tmp_path / "run"
    learn(family(), coefficients=Power(*arrays()), out=out, callback=lambda s: s.done == 2, **SHORT)
    with pytest.raises(InputError, match="another configuration: hash"):
        learn(family(), coefficients=Power(*arrays((6.0, 2.0, 0.1))), out=out, resume=True)
    with pytest.raises(InputError, match=r"own is .*Power.* there and None here"):
        learn(family(), out=out, resume=True)
    again = learn(family(), coefficients=Power(*arrays()), out=out, resume=True)
    np.testing.assert_array_equal(again.schedule.a, made[0].schedule.a)
    assert len(again.training) == SHORT["steps"]


# Penalties --------------------------------------------------------------------------------------


def loss_of(**options):
    return learn(family(), coefficients="spline", **SHORT | {"steps": 1} | options).training[0]


def test_a_penalty_is_integrated_to_T_and_added():
    """Of a constant c it is c (T - t0); rho multiplies it as P and Q."""
    plain = loss_of(penalty_growth=1.0)
    more = loss_of(penalty_growth=1.0, penalty=lambda t, state, coefficients, curvature: 0.25)
    T = plain["stopping_time"]
    assert (more["stopping_time"], more["P"], more["Q"]) == (T, plain["P"], plain["Q"])
    np.testing.assert_allclose(more["loss"] - plain["loss"], 10.0 * 0.25 * (T - 1.0), rtol=1e-9)


def test_a_penalty_of_time_is_exact_to_the_mesh():
    plain, more = loss_of(), loss_of(penalty=lambda t, *_: t)
    T = plain["stopping_time"]
    np.testing.assert_allclose(more["loss"] - plain["loss"], 5.0 * (T**2 - 1), rtol=1e-6)


@double
def test_the_derivative_goes_through_state_and_coefficients():
    """It is that of differences; curvature is there, too, and counts in the value."""

    def term(t, state, coefficients, curvature):
        assert state.x.shape == state.v.shape == (3,)
        return coefficients.beta(t) * (state.g @ state.g) + jnp.sum(state.x**2) + 0 * curvature

    own, instance = PowerCoefficients(*arrays()), FlowInstance.of(family().sample(0))
    rules = Rules(jnp.asarray(1e-2), K=80, counted=(), own=OwnPenalties((term,), own))

    def penalty(level):
        moved = eqx.tree_at(lambda c: c.level, own, level)
        return stopping_time(moved, *instance, rules).penalty

    level, step = jnp.asarray(3.0), 1e-5
    slope = (penalty(level + step) - penalty(level - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(penalty)(level), slope, rtol=1e-5)
    assert abs(slope) > 1e-3
    more = eqx.tree_at(lambda r: r.own.terms, rules, (lambda t, s, c, curvature: curvature,))
    assert 0 < stopping_time(own, *instance, more).penalty < 100


def test_penalties_replace_p_and_q():
    wild = Power(*arrays((6.0, 4.5, 4.0)))  # beyond the edge of stability, and rising too fast
    options = SHORT | {"steps": 1, "tol": 0.1}

    def line(**more):
        return learn(family(), coefficients=wild, **options, **more).training[0]

    whole, only_q = line(), line(penalties=[ConvergenceQ(kappa=0.5)])
    assert whole["P"] > 0
    assert only_q["P"] == 0
    assert only_q["Q"] != whole["Q"]
    neither = line(penalties=[lambda *_: 0.0])
    assert (neither["P"], neither["Q"], neither["loss"]) == (0, 0, neither["stopping_time"])
    both = line(penalties=[StabilityP(), ConvergenceQ()])
    assert (both["P"], both["Q"], both["loss"]) == (whole["P"], whole["Q"], whole["loss"])


# What is refused --------------------------------------------------------------------------------


class Shaped(Power):
    def beta(self, t):
        return jnp.stack([t])


class Infinite(Power):
    def beta(self, t):
        return jnp.log(t - 1.5)


class Untraceable(Power):
    def beta(self, t):
        return float(t)


class Bare(eqx.Module):
    alpha: float = 6.0

    def beta(self, t):
        return 20.0 - 0 * t

    def gamma(self, t):
        return 500.0 - 0 * t


class NoModule:
    alpha = 6.0
    beta = gamma = staticmethod(jnp.exp)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"coefficients": Shaped(*arrays())}, r"beta\(t\) of Shaped has the shape \(1,\)"),
        ({"coefficients": Infinite(*arrays())}, r"beta\(t\) of Infinite is not finite at t = 1"),
        ({"coefficients": Untraceable(*arrays())}, "of Untraceable cannot be traced by JAX"),
        ({"coefficients": Bare()}, "Bare has no arrays beside alpha: there is nothing to learn"),
        ({"coefficients": NoModule()}, "NoModule is no equinox module"),
        ({"coefficients": Power(*arrays((0.5, 3.0, 0.1)))}, "alpha of Power is .*above 1"),
        ({"coefficients": Power(*arrays()), "alpha": 5.0}, "alpha is 5.0, but the coefficients"),
        ({"coefficients": Power(*arrays((30.0, 3.0, 0.1)))}, "t0 = 1 must exceed"),
        ({"coefficients": Power(*arrays()), "target": "sequence"}, "are for --target flow"),
        ({"coefficients": "own"}, "are a module that learn"),
        ({"penalty": lambda *_: jnp.ones(2)}, r"has the shape \(2,\): it must be one number"),
        ({"penalty": lambda *_: jnp.nan}, "is nan at the start: it must be finite"),
        ({"penalty": lambda t: t}, "cannot be traced by JAX: .*takes 1 positional argument"),
        ({"penalty": lambda *_: 0.0, "target": "sequence"}, "own are for --target flow"),
        ({"penalties": "P"}, "penalties must be a list"),
        ({"penalties": [3]}, r"A penalty is StabilityP\(\), ConvergenceQ\(\) or f"),
        ({"penalties": [StabilityP(), StabilityP()]}, "twice"),
    ],
)
def test_what_cannot_be_learned_is_told_at_the_start(options, said):
    with pytest.raises(InputError, match=said):
        learn(family(), **SHORT | options)
