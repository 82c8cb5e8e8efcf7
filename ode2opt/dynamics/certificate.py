"""The certificate: which promises hold for a method, with what margin, and where it is smallest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.display import Displayed, Listing, brief
from ode2opt.dynamics.coefficients import Coefficients
from ode2opt.dynamics.conditions import (
    Convergence,
    Growth,
    best_convergence,
    contraction,
    growth,
    linear_margin,
    stability_margin,
)
from ode2opt.dynamics.default import T0, H
from ode2opt.dynamics.estimators import Estimator, PowerIteration, check_hvp
from ode2opt.dynamics.iterates import Numbers, iterates
from ode2opt.dynamics.jaxed import double, to_jax
from ode2opt.dynamics.schedule import Schedule
from ode2opt.dynamics.worst_cases import ExactWorstCase
from ode2opt.errors import InputError, many, printable
from ode2opt.problems._arrays import Array, as_count, as_positive
from ode2opt.problems.base import Problem

STRICT = 1e-6  # a margin below this is no margin
COLD_STEPS, CERTAIN_STEPS = 200, 50
FINER = 4  # times the flow is checked at, an iteration


@dataclass(frozen=True)
class Condition:
    """One condition over all instances: its smallest margin and where that is met.

    ``held`` of ``total`` instances meet it at every iteration. ``instance`` is None for a condition
    on the coefficients alone.
    """

    margin: float
    t: float
    instance: int | None
    held: int
    total: int


class Trace(NamedTuple):
    """Along one instance, iteration by iteration: what the paper's figure 4 shows."""

    curvature: np.ndarray
    rho: np.ndarray
    C: np.ndarray
    B: np.ndarray


@dataclass(frozen=True, repr=False)
class Certificate(Displayed):
    """What can be said of a method; see :meth:`words`.

    Attributes:
        method: its name.
        instances: how many problems it was followed on.
        conditions: "convergence" (the flow, Theorem 1), "stability" (the paper's condition),
            "linear" (exact linear stability); convergence is missing for a bare schedule, and all
            are where there is nothing to follow.
        pair: the (kappa, lam) for which convergence was checked.
        growth: the growth constants of the coefficients.
        estimator: how curvature was found, and the error it may have.
        traces: one for each instance.
        times: first and last time for which the conditions were checked.
        smooth: whether beta is smooth enough for Theorem 1.
        worst_case: the exact worst case of the first iterations, when asked for.
        notes: what else there is to say.
    """

    method: str
    instances: int
    conditions: dict[str, Condition]
    pair: tuple[float, float] | None
    growth: Growth | None
    estimator: str
    traces: tuple[Trace, ...]
    times: tuple[float, float]
    smooth: bool = True
    worst_case: ExactWorstCase | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        along = many(self.instances, "instance")
        return printable(f"Certificate({self.method}, {along}: {brief(self.levels)})")

    def _listing(self) -> Listing:
        rows = [(level, brief(held)) for level, held in self.levels.items()]
        for name, one in self.conditions.items():
            where = f"at t = {one.t:.4g}, held on {one.held} of {one.total}"
            rows.append((f"{name} margin", f"{one.margin:.3g} {where}"))
        rows += [("verdict", words) for words in self.words()]
        title = f"Certificate of {self.method} along {many(self.instances, 'instance')}"
        return Listing(title, rows)

    @property
    def levels(self) -> dict[str, bool]:
        """flow: Theorem 1 holds; sequence: linearly stable with a margin; guarded: always."""
        conditions = self.conditions
        flow = conditions.get("convergence")
        return {
            "flow": flow is not None and flow.margin > 0 and self.smooth,
            "sequence": bool(conditions)
            and min(conditions[k].margin for k in ("stability", "linear")) > STRICT,
            "guarded": True,
        }

    @property
    def margins(self) -> dict[str, float | None]:
        """The smallest margin of each condition."""
        names = ("convergence", "stability", "linear")
        return {n: self.conditions[n].margin if n in self.conditions else None for n in names}

    @property
    def refused(self) -> bool:
        """Whether a level that could hold does not."""
        return not self.levels["sequence"] or (self.pair is not None and not self.levels["flow"])

    def words(self) -> list[str]:
        """Return the verdict, a sentence a level."""
        if not self.conditions:
            return list(self.notes)
        said = [self._flow_words()]
        stability, linear = self.conditions["stability"], self.conditions["linear"]
        along = f"along {self.instances} instance{'s' * (self.instances > 1)}"
        if self.levels["sequence"]:
            said.append(
                f"The sequence is linearly stable with margin {stability.margin:.3g} {along}."
            )
        else:
            weak = stability if stability.margin <= linear.margin else linear
            said.append(
                f"The sequence is not shown to be stable: margin {weak.margin:.3g} at t = "
                f"{weak.t:.4g} on instance {weak.instance}, held on {weak.held} of {weak.total}."
            )
        said.append(
            "Guarded: whatever the margins are, a solve under the guard hands over to a method "
            "that converges for every convex function (within iteration limit and rounding)."
        )
        if self.worst_case is not None:
            said.append(
                f"Over all L-smooth convex functions, f(x_N) - f* after N = {self.worst_case.N} "
                f"iterations is at most {self.worst_case.value:.4g} L |x0 - x*|^2, and no smaller "
                f"number will do (numerical error {self.worst_case.error:.1g})."
            )
        return said + list(self.notes)

    def _flow_words(self) -> str:
        flow = self.conditions.get("convergence")
        if flow is None or self.pair is None:
            return "The schedule is not that of an inertial system: nothing is said of a flow."
        kappa, lam = self.pair
        checked = (
            f"for t in [{self.times[0]:g}, {self.times[1]:g}] "
            f"(Theorem 1 with kappa = {kappa:.3g}, lam = {lam:.3g})"
        )
        if self.levels["flow"]:
            return f"The flow converges {checked}, with margin {flow.margin:.3g}."
        if not self.smooth:
            return f"The flow is not shown to converge {checked}: beta has kinks."
        return (
            f"The flow is not shown to converge {checked}: {flow.margin:.3g} at t = {flow.t:.4g}."
        )

    def summary(self) -> dict[str, Any]:
        """Return the fields of ``ode2opt certify --json`` that the certificate knows."""
        worst = self.worst_case
        return {
            "method": self.method,
            "instances": self.instances,
            "levels": self.levels,
            "margins": {k: _bounded(margin) for k, margin in self.margins.items()},
            "worst_case": None if worst is None else {"N": worst.N, "value": worst.value},
        }


def uncertified(method: str, instances: int, why: str) -> Certificate:
    """Return the certificate of a method of which nothing can be followed: the guard alone."""
    return Certificate(method, instances, {}, None, None, "none", (), (0.0, 0.0), notes=(why,))


def _bounded(margin: float | None) -> float | None:
    """JSON has no infinity: the margin of what cannot be computed is the lowest number there is."""
    return None if margin is None else max(margin, -sys.float_info.max)


@double
def certificate_of(
    method: Coefficients | Schedule,
    problems: Sequence[Problem],
    *,
    name: str = "method",
    scales: Sequence[float] | None = None,
    starts: Sequence[Array] | None = None,
    K: int = 500,
    h: float = H,
    t0: float = T0,
    estimator: Estimator | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Certificate:
    """Return the certificate of coefficients, or of a bare schedule, along problems.

    Args:
        method: coefficients or a schedule, both for curvature 1.
        problems: the instances to follow the sequence on, all of one kind and shape.
        name: what to call the method.
        scales: the curvature scale of each instance; by default the paper's L.
        starts: the start point of each instance; by default the paper's.
        K: iterations to follow.
        h, t0: step and first time of the discretisation.
        estimator: how the curvature along the way is found; by default warm-started power
            iteration of up to 50 steps with a safety factor of 1.01.
        advance: called after each instance.
    """
    K = as_count(K, "K")
    if not isinstance(method, Coefficients | Schedule):
        raise InputError(f"{method!r} is neither coefficients nor a schedule.")
    _check_instances(problems, scales, starts)
    estimator = PowerIteration(CERTAIN_STEPS, safety=1.01) if estimator is None else estimator
    schedule = method.schedule(h, t0, K) if isinstance(method, Coefficients) else method
    if len(schedule) < K:
        raise InputError(f"The schedule has {len(schedule)} iterations, fewer than K = {K}.")
    numbers = tuple(getattr(schedule, key)[:K] for key in "acd")
    traces, margins = [], []
    for i, problem in enumerate(problems):
        if isinstance(estimator, PowerIteration):
            check_hvp(problem, "PowerIteration")
        scale = problem.start().L if scales is None else float(scales[i])
        x0 = np.asarray(problem.start().x0 if starts is None else starts[i], dtype=np.float64)
        trace, stability, linear = _follow(to_jax(problem), numbers, scale, x0, estimator)
        traces.append(trace)
        margins.append((stability, linear))
        advance()
    t = t0 + h * np.arange(K)
    conditions = {
        key: _condition(np.stack([pair[i] for pair in margins]), t)
        for i, key in enumerate(("stability", "linear"))
    }
    pair, grown, smooth = None, None, True
    if isinstance(method, Coefficients):
        fine = np.linspace(t0, t0 + K * h, FINER * K + 1)
        flow, smooth = best_convergence(method, fine), method.smooth
        pair, grown = (flow.kappa, flow.lam), growth(method, fine, h)
        conditions["convergence"] = _flow_condition(flow, smooth, len(problems))
    return Certificate(
        name, len(problems), conditions, pair, grown, estimator.stated_error(),
        tuple(traces), (t0, t0 + K * h), smooth,
    )  # fmt: skip


def _check_instances(
    problems: Sequence[Problem], scales: Sequence[float] | None, starts: Sequence[Array] | None
) -> None:
    if not problems:
        raise InputError("A certificate needs at least one problem.")
    for name, given in (("scales", scales), ("starts", starts)):
        if given is not None and len(given) != len(problems):
            raise InputError(f"There are {len(problems)} problems but {len(given)} {name}.")
    for scale in () if scales is None else scales:
        as_positive(scale, "A scale")
    for problem, start in zip(problems, () if starts is None else starts, strict=False):
        if np.shape(start) != (problem.n,):
            raise InputError(f"A start has shape {np.shape(start)}; it must be ({problem.n},).")


def _flow_condition(flow: Convergence, smooth: bool, total: int) -> Condition:
    k = int(flow.at_each_time.argmin())
    held = total * (flow.margin > 0 and smooth)
    return Condition(flow.margin, float(flow.t[k]), None, held, total)


def _follow(
    problem: Problem, numbers: Numbers, scale: float, x0: Array, estimator: Estimator
) -> tuple[Trace, np.ndarray, np.ndarray]:
    a, c, d = numbers
    scaled = (a / scale, c / scale, d)
    curvature = np.asarray(_curvatures(problem, scaled, jnp.asarray(x0), estimator))
    found = contraction(*scaled, curvature)
    trace = Trace(curvature, found.rho, found.C, found.B)
    return trace, stability_margin(*scaled, curvature), linear_margin(*scaled, curvature)


@eqx.filter_jit
def _curvatures(problem: Problem, numbers: Numbers, x0: Array, estimator: Estimator) -> Array:
    """Return Lam(x_0)..Lam(x_{K-1}) along the sequence, each warm-started from the one before."""
    points = iterates(numbers, problem, x0)[:-1]
    z = estimator.start(problem)
    if isinstance(estimator, PowerIteration):
        z = PowerIteration(COLD_STEPS, estimator.tol)(problem, x0, z).z

    def step(z: Array, x: Array) -> tuple[Array, Array]:
        estimate = estimator(problem, x, z)
        here = jnp.all(jnp.isfinite(problem.gradient(x)))  # whatever the estimator makes of it
        return estimate.z, jnp.where(here, estimate.curvature, jnp.nan)

    return jax.lax.scan(step, z, points)[1]


def _condition(margins: np.ndarray, t: np.ndarray) -> Condition:
    """Summarise margins of shape (instances, iterations); a NaN counts as a failure."""
    margins = np.where(np.isnan(margins), -np.inf, margins)
    instance, k = np.unravel_index(int(margins.argmin()), margins.shape)
    held = int(np.sum(margins.min(axis=1) > STRICT))
    return Condition(float(margins.min()), float(t[k]), int(instance), held, len(margins))
