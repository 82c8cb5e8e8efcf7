"""The inertial system as a flow, solved by diffrax: for trajectories, and as a check.

Training has a loop of its own, which is faster; the tests compare it with this one. All functions
work under jit, vmap and grad in double precision (:func:`ode2opt.paper.double`).
"""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
from array_api_compat import is_jax_namespace

from ode2opt.base.arrays import Array, as_positive
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.precision import double, jax_precision
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.default import T0
from ode2opt.paper.ishd import State, ishd
from ode2opt.paper.stopping_time import log_norm
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import refuse_single_precision, to_jax

_KINDS = (diffrax.Tsit5, diffrax.Dopri5, diffrax.Dopri8, diffrax.Heun, diffrax.Euler)
SOLVERS: dict[str, Any] = {kind.__name__.lower(): kind for kind in _KINDS}


class Flow(eqx.Module):
    """A solved trajectory: times, and there the points x and v of the first-order form."""

    t: Array  # the times asked for, or the end
    x: Array
    v: Array
    reached: Array  # whether ``until`` was met before t1
    succeeded: Array  # whether the solver got there at all
    dense: Any = None  # the interpolant, with ``dense=True``

    @double
    def __call__(self, t: Array) -> State:
        """Return the state at any time of the trajectory (needs ``dense=True``)."""
        if self.dense is None:
            raise InputError("This flow was solved without dense=True.")
        return State(*self.dense(t))


def velocity(
    coefficients: Coefficients, problem: Problem, scale: Array, t: Array, s: State
) -> State:
    """Return (x', v') of the flow."""
    g, damping = problem.gradient(s.x) / scale, coefficients.alpha / t
    curves = (coefficients.beta(t), coefficients.gamma(t), coefficients.dbeta(t))
    return State(*ishd(s.v, g, damping, *curves))


def initial_state(
    coefficients: Coefficients, problem: Problem, scale: Array, t0: Array, x0: Array
) -> State:
    """Return the state in which x' = 0: v = beta(t0) g(x0)."""
    return State(x0, coefficients.beta(t0) / scale * problem.gradient(x0))


def flow(
    coefficients: Coefficients, problem: Problem, x0: Array, *, t1: float, t0: float = T0,
    scale: float = 1.0, ts: Array | None = None, until: float | None = None, dense: bool = False,
    solver: str = "tsit5", rtol: float = 1e-8, atol: float = 1e-10, h: float | None = None,
    max_steps: int = 16_384,
) -> Flow:  # fmt: skip
    """Follow the inertial system from ``x0`` at rest, x'(t0) = 0 (docs/mathematics.md, section 1).

    Args:
        coefficients: for curvature 1; divided by ``scale``.
        problem: the problem; converted by ``to_jax`` if it is on other arrays.
        x0: the start, n numbers.
        t1: the end, above ``t0``.
        t0: the beginning, positive; 1 by default.
        scale: the instance's curvature scale, positive; 1 by default.
        ts: rising times at which the state is wanted, by default the end only; after ``until`` it
            is infinite.
        until: stop where the gradient norm first is at most this.
        dense: keep an interpolant, so that the flow can be called at any time.
        solver: tsit5 (the default), dopri5, dopri8, heun or euler.
        rtol: relative tolerance of the adaptive step size.
        atol: absolute tolerance of it.
        h: a constant step instead; needed by euler, which has no error estimate.
        max_steps: the solve has failed if it takes more steps than this.

    Returns:
        The trajectory. A solve that failed is returned too, with ``succeeded`` False.

    Raises:
        InputError: the solver is unknown, x0 has the wrong shape, or times are out of order.

    Examples:
        >>> from ode2opt.paper import Default, flow
        >>> found = flow(Default(C=1.0), problem, np.ones(3), t1=5.0)
        >>> found.x.shape, bool(found.succeeded)
        ((3,), True)
    """
    if solver not in SOLVERS:
        raise unknown_name("solver", solver, SOLVERS)
    if solver == "euler" and h is None:
        raise InputError("Euler's method has no error estimate: give it a step h.")
    if not t1 > t0 > 0:
        raise InputError(f"A flow needs t1 > t0 > 0, not t0 = {t0:g} and t1 = {t1:g}.")
    for name, number in (("until", until), ("h", h)):
        if number is not None:
            as_positive(number, name)
    if np.shape(x0) != (problem.n,):
        raise InputError(f"x0 has shape {np.shape(x0)}; it must be ({problem.n},).")
    if ts is not None and not isinstance(ts, jax.core.Tracer):
        inside = np.concatenate([[t0], np.asarray(ts), [t1]])
        if np.any(np.diff(inside) < 0):
            raise InputError(f"The times wanted must rise from {t0:g} to {t1:g}.")
    refuse_single_precision(coefficients, problem, x0, scale, ts)
    with jax_precision():
        if not is_jax_namespace(problem.xp):
            problem = to_jax(problem)
        numbers = (x0, t0, t1, scale, ts, until, rtol, atol, h)
        arrays = (None if a is None else jnp.asarray(a, dtype=jnp.float64) for a in numbers)
        return _solve(coefficients, problem, *arrays, dense, solver, max_steps)


@eqx.filter_jit
def _solve(
    coefficients: Coefficients, problem: Problem, x0: Array, t0: Array, t1: Array, scale: Array,
    ts: Array | None, until: Array | None, rtol: Array, atol: Array, h: Array | None,
    dense: bool, solver: str, max_steps: int,
) -> Flow:  # fmt: skip
    event = None
    if until is not None:
        event = diffrax.Event(
            lambda t, y, args, **kwargs: log_norm(problem, y.x) - jnp.log(until),
            optimistix.Newton(rtol=1e-10, atol=1e-12),
            direction=False,  # a fall, not a rise
        )
    sizes = diffrax.PIDController(rtol=rtol, atol=atol) if h is None else diffrax.ConstantStepSize()
    term = diffrax.ODETerm(lambda t, s, args: velocity(coefficients, problem, scale, t, s))
    start = initial_state(coefficients, problem, scale, t0, x0)
    solution = diffrax.diffeqsolve(
        term, SOLVERS[solver](), t0, t1, h, start,
        saveat=diffrax.SaveAt(ts=ts, t1=ts is None, dense=dense),
        stepsize_controller=sizes, event=event, max_steps=max_steps, throw=False,
    )  # fmt: skip
    x, v, t = solution.ys.x, solution.ys.v, solution.ts
    result, reached = solution.result, jnp.asarray(False)
    succeeded = result == diffrax.RESULTS.successful
    if until is not None:
        reached = solution.event_mask
        succeeded = succeeded | (result == diffrax.RESULTS.event_occurred)
    if ts is None:
        x, v, t = x[-1], v[-1], t[-1]
        succeeded = succeeded & jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(v))
        if until is not None:  # x0 may meet it already
            already = log_norm(problem, x0) <= jnp.log(until)
            x, v, t = (jnp.where(already, a, b) for a, b in ((start.x, x), (start.v, v), (t0, t)))
            reached, succeeded = reached | already, succeeded | already
    return Flow(t, x, v, reached, succeeded, solution.evaluate if dense else None)
