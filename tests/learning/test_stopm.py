"""The training step, on a loss whose slope is known: theta <- theta - eta d[T + rho (P + Q)]."""

import math
from types import SimpleNamespace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from ode2opt.learning import StoppingTime
from ode2opt.learning.stage import FINAL_SHARE, optimizer_of, step_sizes
from ode2opt.paper.stopm import StoPM

pytestmark = pytest.mark.usefixtures("x64")

LR, RHO = 0.1, 0.5
PLAIN = {
    "optimizer": "sgd", "decay": "constant", "learning_rate": LR, "momentum": 0.0, "steps": 10,
    "clip": 1e9, "penalty": RHO,
}  # fmt: skip


class Straight(eqx.Module):
    """T = t . theta where the instance is reached, P = p . theta, Q = q . theta."""

    safety: float = eqx.field(default=1.0, static=True)

    def stopping_time(self, tree, one):
        theta = tree["theta"]
        P = self.safety * one.p @ theta
        Q = one.q @ theta
        ends = (one.reached, one.failed, jnp.asarray(one.turn))
        return StoppingTime(one.t @ theta, P, Q, P + Q, *ends)

    def objective(self, found):
        return jnp.where(found.reached, found.T, 0.0)

    def with_safety(self, safety):
        return Straight(safety)


class Instance(eqx.Module):
    t: np.ndarray
    p: np.ndarray = eqx.field(default_factory=lambda: np.zeros(2))
    q: np.ndarray = eqx.field(default_factory=lambda: np.zeros(2))
    reached: np.ndarray = eqx.field(default_factory=lambda: np.array(True))
    failed: np.ndarray = eqx.field(default_factory=lambda: np.array(False))
    turn: float = 1.0


def instance(*t, **rest):
    return Instance(np.array(t), **rest)


def made(**options):
    start = {"theta": np.array([1.0, -2.0]), "fixed": np.array([7.0])}
    learnable = {"theta": True, "fixed": False}
    options = SimpleNamespace(**PLAIN | options)
    rho, clip = options.penalty, options.clip
    return StoPM(start, learnable, Straight(), optimizer_of(options), penalty=rho, clip=clip)


def after(*batches, **options):
    """theta after a step on each batch."""
    stopm = made(**options)
    state = stopm.start
    for batch in batches:
        state, _ = stopm.step(state, batch)
    assert stopm.learned(state)["fixed"] == 7.0
    return np.asarray(stopm.learned(state)["theta"])


START = np.array([1.0, -2.0])
STEEP, FLAT = instance(3.0, 4.0), instance(0.3, -0.4)


def test_a_step_goes_down_the_mean_slope_of_T_and_the_penalty():
    batch = [instance(1.0, 2.0, p=np.array([4.0, 0.0]), q=np.array([0.0, 8.0])), instance(3.0, 0.0)]
    slopes = [np.array([1.0, 2.0]) + RHO * np.array([4.0, 8.0]), np.array([3.0, 0.0])]
    np.testing.assert_allclose(after(batch), START - LR * np.mean(slopes, axis=0))


def test_where_the_tolerance_was_not_reached_the_penalty_alone_counts():
    one = instance(1.0, 2.0, p=np.array([4.0, 0.0]), reached=np.array(False))
    np.testing.assert_allclose(after([one]), START - LR * RHO * one.p)


@pytest.mark.parametrize("clip", [0.1, 1.0, 5.0, 6.0])
def test_the_slope_of_each_instance_is_clipped_to_a_length(clip):
    """STEEP has length 5, FLAT 0.5; the direction of each stays."""
    shares = [min(1.0, clip / np.linalg.norm(one.t)) for one in (STEEP, FLAT)]
    mean = (shares[0] * STEEP.t + shares[1] * FLAT.t) / 2
    np.testing.assert_allclose(after([STEEP, FLAT], clip=clip), START - LR * mean)


def test_without_a_limit_no_slope_is_clipped():
    mean = 1e12 * STEEP.t
    np.testing.assert_allclose(after([instance(*mean)], clip=None), START - LR * mean)


def test_a_slope_of_zero_is_no_trouble_for_clipping():
    np.testing.assert_array_equal(after([instance(0.0, 0.0)], clip=1.0), START)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_sgd_has_momentum(momentum):
    velocity, theta = np.zeros(2), START
    for one in (STEEP, FLAT, STEEP):
        velocity = momentum * velocity + one.t
        theta = theta - LR * velocity
    np.testing.assert_allclose(after([STEEP], [FLAT], [STEEP], momentum=momentum), theta)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_instance_whose_slope_is_not_finite_is_left_out(bad):
    broken = instance(bad, 1.0)
    np.testing.assert_array_equal(after([STEEP, broken, FLAT]), after([STEEP, FLAT]))


def test_a_batch_without_a_finite_slope_changes_nothing_not_even_the_momentum():
    broken = [instance(math.nan, 1.0), instance(1.0, math.inf)]
    options = {"momentum": 0.9, "decay": "exponential"}
    np.testing.assert_array_equal(after(broken, **options), START)
    np.testing.assert_array_equal(
        after([STEEP], broken, [FLAT], **options), after([STEEP], [FLAT], **options)
    )


@pytest.mark.parametrize(
    ("decay", "share"),
    [
        ("constant", lambda k: 1.0),
        ("cosine", lambda k: (1 + math.cos(math.pi * k / 4)) / 2),
        ("exponential", lambda k: FINAL_SHARE ** (k / 4)),
        ("theorem", lambda k: (10 / (10 + k)) ** 0.6),
    ],
)
def test_the_step_size_decays_as_it_is_said(decay, share):
    moved = -LR * sum(share(k) for k in range(4)) * FLAT.t
    options = {"decay": decay, "steps": 4, "decay_power": 0.6}
    np.testing.assert_allclose(after(*[[FLAT]] * 4, **options), START + moved)


@pytest.mark.parametrize("power", [0.51, 0.75, 1.0])
def test_step_sizes_of_the_theorem_have_an_infinite_sum_and_squares_a_finite_one(power):
    eta = step_sizes(SimpleNamespace(**PLAIN | {"decay": "theorem", "decay_power": power}))
    sizes = np.asarray(eta(np.arange(200_000)))
    squares = LR**2 * 10 ** (2 * power) * scipy.special.zeta(2 * power, 10)  # all of them
    assert np.sum(sizes**2) < squares < np.inf
    later = np.asarray(eta(np.arange(200_000, 400_000)))
    assert later.sum() >= 0.9 * LR * 10**power * 200_000 / 400_000**power  # of each such stretch
    assert np.all(np.diff(sizes) < 0)


def test_adam_takes_steps_of_one_length_whatever_the_slope():
    for one in (STEEP, FLAT):
        expected = START - LR * np.sign(one.t)
        np.testing.assert_allclose(after([one], optimizer="adam"), expected, rtol=1e-6)
    shrunk = after([FLAT], optimizer="adamw")  # that, and 1e-4 of the weights
    np.testing.assert_allclose(shrunk, START - LR * (np.sign(FLAT.t) + 1e-4 * START), rtol=1e-6)


def test_a_batch_is_summed_up_over_what_is_known():
    batch = [
        instance(1.0, 0.0, p=np.array([2.0, 0.0]), turn=0.5),
        instance(9.0, 0.0, q=np.array([4.0, 0.0]), reached=np.array(False), failed=np.array(True)),
        instance(3.0, 0.0, p=np.array([math.nan, 0.0]), turn=-0.25),
    ]
    _, seen = made().step(made().start, batch)  # theta = (1, -2)
    assert seen.stopping_time == 2.0  # of those that got there
    assert (seen.P, seen.Q) == (1.0, pytest.approx(4 / 3))
    assert seen.loss == pytest.approx(2.0 + RHO * (2.0 + 4.0) / 2)  # of those with P and Q
    assert (seen.reached, seen.failed) == (2, 1)
    assert seen.min_cosines == (0.5, 1.0, -0.25)


def test_what_is_known_of_no_instance_is_none():
    lost = instance(math.nan, 0.0, p=np.array([math.nan, 0.0]), reached=np.array(False))
    _, seen = made().step(made().start, [lost])
    assert (seen.stopping_time, seen.P, seen.loss) == (None, None, None)


def test_a_measurement_has_a_safety_of_its_own_and_changes_nothing():
    stopm, one = made(), instance(1.0, 2.0, p=np.array([3.0, 0.0]), q=np.array([0.0, 1.0]))
    for safety, P in ((1.0, 3.0), (1.5, 4.5)):
        found = stopm.measure(stopm.start, one, safety)
        assert (float(found.T), float(found.P), float(found.Q)) == (-3.0, P, -2.0)
    np.testing.assert_array_equal(stopm.learned(stopm.start)["theta"], START)
    assert stopm.start.penalty == RHO
