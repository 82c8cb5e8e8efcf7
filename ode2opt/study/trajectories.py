"""The flow of a method on a problem, and the sequence that is its discretisation, side by side.

Both start at rest at the same point. The flow solves the inertial system (docs/mathematics.md,
section 1); the sequence is EIGAC with step h (section 2), whose iterate k belongs to the time
t0 + k h. The Lyapunov function is that of section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive, as_vector
from ode2opt.base.display import Displayed, Listing
from ode2opt.base.errors import InputError, Ode2OptError, many
from ode2opt.base.precision import double
from ode2opt.base.schedule import Schedule
from ode2opt.learning.sequence.in_metric import in_metric
from ode2opt.paper.check_flow import flow
from ode2opt.paper.coefficients import Coefficients, Default
from ode2opt.paper.conditions import Convergence, best_convergence, convergence
from ode2opt.paper.default import T0, DefaultCoefficients, H
from ode2opt.paper.ishd import State, eigac_step
from ode2opt.paper.lyapunov import Pair, ReferencePoint, energy
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.solvers import Method
from ode2opt.solvers.methods import by_name
from ode2opt.solvers.plots import draw, finish, new_panels

MOST_ITERATIONS = 500  # iterations that are followed where none are asked for
FINER = 4  # times an iteration at which the flow is followed and its conditions are checked
Described = str | Method | Coefficients | DefaultCoefficients


class Path(NamedTuple):
    """Points at rising times, and what was found there.

    Attributes:
        t: the times.
        x: the points, one a row.
        fun: f at each.
        grad_norm: the Euclidean norm of the gradient at each.
        energy: the Lyapunov function at each; None without a minimiser.
    """

    t: np.ndarray
    x: np.ndarray
    fun: np.ndarray
    grad_norm: np.ndarray
    energy: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Trajectories(Displayed):
    """What :func:`ode2opt.trajectories` returns.

    Attributes:
        method: the method's name.
        flow: the trajectory of the inertial system, at four times an iteration.
        sequence: the iterates of EIGAC, at times t0, t0 + h, ...
        h: the step between two times.
        scale: the curvature that the coefficients were divided by.
        convergence: the conditions of Theorem 1 for the pair (kappa, lam) of the Lyapunov function,
            which falls along the flow where ``convergence.margin`` is not negative; None without
            a minimiser.
    """

    method: str
    flow: Path
    sequence: Path
    h: float
    scale: float
    convergence: Convergence | None = None

    def __repr__(self) -> str:
        t = self.sequence.t
        return (
            f"Trajectories({self.method}, {many(len(t) - 1, 'iteration')}, "
            f"t from {t[0]:g} to {t[-1]:g})"
        )

    @property
    def distance(self) -> np.ndarray:
        """How far the sequence is from the flow, at each of its times."""
        return np.asarray(np.linalg.norm(self.flow.x[::FINER] - self.sequence.x, axis=1))

    def _listing(self) -> Listing:
        ends = f"flow {self.flow.grad_norm[-1]:.3g}, sequence {self.sequence.grad_norm[-1]:.3g}"
        rows = [
            ("times", f"{self.flow.t[0]:g} to {self.flow.t[-1]:g}, step h = {self.h:g}"),
            ("gradient norm at the start", f"{self.flow.grad_norm[0]:.3g}"),
            ("gradient norm at the end", ends),
            ("largest distance", f"{np.max(self.distance):.3g}"),
        ]
        if self.convergence is not None:
            found = self.convergence
            rows.append(("kappa, lam", f"{found.kappa:.4g}, {found.lam:.4g}"))
            rows.append(("margin of convergence", f"{found.margin:.3g}"))
        return Listing(f"Flow and sequence of {self.method}", rows)

    def plot(self, ax: Any = None) -> list[Any]:
        """Draw gradient norms over time and, where there is one, the Lyapunov function.

        Args:
            ax: the matplotlib axes to draw in: two with a Lyapunov function, one without; new ones
                by default.

        Returns:
            The axes.
        """
        panels = new_panels(1 if self.convergence is None else 2, ax)
        for style, (name, path) in enumerate((("flow", self.flow), ("sequence", self.sequence))):
            draw(panels[0], path.t, path.grad_norm, name, style)
            if path.energy is not None:
                draw(panels[1], path.t, path.energy, f"E along the {name}", style)
        finish(panels[0], self.method, "time t", "gradient norm")
        if self.convergence is not None:
            kappa, lam = self.convergence.kappa, self.convergence.lam
            title = f"Lyapunov function, κ = {kappa:.3g}, λ = {lam:.3g}"
            finish(panels[1], title, "time t", "E(t)")
        return panels


def trajectories(
    method: Described,
    problem: Problem,
    x0: Array = None,
    *,
    iterations: int | None = None,
    minimiser: Array = None,
    pair: tuple[float, float] | None = None,
    scale: float | None = None,
    h: float | None = None,
    t0: float | None = None,
) -> Trajectories:
    """Follow the flow of a method on a problem, and its sequence, from the same point.

    Args:
        method: a learned :class:`Method` with coefficients, coefficients of your own, or a name
            ("eigac-c2").
        problem: what is minimised.
        x0: the start; by default the method's own, else 0.
        iterations: of the sequence; the flow goes as far. By default the method's horizon, at most
            500.
        minimiser: a point where f is smallest, as ``solve(problem, tol=1e-10).x``; with it the
            Lyapunov function is computed.
        pair: (kappa, lam) of the Lyapunov function; by default the pair for which the conditions
            of Theorem 1 hold with most room.
        scale: the curvature that the coefficients are divided by; by default that of a solve.
        h: step of the sequence; by default the method's, else 0.04.
        t0: first time; by default the method's, else 1.

    Returns:
        Both paths with their times, ready to plot.

    Examples:
        >>> both = trajectories("eigac-c2", problem, minimiser=solve(problem, tol=1e-10).x)
        >>> both.plot()
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, not {type(problem).__name__}.")
    subject = _subject(method)
    x0 = subject.start(problem) if x0 is None else x0
    x0 = np.asarray(as_vector(x0, np.empty(0), "x0", problem.n))
    step = as_positive(subject.h if h is None else h, "h")
    first = as_positive(subject.t0 if t0 is None else t0, "t0")
    K = as_count(subject.horizon if iterations is None else iterations, "iterations")
    L = as_positive(subject.scale(problem, x0) if scale is None else scale, "scale")
    coefficients, host = subject.coefficients, MethodCoordinates(subject.learned, problem, x0, L)
    schedule = coefficients.schedule(step, first, K).scaled(L)  # refuses h and t0 that do not fit
    fine = first + step / FINER * np.arange(FINER * K + 1)
    found, minimum = None, None
    if minimiser is not None:
        minimum = host.minimum(as_vector(minimiser, np.empty(0), "minimiser", problem.n))
        conditions = (
            best_convergence if pair is None else partial(convergence, kappa=pair[0], lam=pair[1])
        )
        found = conditions(coefficients, fine)
    measure = partial(host.path, coefficients, found, minimum)
    paths = (
        measure(fine, host.flow(coefficients, fine)),
        measure(fine[::FINER], host.sequence(schedule, step)),
    )
    if minimum is not None:
        _check_minimum(float(minimum.value), paths)
    return Trajectories(subject.name, *paths, step, L, found)


class _Subject(NamedTuple):
    """A method's coefficients and how it uses them."""

    name: str
    coefficients: Coefficients
    learned: Method | None = None
    horizon: int = MOST_ITERATIONS
    h: float = H
    t0: float = T0

    def start(self, problem: Problem) -> Array:
        """Return the method's own start, else 0."""
        return np.zeros(problem.n) if self.learned is None else self.learned.start_of(problem)

    def scale(self, problem: Problem, x0: np.ndarray) -> float:
        """Return the scale that a solve would take."""
        there = problem.xp.asarray(x0, dtype=problem.dtype)
        if self.learned is None:
            return problem.scale(there).L
        return self.learned.scale_of(problem, there)


def _subject(method: Described) -> _Subject:
    if isinstance(method, Coefficients):
        return _Subject(f"{type(method).__name__} coefficients", method)
    if isinstance(method, DefaultCoefficients):
        default = Default(method.C, method.alpha, h=method.h)
        return _Subject("Default coefficients", default, h=method.h, t0=method.t0)
    if not isinstance(method, str | Method):
        raise InputError(f"method must be a name, a Method or coefficients, not {type(method)}.")
    entry = by_name(method) if isinstance(method, str) else method
    if isinstance(entry, Method):
        coefficients, formula = entry.coefficients(), entry.formula
        assert formula is not None
        horizon = min(entry.horizon, MOST_ITERATIONS)
        name = f"method for {entry.family}"
        return _Subject(name, coefficients, entry, horizon, formula.h, formula.t0)
    if entry.coefficients is None:
        raise InputError(f"{method} is no inertial system and has no flow: 'eigac-c2' has one.")
    return _subject(entry.coefficients)._replace(name=str(method))


def _check_minimum(lowest: float, paths: tuple[Path, Path], slack: float = 1e-9) -> None:
    """Refuse a minimiser where f is higher than on the way, by more than ``slack`` of its fall."""
    seen = float(np.nanmin([path.fun.min() for path in paths]))
    fall = float(paths[0].fun[0]) - seen
    if seen < lowest - slack * abs(fall):
        raise InputError(
            f"minimiser is none: f is {lowest:.10g} there, but {seen:.10g} on the way. "
            f"Solve for it with a smaller tol."
        )


class MethodCoordinates:
    """A problem in the coordinates y of a method, x = S y, where flow and sequence run.

    S is the root of the method's preconditioner; without one x = y.
    """

    def __init__(
        self, learned: Method | None, problem: Problem, x0: np.ndarray, scale: float
    ) -> None:
        self.scale, self.S = scale, None
        self.outer = inner = to_jax(problem)
        self.y0 = x0
        if learned is not None and learned.metric is not None:
            moved = in_metric(learned.replace(scale="family", family_scale=scale), [problem], [x0])
            inner, self.y0 = to_jax(moved.problems[0]), moved.starts[0]
            self.S = learned.metric.matrix()
        self.inner = inner

    def flow(self, coefficients: Coefficients, times: np.ndarray) -> State:
        """Return the states of the flow at given times."""
        found = flow(
            coefficients, self.inner, self.y0, t0=times[0], t1=times[-1], ts=times, scale=self.scale
        )
        if not (bool(found.succeeded) and np.all(np.isfinite(found.x))):
            raise Ode2OptError(
                f"The flow could not be followed from t = {times[0]:g} to {times[-1]:g}: take "
                f"fewer iterations, or a larger scale than {self.scale:.3g}."
            )
        return State(np.asarray(found.x), np.asarray(found.v))

    @double
    def sequence(self, schedule: Schedule, h: float) -> State:
        """Return the iterates of EIGAC and their velocities u/h."""
        numbers = tuple(map(jnp.asarray, (schedule.a, schedule.c, schedule.d)))
        y, u = _sequence(self.inner, numbers, jnp.asarray(self.y0))
        return State(np.asarray(y), np.asarray(u) / h)

    @double
    def minimum(self, minimiser: Array) -> ReferencePoint:
        """Return a minimiser in the method's coordinates, and f there."""
        best = np.asarray(minimiser)
        y = best if self.S is None else np.linalg.solve(self.S, best)
        return ReferencePoint(jnp.asarray(y), self.outer.value(jnp.asarray(best)))

    @double
    def path(
        self,
        coefficients: Coefficients,
        found: Convergence | None,
        minimum: ReferencePoint | None,
        times: np.ndarray,
        states: State,
    ) -> Path:
        """Return states in the problem's own variables, with f, |g| and the Lyapunov function."""
        x = states.x if self.S is None else states.x @ self.S.T
        fun, norms = map(np.asarray, _measured(self.outer, jnp.asarray(x)))
        if found is None or minimum is None:
            return Path(times, x, fun, norms, None)
        pair = Pair(jnp.asarray(found.kappa), jnp.asarray(found.lam))
        at = jax.tree_util.Partial(energy, coefficients, self.inner, pair, minimum)
        there = State(*map(jnp.asarray, states))
        return Path(
            times, x, fun, norms, np.asarray(_energies(at, jnp.asarray(times), there, self.scale))
        )


@eqx.filter_jit
def _sequence(
    problem: Problem, numbers: tuple[Array, Array, Array], x0: Array
) -> tuple[Array, Array]:
    """Return x_0..x_K and u_0..u_K of EIGAC."""

    def step(state: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[Any, Any]:
        x, u = state
        e, after = eigac_step(u, problem.gradient(x), *row)
        return (x + e, after), (x + e, after)

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    x, u = (jnp.concatenate([one[None], rest]) for one, rest in zip(start, later, strict=True))
    return x, u


@eqx.filter_jit
def _measured(problem: Problem, points: Array) -> tuple[Array, Array]:
    """Return f and the gradient norm at each point."""
    gradients = jax.vmap(problem.gradient)(points)
    return jax.vmap(problem.value)(points), jnp.linalg.norm(gradients, axis=1)


@eqx.filter_jit
def _energies(at: Any, times: Array, states: State, scale: float) -> Array:
    """Return the Lyapunov function at each time."""
    return jax.vmap(lambda t, x, v: at(t, State(x, v), scale))(times, *states)
