"""Coefficients Xi = (alpha, beta, gamma) of the inertial system, for a curvature of 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_count
from ode2opt.base.errors import InputError
from ode2opt.base.precision import double, jax_precision
from ode2opt.paper.default import check_times
from ode2opt.paper.schedule import Schedule, TimeFunction

FIT_POINTS = 400


class Curves(NamedTuple):
    """The coefficients and their derivatives at some times.

    Attributes:
        t: the times.
        beta: the Hessian damping there.
        gamma: the weight of the gradient.
        dbeta: the first derivative of beta.
        dgamma: the first derivative of gamma.
        d2beta: the second derivative of beta.
    """

    t: Array
    beta: Array
    gamma: Array
    dbeta: Array
    dgamma: Array
    d2beta: Array


def derivative(curve: TimeFunction) -> TimeFunction:
    """Return the derivative of a function of time, by forward differentiation, which nests well."""
    return lambda t: jax.jvp(curve, (t,), (jnp.ones_like(t),))[1]


class Coefficients(eqx.Module):
    """The coefficients alpha, beta(t) and gamma(t) of the inertial system.

    They are those of docs/mathematics.md, section 1. A subclass gives ``beta``, ``gamma``,
    ``fit_to`` and ``settings``. Derivatives come from automatic differentiation. All functions
    take one time; ``curves`` takes many. Coefficients are learned for curvature 1 and divided by
    the instance's scale.

    Attributes:
        alpha: the viscous damping, a scalar above 1.
    """

    alpha: Array

    @property
    def smooth(self) -> bool:
        """Whether beta has a continuous second derivative, as Theorem 1 needs it to."""
        return True

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

    @abstractmethod
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
            InputError: not 0 < t0 < t1, or a curve is not finite, or not positive where this kind
                can only be positive.
        """

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What :meth:`blank` needs to make coefficients of the same shape; plain values."""

    @classmethod
    def blank(cls, **settings: Any) -> Self:
        """Return coefficients of a given shape, whose parameters are to be filled in.

        Args:
            **settings: the value of ``settings``.
        """
        return cls(**settings)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, as NumPy arrays."""
        return {name: np.asarray(leaf) for name, leaf in named_arrays(self)}

    def with_parameters(self, values: Mapping[str, np.ndarray]) -> Self:
        """Return a copy with other arrays.

        Args:
            values: arrays of the names and shapes that :meth:`parameters` has.

        Raises:
            InputError: names or shapes differ.
        """
        own = named_arrays(self)
        if (names := {name for name, _ in own}) != set(values):
            raise InputError(f"Parameters {sorted(names)} are due, not {sorted(values)}.")
        for name, leaf in own:
            if np.shape(values[name]) != np.shape(leaf):
                shapes = f"{np.shape(values[name])}, not {np.shape(leaf)}"
                raise InputError(f"The parameter {name} has the shape {shapes}.")
        arrays, rest = eqx.partition(self, eqx.is_inexact_array)
        filled = [np.asarray(values[name], dtype=np.float64) for name, _ in own]
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), filled), rest)

    def dbeta(self, t: Array) -> Array:
        """Return the derivative of beta.

        Args:
            t: a time, positive.
        """
        return derivative(self.beta)(t)

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

        Returns:
            The rows (a, c, d), as JAX arrays that can be differentiated.
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

        Examples:
            >>> from ode2opt.paper import Spline
            >>> len(Spline().schedule(h=0.04, t0=1.0, K=500, scale=2.0))
            500
        """
        alpha = float(self.alpha)
        check_times(alpha, h, t0)
        t = jnp.asarray(t0 + h * np.arange(as_count(K, "K")), dtype=jnp.float64)
        a, c, d = _numbers(self, t, jnp.asarray(float(h)))
        return Schedule(np.asarray(a), np.asarray(c), np.asarray(d)).scaled(float(scale))


def named_arrays(tree: Any) -> list[tuple[str, Array]]:
    """Return the floating-point arrays of a JAX tree with the names of their places."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


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
    curve: TimeFunction, t0: float, t1: float, what: str, positive: bool
) -> tuple[Array, Array]:
    """Return times that are even in log t, and a curve's values there."""
    if not 0 < t0 < t1:
        raise InputError(f"A fit needs 0 < t0 < t1, not t0 = {t0:g} and t1 = {t1:g}.")
    t = np.geomspace(t0, t1, FIT_POINTS)
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
