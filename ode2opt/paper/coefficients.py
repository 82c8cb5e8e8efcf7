"""The coefficients (alpha, beta, gamma) for a curvature of 1 (docs/mathematics.md, section 8).

``Default`` is the paper's formula and ``Neural`` the paper's two networks. Derivatives, schedules,
conditions and training follow from ``beta`` and ``gamma`` of one time, which JAX has to trace.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_count
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.precision import double, jax_precision
from ode2opt.base.schedule import Schedule, TimeFunction
from ode2opt.base.stored import Stored
from ode2opt.paper.default import ACTIVATIONS, ALPHA, DefaultCoefficients, H, check_times


class Curves(NamedTuple):
    """beta, gamma and their derivatives at some times t."""

    t: Array
    beta: Array
    gamma: Array
    dbeta: Array
    dgamma: Array
    d2beta: Array


def derivative(curve: TimeFunction) -> TimeFunction:
    """Return the derivative of a function of time, by forward differentiation, which nests well."""
    return lambda t: jax.jvp(curve, (t,), (jnp.ones_like(t),))[1]


class Coefficients(Stored):
    """The coefficients alpha, beta(t) and gamma(t) of the inertial system.

    A subclass gives ``beta`` and ``gamma`` of one time; derivatives come from automatic
    differentiation. ``fit_to`` lets training start at the default, ``settings`` lets a file hold
    them. They are for curvature 1, and are divided by the instance's scale.

    Attributes:
        alpha: the viscous damping, a scalar above 1.
    """

    alpha: Array

    @abstractmethod
    def beta(self, t: Array) -> Array:
        """Return the Hessian damping.

        Args:
            t: a time, positive.
        """

    @abstractmethod
    def gamma(self, t: Array) -> Array:
        """Return the weight of the gradient.

        Args:
            t: a time, positive.
        """

    def dbeta(self, t: Array) -> Array:
        """Return the derivative of beta.

        Args:
            t: a time, positive.
        """
        return derivative(self.beta)(t)

    @property
    def smooth(self) -> bool:
        """Whether beta has a continuous second derivative, as Theorem 1 needs it to."""
        return True

    @double
    def curves(self, t: Array) -> Curves:
        """Return beta, gamma and their derivatives as NumPy arrays.

        Args:
            t: a row of times.
        """
        t = jnp.asarray(t, dtype=jnp.float64)
        return Curves(*(np.asarray(values) for values in _curves(self, t)))

    def numbers(self, t: Array, h: Array) -> tuple[Array, Array, Array]:
        """Return the numbers of EIGAC: a = h beta, c = h^2 (gamma - beta'), d = alpha h / t.

        Args:
            t: a row of times.
            h: the step.
        """
        beta, gamma, dbeta = (jax.vmap(f)(t) for f in (self.beta, self.gamma, self.dbeta))
        return h * beta, h**2 * (gamma - dbeta), self.alpha * h / t

    @double
    def schedule(self, h: float, t0: float, K: int, scale: float = 1.0) -> Schedule:
        """Return the Euler discretisation as a schedule (docs/mathematics.md, section 2).

        Args:
            h: the step, positive.
            t0: the first time, above alpha h.
            K: the number of iterations, at least 1.
            scale: the curvature of the problem, positive; 1 by default.

        Raises:
            InputError: one of them is out of its range.
        """
        check_times(float(self.alpha), h, t0)
        t = jnp.asarray(t0 + h * np.arange(as_count(K, "K")), dtype=jnp.float64)
        rows = _numbers(self, t, jnp.asarray(float(h)))
        return Schedule(*map(np.asarray, rows)).scaled(float(scale))

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Self:
        """Return coefficients of this kind, with this alpha, close to given curves.

        Args:
            beta: the Hessian damping as a function of one time, in NumPy or JAX.
            gamma: the weight of the gradient, likewise.
            t0: the beginning of the interval that is fitted; 1 by default.
            t1: its end; 21 by default, 500 iterations of step 0.04.

        Raises:
            InputError: the times are wrong, or a curve is none that this kind can have.
        """
        raise InputError(f"{type(self).__name__} has no fit_to: it cannot be fitted to curves.")


@eqx.filter_jit
def _curves(coefficients: Coefficients, t: Array) -> tuple[Array, ...]:
    dgamma, d2beta = derivative(coefficients.gamma), derivative(coefficients.dbeta)
    functions = (coefficients.beta, coefficients.gamma, coefficients.dbeta, dgamma, d2beta)
    return (t, *(jax.vmap(f)(t) for f in functions))


@eqx.filter_jit
def _numbers(coefficients: Coefficients, t: Array, h: Array) -> tuple[Array, Array, Array]:
    return coefficients.numbers(t, h)


def as_alpha(alpha: Array) -> np.ndarray:
    """Return alpha as a float64 scalar."""
    if not float(alpha) > 1:
        raise InputError(f"alpha is {float(alpha):g}: it must be above 1.")
    return np.asarray(alpha, dtype=np.float64)


def samples(
    curve: TimeFunction, t0: float, t1: float, what: str, positive: bool, points: int = 400
) -> tuple[Array, Array]:
    """Return times that are even in log t, and a curve's values there, to fit coefficients to."""
    if not 0 < t0 < t1:
        raise InputError(f"A fit needs 0 < t0 < t1, not t0 = {t0:g} and t1 = {t1:g}.")
    t = np.geomspace(t0, t1, points)
    with jax_precision():
        try:
            values = np.asarray(jax.vmap(curve)(jnp.asarray(t)), dtype=np.float64)
        except (TypeError, jax.errors.JAXTypeError):  # plain NumPy code, which cannot be traced
            values = np.array([float(curve(time)) for time in t])
    if not np.all(np.isfinite(values)):
        raise InputError(f"{what} is not finite at t = {t[~np.isfinite(values)][0]:.4g}.")
    if positive and np.any(values <= 0):
        raise InputError(f"{what} is {values.min():.4g} at t = {t[values.argmin()]:.4g}: "
                         f"it must be positive.")  # fmt: skip
    return t, values


class Default(Coefficients):
    """The paper's hand-made coefficients, with a C that can be learned.

    beta = C/h - C alpha/(2t),   gamma = beta/h, or beta/h + beta' with ``corrected``
    """

    C: Array
    h: float = eqx.field(static=True)
    corrected: bool = eqx.field(static=True)

    def __init__(
        self, C: float = 1.0, alpha: float = ALPHA, *, h: float = H, corrected: bool = False
    ) -> None:
        if not C > 0:
            raise InputError(f"C is {C:g}: it must be positive.")
        self.C, self.alpha, self.h, self.corrected = np.float64(C), as_alpha(alpha), h, corrected

    def _formula(self) -> DefaultCoefficients:
        return DefaultCoefficients(self.C, self.alpha, self.h)

    def beta(self, t: Array) -> Array:
        return self._formula().beta(t)

    def gamma(self, t: Array) -> Array:
        formula = self._formula()
        return formula.gamma(t) + formula.dbeta(t) if self.corrected else formula.gamma(t)

    @property
    def settings(self) -> dict[str, Any]:
        return {"h": self.h, "corrected": self.corrected}

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Default:
        """Fit C to beta by least squares; gamma follows from it."""
        t, values = samples(beta, t0, t1, "beta", positive=True)
        shape = DefaultCoefficients(1.0, float(self.alpha), self.h).beta(t)
        C = shape @ values / (shape @ shape)
        return Default(C, float(self.alpha), h=self.h, corrected=self.corrected)


_FUNCTIONS = {
    "softplus": lambda z: jax.nn.softplus(20.0 * z) / 20.0,  # as the paper prints it
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
        size = 10.0 if plain else 1.0
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
        weights = np.linalg.lstsq(design, values / unit, rcond=1e-8 if plain else 1e-10)[0]
        return replace(self, W3=weights[:-1], b3=weights[-1], unit=unit)


class Neural(Coefficients):
    """Two networks of t, one for beta and one for gamma, started at the default coefficients.

    ``plain`` networks have no unit of their own, as in the paper.
    """

    beta_network: Network
    gamma_network: Network
    plain: bool = eqx.field(static=True)

    def __init__(
        self, alpha: Any = ALPHA, *, width: int = 50, activation: str = "softplus", seed: int = 0,
        t1: float = 21.0, C: float = 1.0, plain: bool = False,
    ) -> None:  # fmt: skip
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
        units = [self.beta_network.unit, self.gamma_network.unit]
        width, activation = self.beta_network.W1.shape[-1], self.beta_network.activation
        return {"width": width, "activation": activation, "units": units}

    @classmethod
    def blank(cls, *, units: Sequence[float] = (1.0, 1.0), **settings: Any) -> Neural:
        """Return networks of a given shape, whose parameters are to be filled in."""
        made = cls(**settings)
        pairs = zip((made.beta_network, made.gamma_network), units, strict=True)
        return made._with(*(replace(network, unit=float(unit)) for network, unit in pairs))

    @property
    def smooth(self) -> bool:
        return self.beta_network.activation == "softplus"

    def fit_to(
        self, beta: TimeFunction, gamma: TimeFunction, *, t0: float = 1.0, t1: float = 21.0
    ) -> Neural:
        of_beta = samples(beta, t0, t1, "beta", positive=False)
        of_gamma = samples(gamma, t0, t1, "gamma", positive=False)
        return self._with(
            self.beta_network.regressed(*of_beta, self.plain),
            self.gamma_network.regressed(*of_gamma, self.plain),
        )

    def _with(self, *networks: Network) -> Neural:
        return eqx.tree_at(lambda c: (c.beta_network, c.gamma_network), self, networks)
