"""Who should solve the flow in training: the loop that is written for it, or diffrax?

The stopping time T of one training problem and its derivative by the coefficients, as StoPM needs
them at every step: lpp on a5a (or rows of its shape, as in benchmarks/stopm.py), tolerance 1e-4.
The truth is diffrax's Tsit5 at a tolerance of 1e-10. Printed for each solver: the error of T and
of dT/dtheta (relative, in norm), gradients of f on the way, and the processor's time without and
with the derivative.

The loop's last row is what training does: sequence, curvature, P and Q as well, which nobody else
computes here. --record keeps the table of docs/measurements/learned.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import optimistix
from recording import RECORD, Table, record
from stopm import family

from ode2opt.base.differentiable_loop import loop, row_of
from ode2opt.base.precision import double
from ode2opt.learning import FlowOptions
from ode2opt.learning.flow.target import FlowTarget
from ode2opt.learning.protocol import TRAINING
from ode2opt.paper.check_flow import initial_state, velocity
from ode2opt.paper.ishd import State, ishd
from ode2opt.paper.stopping_time import log_norm

EPS, ROUNDS = 1e-4, 15
TRUTH, LOOSE = 1e-10, 1e-4  # tolerances of adaptive steps
MOST_STEPS = 16_384
STAGES = {"Heun": 2, "Tsit5": 6}  # gradients a step; Tsit5's last one is the next one's first
COLUMNS = ("solver", "error of T", "of dT/dθ", "gradients", "T alone", "T and dT/dθ")


class Case(NamedTuple):
    """A problem to follow, the coefficients it is followed with, and where it ends."""

    one: Any
    options: FlowOptions
    coefficients: Any

    @property
    def end(self) -> float:
        """The time at which a flow is given up."""
        return self.options.t1


class Found(NamedTuple):
    """A stopping time, and how many steps were taken for it."""

    T: Any
    steps: Any


def by_diffrax(case: Case, solver: Any, adjoint: Any, rtol: float | None, theta: Any) -> Found:
    """Return T by diffrax's event, with steps of h or, given a tolerance, adaptive ones."""
    one, options = case.one, case.options
    solution = diffrax.diffeqsolve(
        _term(case, theta), solver, options.t0, case.end, options.h if rtol is None else None,
        initial_state(theta, one.problem, one.scale, options.t0, one.x0),
        saveat=diffrax.SaveAt(t1=True), adjoint=adjoint, max_steps=MOST_STEPS,
        stepsize_controller=_controller(rtol),
        event=diffrax.Event(
            lambda t, y, args, **rest: log_norm(one.problem, y.x) - jnp.log(EPS),
            optimistix.Newton(rtol=1e-10, atol=1e-12), direction=False,
        ),
    )  # fmt: skip
    return Found(solution.ts[-1], solution.stats["num_steps"])


def by_backsolve(case: Case, solver: Any, rtol: float, theta: Any) -> Found:
    """Return T with the derivative of the implicit function theorem around the adjoint equation.

    The adjoint equation knows no events: T is found first, and log |g(x(T))| differentiated there.
    """
    one, options = case.one, case.options
    found = by_diffrax(case, solver, diffrax.RecursiveCheckpointAdjoint(), rtol, _still(theta))
    T = jax.lax.stop_gradient(found.T)

    def height(theta: Any, T: Any) -> tuple[Any, Any]:
        solution = diffrax.diffeqsolve(
            _term(case, None), solver, options.t0, T, None,
            initial_state(theta, one.problem, one.scale, options.t0, one.x0), theta,
            adjoint=diffrax.BacksolveAdjoint(), max_steps=MOST_STEPS,
            stepsize_controller=_controller(rtol),
        )  # fmt: skip
        end = State(solution.ys.x[-1], solution.ys.v[-1])
        return log_norm(one.problem, end.x), end

    value, end = height(theta, T)
    moved = velocity(_still(theta), one.problem, one.scale, T, jax.lax.stop_gradient(end)).x
    _, slope = jax.jvp(partial(log_norm, one.problem), (jax.lax.stop_gradient(end.x),), (moved,))
    return Found(T - (value - jax.lax.stop_gradient(value)) / slope, found.steps)


def by_loop(case: Case, theta: Any) -> Found:
    """Return T by Heun's method in the differentiable loop, the flow alone."""
    (problem, x0, scale), options = case.one, case.options
    h, goal = options.h, jnp.log(EPS)
    t = options.t0 + h * jnp.arange(options.horizon + 1)
    rows = jax.vmap(lambda t: (theta.alpha / t, theta.beta(t), theta.gamma(t), theta.dbeta(t)))(t)

    def step(here: Any, there: Any, s: State, constants: Any) -> tuple[State, Any]:
        problem, scale = constants
        first = ishd(s.v, problem.gradient(s.x) / scale, *here)
        middle = State(*(a + h * b for a, b in zip(s, first, strict=True)))
        second = ishd(middle.v, problem.gradient(middle.x) / scale, *there)
        parts = zip(s, first, second, strict=True)
        new = State(*(a + h / 2 * (b + c) for a, b, c in parts))
        return new, log_norm(problem, new.x) <= goal

    start = initial_state(theta, problem, scale, options.t0, x0)
    state, i, _ = loop(step, start, rows, (problem, scale))
    new, _ = step(row_of(rows, i), row_of(rows, i + 1), state, (problem, scale))
    high, low = (log_norm(problem, each.x) for each in (state, new))
    return Found(t[i] + h * (high - goal) / (high - low), i + 1)


def by_training(case: Case, rules: Any, theta: Any) -> Found:
    """Return T as training finds it, with P and Q beside it."""
    found = rules.stopping_time(theta, case.one)
    T = found.T + 0.0 * (found.P + found.Q)  # so that they are computed, and differentiated
    return Found(T, (found.T - case.options.t0) / case.options.h + 1)


def _term(case: Case, theta: Any) -> Any:
    """Return the system, with given coefficients or, where there are none, those of ``args``."""
    problem, _, scale = case.one
    return diffrax.ODETerm(
        lambda t, s, args: velocity(args if theta is None else theta, problem, scale, t, s)
    )


def _controller(rtol: float | None) -> Any:
    if rtol is None:
        return diffrax.ConstantStepSize()
    return diffrax.PIDController(rtol=rtol, atol=rtol * 1e-2)


def _still(tree: Any) -> Any:
    return jax.lax.stop_gradient(tree)


class Row(NamedTuple):
    """What was measured of a solver."""

    T: float
    slope: Any
    gradients: float
    forward: float
    both: float


def measured(find: Callable[[Any], Found], stages: int, case: Case) -> Row:
    """Return what a solver finds and takes."""
    learned, rest = eqx.partition(case.coefficients, eqx.is_inexact_array)
    flat, back = jax.flatten_util.ravel_pytree(learned)

    def time_of(theta: Any) -> tuple[Any, Any]:
        return find(eqx.combine(back(theta), rest))

    forward = eqx.filter_jit(time_of)
    both = eqx.filter_jit(jax.value_and_grad(time_of, has_aux=True))
    (T, steps), slope = both(flat)
    times = [seconds_of(lambda work=work: work(flat)) for work in (forward, both)]
    return Row(float(T), slope, stages * float(steps), *times)


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the processor's seconds for a call, the least of several: others disturb less so."""
    jax.block_until_ready(work())
    found = []
    for _ in range(ROUNDS):
        began = process_time()
        jax.block_until_ready(work())
        found.append(process_time() - began)
    return min(found)


@double
def main() -> None:
    """Print the table."""
    options = FlowOptions(tol=EPS)
    target = FlowTarget(family(), options)
    one = target.instance(target.problem(TRAINING, 0), TRAINING, 0)
    case = Case(one, options, target.start)
    kept = diffrax.RecursiveCheckpointAdjoint()
    heun, tsit5 = diffrax.Heun(), diffrax.Tsit5()
    solvers: dict[str, tuple[Callable[[Any], Found], int]] = {
        "truth": (partial(by_diffrax, case, tsit5, kept, TRUTH), STAGES["Tsit5"]),
        "Heun, our loop": (partial(by_loop, case), STAGES["Heun"]),
        "Heun, diffrax": (partial(by_diffrax, case, heun, kept, None), STAGES["Heun"]),
        "Heun adaptive, diffrax": (partial(by_diffrax, case, heun, kept, LOOSE), STAGES["Heun"]),
        "Tsit5, diffrax": (partial(by_diffrax, case, tsit5, kept, LOOSE), STAGES["Tsit5"]),
        "Tsit5, adjoint equation": (partial(by_backsolve, case, tsit5, LOOSE), STAGES["Tsit5"]),
        "training: T, P and Q": (partial(by_training, case, target.rules), STAGES["Heun"]),
    }
    truth = measured(*solvers.pop("truth"), case)
    print(f"T = {truth.T:.6f}, {(truth.T - options.t0) / options.h:.1f} steps of h = {options.h}")
    table = Table(*COLUMNS)
    for name, solver in solvers.items():
        try:
            table.add(*cells(name, measured(*solver, case), truth))
        except (RuntimeError, jax.errors.JaxRuntimeError) as error:
            if "maximum number of solver steps" not in str(error):
                raise
            table.add(name, *[None] * 4, f"more than {MOST_STEPS:,} steps on the way back")
    if RECORD in sys.argv:
        record("flow_solvers", {"solvers": table})


def cells(name: str, row: Row, truth: Row) -> tuple[str, ...]:
    """Return a row of the table."""
    wrong = float(jnp.linalg.norm(row.slope - truth.slope) / jnp.linalg.norm(truth.slope))
    return (
        name, f"{abs(row.T - truth.T):.1e}", f"{wrong:.1e}", f"{row.gradients:.0f}",
        f"{1e3 * row.forward:.1f} ms", f"{1e3 * row.both:.1f} ms",
    )  # fmt: skip


if __name__ == "__main__":
    main()
