"""What Theorem 1 bounds, in numbers: the value by E(t0)/delta(T), four integrals by E(t0).

With a minimiser x* it bounds f(x(T)) - f*. Without one, every point z with f(z) <= f(x0) serves:
some t <= T has f(x(t)) <= f(z) + E_z(t0)/delta(T). Where that is not below f(x0), where the flow
begins, the number says nothing. See docs/mathematics.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_positive
from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.paper.check_flow import Flow
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.ishd import State
from ode2opt.paper.lyapunov import (
    Pair,
    Rates,
    ReferencePoint,
    delta,
    energy,
    rates,
    starting_energy,
)
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.problems.minimiser import MinimiserCheck, check_minimiser


@dataclass(frozen=True)
class FlowBound:
    """What Theorem 1 says of the values along the flow of one instance.

    Attributes:
        value: E_z(t0)/delta(T), in the units of f.
        reference: f(z), the value that the flow is compared with.
        start: f(x0) - f(z), how far above that the flow begins.
        minimiser: whether z is a minimiser. Then f(x(T)) - f* <= value; else some t <= T has
            f(x(t)) <= reference + value, and nothing more is known.
        why: such as "no minimiser: column 3 ..." or "no known minimiser: ..."; goes on after "has".
    """

    value: float
    reference: float
    start: float
    minimiser: bool
    why: str

    @property
    def says_something(self) -> bool:
        """Whether the bound is below where the flow begins."""
        return self.value < self.start


@double
def flow_bound(
    coefficients: Coefficients,
    problem: Problem,
    x0: Array,
    *,
    pair: tuple[float, float],
    t0: float,
    t1: float,
    scale: float = 1.0,
    check: MinimiserCheck | None = None,
    near: float = 1e-5,
) -> FlowBound:
    """Compute E_z(t0)/delta(t1) for an instance whose coefficients meet Theorem 1 on [t0, t1].

    z is a minimiser where the problem has one and it is found: a point with ``near`` times the
    gradient norm of the start. Else z is the point that makes the promise f(z) + E_z(t0)/delta(t1)
    as low as it can be.

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f.
        x0: where the flow begins, at rest.
        pair: (kappa, lam) for which Theorem 1 was checked.
        t0: the first time.
        t1: the last time, above t0.
        scale: the curvature that the coefficients are divided by; 1 by default.
        check: whether f has a minimiser, if that was looked into already.
        near: above, 1e-5 by default.

    Returns:
        The bound.

    Example:
        >>> from ode2opt.paper import Default
        >>> found = flow_bound(Default(1.0), problem, x0, pair=(1.0, 5.0), t0=1.0, t1=21.0)
        >>> 0 < found.value < 0.1
        True
    """
    twin, x0 = to_jax(problem), np.asarray(x0, dtype=np.float64)
    check = check_minimiser(problem) if check is None else check
    if check.exists:
        f = _function(twin)
        z = _lowest(f, x0)
        if np.linalg.norm(f(z)[1]) <= near * np.linalg.norm(f(x0)[1]):
            return _bound(coefficients, twin, x0, z, Pair(*pair), (t0, t1), scale, check)
    promise = _promise(coefficients, twin, x0, Pair(*pair), (t0, t1), scale)
    z = _lowest(promise, x0)
    if float(twin.value(z)) > float(twin.value(x0)):
        z = x0
    reason = "it was not reached" if check.exists else check.reason
    unreached = MinimiserCheck(False if check.exists is False else None, reason)
    return _bound(coefficients, twin, x0, z, Pair(*pair), (t0, t1), scale, unreached)


def _bound(
    coefficients: Coefficients,
    problem: Problem,
    x0: np.ndarray,
    z: np.ndarray,
    pair: Pair,
    times: tuple[float, float],
    scale: float,
    check: MinimiserCheck,
) -> FlowBound:
    t0, t1 = times
    value = float(problem.value(z))
    first = starting_energy(coefficients, problem, pair, ReferencePoint(z, value), x0, t0, scale)
    share = scale * float(first) / float(delta(coefficients, pair, t1))
    found = {True: "a minimiser", False: "no minimiser", None: "no known minimiser"}[check.exists]
    start = float(problem.value(x0)) - value
    return FlowBound(share, value, start, check.exists is True, f"{found}: {check.reason}")


Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _function(problem: Problem) -> Function:
    """Return f and its gradient as NumPy sees them."""

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _value_and_gradient(problem, x)
        return float(value), np.asarray(gradient)

    return both


def _promise(
    coefficients: Coefficients,
    problem: Problem,
    x0: np.ndarray,
    pair: Pair,
    times: tuple[float, float],
    scale: float,
) -> Function:
    """Return z -> f(z) + E_z(t0)/delta(t1) up to a constant, a strongly convex function."""
    f, (t0, t1) = _function(problem), times
    late = float(delta(coefficients, pair, t1))
    share = max(1 - float(delta(coefficients, pair, t0)) / late, 0.0)
    push = scale * pair.lam / late
    pull = t0 * float(coefficients.beta(t0)) * f(x0)[1] / scale
    spring = float(coefficients.alpha) - 1

    def both(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = f(z)
        away = x0 - z
        quadratic = push * (spring / 2 * away @ away + pull @ away)
        return share * value + quadratic, share * gradient - push * (spring * away + pull)

    return both


def _lowest(function: Function, x0: np.ndarray) -> np.ndarray:
    """Return about the minimiser of a smooth convex function."""
    from scipy.optimize import minimize

    size = float(np.linalg.norm(function(x0)[1])) or 1.0
    found: Any = minimize(
        lambda x: tuple(part / size for part in function(x)), x0, jac=True, method="L-BFGS-B",
        options={"maxiter": 2_000, "maxfun": 4_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 30},
    )  # fmt: skip
    return np.asarray(found.x, dtype=np.float64)


@eqx.filter_jit
def _value_and_gradient(problem: Problem, x: Array) -> tuple[Array, Array]:
    return problem.value_and_gradient(x)


class IntegralEstimates(NamedTuple):
    """The four integrals of Theorem 1 along a flow; with E at the last time at most E(t0) in all.

    Attributes:
        value: of (lam t w - delta') (f - f(z)).
        velocity: of (alpha - 1 - lam) t |x'|^2.
        gradient: of kappa t^2 beta w |g|^2.
        hessian: of (1 - kappa) t^2 beta <H x', x'>.
        first: E(t0).
        last: E at the last time.
    """

    value: float
    velocity: float
    gradient: float
    hessian: float
    first: float
    last: float

    @property
    def total(self) -> float:
        """The sum of the four integrals and E at the last time: at most ``first``."""
        return self.value + self.velocity + self.gradient + self.hessian + self.last


@double
def integral_estimates(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint,
    found: Flow, scale: float = 1.0,
) -> IntegralEstimates:  # fmt: skip
    """Integrate the four quantities that Theorem 1 bounds along a flow, by Simpson's rule.

    Args:
        coefficients: alpha, beta and gamma for curvature 1.
        problem: f.
        pair: kappa and lam. Two integrals vanish for the paper's, kappa = 1 and lam = alpha - 1.
        reference: z and f(z). With a minimiser the sum of all is at most E(t0).
        found: a flow with at least three times (``ts``).
        scale: the curvature that the coefficients were divided by; 1 by default.

    Raises:
        InputError: the flow has fewer than three times, or was not solved.

    Example:
        >>> from ode2opt.paper import Default, flow
        >>> best = solve(problem, tol=1e-10)
        >>> found = flow(Default(1.0), problem, x0, t1=3.0, ts=np.linspace(1, 3, 401))
        >>> reference = ReferencePoint(best.x, best.fun)
        >>> estimates = integral_estimates(
        ...     Default(1.0), problem, Pair(0.5, 3.0), reference, found
        ... )
        >>> estimates.total <= estimates.first
        True
    """
    from scipy.integrate import simpson

    t = np.asarray(found.t)
    if t.ndim != 1 or len(t) < 3:
        raise InputError("Integrals along a flow need at least three of its times: give it ts.")
    if not np.all(np.isfinite(np.asarray(found.x))):
        raise InputError("The flow was not solved up to its last time: its states are not finite.")
    twin, scale = to_jax(problem), as_positive(scale, "The scale")
    pair = Pair(*map(jnp.asarray, pair))
    point = ReferencePoint(jnp.asarray(reference.x), jnp.asarray(reference.value))
    rates, energies = _along(coefficients, twin, pair, point, found, jnp.asarray(scale))
    value, velocity, gradient, hessian = (float(simpson(np.asarray(r), x=t)) for r in rates[:4])
    first, last = float(energies[0]), float(energies[-1])
    return IntegralEstimates(value, velocity, gradient, hessian, first, last)


@eqx.filter_jit
def _along(
    coefficients: Coefficients, problem: Problem, pair: Pair, reference: ReferencePoint,
    found: Flow, scale: Array,
) -> tuple[Rates, Array]:  # fmt: skip
    """Return the integrands and E at all times of a flow."""

    def one(t: Array, x: Array, v: Array) -> tuple[Rates, Array]:
        common = (coefficients, problem, pair, reference, t, State(x, v), scale)
        return rates(*common), energy(*common)

    return jax.vmap(one)(found.t, found.x, found.v)
