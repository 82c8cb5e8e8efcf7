"""beta and gamma as two small networks of t (docs/mathematics.md, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import unknown_name
from ode2opt.base.precision import jax_precision
from ode2opt.paper.coefficients.base import Coefficients, as_alpha, samples
from ode2opt.paper.default import ACTIVATIONS, ALPHA, DefaultCoefficients, H
from ode2opt.paper.schedule import TimeFunction

WIDTH = 50
CUTOFFS = {False: 1e-10, True: 1e-8}  # of singular values in the last layer's fit; True: plain
SECOND_LAYER = {False: 1.0, True: 10.0}  # its size at random; True: plain
SHARPNESS = 20.0
_FUNCTIONS = {
    "softplus": lambda z: jax.nn.softplus(SHARPNESS * z) / SHARPNESS,
    "elu": jax.nn.elu,
    "relu": jax.nn.relu,
}


class Network(eqx.Module):
    """A network of one input with two hidden layers: unit (W3 . s(W2 s(W1 t + b1) + b2) + b3).

    The kinks of the first layer are spread over the horizon; ``regressed`` fits the last layer.
    """

    W1: Array
    b1: Array
    W2: Array
    b2: Array
    W3: Array
    b3: Array
    unit: float = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    @classmethod
    def random(
        cls, rng: np.random.Generator, width: int, activation: str, t1: float, plain: bool = False
    ) -> Network:
        """Return a network with random inner layers and a last layer of zeros."""
        kinks = np.geomspace(0.5, t1, width) * rng.uniform(0.9, 1.1, width)
        W1 = rng.choice([-1.0, 1.0], width) / np.sqrt(kinks)
        size = SECOND_LAYER[plain]
        W2 = size * rng.standard_normal((width, width)) / np.sqrt(width)
        b2 = size * rng.uniform(-1, 1, width)
        return cls(W1, -W1 * kinks, W2, b2, np.zeros(width), np.zeros(()), 1.0, activation)

    def hidden(self, t: Array) -> Array:
        """Return the last hidden layer."""
        s = _FUNCTIONS[self.activation]
        return s(self.W2 @ s(self.W1 * t + self.b1) + self.b2)

    def __call__(self, t: Array) -> Array:
        return self.unit * (self.W3 @ self.hidden(t) + self.b3)

    def regressed(self, t: np.ndarray, values: np.ndarray, plain: bool = False) -> Network:
        """Return the network whose last layer fits given values by least squares."""
        with jax_precision():
            hidden = np.asarray(jax.vmap(self.hidden)(jnp.asarray(t)))
        size = 0.0 if plain else float(np.abs(values).mean())
        unit = 2.0 ** round(np.log2(size)) if size else 1.0  # a power of 2: few compilations
        design = np.column_stack([hidden, np.ones(len(t))])
        weights = np.linalg.lstsq(design, values / unit, rcond=CUTOFFS[plain])[0]
        return Network(
            self.W1, self.b1, self.W2, self.b2, weights[:-1], weights[-1], unit, self.activation
        )


class Neural(Coefficients):
    """Two networks of t, one for beta and one for gamma, started at the default coefficients."""

    alpha: Array
    beta_network: Network
    gamma_network: Network
    plain: bool = eqx.field(static=True)

    def __init__(
        self,
        alpha: Any = ALPHA,
        *,
        width: int = WIDTH,
        activation: str = "softplus",
        seed: int = 0,
        t1: float = 21.0,
        C: float = 1.0,
        plain: bool = False,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", activation, ACTIVATIONS)
        rng = np.random.default_rng(seed)
        self.alpha, self.plain = as_alpha(alpha), bool(plain)
        self.beta_network, self.gamma_network = (
            Network.random(rng, width, activation, t1, self.plain) for _ in range(2)
        )
        default = DefaultCoefficients(C, float(self.alpha), H)
        fitted = self.fit_to(default.beta, default.gamma, t1=t1)
        self.beta_network, self.gamma_network = fitted.beta_network, fitted.gamma_network

    def beta(self, t: Array) -> Array:
        return self.beta_network(t)

    def gamma(self, t: Array) -> Array:
        return self.gamma_network(t)

    @property
    def settings(self) -> dict[str, Any]:
        networks = (self.beta_network, self.gamma_network)
        return {
            "width": self.beta_network.W1.shape[-1],
            "activation": self.beta_network.activation,
            "units": [network.unit for network in networks],
        }

    @classmethod
    def blank(cls, *, units: Sequence[float] = (1.0, 1.0), **settings: Any) -> Neural:
        """Return networks of a given shape, whose parameters are to be filled in."""
        made = cls(**settings)
        networks = (
            replace(network, unit=float(unit))
            for network, unit in zip((made.beta_network, made.gamma_network), units, strict=True)
        )
        return eqx.tree_at(lambda c: (c.beta_network, c.gamma_network), made, tuple(networks))

    @property
    def smooth(self) -> bool:
        return self.beta_network.activation == "softplus"

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Neural:
        curves = (
            samples(beta, t0, t1, "beta", positive=False),
            samples(gamma, t0, t1, "gamma", positive=False),
        )
        networks = tuple(
            network.regressed(*curve, self.plain)
            for network, curve in zip((self.beta_network, self.gamma_network), curves, strict=True)
        )
        return eqx.tree_at(lambda c: (c.beta_network, c.gamma_network), self, networks)
