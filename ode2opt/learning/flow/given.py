"""What ``learn`` is given for a flow beside plain options: coefficients, and penalties.

Coefficients may be a class or instance of ``ode2opt.coefficients``, or any equinox module with
``alpha``, ``beta(t)``, ``gamma(t)``. A penalty is f(t, state, coefficients, curvature) -> number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError, shown
from ode2opt.base.precision import double
from ode2opt.coefficients import COEFFICIENTS, Coefficients
from ode2opt.learning.flow.options import OWN, FlowOptions
from ode2opt.paper.coefficients import derivative

NAME, FIRST_VALUES = "coefficients", "first"
FITTED = ("C", "activation")  # of these coefficients to begin with are made

Term = Callable[[Array, "FlowState", Coefficients, Array], Array]


class FlowState(NamedTuple):
    """The flow at one time, as a penalty of one's own sees it.

    Attributes:
        x: the point.
        v: x' + beta g.
        g: the gradient over the curvature that the coefficients are divided by.
    """

    x: Array
    v: Array
    g: Array


@dataclass(frozen=True)
class StabilityP:
    """P, the violation of the stability condition along the way, in a list of ``penalties``.

    Attributes:
        safety: the factor on the curvature; None, the default, is that of the options.
    """

    safety: float | None = None


@dataclass(frozen=True)
class ConvergenceQ:
    """Q, the violation of the conditions of Theorem 1, in a list of ``penalties``.

    Attributes:
        kappa: of Theorem 1; None, the default, is that of the options.
        lam: of Theorem 1; None, the default, is that of the options.
    """

    kappa: float | None = None
    lam: float | None = None


class Given(NamedTuple):
    """What is no plain option.

    Attributes:
        coefficients: a module of one's own; None for coefficients by name.
        penalties: terms of one's own beside P and Q.
        counted: which of "P" and "Q" count.
    """

    coefficients: Coefficients | None = None
    penalties: tuple[Term, ...] = ()
    counted: tuple[str, ...] = ("P", "Q")

    def identity(self) -> dict[str, Any]:
        """Return what a run's configuration says of it: names, and a hash of arrays."""
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves((self.coefficients, self.penalties)):
            if eqx.is_array(leaf):
                digest.update(np.ascontiguousarray(leaf).tobytes())
        names = [*self.counted, *(getattr(f, "__qualname__", type(f).__qualname__)
                                  for f in self.penalties)]  # fmt: skip
        kind = None
        if self.coefficients is not None:
            kind = type(module_of(self.coefficients)).__qualname__
        return {"coefficients": kind, "penalties": ", ".join(names), "hash": digest.hexdigest()}


NOTHING = Given()


def taken_out(options: Mapping[str, Any]) -> tuple[dict[str, Any], Given]:
    """Return plain options, and what else was given among them."""
    plain, given = dict(options), NOTHING
    if callable(plain.get("penalty")) or "penalties" in plain:
        given = _penalties(plain)
    coefficients = plain.get(NAME)
    if coefficients is None or isinstance(coefficients, str):
        return _for_a_flow(plain, given), given
    names = {kind: name for name, kind in COEFFICIENTS.items()}
    if isinstance(coefficients, type) and coefficients in names:
        plain[NAME] = names[coefficients]
        return _for_a_flow(plain, given), given
    if isinstance(coefficients, type) or not all(
        callable(getattr(coefficients, curve, None)) for curve in ("beta", "gamma")
    ):
        raise InputError(
            f"coefficients must be a name as 'spline', a class of ode2opt.coefficients as Spline,"
            f" or an instance as Spline(), or an equinox module with alpha, beta(t) and gamma(t), "
            f"not {shown(coefficients)}."
        )
    if plain.get("target", FlowOptions.target) != FlowOptions.target:
        raise InputError(
            f"Coefficients to begin with are for --target flow; a {plain['target']} learns a "
            f"table: leave coefficients out."
        )
    if isinstance(coefficients, Coefficients) and type(coefficients) in names:
        plain |= {NAME: names[type(coefficients)], **_settings(coefficients, plain)}
        values = {name: array.tolist() for name, array in coefficients.parameters().items()}
        plain[FIRST_VALUES] = {"settings": coefficients.settings, "parameters": values}
        return _for_a_flow(plain, given), given
    module = _checked(coefficients)
    plain |= {NAME: OWN, **_settings(module, plain)}
    return plain, given._replace(coefficients=module)


def _for_a_flow(plain: dict[str, Any], given: Given) -> dict[str, Any]:
    if given is not NOTHING and plain.get("target", FlowOptions.target) != FlowOptions.target:
        raise InputError(
            f"Penalties of your own are for --target flow, not for a {plain['target']}: leave them "
            f"out."
        )
    return plain


def _penalties(plain: dict[str, Any]) -> Given:
    """Take penalties out of options; what P and Q say of themselves becomes options."""
    added = [plain.pop("penalty")] if callable(plain.get("penalty")) else []
    if "penalties" not in plain:
        return Given(penalties=tuple(added))
    listed = plain.pop("penalties")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise InputError(
            f"penalties must be a list as [StabilityP(), ConvergenceQ(), f], not {shown(listed)}."
        )
    counted, own = [], added
    for one in listed:
        one = one() if one in (StabilityP, ConvergenceQ) else one
        if isinstance(one, StabilityP | ConvergenceQ):
            counted.append("P" if isinstance(one, StabilityP) else "Q")
            said = {each.name: getattr(one, each.name) for each in fields(one)}
            plain |= {name: value for name, value in said.items() if value is not None}
        elif callable(one):
            own.append(one)
        else:
            raise InputError(
                f"A penalty is StabilityP(), ConvergenceQ() or f(t, state, coefficients, "
                f"curvature), not {shown(one)}."
            )
    if len(set(counted)) < len(counted):
        raise InputError("penalties has StabilityP or ConvergenceQ twice: once is enough.")
    return Given(penalties=tuple(own), counted=tuple(sorted(counted)))


def _settings(given: Coefficients, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an instance says; options that contradict it are refused."""
    for name in FITTED:
        if name in options:
            raise InputError(
                f"{name} is for coefficients that training makes, and these are given: leave {name}"
                f" out."
            )
    found: dict[str, Any] = {"alpha": float(given.alpha)}
    if "h" in given.settings:
        found["h"] = given.settings["h"]
    for name, value in found.items():
        if options.get(name, value) != value:
            raise InputError(
                f"{name} is {options[name]}, but the coefficients have {value:g}: leave {name} out."
            )
    return found


# Coefficients of one's own


class OwnCoefficients(Coefficients):
    """A module with ``alpha``, ``beta(t)`` and ``gamma(t)`` as coefficients."""

    module: eqx.Module

    def _whole(self) -> Any:
        return eqx.tree_at(lambda module: module.alpha, self.module, self.alpha)

    def beta(self, t: Array) -> Array:
        return self._whole().beta(t)

    def gamma(self, t: Array) -> Array:
        return self._whole().gamma(t)

    def dbeta(self, t: Array) -> Array:
        given = getattr(self._whole(), "dbeta", None)
        return derivative(self.beta)(t) if given is None else given(t)


def module_of(coefficients: Coefficients) -> Any:
    """Return learned coefficients as they were given: a module of one's own is one again."""
    return coefficients._whole() if isinstance(coefficients, OwnCoefficients) else coefficients


@double
def _checked(given: Any) -> Coefficients:
    """Return a module as coefficients in double precision, once its alpha is a number above 1."""
    what = type(given).__name__
    if not isinstance(given, eqx.Module):
        raise InputError(f"{what} is no equinox module: derive it from eqx.Module.")
    dynamic = {each.name for each in fields(given) if not each.metadata.get("static", False)}
    if "alpha" not in dynamic:
        raise InputError(f"{what} has no alpha: make it a field that is not static.")
    alpha: Any = given.alpha
    if np.ndim(alpha) or not np.isreal(alpha) or not 1 < float(alpha) < np.inf:
        raise InputError(f"alpha of {what} is {shown(alpha)}: it must be a number above 1.")
    module: Any = jax.tree.map(
        lambda leaf: np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf, given
    )
    alpha = np.asarray(alpha, np.float64)
    if isinstance(module, Coefficients):
        return eqx.tree_at(lambda c: c.alpha, module, alpha)
    module = eqx.tree_at(lambda c: c.alpha, module, float(alpha))  # no leaf to learn twice
    return OwnCoefficients(alpha, module)


@double
def check_curves(coefficients: Coefficients, t0: float, t1: float) -> None:
    """Refuse coefficients whose curves are no finite numbers at the times of the horizon."""
    what, times = type(module_of(coefficients)).__name__, jnp.geomspace(t0, t1, 100)
    curves = {f"{name}(t)": getattr(coefficients, name) for name in ("beta", "gamma", "dbeta")}
    for name, curve in curves.items():
        try:
            shape = jax.eval_shape(curve, times[0]).shape
            values = np.asarray(jax.vmap(curve)(times))
        except Exception as error:
            raise InputError(
                f"{name} of {what} cannot be traced by JAX: {_first_line(error)}"
            ) from error
        if shape:
            raise InputError(f"{name} of {what} has the shape {shape}: it must be one number.")
        if not np.all(np.isfinite(values)):
            t = float(times[~np.isfinite(values)][0])
            raise InputError(f"{name} of {what} is not finite at t = {t:.4g}.")
    if not any(
        eqx.is_inexact_array(leaf)
        for leaf in jax.tree.leaves(eqx.tree_at(lambda c: c.alpha, coefficients, 0.0))
    ):
        raise InputError(f"{what} has no arrays beside alpha: there is nothing to learn.")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


# Penalties of one's own


class Added(NamedTuple):
    """What penalties add up to along the way.

    Attributes:
        arrays: those of the coefficients.
        now: the sum of the penalties at the last time.
        integral: its integral up to there.
    """

    arrays: Any
    now: Array
    integral: Array


class OwnPenalties(eqx.Module):
    """The sum of penalties, integrated along the flow by the trapezoidal rule.

    Attributes:
        terms: the penalties.
        rest: what is no array in the coefficients.
    """

    terms: tuple[Any, ...]
    rest: Any

    def __init__(self, terms: tuple[Term, ...], coefficients: Coefficients) -> None:
        self.terms = terms
        self.rest = eqx.filter(coefficients, eqx.is_inexact_array, inverse=True)

    def begun(
        self, coefficients: Coefficients, row: Any, state: tuple[Array, ...], curvature: Array
    ) -> Added:
        """Return the penalties at the first time."""
        arrays = jax.tree.map(jnp.asarray, eqx.filter(coefficients, eqx.is_inexact_array))
        zero = jnp.asarray(0.0)
        return self.after(Added(arrays, zero, zero), row, state, curvature, 0.0)

    def after(
        self, before: Added, row: Any, state: tuple[Array, ...], curvature: Array, step: Any
    ) -> Added:
        """Return the penalties at the end of a step."""
        coefficients = eqx.combine(before.arrays, self.rest)
        t = coefficients.alpha / row.damping
        given = (t, FlowState(*state), module_of(coefficients), curvature)
        now = sum((jnp.asarray(term(*given), float) for term in self.terms), jnp.asarray(0.0))
        return Added(before.arrays, now, before.integral + 0.5 * step * (before.now + now))


@double
def check_penalties(
    penalties: Sequence[Term], coefficients: Coefficients, x0: Array, t0: float
) -> None:
    """Refuse a penalty that is no finite number at the start."""
    x = jnp.asarray(x0)
    for term in penalties:
        what = f"The penalty {getattr(term, '__name__', type(term).__name__)}"
        given = (jnp.asarray(t0), FlowState(x, x, x), module_of(coefficients), jnp.asarray(1.0))
        try:
            value = jax.jit(lambda t, s, k, c=given[2], f=term: f(t, s, c, k))(
                given[0], given[1], given[3]
            )
        except Exception as error:
            raise InputError(f"{what} cannot be traced by JAX: {_first_line(error)}") from error
        if np.shape(value):
            raise InputError(f"{what} has the shape {np.shape(value)}: it must be one number.")
        if not np.isfinite(value):
            raise InputError(f"{what} is {float(value)} at the start: it must be finite.")
